"""Clients that send back more or less of an answer, on any API."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from tests.end_to_end.histories.chat_provider import INLINE, text_of
from tests.end_to_end.histories.provider import SERIAL, Json, Plain, Provider
from tests.end_to_end.translation.test_translation import TOOLS
from tests.end_to_end.translation.tool_loops import client_items, results
from tests.end_to_end.translation.turn import PATHS
from tests.support.asgi import Call, call
from tests.support.messages_checker import check_message, check_messages

Keep = Callable[[Json], Json]
"""Returns the part of an item or message that a client sends back; empty for none."""

NUMBER = "x-client-request-id"
NUMBERS = count()
"""Numbers that identify each request upstream."""

STANDARD = ("role", "content", "tool_calls")

THINKING = ("thinking", "redacted_thinking")

THINKS = {"type": "enabled", "budget_tokens": 2000}

LOOK = {"name": "look", "input_schema": {"type": "object"}}


def _everything(each: Json) -> Json:
    return each


def _standard(each: Json) -> Json:
    """Keep the fields that OpenAI's own models have."""
    if each.get("type") == "reasoning":
        return {key: each[key] for key in each if key != "content"}
    if "role" in each and "type" not in each:
        return _message(each, STANDARD)
    return each


def _summaries(each: Json) -> Json:
    """Keep what Codex keeps, except sealed state."""
    if each.get("type") == "reasoning":
        return {"type": "reasoning", "summary": each["summary"]}
    if each.get("type") in THINKING:
        return {} if "data" in each else {**each, "signature": ""}
    if "role" in each and "type" not in each:
        return _message(each, (*STANDARD, "reasoning_content"))
    return each


def _answers(each: Json) -> Json:
    if each.get("type") in ("reasoning", *THINKING):
        return {}
    if "role" in each and "type" not in each:
        return _message(each, STANDARD)
    if each.get("type") == "tool_use":
        return each
    return {key: value for key, value in each.items() if key not in ("id", "status")}


def _message(message: Json, fields: tuple[str, ...]) -> Json:
    returned = {key: message[key] for key in fields if key in message}
    for made in returned.get("tool_calls") or ():
        made.pop("extra_content", None)
    return returned


KINDS: Mapping[str, Keep] = MappingProxyType(
    {
        "keeps everything": _everything,
        "keeps standard fields": _standard,
        "keeps summaries": _summaries,
        "keeps answers": _answers,
    }
)


class Refused(Exception):
    """An answer that is an error."""


class Sent(NamedTuple):
    """A request as it reached upstream.

    `serials` are the answers the client had by then, `plain_turns` those answers as it sent them,
    without reasoning.
    """

    body: Json
    text: str
    serials: list[int]
    plain_turns: list[Plain]


