"""What replicas tell each other about upstreams: that one is down or up again, which APIs it has,
and which fields it refuses.

Theory of operation. It is kept in the store that replicas share, sealed like everything there:
three values for each upstream, under digests of its address, which expire. A task writes what
changed, and every two seconds reads what others wrote; no request waits for it. A value holds names
of APIs, models and fields, and no word of a request. Of two replicas that write at once, one may be
lost: what it found stays known to itself, and others find it out like it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from secrets import token_hex
from time import time
from typing import Any

from abridge.apis.json import dumps, parse_object
from abridge.config.upstreams import UpstreamSettings
from abridge.memory.stores.store import Store
from abridge.pipeline.findings import FOUND_TTL, Findings
from abridge.pipeline.health import UpstreamHealth

READ_SECONDS = 2.0
"""Seconds between two readings, at most."""

PAUSE_SECONDS = 0.1
"""Seconds between two writings, at least."""

SHARED_FINDINGS = 128
"""Findings of a kind about an upstream that are shared."""

HEALTH = b"health"
"""The kind of value that tells whether an upstream is up."""


class SharedFindings:
    """Shares what `health` and some `findings`, by kind, know of upstreams, by way of `store`."""

    def __init__(
        self, store: Store, health: UpstreamHealth, findings: Mapping[bytes, Findings]
    ) -> None:
        self._store = store
        self._health = health
        self._findings = findings
        self._told: dict[bytes, tuple[bytes, UpstreamSettings]] = {}  # what each key's value tells
        self._known: dict[bytes, bytes | None] = {}  # the values last read or written
        self._unwritten: dict[bytes, tuple[bytes, float]] = {}  # each with its time to live
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def watch(self, upstreams: Iterable[UpstreamSettings]) -> None:
        """Share what is known of these upstreams from now on, and of no others."""
        kinds = (HEALTH, *self._findings)
        self._told = {_key(kind, each): (kind, each) for each in upstreams for kind in kinds}
        self._known = {key: self._known.get(key) for key in self._told}

    def start(self) -> None:
        """Have the task run. Once it does, that changes nothing."""
        if self._task is None or self._task.done() or self._task.get_loop().is_closed():
            self._health.listener = self._note_health
            for kind, findings in self._findings.items():
                findings.listener = partial(self._note_findings, kind)
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

    def _note_findings(self, kind: bytes, upstream: UpstreamSettings) -> None:
        known = islice(self._findings[kind].known(upstream), SHARED_FINDINGS)
        found = [[*words, time() + seconds] for words, seconds in known]
        self._note(_key(kind, upstream), {"found": found}, FOUND_TTL)

    def _note(self, key: bytes, value: dict[str, Any], ttl: float) -> None:
        if key not in self._told:
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
        keys = list(self._told)
        for key, value in zip(keys, await self._store.get(keys), strict=True):
            told = self._told.get(key)
            if told is None or value in (None, self._known[key]) or key in self._unwritten:
                continue
            self._known[key] = value
            with suppress(KeyError, TypeError, ValueError):  # another version's
                self._take(*told, parse_object(value) or {})

    def _take(self, kind: bytes, upstream: UpstreamSettings, value: dict[str, Any]) -> None:
        if kind == HEALTH:
            self._health.take_over(upstream, is_up=value["up"] is True)
            return
        for *words, until in value["found"]:
            self._findings[kind].take_over(upstream, words, until - time())


async def found_down(store: Store, upstreams: Sequence[UpstreamSettings]) -> list[UpstreamSettings]:
    """Return those of some upstreams that a replica has found down, and not up again."""
    values = await store.get([_key(HEALTH, each) for each in upstreams])
    known = [(parse_object(value) or {}) if value else {} for value in values]
    return [each for each, said in zip(upstreams, known, strict=True) if said.get("up") is False]


def _key(kind: bytes, upstream: UpstreamSettings) -> bytes:
    return sha256(b"%s of upstream %s" % (kind, upstream.identity.encode())).digest()
