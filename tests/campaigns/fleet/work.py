"""What a Redis did."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.support.redis_server import Server

COUNTED = ("eval", "mget", "exec", "xadd", "xtrim")


@dataclass(frozen=True)
class Work:
    """What a Redis did, and when that was read. `reads` are those of its sockets: a round trip
    each, and those of its replica and its sentinel."""

    at: float
    reads: int
    cpu: float
    calls: dict[str, int]
    microseconds: dict[str, float]
    whole: int

    @classmethod
    def of(cls, server: Server, whole: int) -> Work:
        with server.client() as inspector:
            info = inspector.info("everything")
        stats = {name: info.get(f"cmdstat_{name}", {}) for name in COUNTED}
        return cls(
            time.monotonic(),
            info["total_reads_processed"],
            info["used_cpu_user"] + info["used_cpu_sys"],
            {name: int(each.get("calls", 0)) for name, each in stats.items()},
            {name: float(each.get("usec", 0)) for name, each in stats.items()},
            whole,
        )

    def since(self, before: Work) -> dict[str, float]:
        """Return what was done since, a second."""
        seconds = self.at - before.at
        calls = {name: self.calls[name] - before.calls[name] for name in COUNTED}
        spent = {name: self.microseconds[name] - before.microseconds[name] for name in COUNTED}
        whole = self.whole - before.whole
        return {
            "reads": (self.reads - before.reads) / seconds,
            "redis_cpu": (self.cpu - before.cpu) / seconds,
            "whole": whole / seconds,
            "limits": (calls["eval"] - calls["xtrim"]) / seconds,
            "ledger": calls["xtrim"] / seconds,
            "store_reads": calls["mget"] / seconds,
            "store_writes": calls["exec"] / seconds,
            **{f"{name}_us": spent[name] / max(1, calls[name]) for name in COUNTED},
        }
