"""The ledger: it takes the records of requests, and has them written in batches.

Theory of operation. A record waits `WRITE_SECONDS` at most for a batch: so much is lost if the
process is killed. A batch that could not be written is kept as it is and tried again, and each
backend writes one only once, whatever became of the first attempt. Requests never wait. What waits
is bounded; beyond that, entries are lost, and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from abridge.memory.stores.store import OutageLog
from abridge.observability.ledger.entry import Entry, is_billable, make_entry
from abridge.observability.ledger.usage import Usage, UsageQuery
from abridge.observability.metrics import Metrics
from abridge.observability.record import Record
from abridge.observability.spending import Prices

WRITE_SECONDS = 0.5
"""Seconds between the writing of two batches, as long as nothing more waits than fits into one."""

RETRY_SECONDS = 1.0
"""Seconds after which a batch that could not be written is tried again."""

CLOSE_SECONDS = 2.0
"""Seconds at the end of the process for writing what still waits."""

BATCH_SIZE = 200
"""Entries written at once: to encode them takes the event loop some milliseconds."""

_log = logging.getLogger(__name__)


class LedgerBackend(Protocol):
    """Keeps entries for a time. Whatever it raises, after some seconds at most, means that it
    cannot be used now; it then closes its connection, and opens another when it is used again."""

    @property
    def server(self) -> str:
        """Its name in the log."""

    async def write(self, batch: Sequence[Entry]) -> None:
        """Write a batch, unless it has been written: one that failed comes again next."""

    async def read(self, query: UsageQuery) -> list[Usage]:
        """Return what was used."""

    async def aclose(self) -> None: ...


class Ledger:
    """Write records to a backend. At most `ceiling` entries wait."""

    def __init__(self, backend: LedgerBackend, metrics: Metrics, ceiling: int) -> None:
        self._backend = backend
        self._metrics = metrics
        self._ceiling = ceiling
        self._waiting: deque[Entry] = deque()
        self._batch: tuple[Entry, ...] = ()
        self._writing: asyncio.Task[None] | None = None
        self._outage = OutageLog(_log, f"ledger at {backend.server}", back="written again")

    def add(self, record: Record, prices: Prices) -> None:
        """Take the record of a request, which cost what the prices say."""
        if not is_billable(record):
            return
        if self._size >= self._ceiling:
            self._metrics.ledger_lost.inc()
            return
        self._waiting.append(make_entry(record, prices))
        self._metrics.ledger_waiting.inc()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def aclose(self) -> None:
        """Write what waits, as far as that can be done soon, and close the connection. A later
        record opens another."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._size and await self._write_batch():
                    pass
        if self._size:
            _log.error("ledger at %s: %d entries are lost", self._backend.server, self._size)
            self._metrics.ledger_lost.inc(self._size)
            self._metrics.ledger_waiting.dec(self._size)
            self._waiting.clear()
            self._batch = ()
        await self._backend.aclose()

    @property
    def _size(self) -> int:
        """The number of entries that wait."""
        return len(self._waiting) + len(self._batch)

    async def _write_all(self) -> None:
        while self._size:
            await asyncio.sleep(RETRY_SECONDS if self._outage.is_on else WRITE_SECONDS)
            while self._size and await self._write_batch():
                pass

    async def _write_batch(self) -> bool:
        """Write the next batch; return whether that worked."""
        if not self._batch:
            size = min(BATCH_SIZE, len(self._waiting))
            self._batch = tuple(self._waiting.popleft() for _ in range(size))
        try:
            await self._backend.write(self._batch)
        except Exception as error:  # noqa: BLE001 -- rubbish breaks any part of a client
            self._metrics.ledger_failures.inc()
            self._outage.begin(f"cannot be written ({type(error).__name__})")
            return False
        self._metrics.ledger_waiting.dec(len(self._batch))
        self._batch = ()
        self._outage.end()
        return True
