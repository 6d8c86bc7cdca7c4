"""The deployments that are fuzzed: each an app with its upstream and summarizer, used again and
again, one request at a time."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.errors import SummarizerError
from abridge.observability.metrics import metrics_for
from abridge.pipeline.request import VALUE_BYTES
from tests.campaigns.fuzz.case import Case, Json
from tests.campaigns.reader import parse
from tests.support.deployments import ORIGIN, build_app
from tests.support.summarizers import SPENT
from tests.support.upstream import Answer, ReceivedRequest, Upstream

KEYS_VARIABLE = "ABRIDGE_CAMPAIGN_KEYS"
KEY_VARIABLE = "ABRIDGE_CAMPAIGN_KEY"
KEYS = {"a": f"a:{b64encode(bytes(32)).decode()}", "b": f"b:{b64encode(bytes([7] * 32)).decode()}"}
"""Sealing keys; each is the value of an environment variable of its own."""

GAUGES = ("requests_in_flight", "summarizer_in_flight", "streams_open", "held_bytes")

KIB = 1 << 10
BODY = 256 * KIB
"""The ceiling of a body."""

VALUES = 6000
"""The ceiling of the JSON values in one."""

BODIES = 2 * max(2 * BODY, VALUES * VALUE_BYTES)
"""The ceiling of all bodies: one client may hold half of it, which is what one request takes at
most. So memory that one case does not give back fails the next ones with 503."""

WORLDS = 100
"""How many deployments a campaign draws, and how many apps are kept."""

EXPOSURES = ("auto", "both", "summary", "raw", "none")
HIDING = ("summary", "none")
SUMMARIZERS = ("good", "good", "good", "fails", "breaks off", "empty", "odd", "hangs", "none")


class Summarizer:
    """Writes as its name says. No summary repeats reasoning."""

    name = "campaign"

    def __init__(self, manner: str) -> None:
        self._manner = manner

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        if self._manner == "fails":
            raise SummarizerError("upstream_error", "It answered 500.")
        if self._manner == "hangs":
            await asyncio.sleep(3600)
        if self._manner == "odd":
            yield "<think>so</think>![](http://a.test/x)\x00\ud800 ** <script>\r\n\r\ndata: x\n\n"
        if self._manner != "empty":
            yield "**Looking at it**\n\n"
            await asyncio.sleep(0)
            yield "I look at it."
        if self._manner == "breaks off":
            raise SummarizerError("upstream_error", "It broke off.")
        yield SPENT


class Answering(Upstream):
    """Answers as a case says. `sent_body` is the last answer, and `streamed` what it was."""

    def __init__(self) -> None:
        super().__init__(Answer())
        self.streamed = True
        self.sent_body = b""

    def play(self, case: Case) -> None:
        self._case = case
        self.requests.clear()

    def answer(self, request: ReceivedRequest) -> Answer:
        case = self._case
        self.streamed = case.stream
        if case.whole is not None:
            self.streamed = asks_for_stream(request.body)
        headers, pieces = case.answer_headers, case.pieces
        if case.whole is not None and not self.streamed:
            headers, pieces = {"content-type": "application/json"}, [case.whole]
        steps = [piece.encode("latin-1") for piece in pieces]
        self.sent_body = b"".join(steps)
        return Answer(steps, case.status, headers)


def asks_for_stream(body: bytes) -> bool:
    """Return whether a request asks for a stream, as a server would read it."""
    asked = parse(body.decode(errors="replace"))
    return asked is not None and asked.get("stream") is True


class World:
    """An app. `spec` has `client` and `upstream` (an API, or `same`), `form`, `expose`,
    `summarizer`, and `tables` of other settings."""

    def __init__(self, spec: Json) -> None:
        for name, keys in KEYS.items():
            os.environ[f"{KEYS_VARIABLE}_{name}"] = keys
        self.registry = CollectorRegistry()
        self.upstream = Answering()
        self.hides = spec["expose"] in HIDING
        manner = spec["summarizer"]
        tables = dict(spec["tables"])
        entry: Json = {"api": spec["upstream"], "profile": tables.pop("profile", "auto")}
        if tables.pop("shares_key", False):
            os.environ[KEY_VARIABLE] = "sk-own"
            entry["api_key_env"] = KEY_VARIABLE
        if spec["form"] == "sidecar":
            entry["base_url"] = f"{ORIGIN}/v1"
        limits = {"body": BODY, "bodies": BODIES, "values": VALUES}
        tables["limits"] = {**limits, **tables.get("limits", {})}
        tables["summarizer"] = {"breaker_failures": 1 << 40}
        if manner == "hangs":  # the others get the default, which a busy machine does not exceed
            tables["summarizer"]["timeout"] = 0.05
            waits = {"grace": 0.02, "first_token": 0.01}
            tables["summary"] = {**waits, **tables.get("summary", {})}
        self.app: Any = build_app(
            spec["form"],
            self.upstream,
            writer=Summarizer(manner),
            registry=self.registry,
            upstreams=[entry],
            reasoning={"expose": spec["expose"]},
            **tables,
        )

    def busy(self) -> dict[str, float]:
        """Return the gauges that are not zero."""
        metrics = metrics_for(self.registry)
        values = {
            name: sum(s.value for f in getattr(metrics, name).collect() for s in f.samples)
            for name in GAUGES
        }
        return {name: value for name, value in values.items() if value}


class Worlds:
    """The worlds in use, made when they are first needed."""

    def __init__(self) -> None:
        self._worlds: OrderedDict[str, World] = OrderedDict()

    def get(self, spec: Json) -> World:
        key = json.dumps(spec, sort_keys=True)
        if key not in self._worlds:
            self._worlds[key] = World(spec)
        self._worlds.move_to_end(key)
        while len(self._worlds) > WORLDS:
            self._worlds.popitem(last=False)
        return self._worlds[key]


def random_spec(random: Random) -> Json:
    """Draw a deployment."""
    client = random.choice(("chat", "responses"))
    expose = random.choice(EXPOSURES)
    other = {"chat": "responses", "responses": "chat"}[client]
    tables: Json = {}
    if random.random() < 0.3:
        tables["attribution"] = {"enabled": True}
    if random.random() < 0.3:
        tables["usage"] = {"count": "separate"}
    if random.random() < 0.2:
        tables["summary"] = {"on_failure": "fail"}
    if random.random() < 0.2:
        tables["chat"] = {"details": True}
    return {
        "client": client,
        "upstream": random.choice(("same", "same", "same", other, other, "messages")),
        "form": random.choice(("mounted", "mounted", "sidecar")),
        "expose": expose,
        "summarizer": random.choice(SUMMARIZERS),
        "tables": tables,
    }
