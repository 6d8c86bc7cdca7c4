"""Gemini's Interactions API as an upstream, for clients of each API."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from abridge.apis.gemini.reasoning import NO_SIGNATURE
from abridge.apis.interactions.reasoning import MODEL_STEPS
from tests.apis.interactions import scripts as interactions
from tests.apis.interactions.spec import GENAI, check_request
from tests.end_to_end.translation.test_gemini import (
    ANY,
    BOTH,
    EACH,
    EXPOSED,
    MODEL,
    OURS,
    PNG,
    Stage,
    TestMessagesClients,
    images_of,
    loop,
)
from tests.end_to_end.translation.test_translation import KEY, TOOLS
from tests.end_to_end.translation.tool_loops import KEEPS, client_items, results
from tests.end_to_end.translation.turn import WORDS, read_answer
from tests.support.counters import total
from tests.support.upstream import Answer

Json = dict[str, Any]
THOUGHTS = "**Adding up**\n\nI add the odd numbers."
UNSIGNED = {"type": "thought", "signature": NO_SIGNATURE}
IMAGE = interactions.image("image/png", PNG)

clients_of_messages = TestMessagesClients()
del TestMessagesClients  # its tests are of the other API


def play(steps: list[Json], *, stream: bool, status: str = "") -> Answer:
    whole = interactions.whole(steps, status)
    return Answer(interactions.stream(steps, status)) if stream else Answer.json(whole)


class InteractionsStage(Stage):
    """A sidecar before an upstream that speaks the Interactions API."""

    api = "interactions"

    def returned(self) -> list[list[Json]]:
        """Return the model's own steps in the last request, by turn."""
        if GENAI:
            check_request(self.played.requests[-1].json)
        steps = self.played.requests[-1].json["input"]
        runs = groupby(steps, lambda step: step["type"] in MODEL_STEPS)
        return [list(turn) for is_models, turn in runs if is_models]


@BOTH
@ANY
async def test_an_interaction_with_its_thoughts_as_the_summary(
    client: str, *, stream: bool
) -> None:
    played = play([interactions.thought(THOUGHTS), interactions.output(WORDS)], stream=stream)
    stage = InteractionsStage(client, played, stream=stream)
    received = read_answer(client, await stage.ask(), stream=stream)
    assert (received.text, received.summary, received.raw) == (WORDS, THOUGHTS, "")
    assert total(stage.registry, "summaries_total", outcome="native") == 1
    assert received.usage is not None
    assert received.usage.get("total_tokens", 93) == 93  # Messages has none


@BOTH
@ANY
async def test_google_keeps_nothing_of_an_interaction(client: str, *, stream: bool) -> None:
    stage = InteractionsStage(
        client, play([interactions.output(WORDS)], stream=stream), stream=stream
    )
    await stage.ask(store=True)
    (sent,) = stage.played.requests
    assert (sent.path, sent.query) == ("/v1beta/interactions", b"")
    assert sent.header("x-goog-api-key") == KEY["authorization"].removeprefix("Bearer ")
    assert sent.header("authorization") is None
    assert sent.header("api-revision") == "2026-05-20"
    assert (sent.json["store"], sent.json.get("stream", False)) == (False, stream)
    assert "previous_interaction_id" not in sent.json


def rounds(*, stream: bool) -> list[tuple[list[Json], Answer]]:
    """Return the steps of three rounds of calls, each with its answer."""
    made = [
        [
            interactions.thought(f"Round {number}.", f"Ev8B{number}"),
            interactions.output(f"Looking, {number}."),
            interactions.function_call(f"fc_{number}a7Kq9ZtR4mP2s", where="é"),
            interactions.thought("", f"Ev8C{number}"),
            interactions.function_call(f"fc_{number}b7Kq9ZtR4mP2s", depth=1.0),
        ]
        for number in range(3)
    ]
    return [(steps, play(steps, stream=stream)) for steps in made]


def unsigned(steps: list[Json]) -> list[Json]:
    return [step for step in steps if step["type"] != "thought"]


