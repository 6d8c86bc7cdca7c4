"""What holds for every run of the Weaver, whatever comes when."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

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
from abridge.core.usage import Tokens
from tests.core.sequencer_driver import Loom

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
        held_limit=draw(st.sampled_from([60, 10_000])),
        max_overhead=draw(st.sampled_from([None, 0.1, 1.0])),
        fallback=draw(st.sampled_from([None, lambda _: "an extract"])),
        fail_response=draw(st.booleans()),
    )
    said = [draw(turns(lane, reopened=reopened)) for lane in range(lanes)]
    return plan, said, draw(st.booleans()), draw(st.data())


@settings(max_examples=400)
@given(runs())
def test_every_interleaving_is_legal(
    run: tuple[SummaryPlan, list[list[Event]], bool, st.DataObject],
) -> None:
    plan, lanes, ok, data = run
    loom = Loom(plan)
    said = play(loom, lanes, data, ok=ok)
    drain(loom)
    assert loom.weaver.done
    assert loom.weaver.held_bytes == 0
    assert loom.weaver.deadline is None
    assert not loom.asked
    check_upstream_kept(loom, said)
    check_parts(loom)
    check_end(loom)


def play(loom: Loom, lanes: list[list[Event]], data: st.DataObject, *, ok: bool) -> list[Event]:
    """Let everything happen in an order that Hypothesis chooses; return what upstream said."""
    waiting = [list(lane) for lane in lanes]
    broken_at = None if ok else data.draw(st.integers(0, sum(map(len, lanes))))
    said: list[Event] = []
    while any(waiting) and len(said) != broken_at:
        choices = ["upstream", "upstream"] + ["summarizer"] * bool(loom.asked) + ["time"]
        match data.draw(st.sampled_from(choices)):
            case "upstream":
                lane = data.draw(st.sampled_from([lane for lane in waiting if lane]))
                event = replace(lane.pop(0), frame=loom.frame())
                said.append(event)
                loom.upstream(event)
            case "summarizer":
                summarize(loom, data)
            case _:
                loom.wait(data.draw(st.sampled_from([0.1, 0.6, 3.0])))
    if ok and data.draw(st.booleans()):
        said.append(UsageReported(None, loom.frame(), Tokens(1, 2, 3)))
        loom.upstream(said[-1])
    said.append(ResponseEnded(None, loom.frame(), ok=ok))
    loom.upstream(said[-1])
    return said


def summarize(loom: Loom, data: st.DataObject) -> None:
    part = data.draw(st.sampled_from(sorted(loom.asked)))
    match data.draw(st.sampled_from(["say", "say", "finish", "fail", "refuse"])):
        case "say":
            loom.say(part, "some words ")
        case "finish":
            loom.finish(part, data.draw(st.sampled_from([None, Tokens(1, 1, 2)])))
        case "fail":
            loom.fail(part)
        case "refuse":
            loom.refuse(part)


def drain(loom: Loom) -> None:
    """Time passes until nothing waits any more."""
    for _ in range(100):
        deadline = loom.weaver.deadline
        if deadline is None:
            return
        loom.wait(deadline - loom.now)
    raise AssertionError("deadlines without end")


def check_upstream_kept(loom: Loom, said: list[Event]) -> None:
    """Everything upstream said is there, in its order within each lane."""
    for lane in {event.lane for event in said}:
        expected = [event.frame for event in said if event.lane == lane]
        found = [
            event.frame
            for event in loom.emitted
            if event.lane == lane
            and not isinstance(event, SummaryPartAdded | SummaryTextDelta | SummaryPartDone)
        ]
        assert found == expected


def check_parts(loom: Loom) -> None:
    """Parts open and close one after the other, inside their open item, with dense indexes."""
    open_items: set[tuple[int | None, int]] = set()
    indexes: dict[tuple[int | None, int], int] = defaultdict(int)
    speaking: dict[tuple[int | None, int], str] = {}
    for event in loom.emitted:
        match event:
            case ReasoningStarted():
                open_items.add((event.lane, event.item))
            case ReasoningEnded():
                assert (event.lane, event.item) not in speaking
                open_items.discard((event.lane, event.item))
            case NativeSummary():
                assert (event.lane, event.item) not in speaking
                indexes[event.lane, event.item] = max(
                    indexes[event.lane, event.item], event.index + 1
                )
            case SummaryPartAdded():
                key = event.lane, event.item
                assert key in open_items
                assert key not in speaking
                assert event.index == indexes[key]
                indexes[key] += 1
                speaking[key] = ""
            case SummaryTextDelta():
                assert event.text
                speaking[event.lane, event.item] += event.text
            case SummaryPartDone():
                assert speaking.pop((event.lane, event.item)) == event.text
    assert not speaking


def check_end(loom: Loom) -> None:
    """The end comes last, with the summaries that were said."""
    ends = [event for event in loom.emitted if isinstance(event, ResponseEnded)]
    assert loom.emitted[-1] is ends[0]
    assert len(ends) == 1
    spoken = defaultdict(list)
    for event in loom.emitted:
        if isinstance(event, SummaryPartDone):
            spoken[event.lane, event.item].append(event.text)
    for key, summary in ends[0].summaries.items():
        assert list(summary.parts) == spoken[key]
        assert summary.parts or summary.error is None or summary.unfinished
