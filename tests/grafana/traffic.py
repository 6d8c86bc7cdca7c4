"""Send every kind of traffic through real sidecars, and list the series it must produce."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from tests.grafana.actors import TROUBLES, Model, Moderation, Writer
from tests.support.servers import HANG, serve, until, unused_address
from tests.support.sidecar import HANG_UP, sidecar

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ANNA = {"authorization": "Bearer sk-anna-1234567890"}
BERT = {"authorization": "Bearer sk-bert-1234567890"}
USER = {"role": "user", "content": "Hi"}
ROOM = 4
"""The limit of concurrent requests."""

SEEN = (
    *(
        f'requests_total{{outcome="{each}"}}'
        for each in ("ok", "failed", "left", "passed", "error")
    ),
    *(f'requests_total{{outcome="{each}"}}' for each in ("untouched", "refused")),
    *(f'summaries_total{{outcome="{each}"}}' for each in ("ok", "native", "skipped", "shed")),
    *(f'summaries_total{{outcome="{each}"}}' for each in ("failed", "empty", "timeout")),
    'summaries_total{outcome="withheld"}',
    *(f'review_seconds_count{{outcome="{each}"}}' for each in ("passed", "withheld", "failed")),
    'summaries_total{style="detailed", api="responses"}',
    'summaries_total{summarizer="extractive"}',
    'summarizer_tokens_total{style="concise", summarizer="model"}',
    'refusals_total{code="overloaded"}',
    'refusals_total{code="invalid_encrypted_content"}',
    *(
        f'upstream_failures_total{{cause="{each}"}}'
        for each in ("unreachable", "timeout", "broken")
    ),
    'state_refused_total{upstream="thinkers"}',
    'upstream_failovers_total{upstream="spare", fallback="thinkers", cause="unreachable"}',
    *(f'upstream_responses_total{{status="{each}"}}' for each in (200, 400, 429, 500)),
    *(f'reasoning_restored_total{{source="{each}"}}' for each in ("store", "sealed", "client")),
    'reasoning_missed_total{upstream="demanding"}',
    *(f'reasoning_dropped_total{{reason="{each}"}}' for each in ("policy", "foreign", "edited")),
    "blobs_refused_total",
    "marks_removed_total",
    "dropped_fields_total",
    "reader_faults_total",
    "final_text_mismatches_total",
    'background_responses_total{status="completed"}',
    *("ledger_failures_total", "ledger_lost_total"),
    *(f'store_operations_total{{result="{each}"}}' for each in ("hit", "miss", "ok")),
    'reloads_total{outcome="applied"}',
    "settings_hash",
)
"""Series that must be above 0 in the end."""


def settings(model: str, writer: str) -> dict[str, str]:
    """Return the settings of a sidecar with a summarizer model, as its environment."""
    at = {"base_url": f"{model}/v1"}
    upstreams = [
        {"name": "thinkers", **at, "models": ["think*"]},
        *({"name": name, **at, "models": [name]} for name in TROUBLES),
        {"name": "demanding", **at, "models": ["demand*"], "profile": "zai"},
        {"name": "forgetful", **at, "models": ["forget*"], "history": {"keep": "none"}},
        {"name": "bridged", **at, "models": ["bridge*"], "api": "chat"},
        {
            "name": "spare",
            "base_url": unused_address(),
            "models": ["spare*"],
            "rename": {"spare": "think"},
            "fallback": "thinkers",
        },
        {
            "name": "dead",
            "base_url": unused_address(),
            "models": ["dead*"],
            "breaker_failures": 1,
        },
    ]
    return {
        "ABRIDGE_UPSTREAMS": json.dumps(upstreams),
        "ABRIDGE_SUMMARIZER__KIND": "model",
        "ABRIDGE_SUMMARIZER__BASE_URL": f"{writer}/v1",
        "ABRIDGE_SUMMARIZER__MODEL": "small",
        "ABRIDGE_SUMMARIZER__MAX_IN_FLIGHT": "3",
        "ABRIDGE_SUMMARIZER__BREAKER_FAILURES": "2",
        "ABRIDGE_SUMMARIZER__BREAKER_SECONDS": "0.01",
        "ABRIDGE_SUMMARY__MIN_CHARS": "10",
        "ABRIDGE_HISTORY__SEAL_KEYS_ENV": "SEAL_KEYS",
        "SEAL_KEYS": f"k1:{b64encode(bytes(32)).decode()}",
        "ABRIDGE_LIMITS__HEADERS": "3",
        "ABRIDGE_LIMITS__IN_FLIGHT": str(ROOM),
    }


def review_settings(guard: str) -> dict[str, str]:
    """Return those of one with a review, and a ledger that cannot be written."""
    return {
        "ABRIDGE_REVIEW__KIND": "moderations",
        "ABRIDGE_REVIEW__BASE_URL": f"{guard}/v1",
        "ABRIDGE_LEDGER__URL": unused_address().replace("http", "redis"),
        "ABRIDGE_LEDGER__WAITING": "1",
    }


@dataclass
class Visitor:
    """A client of a sidecar."""

    client: httpx.AsyncClient
    model: Model

    async def send(
        self, path: str, model: str, style: str | None = "auto", *, headers: Any = ANNA, **more: Any
    ) -> httpx.Response:
        question = {} if "messages" in more or "input" in more else _question(path)
        reasoning = {} if style is None else {"reasoning": {"summary": style}}
        return await self.client.post(
            path, json={"model": model, **reasoning, **question, **more}, headers=headers
        )

    async def message(self, model: str) -> Any:
        """Return the message of an unstreamed chat completion with a summary."""
        return (await self.send(CHAT, model)).json()["choices"][0]["message"]

    async def go_on(self, model: str, message: Any, **more: Any) -> httpx.Response:
        """Send the next request of that conversation."""
        return await self.send(CHAT, model, None, messages=[USER, message, USER], **more)

    async def each_style(self) -> None:
        for path in (CHAT, RESPONSES):
            for style in ("concise", "auto", "detailed"):
                await self.send(path, "think", style, stream=True)
            await self.send(path, "think-more", stream=False)

    async def odd_answers(self) -> None:
        """Provoke answers that are odd or fail, none because of the summarizer."""
        late = asyncio.create_task(self.send(CHAT, "think-late"))
        for model in ("think-briefly", "think-page", "think-error", "think-full", "dead", "spare"):
            await self.send(CHAT, model)
        for model in ("think-natively", "think-oddly"):
            await self.send(RESPONSES, model, stream=True)
        with suppress(httpx.TransportError):  # the answer is cut off, so Abridge cuts it off too
            await self.send(CHAT, "think-cut", stream=True)
        await late

    async def odd_questions(self) -> None:
        await self.send(CHAT, "think", None)
        await self.send(CHAT, "think", "shortest")
        await self.client.get("/v1/models")

    async def leave(self) -> None:
        """Disconnect during an answer."""
        reasoning = {"reasoning": {"summary": "auto"}}
        body = {"model": "think-gated", "stream": True, **reasoning, **_question(CHAT)}
        async with self.client.stream("POST", CHAT, json=body, headers=ANNA) as answer:
            await anext(answer.aiter_bytes())
        await until(lambda: not self.model.running)

    async def crowd(self) -> None:
        """Send one request more than the limit allows."""
        self.model.gate.clear()
        tasks = [
            asyncio.create_task(self.send(CHAT, "think-gated", stream=True)) for _ in range(ROOM)
        ]
        await until(lambda: self.model.running == ROOM)
        await self.send(CHAT, "think")
        self.model.gate.set()
        await asyncio.gather(*tasks)
        self.model.gate.clear()

    async def bad_summaries(self) -> None:
        """Provoke every failure of a summary; leave the breaker open."""
        await self.send(CHAT, "unlucky-empty", stream=True)
        await asyncio.gather(*(self.send(CHAT, "unlucky-slow", stream=True) for _ in range(ROOM)))
        for _ in range(3):
            await self.send(CHAT, "unlucky-fails", stream=True)

    async def conversations(self) -> None:
        """Return histories sealed, stripped, edited, damaged and as another user."""
        reply = await self.message("think")
        plain = {key: reply[key] for key in reply if key != "reasoning_details"}
        await self.go_on("think", reply)
        await self.go_on("think", plain)
        await self.go_on("think", reply, headers=BERT)
        await self.go_on("think", {**reply, "content": "Something else."})
        await self.go_on("think", {**plain, "reasoning_content": "My own thought."})
        await self.go_on("forget", {**plain, "reasoning_content": "My own thought."})
        damaged = json.loads(json.dumps(reply).replace("abr1.", "abr1.AAAA"))
        await self.go_on("think", damaged)
        called = await self.message("demand-calls")
        lost = {key: called[key] for key in ("role", "tool_calls")}
        lost["tool_calls"][0]["id"] = "call_of_another"
        output = {"role": "tool", "tool_call_id": "call_of_another", "content": "1"}
        for model in ("demand-calls", "demand-refused"):
            await self.send(CHAT, model, messages=[USER, lost, output])

    async def foreign_state(self) -> None:
        """Return state that another provider made."""
        thought = {"type": "reasoning", "summary": [], "encrypted_content": "another's"}
        asked = {"role": "user", "content": "Hi"}
        await self.send(RESPONSES, "think-stateless", None, input=[asked, thought, asked])

    async def bridges(self) -> None:
        answer = await self.send(RESPONSES, "bridge", metadata={"a": "b"}, seed=1)
        await self.client.get(f"{RESPONSES}/{answer.json()['id']}", headers=ANNA)

    async def background(self) -> None:
        begun = (await self.send(RESPONSES, "bridge", background=True)).json()
        while begun["status"] in ("queued", "in_progress"):
            await asyncio.sleep(0.05)
            begun = (await self.client.get(f"{RESPONSES}/{begun['id']}", headers=ANNA)).json()

    async def everything(self) -> None:
        """Send all of it once; leave the breaker open."""
        for visit in (
            self.each_style,
            self.odd_answers,
            self.odd_questions,
            self.leave,
            self.crowd,
            self.conversations,
            self.foreign_state,
            self.bridges,
            self.background,
            self.bad_summaries,
        ):
            await visit()


def _question(path: str) -> dict[str, Any]:
    return {"messages": [USER]} if path == CHAT else {"input": "Hi"}


@dataclass
class Stage:
    """Two sidecars, the second without a summarizer model and with a review: the addresses of their
    metrics, and one round of all traffic."""

    metrics: tuple[str, str]
    play: Callable[[], Awaitable[None]]


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    model = Model()
    async with (
        serve(model) as thinkers,
        serve(Writer()) as small,
        serve(Moderation()) as guard,
        sidecar(**settings(thinkers, small)) as first,
        sidecar("--upstream", f"{thinkers}/v1", **review_settings(guard)) as second,
        httpx.AsyncClient(base_url=first.url, trust_env=False, timeout=HANG) as one,
        httpx.AsyncClient(base_url=second.url, trust_env=False, timeout=HANG) as without_model,
    ):

        async def play() -> None:
            await Visitor(without_model, model).each_style()
            second.signal(HANG_UP)
            await second.until("settings reloaded")
            await Visitor(one, model).everything()

        yield Stage((first.metrics, second.metrics), play)
