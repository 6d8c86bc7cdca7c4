"""Where the pages of all keys and teams are kept: in a file beside that of the keys, which the
processes of a machine share, or in the Redis that all replicas share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from abridge.config.loading import require_extra
from abridge.config.settings import Settings
from abridge.memory.stores.store import BackendError
from abridge.sidecar.client_keys.file import locked, replace_file
from abridge.sidecar.client_keys.limits import KEPT, Claim, Page, Reply, settle

PATIENCE_SECONDS = 0.5
"""Seconds for which a file is waited for."""

SUFFIX = ".spent"
"""Is added to the name of the file of keys."""


class Book(Protocol):
    """Keeps the pages. If it `counts_processes`, each says every few seconds that it is there."""

    name: str
    counts_processes: bool

    async def settle(self, claims: Sequence[Claim]) -> Sequence[Reply]:
        """Write claims of one process on their pages. Raises BackendError, after which it is not
        known whether they were written."""

    async def aclose(self) -> None:
        """Close all connections."""


class FileBook:
    """The book beside a file of keys. `now` is in seconds since the epoch."""

    counts_processes = False

    def __init__(self, keys_file: Path, now: Callable[[], float]) -> None:
        self._path = keys_file.with_name(keys_file.name + SUFFIX)
        self.name = str(self._path)
        self._now = now
        self._writing: asyncio.Task[list[Reply]] | None = None

    async def settle(self, claims: Sequence[Claim]) -> Sequence[Reply]:
        if self._writing is not None and not self._writing.done():
            raise BackendError
        now = round(self._now() * 1000)
        self._writing = asyncio.create_task(asyncio.to_thread(self._settle, claims, now))
        done, _ = await asyncio.wait((self._writing,), timeout=PATIENCE_SECONDS)
        if not done:
            raise BackendError("it does not answer")
        try:
            return self._writing.result()
        except OSError as error:
            raise BackendError(error.strerror) from None

    async def aclose(self) -> None:
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    def _settle(self, claims: Sequence[Claim], now: int) -> list[Reply]:
        with locked(self._path.parent):
            try:
                pages = json.loads(self._path.read_bytes())
                replies = _write(claims, pages, now)
            except (FileNotFoundError, ValueError, TypeError, LookupError, AttributeError):
                pages = {}  # there is none, or it is broken
                replies = _write(claims, pages, now)
            replace_file(self._path, json.dumps(pages) + "\n", flush=False)
        return replies


def _write(claims: Sequence[Claim], pages: dict[str, Page], now: int) -> list[Reply]:
    """Write claims on pages, and drop those that are old."""
    replies = []
    for claim in claims:
        page = pages.setdefault(claim.account, {})
        replies.append(settle(page, claim, now))
        page["at"] = now
    for name in [name for name, page in pages.items() if page["at"] + KEPT <= now]:
        del pages[name]
    return replies


def open_book(settings: Settings, keys_file: Path, now: Callable[[], float]) -> Book:
    """Return the book of these settings: in the store, if processes share that."""
    shared = next((each.history for each in settings.routes if each.history.is_shared), None)
    if shared is None:
        return FileBook(keys_file, now)
    with require_extra("redis", "history.store"):
        from abridge.memory.stores.redis_client import RedisConnection  # noqa: PLC0415 -- an extra
        from abridge.sidecar.client_keys.redis_book import RedisBook  # noqa: PLC0415 -- likewise
    return RedisBook(RedisConnection(shared.store))
