"""Check that translated events are legal, and summarize them.

It relies only on what `abridge.core.events` promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorReported,
    Event,
    Finished,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    TierReported,
    ToolCallDelta,
)


@dataclass
class ReadAnswer:
    """The events as lines in order, adjacent pieces of one kind joined."""

    lines: list[tuple[str, ...]] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    items: int = 0
    reason: str | None = None
    told_end: ResponseEnded | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def end(self) -> ResponseEnded:
        assert self.told_end is not None, "it has not ended"
        return self.told_end

    def join(self, kind: str, text: str) -> None:
        if self.lines and self.lines[-1][0] == kind:
            text = self.lines.pop()[1] + text
        self.lines.append((kind, text))

    @property
    def raw(self) -> list[str]:
        return [line[1] for line in self.lines if line[0] == "raw"]

    @property
    def text(self) -> str:
        return "".join(line[1] for line in self.lines if line[0] == "text")


def check_events(events: Sequence[Event]) -> ReadAnswer:
    """Check that the events are legal; return the answer they make."""
    answer, begun, item = ReadAnswer(), False, None
    for event in events:
        assert event.frame is None, "what is told has no frame"
        assert answer.told_end is None, "nothing after the end"
        if isinstance(event, ResponseStarted):
            assert not begun
            begun = True
            continue
        if isinstance(event, TierReported):
            continue
        if isinstance(event, ResponseEnded | ErrorReported):
            _add_end(answer, event)
            assert item is None or isinstance(event, ErrorReported)
            continue
        assert begun, "the beginning comes first"
        assert answer.reason is None, "nothing of a lane after its stop"
        if isinstance(event, ReasoningStarted):
            assert item is None
            assert event.item == answer.items or event.item < 0, "made of late thinking"
            item, answer.items = event.item, answer.items + (event.item >= 0)
            answer.lines.append(("opened", str(item)))
        elif isinstance(event, ReasoningDelta | ProviderState | ReasoningEnded):
            assert event.item == item
            item = None if isinstance(event, ReasoningEnded) else item
            _add_reasoning(answer, event)
        else:
            assert item is None, "nothing else within an item"
            _add_content(answer, event)
    return answer


def _add_reasoning(
    answer: ReadAnswer, event: ReasoningDelta | ProviderState | ReasoningEnded
) -> None:
    match event:
        case ReasoningDelta():
            assert event.text
            answer.join("raw", event.text)
        case ProviderState():
            assert event.data
            answer.lines.append(("signed" if event.signs else "sealed", event.data))
        case ReasoningEnded():
            answer.lines.append(("closed",))


def _add_content(answer: ReadAnswer, event: Event) -> None:
    if isinstance(event, ToolCallDelta):
        if event.call_index == len(answer.calls):
            answer.calls.append([event.id, event.name, ""])
            answer.lines.append(("call", str(event.call_index)))
        else:
            assert (event.id, event.name) == ("", "")
        answer.calls[event.call_index][2] += event.arguments
    elif isinstance(event, CitationDelta):
        answer.lines.append(("cited", event.source))
    elif isinstance(event, ContentDelta):
        assert event.text
        answer.join("text", event.text)
    else:
        assert isinstance(event, Finished)
        answer.reason = event.reason


def _add_end(answer: ReadAnswer, event: ResponseEnded | ErrorReported) -> None:
    if isinstance(event, ErrorReported):
        answer.failures.append(event.error.message)
        return
    answer.told_end = event
    assert not event.ok or (answer.reason is not None and event.error is None)
