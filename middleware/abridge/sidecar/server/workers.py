"""Run the sidecar in several processes.

Theory of operation. The first process, the supervisor, opens the sockets and serves nothing but the
admin port. The others, its workers, are uvicorn's: spawned, each with an app and an event loop of
its own, they accept on the one socket they share, and drain as a single process does. The
supervisor forwards each signal to the workers once; therefore workers ignore those from the
terminal, and exit by themselves if the supervisor is gone. A worker that dies is replaced. If that
fails, it is tried again, less and less often, while others serve; at the start, all are stopped.
Workers keep their metrics in a shared folder, from which any process exports the metrics of all.
The folder outlives each worker, and the supervisor stays until the last metrics have been scraped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import cast

import uvicorn
from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from abridge.config.loading import SettingsOrigin
from abridge.config.reloading import keep_until_restart
from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.observability.logs import set_up_logging
from abridge.observability.metrics import Metrics, exposed_registry
from abridge.observability.tracing import exporting_spans
from abridge.sidecar.admin import AdminEndpoints, Health
from abridge.sidecar.app import Abridge, create_app
from abridge.sidecar.server.browser_guard import BrowserGuard
from abridge.sidecar.server.metrics_files import write_files_before_mapping
from abridge.sidecar.server.serve import HttpServer, run, serve, wait_for_last_scrape
from abridge.sidecar.server.signals import (
    HANG_UP,
    SignalQueue,
    block_terminal_signals,
    catch_signals,
)

START_TIMEOUT = 60.0
"""Seconds within which a worker must start."""

PING_TIMEOUT = 30.0
"""Seconds after which a worker that does not answer a ping is killed. It must be long: a worker on
a busy machine may be slow to answer, and killing it breaks its streams."""

FROZEN_TIMEOUT = 5.0
"""Seconds after which a worker is killed that has neither answered a ping nor used a processor, nor
waits for one."""

MAX_PAUSE = 60.0
"""Seconds between two attempts to replace a worker, at most."""

_log = logging.getLogger(__name__)


@dataclass
class Vacancy:
    """The place of a worker that died, by its process id, and is not replaced yet."""

    died: int | None
    failures: int = 0
    due: float = -inf  # when it is tried again

    def put_off(self) -> float:
        """Wait longer after each failure. Return the seconds."""
        pause = min(MAX_PAUSE, 2.0**self.failures)
        self.failures, self.due = self.failures + 1, monotonic() + pause
        return pause


def delete_gauges(pid: int | None) -> None:
    """Delete the gauges of a process that has ended or serves nothing; its counters stay."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


class WorkerServer(uvicorn.Server):
    """Stands in for uvicorn's server in a worker: builds the app and serves it."""

    def __init__(
        self, config: uvicorn.Config, settings: Settings, origin: SettingsOrigin, number: int
    ) -> None:
        super().__init__(config)
        self._settings = settings
        self._origin = origin
        self._number = number

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        (listener,) = sockets or []
        set_up_logging(self._settings.log, self._number)
        write_files_before_mapping()
        try:
            app = self._create_app()
        except SettingsError as error:
            _log.critical("%s", error)
            sys.exit(STARTUP_FAILURE)
        with exporting_spans(app.settings):
            run(serve(app, self._origin, listener, None, self._mark_started))

    def _create_app(self) -> Abridge:
        """Create the app as the settings are by now, or else as they were at the start: one that
        replaces another may find that those hold no longer. Raises SettingsError."""
        with suppress(SettingsError):
            now = self._origin.read().load_served()
            return create_app(keep_until_restart(self._settings, now)[0])
        return create_app(self._settings)

    def _mark_started(self) -> None:
        self.started = True