@dataclass
class Client:
    """One conversation. `more` are fields of its requests, `serials` the answers it has."""

    app: ASGIApp
    provider: Provider
    api: str
    keeps: str = "keeps everything"
    stream: bool = False
    tenant: str = "anna"
    conversation: str = "blue"
    more: Json = field(default_factory=dict)
    history: list[Json] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    serials: list[int] = field(default_factory=list)

    async def ask(self, rounds: int = 0) -> None:
        """Ask a question and run all its rounds."""
        self.question(rounds)
        while await self.step():
            pass

    async def again(self, *, keeps_first: bool) -> None:
        """Send the same request twice, keeping one answer."""
        first, second = await self.send(), await self.send()
        self.take(first if keeps_first else second)

    def fork(self, app: ASGIApp | None = None, **changes: Any) -> Client:
        """Return another client with a copy of the history."""
        past = {"history": deepcopy(self.history), "serials": list(self.serials), "sent": []}
        return replace(self, app=app or self.app, **past, **changes)

    def question(self, rounds: int = 0) -> None:
        words = f"In conversation {self.conversation}: where is it? Take {rounds} rounds."
        self.history.append({"role": "user", "content": words})

    async def step(self) -> bool:
        """Send one request; return whether another round follows."""
        return self.take(await self.send())

    async def send(self) -> Call:
        number = str(next(NUMBERS))
        headers = {"authorization": f"Bearer sk-{self.tenant}-1234567890", NUMBER: number}
        serials, plain_turns = list(self.serials), self.plain_turns()
        reply = await call(self.app, PATHS[self.api], self.body(), headers)
        received = [
            request for request in self.provider.requests if request.header(NUMBER) == number
        ]
        self.sent += [Sent(one.json, one.body.decode(), serials, plain_turns) for one in received]
        if reply.status != 200:
            raise Refused(reply.data.decode())
        return reply

    def body(self) -> Json:
        if self.api == "messages":
            asked: Json = {"max_tokens": 4000, "thinking": THINKS, "tools": [LOOK]}
            body = {"model": self.provider.model, "stream": self.stream, **asked, **self.more}
            return {**body, "messages": self.history}
        shown: Json = {"reasoning": {"summary": "auto"}, "tools": TOOLS[self.api]}
        body = {"model": self.provider.model, "stream": self.stream, **shown, **self.more}
        if self.api == "chat":
            return {**body, "messages": self.history}
        stateless = {"store": False, "include": ["reasoning.encrypted_content"]}
        return {**body, "input": self.history, **stateless}

    def take(self, reply: Call) -> bool:
        """Add an answer to the history; return whether it has calls."""
        self.serials.append(int(reply.headers[SERIAL]))
        if self.api == "messages":
            content = self.read_content(reply)
            outputs = [_result(block["id"]) for block in content if block["type"] == "tool_use"]
            self.history.append({"role": "assistant", "content": content})
            self.history += [{"role": "user", "content": outputs}] if outputs else []
            return bool(outputs)
        items = deepcopy(client_items(self.api, reply, stream=self.stream))
        returned = [item for each in items if (item := KINDS[self.keeps](each))]
        outputs = results(returned)
        self.history += [*returned, *outputs]
        return bool(outputs)

    def read_content(self, reply: Call) -> list[Json]:
        """Return the blocks of a message that the client sends back."""
        whole = check_messages(reply.data).message if self.stream else check_message(reply.json)
        return [item for each in whole["content"] if (item := KINDS[self.keeps](deepcopy(each)))]

    def edit(self, old: str, new: str) -> None:
        """Replace text throughout the history."""
        history = json.dumps(self.history, ensure_ascii=False)
        assert old in history
        self.history = json.loads(history.replace(old, new))

    def plain_turns(self) -> list[Plain]:
        """Return its answers without reasoning."""
        return [_plain(turn) for turn in _turns(self.history)]


def _turns(history: list[Json]) -> list[list[Json]]:
    turns: list[list[Json]] = [[]]
    for item in history:
        if item.get("role") in ("user", "tool") or "output" in item:
            turns.append([])
        else:
            turns[-1].append(item)
    return [turn for turn in turns if turn]


def _plain(turn: list[Json]) -> Plain:
    text, calls = "", []
    for item in turn:
        content = item.get("content") or ""
        if item.get("role") == "assistant" and isinstance(content, list):
            calls += [
                (_upstream_id(block["id"]), block["name"], block["input"])
                for block in content
                if block["type"] == "tool_use"
            ]
        if item.get("role") == "assistant":
            text += INLINE.sub("", text_of(content), count=1)
        if item.get("type") == "function_call":
            calls.append((item["call_id"], item["name"], json.loads(item["arguments"])))
        for made in item.get("tool_calls") or ():
            called = made["function"]
            calls.append((made["id"], called["name"], json.loads(called["arguments"])))
    return text, calls


def _result(call_id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "None."}


def _upstream_id(call_id: str) -> str:
    """Return upstream's id for one that had to be written in other characters for the client."""
    encoded = call_id.removeprefix("toolu_b64_")
    return call_id if encoded == call_id else urlsafe_b64decode(f"{encoded}==").decode()
