"""The pure core end to end: upstream's bytes in, the client's bytes out.

A scripted summarizer writes each part as soon as it is requested; a test that needs other timing
drives the Sequencer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from abridge.apis import sse
from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.delta_patterns import FrameReader
from abridge.apis.display import Display, Exposure, ListField
from abridge.apis.messages.api import MESSAGES
from abridge.apis.messages.writer import TranslatedMessagesWriter
from abridge.apis.openai import MintId
from abridge.apis.protocols import RequestEcho, Writer
from abridge.apis.registry import APIS, UPSTREAM_APIS
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.writer import ResponsesWriter
from abridge.core.conversation import RecordedTurn
from abridge.core.effects import CancelPart, Effect, RequestPart
from abridge.core.envelope import SealEnvelope
from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.core.plan import Passage, SummaryPlan
from abridge.core.sequencer import Sequencer
from abridge.core.usage import Tokens
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile

SPENT = Tokens(10, 5, 15)

all_clients = pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)


def translating_responses_writer(
    _: Profile, display: Display, echo: RequestEcho, limit: int, mint_id: MintId
) -> ResponsesWriter:
    return ResponsesWriter(display, echo, limit, mint_id)


def translating_messages_writer(
    _: Profile, display: Display, echo: RequestEcho, limit: int, mint_id: MintId
) -> Writer:
    return TranslatedMessagesWriter(display, echo, limit, mint_id)


TRANSLATING_WRITERS: dict[str, Callable[[Profile, Display, RequestEcho, int, MintId], Writer]] = {
    "chat": ChatWriter,
    "responses": translating_responses_writer,
    "messages": translating_messages_writer,
}
LIMIT = 1 << 22
"""The most characters that a reader or a translating writer may keep."""
EXPOSURES: dict[Exposure, tuple[bool, bool]] = {
    "both": (True, True),
    "summary": (False, True),
    "raw": (True, False),
    "none": (False, False),
}


def short_summary(passage: Passage) -> str:
    return f"**Part**\n\nSaid of {len(passage.text)} characters."


class Minting:
    """Mints numbered ids."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


