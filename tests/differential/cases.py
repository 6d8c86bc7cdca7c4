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

WAYS = {
    "passed": (None, "both"),
    "summary": ("auto", "both"),
    "hidden": ("auto", "summary"),
    "none": ("auto", "none"),
}
"""Whether the client asks for a summary, and what is shown."""


@dataclass(frozen=True)
class Case:
    """What an upstream of an API answers, in pieces."""

    name: str
    api: str
    pieces: tuple[bytes, ...]
    streamed: bool

    @property
    def content_type(self) -> str:
        return "text/event-stream" if self.streamed else "application/json"


def all_cases(examples: int) -> Iterator[Case]:
    """Yield every recording, then answers made up: so many of each kind and API."""
    for recording in all_recordings():
        api = str(recording.api)
        yield Case(recording.name, api, (recording.data,), recording.streamed)
    yield from _random_cases(examples)
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