@BOTH
@EACH
@pytest.mark.parametrize("keeps", KEEPS)
async def test_each_round_of_steps_comes_back_as_the_model_took_them(
    client: str, keeps: str, *, stream: bool
) -> None:
    played = rounds(stream=stream)
    stage = InteractionsStage(client, *(answer for _, answer in played), stream=stream)
    await loop(stage, keeps, 3)
    assert stage.returned() == [steps for steps, _ in played[:2]]
    outputs = [s for s in stage.played.requests[-1].json["input"] if s["type"] == "function_result"]
    assert [(each["call_id"], each["name"]) for each in outputs[:2]] == [
        ("fc_0a7Kq9ZtR4mP2s", "look"),
        ("fc_0b7Kq9ZtR4mP2s", "look"),
    ]


@BOTH
@pytest.mark.parametrize("keeps_thinking", [True, False])
async def test_a_client_of_messages_brings_the_steps_back(
    *, keeps_thinking: bool, stream: bool
) -> None:
    played = rounds(stream=stream)
    stage = InteractionsStage("messages", *(answer for _, answer in played), stream=stream)
    await clients_of_messages.loop(
        stage, lambda block: keeps_thinking or "thinking" not in block["type"]
    )
    assert stage.returned() == [steps for steps, _ in played[:2]]


