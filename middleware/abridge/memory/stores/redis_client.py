"""The connection to Redis: its address, client library, time limits and outages.

Theory of operation. No caller waits longer than the ceiling (`MAX_WAIT`), not counting the time in
which this process was late itself. An operation that takes longer continues in the background until
`OPERATION_TIMEOUT` and is then cancelled: so a connection that is slow to open is open for the next
caller, and none is left in the middle of a reply that somebody else would read as theirs. After a
failure the server is not used for `COOLDOWN`, then tried by one operation at a time, on a new
connection, until one succeeds.

A server fails by its own silence only. An operation that waits for one of this process's own
connections (`MAX_CONNECTIONS`) has not asked it anything: if it waits too long it is given up, and
the server stays in use.

A server that replies with an error is reachable and stays in use: what it refuses, it refuses at
once.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlsplit

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio import Redis as Client
from redis.asyncio.connection import ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from abridge.breaker import CircuitBreaker
from abridge.memory.stores import redis_cluster, redis_sentinel
from abridge.memory.stores.redis_cluster import ClusterClient
from abridge.memory.stores.store import BackendError, OutageLog, ProblemLog
from abridge.waiting import silence_timeout

MAX_WAIT = 0.05
"""Longest time a caller waits, in seconds."""

WAIT_STEPS = 5
"""Steps a wait is split into. One that took twice as long as it should, because the loop was busy
or the process stopped, says nothing of the server and is not counted."""

OPERATION_TIMEOUT = 1.0
"""Seconds after which an operation in the background is cancelled."""

COOLDOWN = 1.0
"""Seconds for which a server that failed is not used."""

MAX_CONNECTIONS = 16
"""Connections per event loop; further operations queue."""

_log = logging.getLogger(__name__)

T = TypeVar("T")

_VALKEY_SCHEME = re.compile(r"^valkey(?=s?://)")
"""Valkey speaks the same protocol; the client knows only the `redis` schemes."""

ADDRESS_OPTIONS = frozenset(
    ["connection_class", "db", "host", "password", "path", "port", "username"]
)
"""Options an address may set, besides those of TLS (`ssl_*`)."""

FIXED_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "parser_class": _AsyncRESP2Parser,  # hiredis would allocate any announced length
    "retry": Retry(NoBackoff(), 0),
}
"""Options that are the same for every address."""

INVALID_ADDRESS = "must be an address such as redis://user:password@host:6379/0"


class RedisConnection:
    """Runs operations against the server at `url`, from any number of event loops. Connections are
    opened at first use. Raises ValueError for an invalid address, which its message does not
    repeat."""

    def __init__(self, url: str, time: Callable[[], float] = monotonic) -> None:
        self._new_client, self.server = client_maker(url)
        self._breaker = CircuitBreaker(1, COOLDOWN, time)
        self._problems = ProblemLog(_log, self.server, time)
        self._outage = OutageLog(_log, f"store at {self.server}")
        self._loop_clients: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    async def run(self, operation: Callable[[Client], Awaitable[T]]) -> T:
        """Run an operation. Raises BackendError if it fails, takes too long or is not tried."""
        caller = object()
        if not self._breaker.admit(caller):
            raise BackendError
        trial = self._breaker.is_open
        try:
            running = self._loop_client().start(operation)
            if await running.wait():
                if not running.task.cancelled():
                    return self._handle_outcome(running.task.result(), trial=trial)
            elif running.silent_steps >= WAIT_STEPS:
                self._handle_failure(TimeoutError())
        finally:
            self._breaker.release(caller)
        raise BackendError

    async def aclose(self) -> None:
        """Close the connections of the running loop. A later operation opens new ones."""
        if (client := self._loop_clients.pop(asyncio.get_running_loop(), None)) is not None:
            await client.close()

    def _loop_client(self) -> _LoopClient:
        loop = asyncio.get_running_loop()
        if (client := self._loop_clients.get(loop)) is None:
            for closed in [known for known in self._loop_clients if known.is_closed()]:
                del self._loop_clients[closed]
            client = self._loop_clients[loop] = _LoopClient(self._new_client())
        return client

    def _handle_outcome(self, outcome: T | Exception, *, trial: bool) -> T:
        """Return an operation's result. A success closes the breaker only if the operation was a
        trial: one that began before the failure proves nothing."""
        if isinstance(outcome, Exception) and not _is_refusal(outcome):
            self._handle_failure(outcome)
            raise BackendError
        if trial:
            self._outage.end()
            self._breaker.note_success()
        if isinstance(outcome, Exception):
            self._problems.warn(f"it refuses operations ({_error_name(outcome)})")
            raise BackendError
        return outcome

    def _handle_failure(self, error: Exception) -> None:
        self._outage.begin(f"unreachable ({_error_name(error)})")
        self._breaker.note_failure()


class _LoopClient:
    """The connections of one event loop."""

    def __init__(self, client: Client | ClusterClient) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, operation: Callable[[Client], Awaitable[T]]) -> _RunningOperation[T]:
        has_slot = asyncio.Event()
        task = asyncio.create_task(self._run(operation, has_slot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return _RunningOperation(task, has_slot)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(Exception):
            await self._client.aclose()

    async def _run(
        self, operation: Callable[[Client], Awaitable[T]], has_slot: asyncio.Event
    ) -> T | Exception:
        """Run the operation. Return its result or error: a server may reply with anything."""
        async with self._slots:
            has_slot.set()
            return await self._run_now(operation)

    async def _run_now(self, operation: Callable[[Client], Awaitable[T]]) -> T | Exception:
        client = self._client
        try:
            async with silence_timeout(OPERATION_TIMEOUT):
                return await operation(cast(Client, client))  # a cluster's has its commands
        except Exception as error:  # noqa: BLE001 -- rubbish breaks any part of a parser
            if not _is_refusal(error):
                await self._close_idle(client)
            return error

    async def _close_idle(self, client: Client | ClusterClient) -> None:
        """Close idle connections: they lead to the server that failed, or to one that is no longer
        the primary."""
        with suppress(Exception):
            if not isinstance(client, ClusterClient):
                await client.connection_pool.disconnect(inuse_connections=False)
            elif client is self._client:
                self._client = client.renewed()
                await client.aclose()


@dataclass
class _RunningOperation(Generic[T]):
    """An operation under way. `silent_steps` counts those in which the server was waited for."""

    task: asyncio.Task[T | Exception]
    has_slot: asyncio.Event  # set once it has one of this process's connections
    silent_steps: int = 0

    async def wait(self) -> bool:
        """Wait until it is done, at most `MAX_WAIT`; return whether it is. One that has not begun
        by then never will."""
        steps = 0
        try:
            await asyncio.sleep(0)  # lets it begin
            while steps < WAIT_STEPS and not self.task.done():
                was_asked, was_late = self.has_slot.is_set(), await self._wait_a_step()
                steps += not (was_asked and was_late)
                self.silent_steps += was_asked and not was_late
            return self.task.done()
        finally:
            if not self.has_slot.is_set():
                self.task.cancel()

    async def _wait_a_step(self) -> bool:
        """Wait for a step at most; return whether the loop was late."""
        loop, step = asyncio.get_running_loop(), MAX_WAIT / WAIT_STEPS
        began_at = loop.time()
        await asyncio.wait({self.task}, timeout=step)
        return loop.time() - began_at > 2 * step


def _is_refusal(error: Exception) -> bool:
    """Return whether the error is a reply of the server. A read-only server does not count: it lost
    its role to another, which a new connection may reach."""
    return isinstance(error, ResponseError) and not isinstance(error, ReadOnlyError)


def _error_name(error: Exception) -> str:
    """Return the error's type; its text may contain what was sent."""
    cause = error.__cause__ or error.__context__
    names = [type(error).__name__, *([type(cause).__name__] if isinstance(cause, OSError) else [])]
    return ": ".join(names)


