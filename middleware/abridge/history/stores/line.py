"""The line to Redis: all that is known of its client, and of its being out of reach.

Theory of operation. Nobody waits for an answer longer than the ceiling. What takes longer goes on
by itself for a while and is then broken off: so a connection that is slow to open is open the next
time, and none is left in the middle of an answer that somebody else would then read as his. After a
failure the server is left alone for a moment, then tried by one operation at a time, on a new
connection, until one is answered.

A server that answers with a refusal is within reach: it is not left alone, since what it refuses,
it refuses at once.
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
"""Seconds that anybody waits."""

GLANCES = 5
"""A wait has so many parts, and in each the loop has looked for an answer: so that a process that
was busy with something else does not take that for the server's silence."""

LONGEST = 1.0
"""Seconds after which what nobody waits for any more is broken off."""

REST = 1.0
"""Seconds for which a server that failed is left alone."""

CONNECTIONS = 16
"""Of each loop, at most; more operations than that wait for their turn."""

SELDOM = 60.0
"""Seconds for which the same refusal is not logged again."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Line:
    """To the server at `url`, for any number of event loops; connections are made at first use.
    Raises ValueError for an address that is none, which it does not repeat."""

    def __init__(self, url: str, time: Callable[[], float] = monotonic) -> None:
        self._options = options(url)
        self._time = time
        self._breaker = Breaker(1, REST, time)
        self._told: dict[str, float] = {}
        self._ends: dict[asyncio.AbstractEventLoop, _End] = {}
        self.where = server(self._options)

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T | None:
        """What `work` comes to; None where it fails or takes too long, or is not tried."""
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
        """Closes what is open on the running loop; a later operation opens anew."""
        if (end := self._ends.pop(asyncio.get_running_loop(), None)) is not None:
            await end.close()

    def tell(self, what: str) -> None:
        """Log what went wrong, once in a while. It never holds what was said."""
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
        """What began before a failure says nothing of what is since; a trial does."""
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
    """The line's end in one event loop."""

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
        """What comes of it, or of trying: a server may answer anything."""
        try:
            async with asyncio.timeout(LONGEST), self._room:
                return await work(self._client)
        except Exception as error:  # noqa: BLE001 -- rubbish breaks any part of a parser
            if not _refused(error):
                await self._hang_up()
            return error

    async def _hang_up(self) -> None:
        """Close what is idle: it leads where this failed, or to who is no longer in charge."""
        with suppress(Exception):
            await self._pool.disconnect(inuse_connections=False)


async def _finished(task: asyncio.Task[Any]) -> bool:
    """Wait for it, though not for long."""
    for _ in range(GLANCES):
        await asyncio.wait({task}, timeout=CEILING / GLANCES)
        if task.done():
            return True
    return False


def _refused(error: Exception) -> bool:
    """Whether that is the server's answer. One that may no longer write has left its place to
    another, which a new connection may lead to."""
    return isinstance(error, ResponseError) and not isinstance(error, ReadOnlyError)


def _name(error: Exception) -> str:
    """What kind of error it is; its text may hold what was sent."""
    cause = error.__cause__ or error.__context__
    names = [type(error).__name__, *([type(cause).__name__] if isinstance(cause, OSError) else [])]
    return ": ".join(names)
