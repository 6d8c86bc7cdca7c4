"""Runs the sidecar's servers in several processes.

Theory of operation. The first process opens the sockets, and serves nothing but the admin port. The
others, its workers, are uvicorn's: spawned, each with an app and a loop of its own, they accept on
the one socket they share, and drain as a single process does. Signals come to the first, which
passes on each, once; so a worker does not hear of Ctrl-C by its terminal, and leaves by itself
where its supervisor has gone. A worker that dies is replaced; one that does not start is the end of
all. What workers count is kept in a folder, out of which any process tells the figures of all: it
outlives each worker, and the supervisor stays until the last of them have been collected.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from abridge.app import create_app
from abridge.errors import SettingsError
from abridge.metrics import FOLDER, exposed
from abridge.own import Health, Own
from abridge.serve import Server, Signals, last_scrape, run, serve, signals
from abridge.settings import Settings
from abridge.telemetry.log import set_up

START = 60.0
"""Seconds in which a worker starts, or never will."""

HUNG = 30
"""Seconds after which a worker that does not say it lives is killed: on a busy machine less may be
no sign of death, and it takes its streams with it."""

_log = logging.getLogger(__name__)


class Work(uvicorn.Server):
    """What a worker does, and whether it has begun."""

    def __init__(self, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config)
        self._settings = settings

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        (listener,) = sockets or []
        set_up(self._settings.log)
        try:
            app = create_app(self._settings)
        except SettingsError as error:
            _log.critical("%s", error)
            sys.exit(STARTUP_FAILURE)
        run(serve(app, self._settings, listener, None, self._begun))

    def _begun(self) -> None:
        self.started = True


class Worker(Process):
    def __init__(
        self, config: uvicorn.Config, sockets: list[socket.socket], settings: Settings
    ) -> None:
        super().__init__(config, sockets)
        self._server = Work(config, settings)

    def always_pong(self) -> None:
        """Runs in the worker, which has no use for the supervisor's end of the pipe."""
        self.parent_conn.close()
        with suppress(EOFError, OSError):
            super().always_pong()
        os.kill(os.getpid(), signal.SIGTERM)

    def terminate(self) -> None:
        """Unlike uvicorn's, it may be said again, and does not close the pipe."""
        self.process.terminate()


class Supervisor(Multiprocess):
    """uvicorn's, to be run in a thread: the main one hears the signals. `code` is how it all ended,
    as an exit code; `begun` is called once all workers serve."""

    def __init__(
        self, settings: Settings, listener: socket.socket, begun: Callable[[], None]
    ) -> None:
        before = {number: signal.getsignal(number) for number in SIGNALS}
        config = uvicorn.Config(
            "",
            workers=settings.server.workers,
            log_config=None,
            timeout_worker_healthcheck=HUNG,
        )
        super().__init__(config, [listener])
        for number, handler in before.items():
            signal.signal(number, handler)
        self._settings = settings
        self._begun = begun
        self._lock = Lock()
        self.code = 0

    def run(self) -> None:
        resource_tracker.ensure_running()  # which would unblock what is blocked here
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # workers inherit that
        super().run()

    def leave(self) -> None:
        """Tell the workers to; each time again, so that they hurry."""
        with self._lock:
            self.should_exit.set()
            for shared in self.sockets:
                shared.close()
            for worker in self.processes:
                worker.terminate()

    def init_processes(self) -> None:
        for worker in [self._start() for _ in range(self.processes_num)]:
            self._see_up(worker)
        if not self.should_exit.is_set():
            self._begun()

    def keep_subprocess_alive(self) -> None:
        for worker in list(self.processes):
            if self.should_exit.is_set() or worker.is_alive(HUNG):
                continue
            worker.kill()
            self._bury(worker)
            replacement = self._start()
            if self._see_up(replacement):
                _log.error("worker %s died; %s is in its place", worker.pid, replacement.pid)

    def terminate_all(self) -> None:
        """They were told when it was decided."""

    def join_all(self) -> None:
        while self.processes:
            ended = wait([worker.process.sentinel for worker in self.processes])
            for worker in list(self.processes):
                if worker.process.sentinel in ended:
                    self._bury(worker)
                    if worker.exitcode not in (0, -signal.SIGTERM):
                        _log.error("worker %s ended with %s", worker.pid, worker.exitcode)
                        self.code = self.code or 1

    def _start(self) -> Worker:
        worker = Worker(self.config, self.sockets, self._settings)
        with self._lock:
            if not self.should_exit.is_set():
                worker.start()
                self.processes.append(worker)
        return worker

    def _see_up(self, worker: Worker) -> bool:
        """Whether the worker has come to serve. If not, so would not the next."""
        up = worker.wait_until_ready(START, self.should_exit)
        if not up and not self.should_exit.is_set():
            _log.critical("worker %s did not start", worker.pid)
            self.code = STARTUP_FAILURE
            self.leave()
        return up

    def _bury(self, worker: Process) -> None:
        """What it counted stays; what it had at hand is no more."""
        worker.join()
        with self._lock:
            self.processes.remove(worker)
        _nothing_at_hand(worker.pid)


async def supervise(
    settings: Settings,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    announce: Callable[[], None],
) -> int:
    """Serve in workers until a signal comes and all are drained; returns the exit code. `announce`
    is called once they serve."""
    _nothing_at_hand(os.getpid())  # in the user's own folder an app made to try the settings counts
    health = Health(ready=False)
    own = Own("", health, exposed())

    def begun() -> None:
        health.ready = True
        announce()

    supervisor = Supervisor(settings, listener, begun)
    admin = Server(own, patience=1, silence=settings.limits.client)
    with signals() as heard:
        async with asyncio.TaskGroup() as tasks:
            if admin_listener is not None:
                tasks.create_task(admin.serve([admin_listener]))
            passing = tasks.create_task(_pass_on(supervisor, health, heard))
            try:
                await asyncio.to_thread(supervisor.run)
            finally:
                supervisor.leave()
            passing.cancel()
            if admin_listener is not None:
                await last_scrape(own, settings.server, heard)
            admin.should_exit = True
    return supervisor.code


def _nothing_at_hand(process: int | None) -> None:
    """Its gauges do not count any more."""
    mark_process_dead(process)  # type: ignore[no-untyped-call]


async def _pass_on(supervisor: Supervisor, health: Health, heard: Signals) -> None:
    while True:
        await heard.get()
        health.ready = False
        supervisor.leave()


@contextmanager
def counting_together() -> Iterator[None]:
    """Where processes that are started meanwhile keep what they count: in a fresh folder, or in the
    one that the user names, which is emptied of what others left there. Raises SettingsError."""
    if given := os.environ.get(FOLDER):
        _clear(Path(given))
        yield
        return
    with TemporaryDirectory(prefix="abridge-", ignore_cleanup_errors=True) as fresh:
        os.environ[FOLDER] = fresh
        try:
            yield
        finally:
            del os.environ[FOLDER]


def _clear(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*.db"):
            left.unlink()
    except OSError as error:
        raise SettingsError(f"{FOLDER}: takes a folder of its own: {error.strerror}") from None
