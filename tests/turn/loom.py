"""Drives a Weaver by hand and keeps what it returned."""

from __future__ import annotations

from dataclasses import dataclass, field

from abridge.turn.events import (
    Closed,
    Ended,
    Event,
    Opened,
    PartClosed,
    PartOpened,
    PartSaid,
    Raw,
    Said,
    Trouble,
)
from abridge.turn.plan import Plan
from abridge.turn.usage import Tokens
from abridge.turn.weave import Ask, Cancel, Effect, Weaver

SPENT = Tokens(10, 5, 15)
BROKEN = Trouble("upstream_error", "The summarizer answered 500.")


@dataclass
class Loom:
    plan: Plan = field(default_factory=lambda: Plan(part_chars=20, tail_chars=5))
    now: float = 0.0

    def __post_init__(self) -> None:
        self.weaver = Weaver(self.plan)
        self.emitted: list[Event] = []
        self.asked: dict[int, Ask] = {}
        self.cancelled: list[int] = []
        self._frames = 0

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Ask):
                assert effect.part not in self.asked, "a part is asked for once at a time"
                self.asked[effect.part] = effect
            elif isinstance(effect, Cancel):
                assert self.asked.pop(effect.part, None), "only what was asked for is cancelled"
                self.cancelled.append(effect.part)
            else:
                self.emitted.append(effect)

    # What upstream says

    def upstream(self, event: Event) -> None:
        self.take(self.weaver.upstream(event, self.now))

    def frame(self) -> bytes:
        self._frames += 1
        return f"frame {self._frames}".encode()

    def open(self, item: int = 0, lane: int = 0) -> None:
        self.upstream(Opened(lane, self.frame(), item))

    def raw(self, text: str, item: int = 0, lane: int = 0) -> None:
        self.upstream(Raw(lane, self.frame(), item, text))

    def close(self, item: int = 0, lane: int = 0) -> None:
        self.upstream(Closed(lane, self.frame(), item))

    def answer(self, text: str = "answer", lane: int = 0) -> None:
        self.upstream(Said(lane, self.frame(), text))

    def end(self, *, ok: bool = True) -> None:
        self.upstream(Ended(None, self.frame(), ok=ok))

    def think(self, text: str, item: int = 0, lane: int = 0) -> None:
        """A whole item."""
        self.open(item, lane)
        self.raw(text, item, lane)
        self.close(item, lane)

    # What the summarizer does

    def say(self, part: int, text: str) -> None:
        self.take(self.weaver.said(part, text, self.now))

    def finish(self, part: int, spent: Tokens | None = SPENT) -> None:
        self.asked.pop(part, None)
        self.take(self.weaver.finished(part, self.now, spent, "m"))

    def write(self, part: int, text: str) -> None:
        self.say(part, text)
        self.finish(part)

    def fail(self, part: int, trouble: Trouble = BROKEN) -> None:
        self.asked.pop(part, None)
        self.take(self.weaver.failed(part, trouble, self.now))

    def refuse(self, part: int) -> None:
        self.asked.pop(part, None)
        self.take(self.weaver.refused(part, self.now))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.weaver.tick(self.now))

    # What came of it

    @property
    def told(self) -> list[str]:
        """The emitted events, in words."""
        return [_word(event) for event in self.emitted]

    @property
    def ended(self) -> Ended:
        last = self.emitted[-1]
        assert isinstance(last, Ended)
        return last


def _word(event: Event) -> str:
    match event:
        case PartOpened():
            return f"part {event.index}"
        case PartSaid():
            return f"{event.index}: {event.text}"
        case PartClosed():
            return f"part {event.index} " + ("done" if event.complete else "cut")
        case Raw():
            return "raw"
        case Said():
            return event.text
        case Closed() if event.summary.trouble:
            return f"closed: {event.summary.trouble.code}"
        case _:
            return type(event).__name__.lower()
