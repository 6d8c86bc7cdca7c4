"""The pure core, end to end: bytes of upstream's in, bytes for the client out.

A scripted summarizer writes each part as soon as it is asked for; a test that wants other timing
drives the Weaver itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from abridge.apis import sse
from abridge.apis.api import Api, RequestEcho, Writer
from abridge.apis.chat.api import CHAT
from abridge.apis.chat.completion import TranslatedCompletion
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.display import Display, Exposure, ListField, SealEnvelope
from abridge.apis.openai import MintId
from abridge.apis.registry import UPSTREAM_APIS
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.translated_response import TranslatedResponse
from abridge.apis.responses.writer import ResponsesWriter
from abridge.attribution import ATTRIBUTING_WRITERS
from abridge.core.conversation import RecordedTurn
from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.core.plan import Passage, SummaryPlan
from abridge.core.sequencer import CancelPart, Effect, RequestPart, Sequencer
from abridge.core.usage import Tokens
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile

SPENT = Tokens(10, 5, 15)


def translating_responses_writer(
    _: Profile, display: Display, echo: RequestEcho, limit: int, mint_id: MintId
) -> ResponsesWriter:
    return ResponsesWriter(display, TranslatedResponse(display, echo, limit, mint_id))


def translating_chat_writer(
    _: Profile, display: Display, echo: RequestEcho, limit: int, mint_id: MintId
) -> ChatWriter:
    return ChatWriter(display, TranslatedCompletion(display, echo, limit, mint_id))


COMPOSERS: dict[str, Callable[[Profile, Display, RequestEcho, int, MintId], Writer]] = {
    "chat": translating_chat_writer,
    "responses": translating_responses_writer,
}
MUCH = 1 << 22
"""Characters that a reader or a composer may keep."""
EXPOSURES: dict[Exposure, tuple[bool, bool]] = {
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
    expose: Exposure = "auto"
    plan: SummaryPlan = field(default_factory=SummaryPlan)
    profile: Profile = PROFILES["auto"]
    write: Callable[[Passage], str] | None = short_summary
    details: bool = False
    merged: bool = True
    upstream: str | None = None
    asked: RequestEcho = field(default_factory=RequestEcho)
    room: int | None = None
    seal: SealEnvelope | None = None
    envelope: ListField = "reasoning_details"

    def __post_init__(self) -> None:
        raw, summary = EXPOSURES.get(self.expose, self.api.default_exposure)
        style = self.plan.style if summary else None
        self.display = Display(
            show_raw=raw,
            show_summary=summary,
            style=style,
            merge_usage=self.merged,
            add_details=self.details,
            seal=self.seal,
            envelope_field=self.envelope,
        )
        self.passages: list[Passage] = []
        upstream = self.upstream
        reader = self.api.reader if upstream is None else UPSTREAM_APIS[upstream].translating_reader
        self.reader = reader(self.profile, self.display, MUCH)
        self.writer = self._writer()
        if self.room is not None:
            self.writer = ATTRIBUTING_WRITERS[self.api.name](self.writer, self.display, self.room)
        self._streams = True
        plan = self.plan if summary else SummaryPlan(style=None)
        self.weaver = Sequencer(plan)
        self.out = bytearray()
        self.end: ResponseEnded | None = None

    def _writer(self) -> Writer:
        if self.upstream is None:
            return self.api.writer(self.profile, self.display)
        return COMPOSERS[self.api.name](self.profile, self.display, self.asked, MUCH, Minting())

    def stream(self, data: bytes, cuts: Iterable[int] = ()) -> bytes:
        """A stream, arriving in pieces that end at `cuts`."""
        decoder = sse.FrameDecoder(1 << 24)
        edges = [0, *sorted(cuts), len(data)]
        for start, end in pairwise(edges):
            for frame in decoder.feed(data[start:end]):
                self.frame(frame)
        for frame in decoder.end():
            self.frame(frame)
        self.close()
        return bytes(self.out)

    def frame(self, frame: bytes) -> None:
        if sse.frame_data(frame) is None:
            self.out += frame
            return
        for event in self.reader.read(frame):
            self.do(self.weaver.upstream(event, 0.0))

    def close(self, trouble: ErrorDetail | None = None) -> None:
        for event in self.reader.end(trouble):
            self.do(self.weaver.upstream(event, 0.0))

    def whole(self, body: bytes) -> bytes:
        self._streams = False
        for event in self.reader.read_whole(body):
            self.do(self.weaver.upstream(event, 0.0))
        assert self.end is not None
        return self.writer.write_whole(self.end)

    def heard(self) -> list[RecordedTurn]:
        return self.reader.recorded_turns()

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RequestPart):
                self.passages.append(effect.passage)
                self.summarize(effect)
            elif not isinstance(effect, CancelPart):
                self.emit(effect)

    def emit(self, event: Event) -> None:
        if isinstance(event, ResponseEnded):
            self.end = event
        if self._streams:
            self.out += self.writer.write(event)
        elif not isinstance(event, ResponseEnded):
            self.writer.note(event)

    def summarize(self, ask: RequestPart) -> None:
        if self.write is None:
            trouble = ErrorDetail("upstream_error", "The summarizer answered 500.")
            self.do(self.weaver.summary_failed(ask.part_id, trouble, 0.0))
            return
        text = self.write(ask.passage)
        for piece in (text[:9], text[9:]):
            self.do(self.weaver.summary_delta(ask.part_id, piece, 0.0) if piece else [])
        self.do(self.weaver.summary_done(ask.part_id, 0.0, SPENT, "mini"))


def chat(**settings: object) -> Pipeline:
    return Pipeline(CHAT, **settings)  # type: ignore[arg-type]


def bridged(upstream: str, client: Api, **settings: object) -> Pipeline:
    """A response of one API's for a client of another."""
    return Pipeline(client, upstream=upstream, **settings)  # type: ignore[arg-type]


def responses(**settings: object) -> Pipeline:
    return Pipeline(RESPONSES, **settings)  # type: ignore[arg-type]
