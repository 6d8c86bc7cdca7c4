"""Rules that hold for every run of the Sequencer, in whatever order its inputs come."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from dataclasses import replace
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.core.effects import Effect
from abridge.core.events import (
    ContentDelta,
    Event,
    NativeSummary,
    Passthrough,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    UsageReported,
)
from abridge.core.plan import SummaryPlan
from abridge.core.segmenter import text_size
from abridge.core.sequencer import Sequencer
from abridge.core.usage import Tokens
from tests.core.sequencer_driver import BROKEN, SequencerDriver
from tests.support.matrix import some

REASONING = "Think of it. Then again.\n\n"


@st.composite
def turns(draw: st.DrawFn, lane: int, *, reopened: bool) -> list[Event]:
    """One lane's events: reasoning, answers and other things, legal as a Reader's are.

    `reopened`: as on Chat Completions, where a choice has one item with many stretches; else as on
    Responses, where each item has its own number.
    """
    events: list[Event] = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["think", "think", "native", "mixed", "say", "other"]))
        item = 0 if reopened else number
        if kind in ("say", "other"):
            make = ContentDelta if kind == "say" else Passthrough
            events += [make(lane, b"") for _ in range(draw(st.integers(1, 3)))]
            continue
        events.append(ReasoningStarted(lane, b"", item))
        if kind in ("think", "mixed"):
            for _ in range(draw(st.integers(0, 5))):
                events.append(ReasoningDelta(lane, b"", item, REASONING * draw(st.integers(0, 2))))
        if kind in ("native", "mixed"):
            for part in range(draw(st.integers(1, 2))):
                events.append(NativeSummary(lane, b"", item, part, "added"))
                events.append(NativeSummary(lane, b"", item, part, "delta", "native"))
        events.append(ReasoningEnded(lane, b"", item))
    return events


@st.composite
def runs(draw: st.DrawFn) -> tuple[SummaryPlan, list[list[Event]], bool, st.DataObject]:
    reopened = draw(st.booleans())
    lanes = draw(st.integers(1, 3)) if reopened else 1
    plan = SummaryPlan(
        style=draw(st.sampled_from(["auto", "concise", "detailed", None])),
        live=draw(st.booleans()),
        part_chars=40,
        max_parts=3,
        tail_chars=20,
        grace=draw(st.sampled_from([0.0, 1.0, 5.0])),
        first_token_timeout=draw(st.sampled_from([0.5, 2.0])),
        held_limit=draw(st.sampled_from([0, 60, 10_000])),
        in_turn=draw(st.booleans()),
        max_overhead=draw(st.sampled_from([None, 0.1, 1.0])),
        fallback=draw(st.sampled_from([None, lambda _: "an extract"])),
        fail_response=draw(st.booleans()),
    )
    upstream_events = [draw(turns(lane, reopened=reopened)) for lane in range(lanes)]
    return plan, upstream_events, draw(st.booleans()), draw(st.data())


@settings(max_examples=some(400))
@given(runs())
def test_every_interleaving_is_legal(
    run: tuple[SummaryPlan, list[list[Event]], bool, st.DataObject],
) -> None:
    plan, lanes, ok, data = run
    driver = SequencerDriver(plan)
    upstream_events = play(driver, lanes, data, ok=ok)
    drain(driver)
    assert driver.sequencer.done
    assert driver.sequencer.held_bytes == 0
    assert driver.sequencer.deadline is None
    assert not driver.requested
    check_upstream_order(driver, upstream_events)
    check_parts(driver)
    check_stop(driver)
    check_end(driver)


class ComparingDriver(SequencerDriver):
    """Notes what becomes of events, and beside it what becomes of them where none is passed on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.taken: list[Effect] = []
        self.became: list[object] = []
        self.would_become: list[object] = []

    def take(self, effects: list[Effect]) -> None:
        self.taken += effects
        super().take(effects)

    def upstream(self, *events: Event) -> None:
        twin, self.taken = deepcopy(self.sequencer), []
        super().upstream(*events)
        expected = [effect for step in twin.upstream(events, self.now) for effect in step]
        self.became.append(([*self.taken], state_of(self.sequencer)))
        self.would_become.append((expected, state_of(twin)))


