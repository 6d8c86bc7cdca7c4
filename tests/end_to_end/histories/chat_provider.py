"""A provider that speaks Chat Completions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.end_to_end.histories.answers import Script
from tests.end_to_end.histories.provider import Entry, Json, Plain, Provider, Refusal, Turn
from tests.support.streams import CHAT_USAGE, DONE, chunk, completion, pieces
from tests.support.upstream import Answer

PIECE = 48
"""Characters in a delta."""

HOLDERS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
STATE = "extra_content"
INLINE = re.compile(r"<(think|thought)>.*?</\1>\s*", re.DOTALL)


def invalid(message: str, **more: Any) -> Refusal:
    kind = "invalid_request_error"
    return Refusal({"error": {"message": message, "type": kind, "param": None, **more}})


class Chat(Provider):
    """The dialect with reasoning in one text field."""

    field: ClassVar[str] = "reasoning_content"
    chunked: ClassVar[bool] = False

    def reasoning_fields(self, script: Script) -> Json:
        """Return the reasoning fields of a message."""
        return {self.field: script.reasoning_text()} if script.thinks else {}

    def deltas(self, script: Script) -> Iterator[Json]:
        """Yield the same as deltas."""
        yield from ({self.field: piece} for piece in pieces(script.reasoning_text(), PIECE))

    def content(self, script: Script) -> str | None:
        return script.text or None

    def state(self, script: Script) -> Json:
        """Return the extra fields of a turn's first call."""
        return {}

    def write_turn(self, script: Script, body: Json) -> Turn:
        message = {
            "role": "assistant",
            "content": self.content(script),
            **self.reasoning_fields(script),
        }
        calls = [
            {
                "id": called.id,
                "type": "function",
                "function": {"name": called.name, "arguments": called.arguments},
                **(self.state(script) if number == 0 else {}),
            }
            for number, called in enumerate(script.calls)
        ]
        return [{**message, "tool_calls": calls} if calls else message]

    def play(self, entry: Entry, *, stream: bool) -> Answer:
        (message,) = entry.written
        named = {"id": f"chatcmpl-{entry.script.serial}"}
        finish = "tool_calls" if entry.script.calls else "stop"
        if not stream:
            body = completion(message, **named)
            body["choices"][0]["finish_reason"] = finish
            return Answer.json(body)
        deltas: list[Json] = [{"role": "assistant", "content": ""}, *self.deltas(entry.script)]
        text = entry.script.text if self.chunked else message["content"] or ""
        deltas += [{"content": piece} for piece in pieces(text, PIECE)]
        deltas += self._calling(message)
        frames = [chunk(delta, **named) for delta in deltas]
        ending = [chunk({}, finish=finish, **named), chunk(usage=CHAT_USAGE, **named), DONE]
        return Answer([*frames, *ending])

    def _calling(self, message: Json) -> Iterator[Json]:
        """Yield each call's name, then its arguments."""
        for number, made in enumerate(message.get("tool_calls") or ()):
            function = made["function"]
            first = {**made, "index": number, "function": {**function, "arguments": ""}}
            yield {"tool_calls": [first]}
            for piece in pieces(function["arguments"], PIECE):
                yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}

    def turns(self, body: Json) -> list[Turn]:
        return [[message] for message in body["messages"] if message["role"] == "assistant"]

    def questions(self, body: Json) -> list[str]:
        return [text_of(one["content"]) for one in body["messages"] if one["role"] == "user"]

    def rounds(self, body: Json) -> int:
        return len(list(self.since(body)))

    def since(self, body: Json) -> Iterator[tuple[int, Json]]:
        """Yield the assistant messages after the last user message, with their indexes."""
        messages = body["messages"]
        questions_at = [place for place, one in enumerate(messages) if one["role"] == "user"]
        for place in range(questions_at[-1] + 1, len(messages)):
            if messages[place]["role"] == "assistant":
                yield place, messages[place]

    def calling(self, body: Json) -> Iterator[tuple[int, Json]]:
        """Yield the assistant messages with calls, with their indexes."""
        for place, one in enumerate(body["messages"]):
            if one.get("tool_calls"):
                yield place, one

    def reasoning(self, turn: Turn) -> list[Json]:
        (message,) = turn
        found = {name: message[name] for name in (*HOLDERS, STATE) if name in message}
        calls = message.get("tool_calls") or ()
        state = [made[STATE] for made in calls if STATE in made]
        inline = INLINE.match(text_of(message.get("content")))
        found |= {"calls": state} if state else {}
        found |= {"content": inline[0]} if inline else {}
        return [found] if found else []

    def plain(self, turn: Turn) -> Plain:
        (message,) = turn
        calls = [
            (made["id"], made["function"]["name"], json.loads(made["function"]["arguments"]))
            for made in message.get("tool_calls") or ()
        ]
        return INLINE.sub("", text_of(message.get("content")), count=1), calls


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""
