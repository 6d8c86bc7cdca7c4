"""How many files the process may open, of which each connection is one."""

from __future__ import annotations

import logging

from abridge.config.tables import LimitSettings

FILES_FOR_EACH = 2
"""Files for each client's connection: itself, and one to upstream."""

FILES_BESIDE = 32
"""Files for everything else: listeners, the store, scrapes, connections that are being refused."""

_log = logging.getLogger(__name__)


def fit_open_files(limits: LimitSettings, calls: int) -> LimitSettings:
    """Return the limits with no more connections than this process can open files for.

    The process's own limit is raised before, as far as the system allows it. `calls` are those of
    the summarizer that may run at once. They get a quarter of the files at most: fewer clients make
    fewer calls.
    """
    files = raise_open_files(limits.connections * FILES_FOR_EACH + calls + FILES_BESIDE)
    connections = (files - min(calls, files // 4) - FILES_BESIDE) // FILES_FOR_EACH
    if connections >= limits.connections:
        return limits
    connections = max(1, connections)
    _log.warning(
        "limits.connections is lowered to %d, because only %d files may be open", connections, files
    )
    return limits.model_copy(update={"connections": connections})


def raise_open_files(wanted: int) -> int:
    """Raise the number of files that may be open to `wanted`; return how many of these may."""
    try:
        from resource import (  # noqa: PLC0415 -- POSIX's
            RLIM_INFINITY,
            RLIMIT_NOFILE,
            getrlimit,
            setrlimit,
        )
    except ImportError:
        return wanted
    files, most = getrlimit(RLIMIT_NOFILE)
    if files == RLIM_INFINITY or files >= wanted:
        return wanted
    files = wanted if most == RLIM_INFINITY else min(wanted, most)
    setrlimit(RLIMIT_NOFILE, (files, most))
    return files
