"""Google's two APIs as upstreams: what a test of both needs to know of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.apis.gemini.reasoning import NO_SIGNATURE
from abridge.apis.interactions.reasoning import MODEL_STEPS
from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.interactions.spec import GENAI, check_request
from tests.end_to_end.translation.test_translation import KEY
from tests.end_to_end.translation.turn import CLIENTS, PATHS, UPSTREAMS, request_body
from tests.support.asgi import Call, call
from tests.support.deployments import ORIGIN, build_app
from tests.support.streams import frame
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

Json = dict[str, Any]
MODEL = "gemini-3-flash-preview"
OURS = "**Ours**\n\nWritten by a summarizer."
PNG = "iVBORw0KGgoAAAANSUhEUg=="
FIRST, SECOND = "fc_{}a7Kq9ZtR4mP2s", "fc_{}b7Kq9ZtR4mP2s"
"""The ids of a round's calls."""

BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize("client", CLIENTS)
ANY = pytest.mark.parametrize("client", UPSTREAMS)


@dataclass(frozen=True, repr=False)
class Google:
    """One of the two. Its `parts` are what an answer consists of: parts or steps."""

    api: str
    thought: Callable[[str], Json]
    spoken: Callable[..., list[Json]]
    """A text, and how many images."""
    round: Callable[[int], list[Json]]
    """A thought, a text and two calls."""
    unsigned: Callable[[list[Json]], list[Json]]
    """A round whose thoughts are not kept."""
    replaced: Callable[[list[Json]], list[Json]]
    """A round whose thoughts are lost."""
    whole: Callable[..., Json]
    streamed: Callable[..., list[bytes]]
    returned: Callable[[Json], list[list[Json]]]
    """The model's own parts in a request, by turn."""
    results: Callable[[Json], list[tuple[str, str]]]
    """The ids and names of the first results of calls in a request."""
    thinks: Callable[[Json], Json]
    """What a request says of thinking."""
    broken: list[bytes]
    """A stream with an error in it."""

    def __repr__(self) -> str:
        return self.api

    def play(self, parts: list[Json], *end: str, stream: bool) -> Answer:
        if stream:
            return Answer(self.streamed(parts, *end))
        return Answer.json(self.whole(parts, *end))

    def rounds(self, *, stream: bool) -> tuple[list[list[Json]], list[Answer]]:
        """Return three rounds of calls, and the answers that they are."""
        made = [self.round(number) for number in range(3)]
        return made, [self.play(parts, stream=stream) for parts in made]


class Stage:
    """A sidecar before an upstream that speaks one of the two."""

    def __init__(
        self, google: Google, client: str, *answers: Answer, stream: bool, **tables: Any
    ) -> None:
        self.client, self.stream, self.google = client, stream, google
        self.played, self.registry = Upstream(*answers), CollectorRegistry()
        entry = {
            "api": google.api,
            "profile": "gemini-native",
            "base_url": f"{ORIGIN}/v1beta",
            **tables.pop("entry", {}),
        }
        self.app: ASGIApp = build_app(
            "sidecar",
            self.played,
            upstreams=[entry],
            writer=Scripted(OURS),
            registry=self.registry,
            **tables,
        )

    @property
    def sent(self) -> Json:
        """The last request."""
        sent: Json = self.played.requests[-1].json
        if self.google is INTERACTIONS and GENAI:
            check_request(sent)
        return sent

    def returned(self) -> list[list[Json]]:
        """Return the model's own parts in the last request, by turn."""
        return self.google.returned(self.sent)

    async def ask(self, *, model: str = MODEL, **more: Any) -> Call:
        body = {**request_body(self.client, stream=self.stream), "model": model, **more}
        return await call(self.app, PATHS[self.client], body, KEY)


def _parts_round(number: int) -> list[Json]:
    call = gemini.function_call(FIRST.format(number), where="é")
    return [
        gemini.thought(f"Round {number}."),
        gemini.text(f"Looking, {number}."),
        gemini.signed(call, f"c2ln{number}"),
        gemini.function_call(SECOND.format(number), depth=1.0),
    ]


def _unsigned_parts(parts: list[Json]) -> list[Json]:
    return [
        {key: part[key] for key in part if key != "thoughtSignature"}
        for part in parts
        if not part.get("thought")
    ]


def _replaced_parts(parts: list[Json]) -> list[Json]:
    text, first, second = _unsigned_parts(parts)
    return [text, gemini.signed(first, NO_SIGNATURE), second]


def _contents_of_the_model(sent: Json) -> list[list[Json]]:
    return [content["parts"] for content in sent["contents"] if content["role"] == "model"]


def _responses_to_functions(sent: Json) -> list[tuple[str, str]]:
    responses = [part["functionResponse"] for part in sent["contents"][2]["parts"]]
    return [(each["id"], each["name"]) for each in responses]


ERROR = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}
IMAGE = gemini.signed(gemini.inline_data("image/png", PNG), "c2ln")
GEMINI = Google(
    api="gemini",
    thought=gemini.thought,
    spoken=lambda words, images=0: [gemini.text(words), *[IMAGE] * images],
    round=_parts_round,
    unsigned=_unsigned_parts,
    replaced=_replaced_parts,
    whole=gemini.whole,
    streamed=gemini.stream,
    returned=_contents_of_the_model,
    results=_responses_to_functions,
    thinks=lambda sent: sent["generationConfig"]["thinkingConfig"],
    broken=[frame(gemini.chunk([gemini.text("One")])), frame(ERROR)],
)


def _steps_round(number: int) -> list[Json]:
    return [
        interactions.thought(f"Round {number}.", f"Ev8B{number}"),
        interactions.output(f"Looking, {number}."),
        interactions.function_call(FIRST.format(number), where="é"),
        interactions.thought("", f"Ev8C{number}"),
        interactions.function_call(SECOND.format(number), depth=1.0),
    ]


def _unsigned_steps(steps: list[Json]) -> list[Json]:
    return [step for step in steps if step["type"] != "thought"]


def _replaced_steps(steps: list[Json]) -> list[Json]:
    text, *calls = _unsigned_steps(steps)
    return [text, {"type": "thought", "signature": NO_SIGNATURE}, *calls]


def _steps_of_the_model(sent: Json) -> list[list[Json]]:
    runs = groupby(sent["input"], lambda step: step["type"] in MODEL_STEPS)
    return [list(turn) for is_models, turn in runs if is_models]


def _results_of_functions(sent: Json) -> list[tuple[str, str]]:
    results = [step for step in sent["input"] if step["type"] == "function_result"]
    return [(each["call_id"], each["name"]) for each in results[:2]]


ERROR_OF_INTERACTIONS = {"error": {"code": "rate_limit_exceeded", "message": "Quota exceeded."}}
INTERACTIONS = Google(
    api="interactions",
    thought=interactions.thought,
    spoken=lambda words, images=0: [
        interactions.output(words, *[interactions.image("image/png", PNG)] * images)
    ],
    round=_steps_round,
    unsigned=_unsigned_steps,
    replaced=_replaced_steps,
    whole=interactions.whole,
    streamed=interactions.stream,
    returned=_steps_of_the_model,
    results=_results_of_functions,
    thinks=lambda sent: sent["generation_config"],
    broken=interactions.frames(
        [
            *interactions.events([interactions.output("One")])[:-1],
            interactions.event("error", **ERROR_OF_INTERACTIONS),
        ]
    ),
)
