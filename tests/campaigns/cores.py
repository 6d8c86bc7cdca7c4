"""How long processes waited for a core: a run that starved says nothing about time."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

TOLERATED = 0.2
"""The share of time that a process may wait for its core before its figures are not trusted."""


def waited(pid: int) -> float:
    """Return how many seconds all threads of a process were ready but waited for a core."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[1])
        except (OSError, IndexError):
            continue
    return total / 1e9


class Starvation:
    """Measures processes, by name and id, from here on; by default this one."""

    def __init__(self, pids: Mapping[str, int] | None = None) -> None:
        self._pids = dict(pids or {"this process": os.getpid()})
        self._before = {name: waited(pid) for name, pid in self._pids.items()}
        self._began = time.monotonic()

    def shares(self) -> dict[str, float]:
        """Return each process's share of the time since."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        return {
            name: max(0.0, waited(pid) - self._before[name]) / seconds
            for name, pid in self._pids.items()
        }

    def starved(self) -> bool:
        return max(self.shares().values()) > TOLERATED

    def report(self) -> str:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.shares().items())
        verdict = "STARVED: trust no times of this run" if self.starved() else "not starved"
        return f"waited for a core: {shares} ({verdict})"
