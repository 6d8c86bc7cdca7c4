"""Runs the sidecar's servers, and ends them in steps.

Theory of operation. uvicorn serves, on sockets opened here, and leaves signals to this module. The
first SIGTERM or SIGINT makes the app not ready, while it still accepts for the drain delay, so that
whoever sends requests can learn of it. Then the listener closes, and what runs may finish within
the drain time. What still runs after that is cancelled, whereupon it tells its client so. What is
still connected even then is cut off. Each further signal ends the step in which it comes. The
admin listener stays until all this is over, and if somebody collects metrics there, until they
have come for the last, in what is left of the drain time.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp

from abridge.app import Abridge
from abridge.connection import connections
from abridge.metrics import metrics_on
from abridge.own import Own
from abridge.proxy import in_one_line
from abridge.settings import Limits, Settings
from abridge.settings import Server as ServerSettings
from abridge.vitals import watch

GOODBYE = 3.0
"""Seconds in which cancelled requests may tell their clients so; each takes a third at most."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Signals(asyncio.Queue[int]):
    """SIGINT and SIGTERM, as they come; `first` is when the first did, on the loop's clock."""

    first: float | None = None

    def hear(self, number: int) -> None:
        if self.first is None:
            self.first = asyncio.get_running_loop().time()
        self.put_nowait(number)


class Server(uvicorn.Server):
    """uvicorn's, less its lifespan and its signals: who made the app closes it, and who runs the
    server ends it. After `patience` seconds it waits no longer for who is still connected; a client
    may send, or take, nothing for `silence` seconds."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        patience: int | None = None,
        silence: float = Limits().client,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=connections(silence),
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            ws="none",
            workers=1,
            proxy_headers=False,  # the scope says who really connected
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=patience,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def cancel(self) -> None:
        """Cancel the requests that still run; they may yet say goodbye."""
        for task in list(self.server_state.tasks):
            task.cancel()

    def cut(self) -> None:
        """Cut off whoever is still connected."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on the event loop of uvicorn's choice: uvloop, where there is one."""
    loops = uvicorn.Config("", log_config=None).get_loop_factory()
    with asyncio.Runner(loop_factory=loops) as runner:
        return runner.run(main)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any that is free. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=both)


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def signals() -> Iterator[Signals]:
    loop, heard = asyncio.get_running_loop(), Signals()

    def hear(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(heard.hear, number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def serve(
    app: Abridge,
    settings: Settings,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    announce: Callable[[], None],
) -> None:
    """Serve until a signal comes and all is drained; `announce` is called once that can happen."""
    logging.getLogger("uvicorn.error").addFilter(worth_logging)
    silence = settings.limits.client
    server, admin = Server(app, silence=silence), Server(app.admin, patience=1, silence=silence)
    with signals() as heard:
        async with asyncio.TaskGroup() as tasks:
            if admin_listener is not None:
                tasks.create_task(admin.serve([admin_listener]))
            serving = tasks.create_task(server.serve([listener]))
            draining = tasks.create_task(_drain(server, app, settings.server, heard))
            watching = tasks.create_task(watch(metrics_on()))
            announce()
            await serving
            draining.cancel()
            if admin_listener is not None:
                await last_scrape(app.admin, settings.server, heard)
            watching.cancel()
            admin.should_exit = True
    await app.aclose()


async def _drain(server: Server, app: Abridge, settings: ServerSettings, heard: Signals) -> None:
    number = await heard.get()
    app.health.ready = False
    _log.info("%s: not ready any more", signal.Signals(number).name)
    await _pause(settings.drain_delay, heard)
    server.should_exit = True
    _log.info("closing; %d requests to finish", len(server.server_state.tasks))
    await _pause(settings.drain, heard)
    _log.warning("cancelling %d requests that still run", len(server.server_state.tasks))
    server.cancel()
    await _pause(GOODBYE, heard)
    server.cut()


async def _pause(seconds: float, heard: Signals) -> None:
    """Wait, or be hurried by another signal."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await heard.get()


async def last_scrape(own: Own, settings: ServerSettings, heard: Signals) -> None:
    """Wait for whoever collects metrics to come for what they were not told, while there is time,
    or until hurried."""
    if own.all_told or heard.first is None:
        return
    _log.info("waiting for the last metrics to be collected")
    end = heard.first + settings.drain_delay + settings.drain
    waiting = {asyncio.create_task(own.asked()), asyncio.create_task(heard.get())}
    left = max(0.0, end - asyncio.get_running_loop().time())
    await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def worth_logging(record: logging.LogRecord) -> bool:
    """A filter for uvicorn's log: a broken upstream takes one line, and the cancelling of requests
    was told when it was done."""
    error = record.exc_info[1] if record.exc_info else None
    return in_one_line(record) and not isinstance(error, asyncio.CancelledError)
