"""Stream reasonings through a served Abridge and collect the parts, as a client sees them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from openai import AsyncOpenAI
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from tests.quality.corpus import Reasoning
from tests.quality.upstream import Thinker
from tests.support.servers import serve

PACE = 80.0
"""Tokens a second: what hosted reasoning models write."""

AT_ONCE = 8
"""Reasonings that are streamed concurrently."""

TIMEOUT = 600.0
"""Seconds after which a stream has hung."""

REQUESTS = {
    "en": "Please think this through for me, and tell me what you would do.",
    "de": "Bitte denk das für mich durch und sag mir, was du tun würdest.",
    "zh": "请帮我仔细想一想这个问题，然后告诉我你会怎么做。",
    "ja": "この問題についてよく考えて、どうすればよいか教えてください。",
    "fr": "Réfléchis à cette question, s'il te plaît, et dis-moi ce que tu ferais.",
    "es": "Por favor, piensa bien en esta pregunta y dime qué harías tú.",
}
"""What the user says, in the language of the reasoning, which a summary may go by."""


@dataclass
class Shown:
    """A summary as it was shown. Times are seconds since its turn's request."""

    reasoning: Reasoning
    parts: list[str] = field(default_factory=list)
    begun: list[float] = field(default_factory=list)  # when the first text of each part came
    held: float = 0.0  # how long answers waited for their summary, over all turns
    failures: list[str] = field(default_factory=list)  # codes of parts that failed
    seconds: float = 0.0  # of reasoning, over all turns
    output_tokens: int = 0  # that the summarizer reports

    @property
    def first_text(self) -> float | None:
        return self.begun[0] if self.begun else None


@dataclass(frozen=True)
class Options:
    """How to run: `tables` are settings; `pace` is in tokens a second, 0 as fast as it goes."""

    tables: dict[str, Any] = field(default_factory=dict)
    pace: float = PACE
    style: str = "auto"
    language: str | None = None
    at_once: int = AT_ONCE


async def run(reasonings: Sequence[Reasoning], options: Options) -> list[Shown]:
    """Return what was shown of each, in their order."""
    thinker = Thinker(reasonings, options.pace)
    async with serve(thinker) as upstream:
        tables = {"upstreams": [{"base_url": f"{upstream}/v1"}], **options.tables}
        app = create_app(Settings.model_validate(tables), registry=CollectorRegistry())
        async with (
            serve(app, lifespan="on") as url,
            AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=TIMEOUT) as ai,
        ):
            room = asyncio.Semaphore(options.at_once)
            clients = [Client(ai, thinker, one, options) for one in reasonings]
            return list(await asyncio.gather(*(client.converse(room) for client in clients)))


class Client:
    """One client's conversation: turn after turn, until the model calls no tool."""

    def __init__(
        self, ai: AsyncOpenAI, thinker: Thinker, reasoning: Reasoning, options: Options
    ) -> None:
        self._ai = ai
        self._thinker = thinker
        self._options = options
        self._shown = Shown(reasoning)
        asked = REQUESTS.get(reasoning.language, REQUESTS["en"])
        self._input: list[Any] = [{"role": "user", "content": asked}]

    async def converse(self, room: asyncio.Semaphore) -> Shown:
        async with room:
            for turn in range(len(self._shown.reasoning.turns)):
                await self._take_turn(turn)
        return self._shown

    async def _take_turn(self, turn: int) -> None:
        shown, headers = self._shown, {}
        if self._options.language:
            headers["x-abridge-summary-language"] = self._options.language
        begun, seen = time.monotonic(), set[int]()
        stream = await self._ai.responses.create(
            model=shown.reasoning.name,
            input=self._input,
            reasoning=cast(Any, {"summary": self._options.style}),  # `title` is none of OpenAI's
            stream=True,
            extra_headers=headers,
        )
        async for event in stream:
            now = time.monotonic()
            match event.type:
                case "response.reasoning_summary_text.delta" if event.summary_index not in seen:
                    seen.add(event.summary_index)
                    shown.begun.append(now - begun)
                case "response.reasoning_summary_text.done":
                    shown.parts.append(event.text)
                case "response.output_item.added" if event.item.type != "reasoning":
                    thought = self._thinker.thought[shown.reasoning.name, turn]
                    shown.held += now - thought
                    shown.seconds += thought - begun
                case "response.completed":
                    self._note(event.response.output)
                    spent = getattr(event.response.usage, "reasoning_summary", None) or {}
                    shown.output_tokens += spent.get("output_tokens") or 0

    def _note(self, output: Sequence[Any]) -> None:
        """Keep what the next turn returns, and what failed."""
        for item in output:
            self._input.append(item.model_dump(exclude_none=True))
            if item.type == "reasoning" and getattr(item, "summary_error", None):
                self._shown.failures.append(item.summary_error["code"])
            if item.type == "function_call":
                answer = {"call_id": item.call_id, "output": "done"}
                self._input.append({"type": "function_call_output", **answer})
