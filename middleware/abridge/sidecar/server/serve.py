"""Run the sidecar's servers, and shut them down in steps.

Theory of operation. uvicorn serves on sockets opened here, and leaves signals to `signals.py`.
The first that ends the process makes the app not ready. It still accepts requests for the drain
delay, so that load balancers can notice. Then the listener closes, and running requests may finish
within the drain time. Requests that still run after that are cancelled, and tell their clients so.
Connections that are still open even then are aborted. Each further signal ends the current step
early. The admin listener stays until all this is over; if metrics are scraped there at an
interval, it stays until the last scrape, within what is left of the drain time. Background
responses may end until then, too; those that have not have failed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

import uvicorn
from starlette.types import ASGIApp

from abridge.config.loading import SettingsOrigin
from abridge.config.tables import KEEP_ALIVE_SECONDS, LimitSettings, ServerSettings
from abridge.observability.metrics import metrics_for
from abridge.observability.record import SHUTTING_DOWN
from abridge.sidecar.admin import AdminEndpoints
from abridge.sidecar.app import Abridge
from abridge.sidecar.proxy.calls import log_in_one_line
from abridge.sidecar.server.browser_guard import BrowserGuard
from abridge.sidecar.server.garbage import collect_garbage, freeze_objects
from abridge.sidecar.server.http_protocol import CountRefusal, HttpProtocol, protocol_factory
from abridge.sidecar.server.open_files import fit_open_files
from abridge.sidecar.server.process_metrics import sample_process
from abridge.sidecar.server.reload import Reloader
from abridge.sidecar.server.signals import SignalQueue, catch_signals
from abridge.sidecar.server.websocket_protocol import WebSocketProtocol, websocket_factory

CANCEL_SECONDS = 3.0
"""Seconds for cancelled requests to tell their clients so; each takes a third of it at most."""

SEND_BUFFER = 128 << 10
"""Bytes that the kernel may keep for a client which does not read; Linux doubles it. Left to
itself, it keeps megabytes."""

MAX_INT = 2**31 - 1
"""The largest value of a socket option."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class HttpServer(uvicorn.Server):
    """uvicorn's server without lifespan events and signal handlers.

    The caller closes the app and stops the server. On shutdown it waits at most
    `shutdown_timeout` seconds for open connections. What a client may send, hold and leave waiting
    is bounded by `limits`, and how many seconds its connection may be idle by `keep_alive`;
    `count_refusal` is called with the error code of what is refused so.
    With `websockets`, the Responses API is served over WebSocket as well.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        shutdown_timeout: int | None = None,
        limits: LimitSettings = LimitSettings(),  # noqa: B008 -- it is immutable
        keep_alive: float = KEEP_ALIVE_SECONDS,
        count_refusal: CountRefusal = lambda _: None,
        websockets: bool = False,
    ) -> None:
        make_websocket = websocket_factory(limits, count_refusal) if websockets else None
        config = uvicorn.Config(
            app,
            interface="asgi3",
            http=protocol_factory(limits, count_refusal, keep_alive, make_websocket),
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            ws="none",  # uvicorn's own; see `websocket_factory`
            ws_max_size=limits.body,
            ws_ping_timeout=limits.client,
            ws_per_message_deflate=False,  # to inflate a message would take the loop too long
            workers=1,
            proxy_headers=False,  # keep the address of the connecting peer
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=shutdown_timeout,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def cancel_requests(self) -> None:
        """Cancel the requests that still run; each may still send a response."""
        for task in list(self.server_state.tasks):
            task.cancel(SHUTTING_DOWN)

    def abort_connections(self) -> None:
        """Abort the connections that are still open."""
        for connection in list(self.server_state.connections):
            cast(HttpProtocol | WebSocketProtocol, connection).reset()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the event loop that uvicorn chooses: uvloop if it is installed."""
    loop_factory = uvicorn.Config("", log_config=None).get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes any free port. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual_stack = host == "::" and socket.has_dualstack_ipv6()
    listener = socket.create_server(
        (host, port), family=family, backlog=2048, dualstack_ipv6=dual_stack
    )
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # its connections', too
    return listener


