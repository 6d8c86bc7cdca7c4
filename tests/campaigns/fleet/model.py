"""Upstream and the summarizer model of a fleet."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from typing import Any

from starlette.types import Receive, Scope, Send

from tests.campaigns.paced import Shape, answer
from tests.campaigns.script import SUMMARY
from tests.support.asgi import body_of, say, start
from tests.support.streams import chat_stream

TOKENS = 100
"""Tokens that upstream reports for each answer."""

SUMMARY_TOKENS = 81
"""Those that `chat_stream` reports."""

REASONING = (
    "Part {piece} of request {number} of {name} needs care, so I look at it from all sides. "
)
TEXT = "<{number}.{piece}> "
SUBJECT = re.compile(rb"of request \d+ of (\w+) needs")


class Model:
    """Upstream. Each prompt names a key and a request, and so does each piece of the answer."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.taken: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.open: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()
        self.second_turns = self.remembered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_of(receive)
        if scope["path"].startswith("/summarizer"):
            await self._summarize(send, body)
            return
        messages = json.loads(body)["messages"]
        name, number = messages[-1]["content"].split()
        self._count(name, messages)
        shape = self._shape if name == "conversations" else Shape(1, 0.2)
        usage = {"prompt_tokens": 10, "completion_tokens": 90, "total_tokens": TOKENS}
        try:
            await answer(send, shape, (REASONING, TEXT), usage, name=name, number=number)
            self.tokens[name] += TOKENS
        finally:
            self.open[name] -= 1

    def _count(self, name: str, messages: list[dict[str, Any]]) -> None:
        self.taken[name] += 1
        self.first.setdefault(name, time.monotonic())
        self.last[name] = time.monotonic()
        self.open[name] += 1
        self.most_open[name] = max(self.most_open[name], self.open[name])
        if len(messages) > 1:
            self.second_turns += 1
            self.remembered += "reasoning" in json.dumps(messages[1])

    async def _summarize(self, send: Send, body: bytes) -> None:
        if found := SUBJECT.search(body):
            self.tokens[found[1].decode()] += SUMMARY_TOKENS
        await start(send)
        await say(send, b"".join(chat_stream("", SUMMARY)))