class WorkerProcess(Process):
    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        settings: Settings,
        origin: SettingsOrigin,
        number: int,
    ) -> None:
        super().__init__(config, sockets)
        self.number = number
        self._server = WorkerServer(config, settings, origin, number)

    def always_pong(self) -> None:
        """Answer pings, in the worker; stop the worker when the supervisor is gone.

        The worker closes its copy of the supervisor's end of the pipe, so as to notice that.
        """
        self.parent_conn.close()
        with suppress(EOFError, OSError):
            super().always_pong()
        os.kill(os.getpid(), signal.SIGTERM)

    def is_alive(self, timeout: float = PING_TIMEOUT) -> bool:
        """Return False if the worker has ended, is frozen, or does not answer in `timeout`."""
        ended = self.process.sentinel
        try:
            self.parent_conn.send(b"ping")
            for _ in range(max(1, round(timeout / FROZEN_TIMEOUT))):
                used = processor_use(self.pid)
                if heard := wait([self.parent_conn, ended], FROZEN_TIMEOUT):
                    if ended in heard:
                        return False
                    self.parent_conn.recv()
                    return True
                if used is not None and processor_use(self.pid) == used:
                    return False
        except (OSError, EOFError):  # the worker has closed its end
            pass
        return False

    def terminate(self) -> None:
        """Send SIGTERM. Unlike uvicorn's, it may be called again and keeps the pipe open."""
        self.process.terminate()


def processor_use(pid: int | None) -> int | None:
    """Return the time for which a process's threads have run and have waited for a processor, in
    nanoseconds; None if one of them runs or waits now, or the system does not tell."""
    total = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            if (thread / "stat").read_bytes().rpartition(b") ")[2].startswith(b"R"):
                return None
            ran, waited, _ = (thread / "schedstat").read_bytes().split()
            total += int(ran) + int(waited)
    except OSError:
        return None
    return total


