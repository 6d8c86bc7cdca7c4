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
    """Serve in workers until a signal comes and all are drained; returns the exit code. `announce`
    is called once they serve."""
    forget_gauges(os.getpid())  # in the user's own folder an app made to try the settings counts
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
