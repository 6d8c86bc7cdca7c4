"""What replicas tell each other about upstreams: that one is down or up again, and its APIs.

Theory of operation. It is kept in the store that replicas share, sealed like everything there: two
values for each upstream, under digests of its address, which expire. A task writes what changed,
and every two seconds reads what others wrote; no request waits for it. A value holds names of
APIs and models, and no word of a request. Of two replicas that write at once, one may be lost: what
it found stays known to itself, and others find it out like it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from secrets import token_hex
from time import time
from typing import Any

from abridge.apis.json import dumps, parse_object
from abridge.config.upstreams import UpstreamSettings
from abridge.memory.stores.store import Store
from abridge.pipeline.discovery import FOUND_TTL, ApiDiscovery
from abridge.pipeline.health import UpstreamHealth

READ_SECONDS = 2.0
"""Seconds between two readings, at most."""

PAUSE_SECONDS = 0.1
"""Seconds between two writings, at least."""

SHARED_MODELS = 128
"""Models of an upstream whose APIs are shared."""

HEALTH, APIS = KINDS = b"health", b"apis"
"""What the two values of an upstream tell."""


class SharedFindings:
    """Shares what `health` and `discovery` know of upstreams, by way of `store`."""

    def __init__(
        self,
        store: Store,
        health: UpstreamHealth,
        discovery: ApiDiscovery,
    ) -> None:
        self._store = store
        self._health = health
        self._discovery = discovery
        self._upstreams: dict[bytes, UpstreamSettings] = {}  # by the keys of their values
        self._known: dict[bytes, bytes | None] = {}  # the values last read or written
        self._unwritten: dict[bytes, tuple[bytes, float]] = {}  # each with its time to live
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def watch(self, upstreams: Iterable[UpstreamSettings]) -> None:
        """Share what is known of these upstreams from now on, and of no others."""
        self._upstreams = {_key(kind, each): each for each in upstreams for kind in KINDS}
        self._known = {key: self._known.get(key) for key in self._upstreams}

    def start(self) -> None:
        """Have the task run. Once it does, that changes nothing."""
        if self._task is None or self._task.done() or self._task.get_loop().is_closed():
            self._health.listener = self._note_health
            self._discovery.listener = self._note_apis
            self._changed = asyncio.Event()
            self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """End the task; a later request starts it again."""
        if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _note_health(self, upstream: UpstreamSettings) -> None:
        value = {"up": not self._health.breaker(upstream).is_open, "id": token_hex(8)}
        ttl = max(READ_SECONDS, upstream.breaker_seconds)
        self._note(_key(HEALTH, upstream), value, ttl)

    def _note_apis(self, upstream: UpstreamSettings) -> None:
        known = islice(self._discovery.known(upstream), SHARED_MODELS)
        found = [[*names, time() + seconds] for *names, seconds in known]
        self._note(_key(APIS, upstream), {"found": found}, FOUND_TTL)

    def _note(self, key: bytes, value: dict[str, Any], ttl: float) -> None:
        if key not in self._upstreams:
            return
        written = self._known[key] = dumps(value)
        self._unwritten[key] = written, ttl
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._write()
            await self._read()
            await asyncio.sleep(PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), READ_SECONDS - PAUSE_SECONDS)

    async def _write(self) -> None:
        """Write what changed. What cannot be written now is news no more when it can be."""
        self._changed.clear()
        unwritten, self._unwritten = self._unwritten, {}
        for key, (value, ttl) in unwritten.items():
            await self._store.put({key: value}, ttl)

    async def _read(self) -> None:
        keys = list(self._upstreams)
        for key, value in zip(keys, await self._store.get(keys), strict=True):
            upstream = self._upstreams.get(key)
            if upstream is None or value in (None, self._known[key]) or key in self._unwritten:
                continue
            self._known[key] = value
            with suppress(KeyError, TypeError, ValueError):  # another version's
                self._take(upstream, parse_object(value) or {})

    def _take(self, upstream: UpstreamSettings, value: dict[str, Any]) -> None:
        if "up" in value:
            self._health.take_over(upstream, is_up=value["up"] is True)
        for api, model, found, until in value.get("found", ()):
            self._discovery.take_over(upstream, (api, model, found), until - time())


def _key(kind: bytes, upstream: UpstreamSettings) -> bytes:
    return sha256(b"%s of upstream %s" % (kind, upstream.identity.encode())).digest()
