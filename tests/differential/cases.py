"""Answers of upstreams, and the ways in which each reaches a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.end_to_end.recordings.recordings import all_recordings
from tests.end_to_end.translation.turn import PATHS
from tests.end_to_end.whole_chain.speech import Speech, speeches
from tests.end_to_end.whole_chain.upstreams import UPSTREAMS
from tests.support import random_answers
from tests.support.streams import message_item, reasoning_item, response, responses_stream

PIECES = ("So. ", "\n", "<", "`", "It is.", "<think>", "</think>", "<think>\nI add.\n</think>\n\n")
"""What texts with thinking are made of."""

WAYS = {
    "passed": (None, "both", False),
    "summary": ("auto", "both", False),
    "hidden": ("auto", "summary", False),
    "none": ("auto", "none", False),
    "kept": ("auto", "both", True),
    "kept hidden": ("auto", "summary", True),
}
"""Whether the client asks for a summary, what is shown, and whether reasoning is sealed for the
client and remembered."""


@dataclass(frozen=True)
class Case:
    """What an upstream of an API answers, in pieces."""

    name: str
    api: str
    pieces: tuple[bytes, ...]
    streamed: bool
    profile: str = ""  # of the upstream, if not the one by default

    @property
    def content_type(self) -> str:
        return "text/event-stream" if self.streamed else "application/json"


def all_cases(examples: int) -> Iterator[Case]:
    """Yield every recording, then answers made up: so many of each kind and API."""
    for recording in all_recordings():
        api = str(recording.api)
        yield Case(recording.name, api, (recording.data,), recording.streamed)
    yield from _random_cases(examples)
    yield from _thinking_in_texts(examples)
    for number, speech in enumerate(_speeches(examples)):
        for api, say in UPSTREAMS.items():
            yield Case(f"speech {number}", api, tuple(say(speech)), streamed=True)


def _random_cases(examples: int) -> Iterator[Case]:
    """Yield answers with any JSON beside what is known."""
    for api in PATHS:
        for number in range(examples):
            random = Random(number)
            payloads = random_answers.STREAMS[api](random)
            frames = random_answers.to_frames(
                random, random_answers.put_beside(random, payloads, number % 4)
            )
            yield Case(f"stream {number}", api, tuple(frames), streamed=True)
            body: Any = random_answers.WHOLES[api](random)
            data = json.dumps(body).encode()
            yield Case(f"body {number}", api, (data,), streamed=False)


def _thinking_in_texts(examples: int) -> Iterator[Case]:
    """Yield answers of servers that write thinking into their messages."""
    for number in range(examples):
        random = Random(number)
        texts = ("".join(random.choices(PIECES, k=4)) for _ in range(random.randint(1, 3)))
        output = [message_item(place, text) for place, text in enumerate(texts)]
        if random.random() < 0.3:
            output.insert(random.randrange(len(output) + 1), reasoning_item(9, "I add."))
        profile = random.choice(("transformers", "prefilled", "auto"))
        frames, body = tuple(responses_stream(output)), json.dumps(response(output)).encode()
        yield Case(f"thinking {number}", "responses", frames, streamed=True, profile=profile)
        yield Case(f"thinking body {number}", "responses", (body,), streamed=False, profile=profile)


def _speeches(examples: int) -> list[Speech]:
    found: list[Speech] = []

    for whole in (True, False):

        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @seed(1)
        @given(speeches(whole=whole))
        def note(speech: Speech) -> None:
            found.append(speech)

        note()
    return found
