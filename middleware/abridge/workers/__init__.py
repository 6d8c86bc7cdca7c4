"""Run the sidecar in several processes.

Theory of operation. The first process, the supervisor, opens the sockets and serves nothing but the
admin port. The others, its workers, are uvicorn's: spawned, each with an app and an event loop of
its own, they accept on the one socket they share, and drain as a single process does. The
supervisor forwards each signal to the workers once; therefore workers ignore Ctrl-C from the
terminal, and exit by themselves if the supervisor is gone. A worker that dies is replaced; if one
fails to start, all are stopped. Workers keep their metrics in a shared folder, from which any
process exports the metrics of all. The folder outlives each worker, and the supervisor stays until
the last metrics have been scraped.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from abridge.metrics import exposed
from abridge.own import Health, Own
from abridge.serve import Server, Signals, last_scrape, signals
from abridge.settings import Settings
from abridge.workers.folder import counting, forget_gauges
from abridge.workers.supervisor import Supervisor

__all__ = ["counting", "supervise"]


async def supervise(
    settings: Settings,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    announce: Callable[[], None],
) -> int:
    """Serve in workers until a signal comes and all are drained; return the exit code.

    `announce` is called once all workers serve.
    """
    forget_gauges(os.getpid())  # those of the app that was made only to validate the settings
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


async def _pass_on(supervisor: Supervisor, health: Health, heard: Signals) -> None:
    while True:
        await heard.get()
        supervisor.leave()
        health.ready = False
