"""Test that what the Sequencer has due is performed, whatever else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from unittest.mock import MagicMock

import pytest

from abridge.config.settings import SummarizerSettings
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
)
from abridge.core.plan import Passage, SummaryPlan
from abridge.core.sequencer import EMITTED_AT_ONCE, Sequencer
from abridge.pipeline.client import Clock
from abridge.pipeline.summary_runner import SummaryRunner
from abridge.summarizers.guard import Guard
from tests.support.servers import soon


class Silent:
    name = "silent"

    async def summarize(self, _passage: Passage) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""


def texts(lane: int, count: int) -> list[Event]:
    return [ContentDelta(lane, None, "x") for _ in range(count)]


def thinking(lane: int) -> list[Event]:
    return [ReasoningStarted(lane, None, 0), ReasoningDelta(lane, None, 0, "a thought")]


MANY = EMITTED_AT_ONCE * 3 // 2


@pytest.mark.parametrize(
    ("held", "after"),
    [
        (texts(0, MANY), []),
        (texts(0, MANY), [*thinking(1), *texts(1, MANY)]),
        ([*texts(0, EMITTED_AT_ONCE - 1), *[Finished(0, None, "stop")] * 3], []),
    ],
    ids=["one lane's", "another's behind them", "what takes no bytes at their end"],
)
async def test_all_that_waited_leaves_and_then_there_is_room(
    held: list[Event], after: list[Event]
) -> None:
    emitted: list[Event] = []
    async with asyncio.TaskGroup() as tasks:
        runner = SummaryRunner(
            Sequencer(SummaryPlan()),
            guard=Guard(SummarizerSettings()),
            summarizer=Silent(),
            tasks=tasks,
            clock=Clock(),
            emit=emitted.extend,
            recorder=MagicMock(),
        )
        runner.feed([*thinking(0), ReasoningEnded(0, None, 0), *held])
        runner.stop_waiting()
        runner.feed(after)
        await soon(runner.wait_for_room())
        runner.stop()
    assert emitted[-1] == [*held, *after][-1]
