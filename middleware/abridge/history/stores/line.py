"""The connection to Redis: its client library, time limits and outages.

Theory of operation. No caller waits longer than the ceiling (`MAX_WAIT`). An operation that takes
longer continues in the background until `OPERATION_TIMEOUT` and is then cancelled: so a connection
that is slow to open is open for the next caller, and none is left in the middle of a reply that
somebody else would read as theirs. After a failure the server is not used for `COOLDOWN`, then
tried by one operation at a time, on a new connection, until one succeeds.

A server that replies with an error is reachable and stays in use: what it refuses, it refuses at
once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool
from redis.asyncio import Redis as Client
from redis.exceptions import ReadOnlyError, ResponseError

from abridge.breaker import Breaker
from abridge.history.stores.address import options, server

CEILING = 0.05
"""Longest time a caller waits, in seconds."""

GLANCES = 5
"""Steps a wait is split into. The loop runs in each of them, so a process that was busy with
something else does not take that for the server's silence."""

LONGEST = 1.0
"""Seconds after which an operation in the background is cancelled."""

REST = 1.0
"""Seconds for which a server that failed is not used."""

CONNECTIONS = 16
"""Connections per event loop; further operations queue."""

SELDOM = 60.0
"""Seconds for which the same problem is not logged again."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Line:
    """Runs operations against the server at `url`, from any number of event loops. Connections are
    opened at first use. Raise ValueError for an invalid address, which the message does not repeat.
    """

    def __init__(self, url: str, time: Callable[[], float] = monotonic) -> None:
        self._options = options(url)
        self._time = time
        self._breaker = Breaker(1, REST, time)
        self._told: dict[str, float] = {}
        self._ends: dict[asyncio.AbstractEventLoop, _End] = {}
        self.where = server(self._options)

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T | None:
        """Run an operation. Return None if it fails, takes too long or is not tried."""
        caller = object()
        if not self._breaker.admits(caller):
            return None
        trial = self._breaker.open
        try:
            task = self._end().begin(work)
            if not await _finished(task):
                self._failed(TimeoutError())
            elif not task.cancelled():
                return self._heard(task.result(), trial=trial)
        finally:
            self._breaker.released(caller)
        return None

    async def aclose(self) -> None:
        """Close the connections of the running loop. A later operation opens new ones."""
        if (end := self._ends.pop(asyncio.get_running_loop(), None)) is not None:
            await end.close()

    def tell(self, what: str) -> None:
        """Log a problem, at most once per interval. The text must not contain what was sent."""
        now = self._time()
        if self._told.get(what, -SELDOM) + SELDOM <= now:
            self._told[what] = now
            _log.warning("store at %s: %s", self.where, what)

    def _end(self) -> _End:
        loop = asyncio.get_running_loop()
        if (end := self._ends.get(loop)) is None:
            for closed in [known for known in self._ends if known.is_closed()]:
                del self._ends[closed]
            end = self._ends[loop] = _End(self._options)
        return end

    def _heard(self, outcome: T | Exception, *, trial: bool) -> T | None:
        """Handle an operation's outcome. A success closes the breaker only if the operation was a
        trial: one that began before the failure proves nothing."""
        if isinstance(outcome, Exception) and not _refused(outcome):
            self._failed(outcome)
            return None
        if trial:
            _log.info("store at %s: within reach again", self.where)
            self._breaker.succeeded()
        if isinstance(outcome, Exception):
            self.tell(f"it refuses what it is asked ({_name(outcome)})")
            return None
        return outcome

    def _failed(self, error: Exception) -> None:
        if not self._breaker.open:
            _log.warning("store at %s: out of reach (%s)", self.where, _name(error))
        self._breaker.failed()


class _End:
    """The connections of one event loop."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._pool = ConnectionPool(socket_connect_timeout=LONGEST, **said)
        self._client = Client(connection_pool=self._pool)
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Callable[[Client], Awaitable[T]]) -> asyncio.Task[T | Exception]:
        task = asyncio.create_task(self._carry_out(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._hang_up()

    async def _carry_out(self, work: Callable[[Client], Awaitable[T]]) -> T | Exception:
        """Run the operation. Return its result or error: a server may reply with anything."""
        try:
            async with asyncio.timeout(LONGEST), self._room:
                return await work(self._client)
        except Exception as error:  # noqa: BLE001 -- rubbish breaks any part of a parser
            if not _refused(error):
                await self._hang_up()
            return error

    async def _hang_up(self) -> None:
        """Close idle connections: they lead to the server that failed, or to one that is no longer
        the primary."""
        with suppress(Exception):
            await self._pool.disconnect(inuse_connections=False)


async def _finished(task: asyncio.Task[Any]) -> bool:
    """Wait for the task, at most `MAX_WAIT`. Return whether it is done."""
    for _ in range(GLANCES):
        await asyncio.wait({task}, timeout=CEILING / GLANCES)
        if task.done():
            return True
    return False


def _refused(error: Exception) -> bool:
    """Return whether the error is a reply of the server. A read-only server does not count: it lost
    its role to another, which a new connection may reach."""
    return isinstance(error, ResponseError) and not isinstance(error, ReadOnlyError)


def _name(error: Exception) -> str:
    """Return the error's type; its text may contain what was sent."""
    cause = error.__cause__ or error.__context__
    names = [type(error).__name__, *([type(cause).__name__] if isinstance(cause, OSError) else [])]
    return ": ".join(names)
