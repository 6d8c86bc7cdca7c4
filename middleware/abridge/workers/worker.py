"""A worker process, as uvicorn spawns it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from contextlib import suppress

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Process

from abridge.app import create_app
from abridge.errors import SettingsError
from abridge.serve import run, serve
from abridge.settings import Settings
from abridge.telemetry.log import set_up

_log = logging.getLogger(__name__)


class Work(uvicorn.Server):
    """Stands in for uvicorn's server in a worker: builds the app and serves it."""

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
        """Answer pings, in the worker; stop the worker when the supervisor is gone.

        The worker closes its copy of the supervisor's end of the pipe, so as to notice that.
        """
        self.parent_conn.close()
        with suppress(EOFError, OSError):
            super().always_pong()
        os.kill(os.getpid(), signal.SIGTERM)

    def terminate(self) -> None:
        """Send SIGTERM. Unlike uvicorn's, it may be called again and keeps the pipe open."""
        self.process.terminate()
