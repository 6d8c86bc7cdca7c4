"""A provider that speaks Gemini's Interactions API."""

from __future__ import annotations

import json
from itertools import groupby, takewhile

from tests.apis.interactions import scripts as interactions
from tests.end_to_end.histories.answers import Script
from tests.end_to_end.histories.provider import Entry, Json, Plain, Provider, Turn
from tests.support.upstream import Answer

MODEL_STEPS = ("thought", "model_output", "function_call")


class GeminiInteractions(Provider):
    """Signs each thought."""

    name = "gemini interactions"
    profile = "gemini-native"
    api = "interactions"
    model = "gemini-3-flash-preview"
    summarizes = True

    def write_turn(self, script: Script, body: Json) -> Turn:
        answer = [interactions.output(script.text)] if script.text else []
        answer += [
            interactions.function_call(made.id, made.name, **json.loads(made.arguments))
            for made in script.calls
        ]
        if not script.thinks:
            return answer
        thought = interactions.thought(script.reasoning_text(), script.sealed("s", "Ev8B"))
        return [thought, *answer]

    def play(self, entry: Entry, *, stream: bool) -> Answer:
        if not stream:
            return Answer.json(interactions.whole(entry.written))
        return Answer(interactions.stream(entry.written))

    def turns(self, body: Json) -> list[Turn]:
        runs = groupby(body["input"], lambda step: step["type"] in MODEL_STEPS)
        return [list(steps) for is_models, steps in runs if is_models]

    def questions(self, body: Json) -> list[str]:
        asked = (step for step in body["input"] if step["type"] == "user_input")
        return ["".join(part["text"] for part in step["content"]) for step in asked]

    def rounds(self, body: Json) -> int:
        later = list(takewhile(lambda step: step["type"] != "user_input", reversed(body["input"])))
        return len(self.turns({"input": later}))

    def reasoning(self, turn: Turn) -> list[Json]:
        return [step for step in turn if step["type"] == "thought"]

    def plain(self, turn: Turn) -> Plain:
        contents = [part for step in turn for part in step.get("content", [])]
        calls = [step for step in turn if step["type"] == "function_call"]
        text = "".join(part["text"] for part in contents)
        return text, [(made["id"], made["name"], made["arguments"]) for made in calls]
