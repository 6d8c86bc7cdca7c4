"""Start workers, replace those that die, and wait until all have ended."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from threading import Lock

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from abridge.settings import Settings
from abridge.workers.folder import forget_gauges
from abridge.workers.worker import Worker

START = 60.0
"""Seconds within which a worker must start."""

HUNG = 30.0
"""Seconds after which a worker that does not answer a ping is killed. It must be long: a worker on
a busy machine may be slow to answer, and killing it breaks its streams."""

_log = logging.getLogger(__name__)


class Supervisor(Multiprocess):
    """uvicorn's supervisor, run in a thread: the main thread handles the signals.

    `on_ready` is called once all workers serve; `exit_code` is the process's.
    """

    def __init__(
        self, settings: Settings, listener: socket.socket, begun: Callable[[], None]
    ) -> None:
        before = {number: signal.getsignal(number) for number in SIGNALS}
        config = uvicorn.Config("", workers=settings.server.workers, log_config=None)
        super().__init__(config, [listener])
        for number, handler in before.items():
            signal.signal(number, handler)
        self._settings = settings
        self._begun = begun
        self._lock = Lock()
        self.code = 0

    def run(self) -> None:
        resource_tracker.ensure_running()  # starting it later would unblock SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by workers
        super().run()

    def leave(self) -> None:
        """Stop the workers; each further call ends their current shutdown step early."""
        with self._lock:
            self.should_exit.set()
            for shared in self.sockets:
                shared.close()
            for worker in self.processes:
                worker.terminate()

    def init_processes(self) -> None:
        for worker in [self._start() for _ in range(self.processes_num)]:
            self._see_up(worker)
        with self._lock:
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
        """Do nothing: `stop_workers` has terminated them already."""

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
        """Return True once the worker serves.

        If it fails to start, stop all workers: a replacement would fail as well. A worker that was
        killed, for example by the kernel when memory ran out, is replaced like any that died.
        """
        up = worker.wait_until_ready(START, self.should_exit)
        killed = worker.exitcode == -signal.SIGKILL
        if not (up or killed or self.should_exit.is_set()):
            _log.critical("worker %s did not start", worker.pid)
            self.code = STARTUP_FAILURE
            self.leave()
        return up

    def _bury(self, worker: Process) -> None:
        worker.join()
        with self._lock:
            self.processes.remove(worker)
        forget_gauges(worker.pid)
