"""The scripted model: it thinks one of the reasonings aloud, at a pace, and calls a tool where that
was called.

A request names the reasoning as its model. The tool outputs in it tell which turn is due.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

from starlette.types import Receive, Scope, Send

from tests.quality.corpus import Reasoning
from tests.quality.style import estimate_tokens
from tests.support.asgi import body_of, start
from tests.support.streams import call_item, message_item, reasoning_item, responses_stream

ANSWER = "That is what I found."

TICK = 0.02
"""Seconds that must be due for the stream to pause."""

_DELTA = b"event: response.reasoning_text.delta"

_THOUGHT = b"event: response.reasoning_text.done"


class Thinker:
    """An ASGI app that speaks Responses.

    `thought` is when the reasoning of each turn had been sent, by the monotonic clock.
    """

    def __init__(self, reasonings: Iterable[Reasoning], tokens_per_second: float) -> None:
        """`tokens_per_second` of 0 is as fast as it goes."""
        self._reasonings = {reasoning.name: reasoning for reasoning in reasonings}
        self._tokens_per_second = tokens_per_second
        self.thought: dict[tuple[str, int], float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await _read(receive)
        reasoning = self._reasonings.get(request.get("model", ""))
        if reasoning is None or not scope["path"].endswith("/responses"):
            await start(send, "application/json", 404)
            await send({"type": "http.response.body", "body": b"{}"})
            return
        await start(send)
        async for data in self._play(reasoning, _turn_due(request)):
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _play(self, reasoning: Reasoning, turn: int) -> AsyncIterator[bytes]:
        """Yield the frames of a turn when they are due, those that are due at once together."""
        frames = turn_frames(reasoning, turn)
        pause = self._seconds(reasoning.turns[turn]) / sum(map(_is_delta, frames))
        begun, deltas, waiting = time.monotonic(), 0, b""
        for frame in frames:
            deltas += _is_delta(frame)
            wait = begun + deltas * pause - time.monotonic() if pause else 0.0
            if wait > TICK:
                yield waiting
                waiting = b""
                await asyncio.sleep(wait)
            if frame.startswith(_THOUGHT):
                self.thought[reasoning.name, turn] = time.monotonic()
            waiting += frame
        yield waiting

    def _seconds(self, text: str) -> float:
        return estimate_tokens(text) / self._tokens_per_second if self._tokens_per_second else 0.0


def turn_frames(reasoning: Reasoning, turn: int) -> list[bytes]:
    """Return a turn's stream: reasoning, then the answer, or a call if other turns follow."""
    thought = reasoning_item(2 * turn, reasoning.turns[turn])
    is_last = turn == len(reasoning.turns) - 1
    end = message_item(1, ANSWER) if is_last else call_item(2 * turn + 1, "look_up", "{}")
    return responses_stream([thought, end], model=reasoning.name)


def _is_delta(frame: bytes) -> bool:
    return frame.startswith(_DELTA)


def _turn_due(request: dict[str, Any]) -> int:
    items = request["input"] if isinstance(request["input"], list) else []
    return sum(item.get("type") == "function_call_output" for item in items)


async def _read(receive: Receive) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(await body_of(receive) or b"{}")
    return request
