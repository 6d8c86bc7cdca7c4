"""Drive a Sequencer by hand and record what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from abridge.core.effects import CancelPart, Effect, RequestPart
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    NativeSummary,
    Passthrough,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ReasoningTextEnded,
    ResponseEnded,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    TurnRecorded,
    UsageReported,
)
from abridge.core.plan import SummaryPlan
from abridge.core.sequencer import Sequencer
from abridge.core.usage import Tokens

LABELS: dict[type[Event], str] = {
    ReasoningStarted: "started",
    ReasoningTextEnded: "told",
    ReasoningEnded: "closed",
    NativeSummary: "native",
    TurnRecorded: "recorded",
    Passthrough: "other",
    UsageReported: "usage",
    ErrorReported: "failed",
    ResponseEnded: "ended",
}
SPENT = Tokens(10, 5, 15)
BROKEN = ErrorDetail("upstream_error", "The summarizer answered 500.")


@dataclass
class SequencerDriver:
    plan: SummaryPlan = field(default_factory=lambda: SummaryPlan(part_chars=20, tail_chars=5))
    now: float = 0.0

    def __post_init__(self) -> None:
        self.sequencer = Sequencer(self.plan)
        self.emitted: list[Event] = []
        self.requested: dict[int, RequestPart] = {}
        self.cancelled: list[int] = []
        self.stopped_at: int | None = None  # number of events emitted before the first stop
        self._frames = 0

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RequestPart):
                assert self.stopped_at is None, "nothing is asked for once all is stopped"
                assert effect.part_id not in self.requested, "a part is asked for once at a time"
                self.requested[effect.part_id] = effect
            elif isinstance(effect, CancelPart):
                assert self.requested.pop(effect.part_id, None), (
                    "only what was asked for is cancelled"
                )
                self.cancelled.append(effect.part_id)
            else:
                self.emitted.append(effect)

    # Upstream's events

    def upstream(self, *events: Event) -> None:
        """Take events that came together, as `SummaryRunner` does."""
        cuts = self.sequencer.pass_on(events)
        if cuts is None:
            steps = self.sequencer.upstream(events, self.now)
        else:
            self.take([*events])
            steps = self.sequencer.request(cuts, self.now)
        for effects in steps:
            self.take(effects)

    def frame(self) -> bytes:
        self._frames += 1
        return f"frame {self._frames}".encode()

    def open(self, item: int = 0, lane: int = 0) -> None:
        self.upstream(ReasoningStarted(lane, self.frame(), item))

    def raw(self, text: str, item: int = 0, lane: int = 0) -> None:
        self.upstream(ReasoningDelta(lane, self.frame(), item, text))

    def close(self, item: int = 0, lane: int = 0) -> None:
        self.upstream(ReasoningEnded(lane, self.frame(), item))

    def answer(self, text: str = "answer", lane: int = 0) -> None:
        self.upstream(ContentDelta(lane, self.frame(), text))

    def end(self, *, ok: bool = True) -> None:
        self.upstream(ResponseEnded(None, self.frame(), ok=ok))

    def think(self, text: str, item: int = 0, lane: int = 0) -> None:
        """Feed a whole reasoning item."""
        self.open(item, lane)
        self.raw(text, item, lane)
        self.close(item, lane)

    # The summarizer's events

    def say(self, part: int, text: str) -> None:
        self.take(self.sequencer.summary_delta(part, text, self.now))

    def finish(self, part: int, spent: Tokens | None = SPENT) -> None:
        self.requested.pop(part, None)
        self.take(self.sequencer.summary_done(part, self.now, spent, "m"))

    def write(self, part: int, text: str) -> None:
        self.say(part, text)
        self.finish(part)

    def fail(self, part: int, error: ErrorDetail = BROKEN) -> None:
        self.requested.pop(part, None)
        self.take(self.sequencer.summary_failed(part, error, self.now))

    def stop(self, part: int, error: ErrorDetail, spent: Tokens | None = None) -> None:
        """Fail a part so that no further one may be shown."""
        self.requested.pop(part, None)
        if self.stopped_at is None:
            self.stopped_at = len(self.emitted)
        self.take(self.sequencer.summary_failed(part, error, self.now, spent, "m", stop=True))

    def refuse(self, part: int) -> None:
        self.requested.pop(part, None)
        self.take(self.sequencer.summary_refused(part, self.now))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.sequencer.tick(self.now))

    # Results

    @property
    def emitted_labels(self) -> list[str]:
        """Return a label for each emitted event."""
        return [_label(event) for event in self.emitted]

    @property
    def ended(self) -> ResponseEnded:
        last = self.emitted[-1]
        assert isinstance(last, ResponseEnded)
        return last


def _label(event: Event) -> str:
    match event:
        case SummaryPartAdded():
            return f"part {event.index}"
        case SummaryTextDelta():
            return f"{event.index}: {event.text}"
        case SummaryPartDone():
            return f"part {event.index} " + ("done" if event.complete else "cut")
        case ReasoningDelta():
            return "raw"
        case ContentDelta():
            return event.text
        case ReasoningEnded() if event.summary.error:
            return f"closed: {event.summary.error.code}"
        case _:
            return LABELS[type(event)]
