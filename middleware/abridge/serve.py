"""Run the sidecar's servers, and shut them down in steps.

Theory of operation. uvicorn serves on sockets opened here, and leaves signals to this module. The
first SIGTERM or SIGINT makes the app not ready. It still accepts requests for the drain delay, so
that load balancers can notice. Then the listener closes, and running requests may finish within the
drain time. Requests that still run after that are cancelled, and tell their clients so. Connections
that are still open even then are aborted. Each further signal ends the current step early. The
admin listener stays until all this is over; if metrics are scraped there, it stays until the last
scrape, within what is left of the drain time.
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
from abridge.telemetry.tracing import exporting
from abridge.vitals import watch

GOODBYE = 3.0
"""Seconds for cancelled requests to tell their clients so; each takes a third of it at most."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Signals(asyncio.Queue[int]):
    """The SIGINTs and SIGTERMs received."""

    first: float | None = None
    """The time of the first one, on the loop's clock."""

    def hear(self, number: int) -> None:
        if self.first is None:
            self.first = asyncio.get_running_loop().time()
        self.put_nowait(number)


class Server(uvicorn.Server):
    """uvicorn's server without lifespan events and signal handlers.

    The caller closes the app and stops the server. On shutdown it waits at most
    `shutdown_timeout` seconds for open connections. A client that neither sends nor reads for
    `client_timeout` seconds is disconnected.
    """

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
            proxy_headers=False,  # keep the address of the connecting peer
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=patience,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def cancel(self) -> None:
        """Cancel the requests that still run; each may still send a response."""
        for task in list(self.server_state.tasks):
            task.cancel()

    def cut(self) -> None:
        """Abort the connections that are still open."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the event loop that uvicorn chooses: uvloop if it is installed."""
    loops = uvicorn.Config("", log_config=None).get_loop_factory()
    with asyncio.Runner(loop_factory=loops) as runner:
        return runner.run(main)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes any free port. Raises OSError."""
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
    """Serve until a signal comes and all requests are drained. Raises SettingsError.

    `announce` is called once the servers are about to accept.
    """
    with exporting(settings):
        await _serve(app, settings, listener, admin_listener, announce)


async def _serve(
    app: Abridge,
    settings: Settings,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    announce: Callable[[], None],
) -> None:
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
    """Wait for `seconds`, or until another signal comes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await heard.get()


async def last_scrape(own: Own, settings: ServerSettings, heard: Signals) -> None:
    """Wait for one more scrape, if metrics were scraped before and have changed since.

    Waits for the rest of the drain time at most, or until another signal comes.
    """
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
    """Filter uvicorn's log: log a broken upstream in one line, and drop cancelled requests.

    Cancelling them was logged when it was done.
    """
    error = record.exc_info[1] if record.exc_info else None
    return in_one_line(record) and not isinstance(error, asyncio.CancelledError)
