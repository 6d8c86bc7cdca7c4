"""Real processes of `abridge serve`, which share a real Redis."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from abridge.config.client_key import ClientKey, digest, new_key
from abridge.sidecar.client_keys.accounts import PRESENCE_SECONDS
from abridge.sidecar.client_keys.file import add_key
from tests.support.redis_server import Server
from tests.support.servers import HANG, serve, soon
from tests.support.sidecar import Sidecar, client, sidecar
from tests.support.streams import completion
from tests.support.upstream import Answer, Upstream

BODY = {"model": "m-1", "messages": [{"role": "user", "content": "Hi"}]}
ANSWER = completion({"role": "assistant", "content": "Hello."})
USED = 81
"""Tokens that upstream reports for it."""

ATTEMPTS = 5


@dataclass
class Fleet:
    """Replicas with one file of keys."""

    path: Path
    replicas: Sequence[Sidecar]
    session: httpx.AsyncClient

    async def add(self, name: str, **limits: Any) -> str:
        """Add a key, and wait until all replicas know it."""
        key = new_key()
        add_key(self.path, ClientKey(name=name, sha256=digest(key), **limits))
        await asyncio.sleep(1.1)
        return key

    async def ask(self, number: int, key: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"}
        url = f"{self.replicas[number].url}/v1/chat/completions"
        return await self.session.post(url, json=BODY, headers=headers)

    async def statuses(self, key: str, times: int) -> list[int]:
        """Ask all replicas, one after the other."""
        return [
            (await self.ask(number, key)).status_code
            for _ in range(times)
            for number in range(len(self.replicas))
        ]

    async def failed_rounds(self) -> int:
        """Return how often a replica went on by itself: this machine may have been too busy."""
        texts = [(await self.session.get(each.metrics)).text for each in self.replicas]
        found = re.findall(r'abridge_limit_rounds_total\{result="failed"\} (\S+)', "".join(texts))
        return sum(int(float(count)) for count in found)


@asynccontextmanager
async def fleet(tmp_path: Path, store: str, replicas: int = 2) -> AsyncIterator[Fleet]:
    path = tmp_path / "keys"
    path.touch(0o600)
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(serve(Upstream(Answer.json(ANSWER))))
        environ = {
            "SEAL": f"a:{b64encode(bytes(32)).decode()}",
            "ABRIDGE_HISTORY__SEAL_KEYS_ENV": "SEAL",
            "ABRIDGE_HISTORY__STORE": store,
            "ABRIDGE_SERVER__KEYS_FILE": str(path),
        }
        flags = ("--upstream", f"{upstream}/v1")
        running = [
            await stack.enter_async_context(sidecar(*flags, **environ)) for _ in range(replicas)
        ]
        yield Fleet(path, running, await stack.enter_async_context(client()))


@pytest.mark.parametrize("shares", ["redis", "file"])
async def test_replicas_let_exactly_as_many_through_as_one_would(
    tmp_path: Path, request: pytest.FixtureRequest, shares: str
) -> None:
    """By a Redis; or by a file, where they are processes of one machine without any."""
    redis = shares == "redis"
    store = request.getfixturevalue("redis_server").url if redis else "memory"
    async with fleet(tmp_path, store) as replicas:
        await replicas.statuses(await replicas.add("first"), 1)  # opens the connections
        for attempt in range(ATTEMPTS):
            failed = await replicas.failed_rounds()
            key = await replicas.add(f"k{attempt}", requests_per_minute=6)
            statuses = await soon(replicas.statuses(key, 6))
            if await replicas.failed_rounds() == failed:
                break
        refused = await replicas.ask(1, key)
    assert (statuses.count(200), statuses.count(429)) == (6, 6)
    assert 0 < int(refused.headers["retry-after"]) <= 10


async def test_they_count_budgets_of_tokens_together(tmp_path: Path, redis_server: Server) -> None:
    async with fleet(tmp_path, redis_server.url) as replicas:
        key = await replicas.add("budget", tokens_per_day=3 * USED)
        async with asyncio.timeout(HANG):
            answers = [await replicas.ask(0, key)]
            while answers[-1].status_code == 200:
                await asyncio.sleep(1.1)  # by then what was used is written
                answers.append(await replicas.ask(len(answers) % 2, key))
    assert len(answers) == 4
    assert answers[-1].json()["error"]["code"] == "insufficient_quota"


async def test_replicas_go_on_while_their_redis_is_away(tmp_path: Path) -> None:
    """What was used before and meanwhile counts when it is back, though it has forgotten all."""
    with Server() as server:
        async with fleet(tmp_path, server.url) as replicas:
            one = replicas.replicas[0]
            key = await replicas.add("alice", tokens_per_day=40 * USED)
            statuses = await replicas.statuses(key, 3)
            await asyncio.sleep(PRESENCE_SECONDS + 1)  # so that each knows of the other
            server.kill()
            statuses += await replicas.statuses(key, 30)
            assert statuses.count(200) + statuses.count(429) == 66
            assert 34 <= statuses.count(200) <= 46
            await one.until("limits of keys at")
            metrics = (await replicas.session.get(one.metrics)).text
            assert "abridge_limits_alone 1.0" in metrics
            server.start()
            async with asyncio.timeout(HANG):
                while "abridge_limits_alone 0.0" not in metrics:
                    await asyncio.sleep(0.2)
                    metrics = (await replicas.session.get(one.metrics)).text
            await asyncio.sleep(3)
            statuses += await replicas.statuses(key, 10)
    assert statuses[-6:] == [429] * 6
    assert statuses.count(200) <= 46
