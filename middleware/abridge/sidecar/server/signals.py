"""The signals that end the process, and SIGHUP.

A terminal sends SIGHUP to its processes when it is closed: then it ends them as SIGTERM does. To
one without a terminal, such as a service, it says that settings have changed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

HANG_UP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # POSIX's


class SignalQueue(asyncio.Queue[int]):
    """The signals received, of those that end the process."""

    first_at: float | None = None
    """The time of the first one, on the loop's clock."""

    def put_signal(self, number: int) -> None:
        if self.first_at is None:
            self.first_at = asyncio.get_running_loop().time()
        self.put_nowait(number)


@contextmanager
def catch_signals(reload: Callable[[], None] = lambda: None) -> Iterator[SignalQueue]:
    """Handle the signals within the block; `reload` is called where settings have changed. SIGHUP
    stays ignored under `nohup`."""
    loop, queue = asyncio.get_running_loop(), SignalQueue()

    def on_signal(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(handlers[number], number)

    handlers: dict[int, Callable[[int], None]] = {
        signal.SIGINT: queue.put_signal,
        signal.SIGTERM: queue.put_signal,
    }
    if HANG_UP is not None and signal.getsignal(HANG_UP) != signal.SIG_IGN:
        handlers[HANG_UP] = queue.put_signal if _has_terminal() else lambda _: reload()
    previous = {number: signal.signal(number, on_signal) for number in handlers}
    if HANG_UP is not None and not _has_terminal():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {HANG_UP})  # which a supervisor had blocked
    try:
        yield queue
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def block_terminal_signals() -> None:
    """Block what a terminal sends to all of its processes, for this thread and the processes that
    it starts."""
    signals = {signal.SIGINT} if HANG_UP is None else {signal.SIGINT, HANG_UP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)


def _has_terminal() -> bool:
    """Return whether a terminal controls this process, in the foreground or not."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