class WorkerSupervisor(Multiprocess):
    """uvicorn's supervisor, run in a thread: the main thread handles the signals.

    `on_ready` is called once all workers serve; `exit_code` is the process's.
    """

    def __init__(
        self,
        settings: Settings,
        origin: SettingsOrigin,
        listener: socket.socket,
        on_ready: Callable[[], None],
    ) -> None:
        previous = {number: signal.getsignal(number) for number in SIGNALS}
        config = uvicorn.Config("", workers=settings.server.workers, log_config=None)
        super().__init__(config, [listener])
        for number, handler in previous.items():
            signal.signal(number, handler)
        self._settings = settings
        self._origin = origin
        self._on_ready = on_ready
        self._lock = Lock()
        # It was chosen before there was a folder:
        values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
        self._start_failures = Metrics(CollectorRegistry()).worker_start_failures
        self._vacancies: dict[int, Vacancy] = {}  # by the worker's number
        self.exit_code = 0

    def run(self) -> None:
        resource_tracker.ensure_running()  # starting it later would unblock SIGINT
        block_terminal_signals()
        super().run()

    def stop_workers(self) -> None:
        """Stop the workers; each further call ends their current shutdown step early."""
        with self._lock:
            self.should_exit.set()
            for listener in self.sockets:
                listener.close()
            for worker in self.processes:
                worker.terminate()

    def reload_workers(self) -> None:
        """Have the workers read the settings again."""
        with self._lock:
            for worker in self.processes:
                if HANG_UP is not None and worker.pid is not None and worker.process.is_alive():
                    os.kill(worker.pid, HANG_UP)

    def init_processes(self) -> None:
        for worker in [self._start_worker(1 + index) for index in range(self.processes_num)]:
            is_ready = worker.wait_until_ready(START_TIMEOUT, self.should_exit)
            if not is_ready and (worker.exitcode or 0) >= 0:  # one that a signal ended is replaced
                self._give_up(worker)
        with self._lock:
            if not self.should_exit.is_set():
                self._on_ready()

    def keep_subprocess_alive(self) -> None:
        for worker in list(self.processes):
            if self.should_exit.is_set() or worker.is_alive(PING_TIMEOUT):
                continue
            worker.kill()
            self._remove_worker(worker)
            self._vacancies[cast(WorkerProcess, worker).number] = Vacancy(worker.pid)
        for number, vacancy in list(self._vacancies.items()):
            if not self.should_exit.is_set() and vacancy.due <= monotonic():
                self._replace(number, vacancy)

    def terminate_all(self) -> None:
        """Do nothing: `stop_workers` has terminated them already."""

    def join_all(self) -> None:
        while self.processes:
            ended = wait([worker.process.sentinel for worker in self.processes])
            for worker in list(self.processes):
                if worker.process.sentinel in ended:
                    self._remove_worker(worker)
                    if worker.exitcode not in (0, -signal.SIGTERM):
                        _log.error("worker %s ended with %s", worker.pid, worker.exitcode)
                        self.exit_code = self.exit_code or 1

    def _start_worker(self, number: int) -> WorkerProcess:
        """Start a worker; one that replaces another has its number."""
        worker = WorkerProcess(self.config, self.sockets, self._settings, self._origin, number)
        with self._lock:
            if not self.should_exit.is_set():
                worker.start()
                self.processes.append(worker)
        return worker

    def _replace(self, number: int, vacancy: Vacancy) -> None:
        """Fill a vacancy. That may fail for what does not concern those that serve, such as a file
        that is gone; they are given up only if none is left."""
        worker = self._start_worker(number)
        if worker.wait_until_ready(START_TIMEOUT, self.should_exit):
            del self._vacancies[number]
            _log.error("worker %s died; %s replaces it", vacancy.died, worker.pid)
        elif not self.should_exit.is_set():
            self._start_failures.inc()
            code = worker.exitcode or 0
            worker.kill()
            self._remove_worker(worker)
            if not self.processes and code >= 0:
                self._give_up(worker)
                return
            how = f"died during startup: signal {-code}" if code < 0 else "did not start"
            _log.error(
                "worker %s died; %s, which was to replace it, %s; trying again in %g s",
                *(vacancy.died, worker.pid, how, vacancy.put_off()),
            )

    def _give_up(self, worker: WorkerProcess) -> None:
        """Stop all workers, since this one did not start."""
        if not self.should_exit.is_set():
            _log.critical("worker %s did not start", worker.pid)
            self.exit_code = STARTUP_FAILURE
            self.stop_workers()

    def _remove_worker(self, worker: Process) -> None:
        worker.join()
        with self._lock:
            self.processes.remove(worker)
        delete_gauges(worker.pid)


async def supervise(
    settings: Settings,
    origin: SettingsOrigin,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    announce: Callable[[], None],
) -> int:
    """Serve in workers until a signal comes and all are drained; return the exit code.

    `origin` is where the workers read the settings again; `announce` is called once all serve.
    """
    health = Health(ready=False)
    endpoints = AdminEndpoints("", health, exposed_registry())

    def on_ready() -> None:
        health.ready = True
        announce()

    supervisor = WorkerSupervisor(settings, origin, listener, on_ready)
    delete_gauges(os.getpid())  # those of the app that was made only to validate the settings
    guarded = BrowserGuard(endpoints, settings.server)
    admin = HttpServer(guarded, shutdown_timeout=1, limits=settings.limits)
    with catch_signals(supervisor.reload_workers) as signals:
        async with asyncio.TaskGroup() as tasks:
            if admin_listener is not None:
                tasks.create_task(admin.serve([admin_listener]))
            forward_task = tasks.create_task(_forward_signals(supervisor, health, signals))
            try:
                await asyncio.to_thread(supervisor.run)
            finally:
                supervisor.stop_workers()
            forward_task.cancel()
            if admin_listener is not None:
                await wait_for_last_scrape(endpoints, settings.server, signals)
            admin.should_exit = True
    return supervisor.exit_code


async def _forward_signals(
    supervisor: WorkerSupervisor, health: Health, signals: SignalQueue
) -> None:
    while True:
        await signals.get()
        supervisor.stop_workers()
        health.ready = False