def drop_unread(listener: socket.socket, seconds: float) -> None:
    """Have the kernel drop what a client has not read for so long, of closed connections too.

    The listener's connections inherit this. Where there is no such option, the system decides.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None and listener.family != getattr(socket, "AF_UNIX", None):
        listener.setsockopt(socket.IPPROTO_TCP, option, min(int(seconds * 1000), MAX_INT))


def listener_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    app: Abridge,
    origin: SettingsOrigin,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    announce: Callable[[], None],
) -> None:
    """Serve until a signal comes and all requests are drained.

    `origin` is where the app's settings are read again; `announce` is called once the servers are
    about to accept.
    """
    settings, reloader = app.settings, Reloader(app, origin)
    logging.getLogger("uvicorn.error").addFilter(filter_uvicorn_log)
    limits = fit_open_files(settings.limits, settings.summarizer.max_in_flight)
    for opened in filter(None, (listener, admin_listener)):
        drop_unread(opened, limits.client)
    guarded = BrowserGuard(app.call, settings.server, _count_refusal)
    guarded_admin = BrowserGuard(app.admin, settings.server, _count_refusal)
    server, admin = (
        HttpServer(
            guarded,
            limits=limits,
            keep_alive=settings.server.keep_alive,
            count_refusal=_count_refusal,
            websockets=settings.server.websockets is not False,
        ),
        HttpServer(guarded_admin, shutdown_timeout=1, limits=settings.limits),
    )
    with catch_signals(reloader.ask) as signals:
        async with asyncio.TaskGroup() as tasks:
            if admin_listener is not None:
                tasks.create_task(admin.serve([admin_listener]))
            serve_task = tasks.create_task(server.serve([listener]))
            drain_task = tasks.create_task(_drain(server, app, settings.server, signals))
            beside = [
                tasks.create_task(sample_process(metrics_for())),
                tasks.create_task(collect_garbage()),
                tasks.create_task(reloader.run()),
            ]
            freeze_objects()
            announce()
            await serve_task
            background = tasks.create_task(app.finish_background())
            await asyncio.wait((background, drain_task), return_when=asyncio.FIRST_COMPLETED)
            background.cancel()
            drain_task.cancel()
            if admin_listener is not None:
                await wait_for_last_scrape(app.admin, settings.server, signals)
            for task in beside:
                task.cancel()
            admin.should_exit = True
    await app.aclose()


def _count_refusal(code: str) -> None:
    metrics_for().refusals.labels(code).inc()


async def _drain(
    server: HttpServer, app: Abridge, settings: ServerSettings, signals: SignalQueue
) -> None:
    number = await signals.get()
    app.health.ready = False
    _log.info("%s: not ready any more", signal.Signals(number).name)
    await _wait_or_signal(settings.drain_delay, signals)
    server.should_exit = True
    _log.info("closing; %d requests to finish", len(server.server_state.tasks))
    await _wait_or_signal(settings.drain, signals)
    _log.warning("cancelling %d requests that still run", len(server.server_state.tasks))
    server.cancel_requests()
    await _wait_or_signal(CANCEL_SECONDS, signals)
    server.abort_connections()


async def _wait_or_signal(seconds: float, signals: SignalQueue) -> None:
    """Wait for `seconds`, or until another signal comes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await signals.get()


async def wait_for_last_scrape(
    admin: AdminEndpoints, settings: ServerSettings, signals: SignalQueue
) -> None:
    """Wait for one more scrape, if metrics were scraped at an interval and have changed since.

    Waits until the scrape is overdue or the drain time over, or until another signal comes.
    """
    if admin.all_scraped or signals.first_at is None:
        return
    if (due_in := admin.scrape_due_in) is None:
        _log.info("not waiting for the last metrics to be collected: no scrape is due")
        return
    end = signals.first_at + settings.drain_delay + settings.drain
    remaining = min(due_in, max(0.0, end - asyncio.get_running_loop().time()))
    _log.info("waiting up to %.1f s for the last metrics to be collected", remaining)
    waiting = {asyncio.create_task(admin.wait_for_scrape()), asyncio.create_task(signals.get())}
    await asyncio.wait(waiting, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def filter_uvicorn_log(record: logging.LogRecord) -> bool:
    """Filter uvicorn's log: log a broken upstream in one line, and drop cancelled requests and
    WebSocket texts that are not UTF-8.

    Cancelling was logged when it was done, and it is the client who is to know of its text.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_text = isinstance(error, UnicodeDecodeError) and "websockets" in record.pathname
    is_dropped = is_text or isinstance(error, asyncio.CancelledError)
    return log_in_one_line(record) and not is_dropped
