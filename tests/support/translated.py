"""Add up the events of a translating reader, however they were split."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from abridge.apis import sse
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.gemini.api import GEMINI
from abridge.apis.interactions.api import INTERACTIONS
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import Reader
from abridge.apis.responses.api import RESPONSES
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ToolCallDelta,
    UsageReported,
)
from abridge.core.usage import Tokens
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile

TRANSLATING_READERS: dict[str, Callable[[Profile, Display, int], Reader]] = {
    "chat": CHAT.upstream.translating_reader,
    "responses": RESPONSES.upstream.translating_reader,
    "messages": MESSAGES.upstream.translating_reader,
    "gemini": GEMINI.translating_reader,
    "interactions": INTERACTIONS.translating_reader,
}


@dataclass
class Call:
    id: str = ""
    name: str = ""
    arguments: str = ""
    custom: bool = False


@dataclass
class Stretch:
    """One stretch of reasoning. `native` are upstream's own summary parts."""

    raw: str = ""
    native: list[str] = field(default_factory=list)
    sealed: list[tuple[str, bool]] = field(default_factory=list)


@dataclass
class Answer:
    """The contents of one lane. `order` lists their kinds, consecutive repeats once."""

    text: str = ""
    refusal: str = ""
    messages: dict[int, str] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    citations: list[CitationDelta] = field(default_factory=list)
    stop: str | None = None
    hosted_calls: list[dict[str, str]] = field(default_factory=list)
    open: bool = False

    @property
    def cited(self) -> list[tuple[str, str]]:
        """The sources, each with the words of the passage that it is named for."""
        passages = [citation.passage or (0, 0) for citation in self.citations]
        words = [self.text[start:end] for start, end in passages]
        return [(one.source, said) for one, said in zip(self.citations, words, strict=True)]

    @property
    def raw(self) -> str:
        return "".join(stretch.raw for stretch in self.stretches)

    @property
    def native(self) -> list[str]:
        return [part for stretch in self.stretches for part in stretch.native]

    @property
    def sealed(self) -> list[tuple[str, bool]]:
        return [seal for stretch in self.stretches for seal in stretch.sealed]

    def note(self, event: Event) -> None:
        match event:
            case ReasoningStarted():
                assert not self.open, "a stretch opens once"
                self.open = True
                self.stretches.append(Stretch())
            case ReasoningEnded():
                assert self.open, "only an open stretch is closed"
                self.open = False
            case ReasoningDelta() | NativeSummary() | ProviderState():
                assert self.open, f"{event} of no item"
                self._think(event)
            case ContentDelta():
                assert not self.open, "an answer comes after the reasoning"
                self._say(event)
            case Finished():
                assert self.stop is None, "a lane stops once"
                self.stop = event.reason
                self.hosted_calls = [dict(call) for call in event.hosted_calls]

    def _think(self, event: ReasoningDelta | NativeSummary | ProviderState) -> None:
        stretch = self.stretches[-1]
        self._run("think")
        match event:
            case ReasoningDelta():
                stretch.raw += event.text
            case ProviderState():
                stretch.sealed.append((event.data, event.signs))
            case NativeSummary(stage="added"):
                stretch.native.append("")
            case NativeSummary(stage="delta"):
                stretch.native = stretch.native or [""]
                stretch.native[-1] += event.text

    def _say(self, event: ContentDelta) -> None:
        self.tokens += [str(entry.get("token")) for entry in event.logprobs]
        if isinstance(event, CitationDelta):
            self.citations.append(event)
        elif isinstance(event, ToolCallDelta):
            self._call(event)
        elif isinstance(event, RefusalDelta):
            self.refusal += event.refusal
            self._run("refuse")
        else:
            self.text += event.text
            known = self.messages.get(event.message_index, "")
            self.messages[event.message_index] = known + event.text
            self._run("say")

    def _call(self, event: ToolCallDelta) -> None:
        if event.call_index == len(self.calls):
            self.calls.append(Call(event.id, event.name, custom=event.custom))
        else:
            assert event.id + event.name == "", "and only the first"
        self.calls[event.call_index].arguments += event.arguments
        self._run(f"call {event.call_index}")

    def _run(self, kind: str) -> None:
        if self.order[-1:] != [kind]:
            self.order.append(kind)


@dataclass
class TranslatedTurn:
    """A whole response, added up."""

    lanes: dict[int, Answer] = field(default_factory=dict)
    usage: Tokens | None = None
    ok: bool | None = None
    error: ErrorDetail | None = None
    faults: int = 0

    @property
    def answer(self) -> Answer:
        return self.lanes.get(0) or Answer()


def turn_of(events: Iterable[Event]) -> TranslatedTurn:
    """Add up the events of a translating reader, asserting that they are legal."""
    turn = TranslatedTurn()
    for event in events:
        assert turn.ok is None, f"{event} after the end"
        assert event.frame is None, f"{event} has a frame"
        if isinstance(event, UsageReported):
            turn.usage = event.usage
        elif isinstance(event, ErrorReported):
            turn.error = event.error
        elif isinstance(event, ResponseEnded):
            turn.ok, turn.usage = event.ok, event.usage or turn.usage
            turn.error = event.error or turn.error
        elif event.lane is not None:
            turn.lanes.setdefault(event.lane, Answer()).note(event)
    return turn


def read_events(
    api: str,
    data: bytes,
    *,
    streamed: bool = True,
    raw: bool = True,
    profile: Profile = PROFILES["auto"],
    **display: Any,
) -> list[Event]:
    """Return a translating reader's events for a stream or a body."""
    return list(
        _events(
            TRANSLATING_READERS[api](profile, Display(show_raw=raw, **display), 1 << 22),
            data,
            streamed=streamed,
        )
    )


def read_turn(api: str, data: bytes, **how: bool) -> TranslatedTurn:
    return turn_of(read_events(api, data, **how))  # type: ignore[arg-type]


def _events(reader: Reader, data: bytes, *, streamed: bool) -> list[Event]:
    if not streamed:
        return reader.read_whole(data)
    decoder = sse.FrameDecoder(1 << 24)
    frames = [*decoder.feed(data), *decoder.end()]
    return [*(event for frame in frames for event in reader.read(frame)), *reader.end()]
