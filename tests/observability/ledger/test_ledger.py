"""Test batches, outages and ceilings, with a backend that a test breaks and mends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.observability.ledger.entry import Entry
from abridge.observability.ledger.ledger import (
    BATCH_SIZE,
    CLOSE_SECONDS,
    RETRY_SECONDS,
    WRITE_SECONDS,
    Ledger,
)
from abridge.observability.ledger.usage import Usage, UsageQuery
from abridge.observability.metrics import metrics_for
from abridge.observability.spending import Prices
from tests.observability.ledger.cases import record
from tests.support.clock import Clock, clock

__all__ = ["clock"]

FREE = Prices(Settings())

CEILING = 3 * BATCH_SIZE


@dataclass
class Scripted:
    """Writes to a list; `error` is raised instead, `gate` is waited for."""

    server: str = "the-server"
    batches: list[Sequence[Entry]] = field(default_factory=list)
    attempts: list[Sequence[Entry]] = field(default_factory=list)
    error: Exception | None = None
    gate: asyncio.Event | None = None
    closed: int = 0

    async def write(self, batch: Sequence[Entry]) -> None:
        self.attempts.append(batch)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.batches.append(batch)

    async def read(self, query: UsageQuery) -> list[Usage]:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.closed += 1

    @property
    def written(self) -> list[str | None]:
        return [entry.model for batch in self.batches for entry in batch]


class Kept:
    """A ledger and what it counts."""

    def __init__(self) -> None:
        self.backend = Scripted()
        self._registry = CollectorRegistry()
        self.ledger = Ledger(self.backend, metrics_for(self._registry), CEILING)

    def add(self, *names: object) -> None:
        for name in names:
            self.ledger.add(record(model=str(name)), FREE)

    def count(self, name: str) -> float | None:
        return self._registry.get_sample_value(f"abridge_ledger_{name}")


async def later(clock: Clock, seconds: float) -> None:
    """Let time pass, once what was just begun waits."""
    await clock.advance(0)
    await clock.advance(seconds)


@pytest.fixture
async def kept() -> AsyncIterator[Kept]:
    made = Kept()
    yield made
    made.backend.error = made.backend.gate = None
    await made.ledger.aclose()


async def test_records_are_written_together_within_a_moment(kept: Kept, clock: Clock) -> None:
    kept.add("a", "b")
    assert kept.count("waiting") == 2
    await later(clock, WRITE_SECONDS)
    assert [len(batch) for batch in kept.backend.batches] == [2]
    assert kept.backend.written == ["a", "b"]
    assert kept.count("waiting") == 0
    kept.add("c")
    await later(clock, WRITE_SECONDS)
    assert kept.backend.written == ["a", "b", "c"]


async def test_what_does_not_fit_into_a_batch_does_not_wait_for_the_next_moment(
    kept: Kept, clock: Clock
) -> None:
    names = [str(number) for number in range(2 * BATCH_SIZE + 1)]
    kept.add(*names)
    await later(clock, WRITE_SECONDS)
    assert [len(batch) for batch in kept.backend.batches] == [BATCH_SIZE, BATCH_SIZE, 1]
    assert kept.backend.written == names


async def test_an_outage_loses_nothing_and_is_logged_once(
    kept: Kept, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kept.backend.error = OSError("secret")
    kept.add("a")
    await later(clock, WRITE_SECONDS)
    kept.add("b")
    for _ in range(3):
        await later(clock, RETRY_SECONDS)
    assert kept.count("failures_total") == 4
    assert kept.count("waiting") == 2
    assert caplog.messages == ["ledger at the-server: cannot be written (OSError)"]
    kept.backend.error = None
    await later(clock, RETRY_SECONDS)
    assert kept.backend.written == ["a", "b"]
    assert caplog.messages[1:] == ["ledger at the-server: written again"]
    assert kept.count("lost_total") == 0


async def test_a_batch_is_tried_again_as_it_was(kept: Kept, clock: Clock) -> None:
    """The server may have written it, and knows it by its first entry."""
    kept.backend.error = OSError()
    kept.add("a")
    await later(clock, WRITE_SECONDS)
    kept.add("b")
    kept.backend.error = None
    await later(clock, RETRY_SECONDS)
    first, again, rest = kept.backend.attempts
    assert first == again
    assert len(rest) == 1


async def test_beyond_the_ceiling_entries_are_lost_and_counted(kept: Kept, clock: Clock) -> None:
    kept.backend.error = OSError()
    kept.add(*range(10))
    await later(clock, WRITE_SECONDS)  # ten are in a batch
    kept.add(*range(10, CEILING + 5))
    assert kept.count("waiting") == CEILING
    assert kept.count("lost_total") == 5
    kept.backend.error = None
    await later(clock, RETRY_SECONDS)
    assert kept.backend.written == [str(number) for number in range(CEILING)]


async def test_closing_writes_what_waits(kept: Kept) -> None:
    kept.add(*range(BATCH_SIZE + 1))
    await kept.ledger.aclose()
    assert len(kept.backend.written) == BATCH_SIZE + 1
    assert kept.backend.closed == 1
    assert kept.count("waiting") == 0


async def test_closing_while_a_batch_is_written_writes_it(kept: Kept, clock: Clock) -> None:
    kept.backend.gate = asyncio.Event()
    kept.add("a")
    await later(clock, WRITE_SECONDS)
    assert len(kept.backend.attempts) == 1
    kept.backend.gate.set()
    await kept.ledger.aclose()
    assert kept.backend.written == ["a"]


async def test_closing_in_an_outage_says_what_is_lost(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    kept.backend.error = OSError()
    kept.add("a", "b")
    await kept.ledger.aclose()
    assert caplog.messages[-1] == "ledger at the-server: 2 entries are lost"
    assert kept.count("lost_total") == 2
    assert kept.count("waiting") == 0


async def test_closing_takes_no_longer_than_it_may(kept: Kept, clock: Clock) -> None:
    kept.backend.gate = asyncio.Event()
    kept.add("a")
    closing = asyncio.create_task(kept.ledger.aclose())
    await later(clock, 0)
    assert not closing.done()
    await later(clock, CLOSE_SECONDS)
    assert closing.done()
    assert kept.count("lost_total") == 1
    await closing


async def test_a_ledger_can_be_used_again_after_it_was_closed(kept: Kept, clock: Clock) -> None:
    await kept.ledger.aclose()
    kept.add("a")
    await later(clock, WRITE_SECONDS)
    assert kept.backend.written == ["a"]


async def test_nothing_runs_while_there_is_nothing_to_write(kept: Kept, clock: Clock) -> None:
    before = asyncio.all_tasks()
    kept.add("a")
    assert len(asyncio.all_tasks()) == len(before) + 1
    await later(clock, WRITE_SECONDS)
    assert asyncio.all_tasks() == before
