"""What the scripted upstream says, from the number of a request: the truth of soak and chaos."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.campaigns.secret import sentence
from tests.support.streams import (
    call,
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

MARK = re.compile(rb"script:(\d+):([a-z]+)")
"""Stands in a request's prompt: its number and its fault."""

FAULTS = ("cut", "stall", "garbage", "error", "refuses", "drip")
"""What upstream does wrong, beside nothing: `drip` sends a few bytes at a time."""

SUMMARY = "**Looking at it**\n\nI look at it from all sides, and go on."


@dataclass(frozen=True)
class Script:
    """One answer. `wrong` is one of `FAULTS`, or `none`."""

    number: int
    wrong: str = "none"

    @property
    def prompt(self) -> str:
        return f"script:{self.number}:{self.wrong}"

    @property
    def text(self) -> str:
        random = Random(self.number)
        words = [f"w{random.randrange(16**6):06x}" for _ in range(random.choice((5, 20, 80)))]
        return f"Answer {self.number}: " + " ".join(words)

    @property
    def calls(self) -> list[tuple[str, str]]:
        wanted = self.number % 4 == 0
        return [("look", json.dumps({"number": self.number}))] if wanted else []

    @property
    def reasoning(self) -> str:
        return sentence(Random(self.number), (40, 400, 2500)[self.number % 3])

    def frames(self, api: str) -> list[bytes]:
        """Return the frames in which it streams."""
        if api == "chat":
            calls = [call(name, said, place) for place, (name, said) in enumerate(self.calls)]
            return chat_stream(self.reasoning, self.text, calls=calls)
        return responses_stream(self._items())

    def whole(self, api: str) -> dict[str, Any]:
        """Return the body that is no stream."""
        if api == "responses":
            return response(self._items())
        calls = [call(name, said, place) for place, (name, said) in enumerate(self.calls)]
        message = {"reasoning_content": self.reasoning, "content": self.text}
        return completion({**message, **({"tool_calls": calls} if calls else {})})

    def _items(self) -> list[dict[str, Any]]:
        calls = [call_item(2 + place, *said) for place, said in enumerate(self.calls)]
        return [reasoning_item(0, self.reasoning), message_item(1, self.text), *calls]


def script_of(body: bytes) -> Script | None:
    """Return the script that a request names."""
    found = MARK.search(body)
    return Script(int(found[1]), found[2].decode()) if found else None