@BOTH
@ANY
async def test_without_a_store_the_client_brings_the_thoughts_back(
    client: str, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    """Each request goes to another replica, which has the keys alone."""
    monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
    played = rounds(stream=stream)
    history = {"store": "none", "seal_keys_env": "KEYS"}
    envelope = {"envelope": "reasoning_details"}
    answers = [answer for _, answer in played]
    stage = InteractionsStage(client, *answers, stream=stream, history=history, chat=envelope)
    if client == "messages":
        await clients_of_messages.loop(stage, lambda _: True)
    else:
        await loop(stage, "everything", 3, include=["reasoning.encrypted_content"])
    assert stage.returned() == [steps for steps, _ in played[:2]]


@EACH
async def test_lost_thoughts_are_replaced_by_googles_placeholder(client: str) -> None:
    played = rounds(stream=False)
    answers = [answer for _, answer in played]
    stage = InteractionsStage(client, *answers, stream=False, history={"store": "none"})
    await loop(stage, "standard fields", 2)
    text, *calls = unsigned(played[0][0])
    assert stage.returned() == [[text, UNSIGNED, *calls]]


@EACH
async def test_thoughts_that_are_refused_are_left_out_once(client: str) -> None:
    played = rounds(stream=False)
    refusal = {"error": {"code": "invalid_request", "message": "Invalid thought signature."}}
    answers = played[0][1], Answer.json(refusal, status=400), played[1][1]
    stage = InteractionsStage(client, *answers, stream=False)
    await loop(stage, "standard fields", 2)
    assert len(stage.played.requests) == 3
    text, *calls = unsigned(played[0][0])
    assert stage.returned() == [[text, UNSIGNED, *calls]]


@EACH
@pytest.mark.parametrize(("keep", "earlier"), [("none", False), ("all", True)])
async def test_what_is_kept_of_earlier_interactions(
    client: str, keep: str, *, earlier: bool
) -> None:
    """The calls of the current turn keep their thoughts, whatever is kept."""
    played = rounds(stream=False)
    answers = [answer for _, answer in played]
    stage = InteractionsStage(client, *answers, stream=False, history={"keep": keep})
    history = await loop(stage, "standard fields", 1)
    history.append({"role": "user", "content": "And elsewhere?"})
    history += await loop(stage, "standard fields", 1, history)
    await loop(stage, "standard fields", 1, history)
    before, current = stage.returned()
    assert before == (played[0][0] if earlier else unsigned(played[0][0]))
    assert current == played[1][0]


@BOTH
async def test_a_response_that_was_an_interaction_is_continued_by_its_id(*, stream: bool) -> None:
    played = rounds(stream=stream)
    answers = [answer for _, answer in played]
    stage = InteractionsStage("responses", *answers, stream=stream)
    tools = TOOLS["responses"]
    first = read_answer("responses", await stage.ask(tools=tools), stream=stream)
    outputs = results(first.body["output"])
    await stage.ask(tools=tools, input=outputs, previous_response_id=first.body["id"])
    assert stage.returned() == [played[0][0]]


@EACH
async def test_a_renamed_model_of_interactions(client: str) -> None:
    steps = [interactions.thought(THOUGHTS), interactions.output(WORDS)]
    rename = {"rename": {"fast": MODEL}}
    stage = InteractionsStage(client, play(steps, stream=False), stream=False, entry=rename)
    reply = await stage.ask(model="fast")
    assert stage.played.requests[0].json["model"] == MODEL
    assert reply.json["model"] == "fast"
    assert total(stage.registry, "summaries_total", outcome="native") == 1


@EACH
async def test_a_limit_of_effort_for_interactions(client: str) -> None:
    answer = play([interactions.output(WORDS)], stream=False)
    stage = InteractionsStage(client, answer, stream=False, entry={"effort_max": "low"})
    await stage.ask(reasoning={"summary": "auto", "effort": "high"})
    config = stage.played.requests[0].json["generation_config"]
    assert config == {"thinking_level": "low", "thinking_summaries": "auto"}


@BOTH
@EACH
@pytest.mark.parametrize(("profile", "shown"), [("gemini-native", THOUGHTS), ("auto", OURS)])
async def test_where_raw_is_hidden_interactions_show_a_summary_that_is_vouched_for(
    client: str, profile: str, shown: str, *, stream: bool
) -> None:
    played = play([interactions.thought(THOUGHTS), interactions.output(WORDS)], stream=stream)
    hiding = {"expose": "summary"}
    entry = {"profile": profile}
    stage = InteractionsStage(client, played, stream=stream, reasoning=hiding, entry=entry)
    received = read_answer(client, await stage.ask(), stream=stream)
    assert (received.text, received.summary, received.raw) == (WORDS, shown, "")


ERROR = {"error": {"code": "rate_limit_exceeded", "message": "Quota exceeded."}}


@BOTH
@EACH
async def test_an_error_of_interactions_comes_in_the_clients_shape(
    client: str, *, stream: bool
) -> None:
    stage = InteractionsStage(client, Answer.json(ERROR, status=429), stream=stream)
    reply = await stage.ask()
    assert reply.status == 429
    assert reply.json["error"]["message"] == "Quota exceeded."
    assert reply.json["error"]["code"] == "rate_limit_exceeded"


@EACH
async def test_an_error_event_ends_the_answer_failed(client: str) -> None:
    told = interactions.events([interactions.output("One")])[:-1]
    frames = interactions.frames([*told, interactions.event("error", **ERROR)])
    reply = await InteractionsStage(client, Answer(frames), stream=True).ask()
    assert reply.status == 200
    assert b"Quota exceeded." in reply.data
    assert b'"response.completed"' not in reply.data
    assert b"[DONE]" not in reply.data


@EACH
async def test_a_failed_interaction_is_an_error(client: str) -> None:
    reply = await InteractionsStage(
        client, play([], stream=False, status="failed"), stream=False
    ).ask()
    assert reply.status == 502
    assert "failed" in json.dumps(reply.json)


@BOTH
@EACH
@EXPOSED
async def test_images_of_interactions_reach_clients_in_their_apis_form(
    client: str, expose: str, *, stream: bool
) -> None:
    steps = [interactions.thought("Hm."), interactions.output(WORDS, IMAGE, IMAGE)]
    hiding = {"expose": expose}
    stage = InteractionsStage(client, play(steps, stream=stream), stream=stream, reasoning=hiding)
    reply = await stage.ask()
    assert images_of(client, reply, stream=stream) == [f"data:image/png;base64,{PNG}"] * 2
    assert read_answer(client, reply, stream=stream).text == WORDS


@EACH
async def test_an_image_of_interactions_comes_back_as_the_model_sent_it(client: str) -> None:
    """It does so too where the client does not return it, as those of Chat Completions do not."""
    steps = [interactions.thought("Hm."), interactions.output(WORDS, IMAGE)]
    answers = play(steps, stream=False), play([interactions.output(WORDS)], stream=False)
    stage = InteractionsStage(client, *answers, stream=False)
    reply = await stage.ask()
    said = client_items(client, reply, stream=False)
    field = "messages" if client == "chat" else "input"
    question = {"role": "user", "content": "Hi"}
    asked: Json = {field: [question, *said, question]}
    await stage.ask(**asked)
    assert stage.returned() == [steps]