def state_of(sequencer: Sequencer) -> tuple[object, ...]:
    return sequencer.held_bytes, len(sequencer.holding), sequencer.deadline


@given(runs())
def test_what_is_passed_on_is_what_would_be_emitted(
    run: tuple[SummaryPlan, list[list[Event]], bool, st.DataObject],
) -> None:
    plan, lanes, ok, data = run
    driver = ComparingDriver(plan)
    play(driver, lanes, data, ok=ok)
    assert driver.became == driver.would_become


class GatheringDriver(ComparingDriver):
    """Expects of reasoning for which there is room that it is emitted, and nothing else."""

    def upstream(self, *events: Event) -> None:
        room, before = self.sequencer.room_for(events[0]), state_of(self.sequencer)
        super().upstream(*events)
        size = text_size(events[0].text) if isinstance(events[0], ReasoningDelta) else inf
        if len(events) == 1 and size < room:
            self.would_become[-1] = ([*events], before)


def test_there_is_no_room_for_reasoning_that_completes_a_part() -> None:
    driver = GatheringDriver(SummaryPlan(live=True, part_chars=40, max_parts=9, tail_chars=20))
    driver.upstream(ReasoningStarted(0, driver.frame(), 0))
    for _ in range(20):
        driver.upstream(ReasoningDelta(0, driver.frame(), 0, REASONING[:13]))
    assert driver.requested
    assert driver.became == driver.would_become


@given(runs())
def test_nothing_comes_of_reasoning_for_which_there_is_room(
    run: tuple[SummaryPlan, list[list[Event]], bool, st.DataObject],
) -> None:
    plan, lanes, ok, data = run
    driver = GatheringDriver(plan)
    play(driver, lanes, data, ok=ok)
    assert driver.became == driver.would_become


def play(
    driver: SequencerDriver, lanes: list[list[Event]], data: st.DataObject, *, ok: bool
) -> list[Event]:
    """Run everything in an order that Hypothesis chooses; return upstream's events.

    As long as the Sequencer is full, upstream is not read.
    """
    waiting = [list(lane) for lane in lanes]
    broken_at = None if ok else data.draw(st.integers(0, sum(map(len, lanes))))
    upstream_events: list[Event] = []
    while any(waiting) and (broken_at is None or len(upstream_events) < broken_at):
        choices = ["upstream", "upstream"] * (not driver.sequencer.is_full)
        choices += ["summarizer"] * bool(driver.requested) + ["time"]
        match data.draw(st.sampled_from(choices)):
            case "upstream":
                events = take_some(driver, waiting, data)
                upstream_events += events
                driver.upstream(*events)
                check_room(driver, sum(len(event.frame or b"") for event in events))
            case "summarizer":
                summarize(driver, data)
            case _:
                driver.wait(data.draw(st.sampled_from([0.1, 0.6, 3.0])))
        check_waits(driver)
    if ok and data.draw(st.booleans()):
        upstream_events.append(UsageReported(None, driver.frame(), Tokens(1, 2, 3)))
        driver.upstream(upstream_events[-1])
    upstream_events.append(ResponseEnded(None, driver.frame(), ok=ok))
    driver.upstream(upstream_events[-1])
    return upstream_events


def take_some(
    driver: SequencerDriver, waiting: list[list[Event]], data: st.DataObject
) -> list[Event]:
    """Take events off the lanes that come in one read."""
    events: list[Event] = []
    for _ in range(data.draw(st.integers(1, 4))):
        if any(waiting):
            lane = data.draw(st.sampled_from([lane for lane in waiting if lane]))
            events.append(replace(lane.pop(0), frame=driver.frame()))
    return events


def summarize(driver: SequencerDriver, data: st.DataObject) -> None:
    part = data.draw(st.sampled_from(sorted(driver.requested)))
    match data.draw(st.sampled_from(["say", "say", "finish", "fail", "refuse", "stop"])):
        case "say":
            driver.say(part, "some words ")
        case "finish":
            driver.finish(part, data.draw(st.sampled_from([None, Tokens(1, 1, 2)])))
        case "fail":
            driver.fail(part)
        case "refuse":
            driver.refuse(part)
        case "stop":
            driver.stop(part, BROKEN)


