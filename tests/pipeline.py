"""The pure core, end to end: bytes of upstream's in, bytes for the client out.

A scripted summarizer writes each part as soon as it is asked for; a test that wants other timing
drives the Weaver itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from abridge.turn.conversation import Heard
from abridge.turn.events import Ended, Event, Trouble
from abridge.turn.part import Passage
from abridge.turn.plan import Plan
from abridge.turn.usage import Tokens
from abridge.turn.weave import Ask, Cancel, Effect, Weaver
from abridge.wire import sse
from abridge.wire.api import Api, Asked, Writer
from abridge.wire.apis import CHAT, RESPONSES, UPSTREAM_APIS
from abridge.wire.chat.composer import ChatComposer
from abridge.wire.display import Display, Expose, Listed
from abridge.wire.envelope import Seal
from abridge.wire.mint import Mint
from abridge.wire.profiles import PROFILES, Profile
from abridge.wire.responses.composer import ResponsesComposer

SPENT = Tokens(10, 5, 15)
COMPOSERS: dict[str, Callable[[Profile, Display, Asked, int, Mint], Writer]] = {
    "chat": ChatComposer,
    "responses": ResponsesComposer,
}
MUCH = 1 << 22
"""Characters that a reader or a composer may keep."""
EXPOSURES: dict[Expose, tuple[bool, bool]] = {
    "both": (True, True),
    "summary": (False, True),
    "raw": (True, False),
    "none": (False, False),
}


def short_summary(passage: Passage) -> str:
    return f"**Part**\n\nSaid of {len(passage.text)} characters."


class Minting:
    """Ids that tell how many were made."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


@dataclass
class Pipeline:
    """One response through Reader, Weaver and Writer. `upstream` is the API that it comes in, where
    it is to be told and composed anew; `room` is what may be kept to attribute calls, if they are
    to be."""

    api: Api
    expose: Expose = "auto"
    plan: Plan = field(default_factory=Plan)
    profile: Profile = PROFILES["auto"]
    write: Callable[[Passage], str] | None = short_summary
    details: bool = False
    merged: bool = True
    upstream: str | None = None
    asked: Asked = field(default_factory=Asked)
    room: int | None = None
    seal: Seal | None = None
    envelope: Listed = "reasoning_details"

    def __post_init__(self) -> None:
        raw, summary = EXPOSURES.get(self.expose, self.api.auto)
        style = self.plan.style if summary else None
        self.display = Display(
            raw=raw,
            summary=summary,
            style=style,
            merged=self.merged,
            details=self.details,
            seal=self.seal,
            envelope=self.envelope,
        )
        self.passages: list[Passage] = []
        upstream = self.upstream
        reader = self.api.reader if upstream is None else UPSTREAM_APIS[upstream].teller
        self.reader = reader(self.profile, self.display, MUCH)
        self.writer = self._writer()
        if self.room is not None:
            self.writer = self.api.attributing(self.writer, self.display, self.room)
        self._streams = True
        plan = self.plan if summary else Plan(style=None)
        self.weaver = Weaver(plan)
        self.out = bytearray()
        self.end: Ended | None = None

    def _writer(self) -> Writer:
        if self.upstream is None:
            return self.api.writer(self.profile, self.display)
        return COMPOSERS[self.api.name](self.profile, self.display, self.asked, MUCH, Minting())

    def stream(self, data: bytes, cuts: Iterable[int] = ()) -> bytes:
        """A stream, arriving in pieces that end at `cuts`."""
        decoder = sse.Decoder(1 << 24)
        edges = [0, *sorted(cuts), len(data)]
        for start, end in pairwise(edges):
            for frame in decoder.feed(data[start:end]):
                self.frame(frame)
        for frame in decoder.end():
            self.frame(frame)
        self.close()
        return bytes(self.out)

    def frame(self, frame: bytes) -> None:
        if sse.data(frame) is None:
            self.out += frame
            return
        for event in self.reader.read(frame):
            self.do(self.weaver.upstream(event, 0.0))

    def close(self, trouble: Trouble | None = None) -> None:
        for event in self.reader.end(trouble):
            self.do(self.weaver.upstream(event, 0.0))

    def whole(self, body: bytes) -> bytes:
        self._streams = False
        for event in self.reader.whole(body):
            self.do(self.weaver.upstream(event, 0.0))
        assert self.end is not None
        return self.writer.whole(self.end)

    def heard(self) -> list[Heard]:
        return self.reader.heard()

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Ask):
                self.passages.append(effect.passage)
                self.summarize(effect)
            elif not isinstance(effect, Cancel):
                self.emit(effect)

    def emit(self, event: Event) -> None:
        if isinstance(event, Ended):
            self.end = event
        if self._streams:
            self.out += self.writer.write(event)
        elif not isinstance(event, Ended):
            self.writer.note(event)

    def summarize(self, ask: Ask) -> None:
        if self.write is None:
            trouble = Trouble("upstream_error", "The summarizer answered 500.")
            self.do(self.weaver.failed(ask.part, trouble, 0.0))
            return
        text = self.write(ask.passage)
        for piece in (text[:9], text[9:]):
            self.do(self.weaver.said(ask.part, piece, 0.0) if piece else [])
        self.do(self.weaver.finished(ask.part, 0.0, SPENT, "mini"))


def chat(**settings: object) -> Pipeline:
    return Pipeline(CHAT, **settings)  # type: ignore[arg-type]


def bridged(upstream: str, client: Api, **settings: object) -> Pipeline:
    """A response of one API's for a client of another."""
    return Pipeline(client, upstream=upstream, **settings)  # type: ignore[arg-type]


def responses(**settings: object) -> Pipeline:
    return Pipeline(RESPONSES, **settings)  # type: ignore[arg-type]