def client_maker(
    url: str, patience: float | None = None
) -> tuple[Callable[[], Client | ClusterClient], str]:
    """Return what makes a client of the server at an address, and its name for the log. To find the
    server and connect to it may take `patience` seconds, by default as long as an operation. Raises
    ValueError, with a message that does not repeat the address."""
    patience = OPERATION_TIMEOUT if patience is None else patience
    scheme, _, rest = url.partition("://")
    if scheme == redis_cluster.SCHEME:
        login, at, _ = rest.rpartition("@")
        options = parse_address(f"redis://{login}{at}localhost")
        return redis_cluster.cluster_maker(url, options, patience)
    if scheme == redis_sentinel.SCHEME:
        address = redis_sentinel.SentinelAddress.parse(url)
        new_pool = address.pool_maker(parse_address(address.primary), patience)
        return lambda: Client.from_pool(new_pool()), address.server
    options = parse_address(url)
    new_pool = partial(ConnectionPool, socket_connect_timeout=patience, **options)
    return lambda: Client.from_pool(new_pool()), server_name(options)


def parse_address(url: str) -> dict[str, Any]:
    """Parse an address into the options of a connection. Raises ValueError, with a message that
    does not repeat the address. A path that is no database number is invalid: what looks like the
    host may be the start of a password that contains a slash."""
    try:
        parsed: dict[str, Any] = {**parse_url(_VALKEY_SCHEME.sub("redis", url))}
        is_valid = all(name in ADDRESS_OPTIONS or name.startswith("ssl_") for name in parsed)
        is_valid = is_valid and (
            bool(parsed.keys() & {"db", "path"}) or urlsplit(url).path in ("", "/")
        )
        parsed |= FIXED_OPTIONS
        ConnectionPool(**parsed).make_connection()  # type: ignore[no-untyped-call]  # sends nothing
    except (TypeError, ValueError, RedisError):
        is_valid = False
    if not is_valid:
        raise ValueError(INVALID_ADDRESS)
    return parsed


def server_name(options: dict[str, Any]) -> str:
    """Return the server's name for the log."""
    host, port = options.get("host", "localhost"), options.get("port", 6379)
    return str(options.get("path", f"{host}:{port}"))