def sequenced(events: list[Event], data: st.DataObject, *, summary: bool = True) -> list[Event]:
    """Return what comes of events in whose midst parts are summarized at drawn places."""
    style = "auto" if summary else None
    plan = SummaryPlan(style=style, part_chars=10, tail_chars=5, max_parts=3)
    driver = SequencerDriver(plan)
    for event in events:
        driver.upstream(event)
        for _ in range(data.draw(st.integers(0, 2))):
            if driver.requested:
                summarize(driver, data)
    drain(driver)
    return driver.emitted


def drain(driver: SequencerDriver) -> None:
    """Advance time until nothing waits any more."""
    for _ in range(100):
        deadline = driver.sequencer.deadline
        if deadline is None:
            return
        driver.wait(deadline - driver.now)
    raise AssertionError("deadlines without end")


def check_waits(driver: SequencerDriver) -> None:
    """Check that nothing is waited for that cannot come: only a summarizer can end a hold early."""
    deadline = driver.sequencer.deadline
    assert driver.requested or deadline is None or deadline <= driver.now


def check_room(driver: SequencerDriver, read: int) -> None:
    """Check that no more waits than the limit and what one read brings, and not for ever."""
    assert driver.sequencer.held_bytes <= driver.plan.held_limit + read
    assert not driver.sequencer.is_full or driver.sequencer.deadline is not None


def check_upstream_order(driver: SequencerDriver, upstream_events: list[Event]) -> None:
    """Check that all of upstream's events are there, in order within each lane."""
    for lane in {event.lane for event in upstream_events}:
        expected = [event.frame for event in upstream_events if event.lane == lane]
        found = [
            event.frame
            for event in driver.emitted
            if event.lane == lane
            and not isinstance(event, SummaryPartAdded | SummaryTextDelta | SummaryPartDone)
        ]
        assert found == expected


def check_parts(driver: SequencerDriver) -> None:
    """Check that parts open and close in turn inside their open item, with dense indexes."""
    open_items: set[tuple[int | None, int]] = set()
    indexes: dict[tuple[int | None, int], int] = defaultdict(int)
    streaming: dict[tuple[int | None, int], str] = {}
    for event in driver.emitted:
        match event:
            case ReasoningStarted():
                open_items.add((event.lane, event.item))
            case ReasoningEnded():
                assert (event.lane, event.item) not in streaming
                open_items.discard((event.lane, event.item))
            case NativeSummary():
                assert (event.lane, event.item) not in streaming
                indexes[event.lane, event.item] = max(
                    indexes[event.lane, event.item], event.index + 1
                )
            case SummaryPartAdded():
                key = event.lane, event.item
                assert key in open_items
                assert key not in streaming
                assert event.index == indexes[key]
                indexes[key] += 1
                streaming[key] = ""
            case SummaryTextDelta():
                assert event.text
                streaming[event.lane, event.item] += event.text
            case SummaryPartDone():
                assert streaming.pop((event.lane, event.item)) == event.text
    assert not streaming


def check_stop(driver: SequencerDriver) -> None:
    """Check that no part is announced once one has stopped the rest."""
    if driver.stopped_at is not None:
        after = driver.emitted[driver.stopped_at :]
        assert not any(isinstance(event, SummaryPartAdded) for event in after)


def check_end(driver: SequencerDriver) -> None:
    """Check that the end comes last, with the emitted summaries."""
    ends = [event for event in driver.emitted if isinstance(event, ResponseEnded)]
    assert driver.emitted[-1] is ends[0]
    assert len(ends) == 1
    emitted_text = defaultdict(list)
    for event in driver.emitted:
        if isinstance(event, SummaryPartDone):
            emitted_text[event.lane, event.item].append(event.text)
    for key, summary in ends[0].summaries.items():
        assert list(summary.parts) == emitted_text[key]
        assert summary.parts or summary.error is None or summary.unfinished
