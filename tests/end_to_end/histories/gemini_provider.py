"""A provider that speaks Gemini's own API."""

from __future__ import annotations

import json
from itertools import takewhile

from abridge.apis.gemini.reasoning import signature_of
from tests.apis.gemini import scripts as gemini
from tests.end_to_end.histories.answers import Script
from tests.end_to_end.histories.provider import Entry, Json, Plain, Provider, Turn
from tests.support.upstream import Answer, ReceivedRequest

RESPONSE_ID = gemini.chunk([])["responseId"]


class GeminiNative(Provider):
    """Signs its first call, or else its text, and gives calls no ids."""

    name = "gemini native"
    profile = "gemini-native"
    api = "gemini"
    model = "gemini-3-flash-preview"
    summarizes = True

    def write_turn(self, script: Script, body: Json) -> Turn:
        answer = [gemini.text(script.text)] if script.text else []
        answer += [
            gemini.function_call("", made.name, **json.loads(made.arguments))
            for made in script.calls
        ]
        if not script.thinks:
            return answer
        signed_at = next(
            n for n, part in enumerate(answer) if "text" not in part or n == len(answer) - 1
        )
        answer[signed_at] = gemini.signed(answer[signed_at], script.sealed("s", "Ev8B"))
        return [gemini.thought(script.reasoning_text()), *answer]

    def play(self, entry: Entry, *, stream: bool) -> Answer:
        response_id = f"r{entry.script.serial}7Kq9ZtR4mP2s"
        if not stream:
            return Answer.json(gemini.whole(entry.written, responseId=response_id))
        frames = gemini.stream(entry.written)
        return Answer([one.replace(RESPONSE_ID.encode(), response_id.encode()) for one in frames])

    def streams(self, request: ReceivedRequest) -> bool:
        return "stream" in request.path

    def turns(self, body: Json) -> list[Turn]:
        return [one["parts"] for one in body["contents"] if one["role"] == "model"]

    def questions(self, body: Json) -> list[str]:
        return [part["text"] for one in body["contents"] if _asks(one) for part in one["parts"]]

    def rounds(self, body: Json) -> int:
        later = takewhile(lambda one: not _asks(one), reversed(body["contents"]))
        return sum(one["role"] == "model" for one in later)

    def reasoning(self, turn: Turn) -> list[Json]:
        return [part for part in turn if part.get("thought") or signature_of(part)]

    def plain(self, turn: Turn) -> Plain:
        answer = [part for part in turn if not part.get("thought")]
        calls = [part["functionCall"] for part in answer if "functionCall" in part]
        text = "".join(part.get("text", "") for part in answer)
        return text, [(made.get("id", ""), made["name"], made["args"]) for made in calls]


def _asks(content: Json) -> bool:
    return content["role"] == "user" and "text" in content["parts"][0]