@dataclass
class Pipeline:
    """Passes one response through Reader, Sequencer and Writer.

    `upstream` is the API to translate from, None for the client's own; `attribution_limit` is what
    may be kept to attribute calls, None to attribute none; `spent` is what each call of the
    summarizer reports.
    """

    api: Api
    expose: Exposure = "auto"
    plan: SummaryPlan = field(default_factory=SummaryPlan)
    profile: Profile = PROFILES["auto"]
    write: Callable[[Passage], str] | None = short_summary
    details: bool = False
    merge_usage: bool = True
    upstream: str | None = None
    echo: RequestEcho = field(default_factory=RequestEcho)
    attribution_limit: int | None = None
    seal: SealEnvelope | None = None
    envelope: ListField = "reasoning_details"
    hides_usage: bool = False
    echoed: dict[str, Any] = field(default_factory=dict)
    trusts_state: bool = True
    spent: Tokens = SPENT
    limit: int = LIMIT

    def __post_init__(self) -> None:
        raw, summary = EXPOSURES.get(self.expose, self.api.default_exposure)
        style = self.plan.style if summary else None
        self.display = Display(
            show_raw=raw,
            hides_raw=self.expose in ("summary", "none"),
            echoed=self.echoed,
            trusts_state=self.trusts_state,
            show_summary=summary,
            style=style,
            merge_usage=self.merge_usage,
            add_details=self.details,
            seal=self.seal,
            envelope_field=self.envelope,
            hides_usage=self.hides_usage,
            attribution_limit=self.attribution_limit,
        )
        self.passages: list[Passage] = []
        upstream = self.upstream
        reader = self.api.reader if upstream is None else UPSTREAM_APIS[upstream].translating_reader
        self.reader = reader(self.profile, self.display, self.limit)
        self.writer = self._writer()
        self.attribution = self.api.follow_calls(self.display)
        self._streams = True
        plan = self.plan if summary else SummaryPlan(style=None)
        self.sequencer = Sequencer(plan)
        self.frames = FrameReader(self.reader, self.display, self.sequencer.room_for)
        self.out = bytearray()
        self._end: ResponseEnded | None = None

    def _writer(self) -> Writer:
        if self.upstream is None:
            return self.api.writer(self.profile, self.display, None, LIMIT)
        return TRANSLATING_WRITERS[self.api.name](
            self.profile, self.display, self.echo, LIMIT, Minting()
        )

    @property
    def end(self) -> ResponseEnded:
        assert self._end is not None, "it has not ended"
        return self._end

    def stream(self, data: bytes, cuts: Iterable[int] = ()) -> bytes:
        """Pass a stream that arrives in pieces ending at `cuts`."""
        decoder = sse.FrameDecoder(1 << 24)
        edges = [0, *sorted(cuts), len(data)]
        for start, end in pairwise(edges):
            piece = data[start:end]
            for frame in decoder.feed(piece):
                self.frame(frame)
        for frame in decoder.end():
            self.frame(frame)
        self.close()
        return bytes(self.out)

    def frame(self, frame: bytes) -> None:
        if frame.startswith(b":") and sse.frame_data(frame) is None:
            self.out += b"" if self.display.hides_raw else frame
            return
        alone = self.frames.read_alone(frame)
        told, shown = alone or ([], None)
        self.out += b"" if shown is None else self.writer.write(shown)
        self.sequence(told)
        place = 0 if alone is None else 1
        while place < 1:
            events, place = self.frames.read([frame])
            self.sequence(events)

    def burst(self, data: bytes) -> bytes:
        """Pass a stream that arrives in one piece."""
        frames, events, place = sse.FrameDecoder(1 << 24).feed(data), list[Event](), 0
        while place < len(frames):
            read, place = self.frames.read(frames, place)
            events += read
        self.sequence(events)
        self.close()
        return bytes(self.out)

    def close(self, error: ErrorDetail | None = None) -> None:
        self.sequence([*self.frames.release(), *self.reader.end(error)])

    def whole(self, body: bytes) -> bytes:
        self._streams = False
        self.sequence(self.reader.read_whole(body))
        return self.writer.write_whole(self.end)

    def recorded_turns(self) -> list[RecordedTurn]:
        return self.reader.recorded_turns()

    def sequence(self, events: Iterable[Event]) -> None:
        """Have events sequenced that came together."""
        for effects in self.sequencer.upstream(events, 0.0):
            self.apply(effects)

    def apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RequestPart):
                self.passages.append(effect.passage)
                self.summarize(effect)
            elif not isinstance(effect, CancelPart):
                self.emit(effect)

    def emit(self, event: Event) -> None:
        if isinstance(event, ResponseEnded):
            self._end = event
        if self.attribution is not None:
            self.attribution.take([event])
        if self._streams:
            self.out += b"" if event.is_written else self.writer.write(event)
        elif not isinstance(event, ResponseEnded):
            self.writer.note(event)

    def summarize(self, request: RequestPart) -> None:
        if self.write is None:
            error = ErrorDetail("upstream_error", "The summarizer answered 500.")
            self.apply(self.sequencer.summary_failed(request.part_id, error, 0.0))
            return
        text = self.write(request.passage)
        for piece in (text[:9], text[9:]):
            self.apply(self.sequencer.summary_delta(request.part_id, piece, 0.0) if piece else [])
        self.apply(self.sequencer.summary_done(request.part_id, 0.0, self.spent, "mini"))


def chat(**settings: object) -> Pipeline:
    return Pipeline(CHAT, **settings)  # type: ignore[arg-type]


def translating(upstream: str, client: Api, **settings: object) -> Pipeline:
    """Return a pipeline from one API to a client of another."""
    return Pipeline(client, upstream=upstream, **settings)  # type: ignore[arg-type]


def responses(**settings: object) -> Pipeline:
    return Pipeline(RESPONSES, **settings)  # type: ignore[arg-type]


def messages(**settings: object) -> Pipeline:
    return Pipeline(MESSAGES, **settings)  # type: ignore[arg-type]
