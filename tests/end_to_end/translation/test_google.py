"""What holds for each of Google's APIs as an upstream, for clients of each API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.end_to_end.translation.google import (
    ANY,
    BOTH,
    EACH,
    ERROR,
    ERROR_OF_INTERACTIONS,
    FIRST,
    GEMINI,
    INTERACTIONS,
    MODEL,
    OURS,
    PNG,
    Google,
    Stage,
)
from tests.end_to_end.translation.images import images_of
from tests.end_to_end.translation.test_translation import TOOLS
from tests.end_to_end.translation.tool_loops import KEEPS, client_items, results, returned_items
from tests.end_to_end.translation.turn import WORDS, read_answer
from tests.support.asgi import call
from tests.support.counters import total
from tests.support.messages_checker import check_message, check_messages
from tests.support.upstream import Answer

Json = dict[str, Any]
THOUGHTS = "**Adding up**\n\nI add the odd numbers."
EITHER = pytest.mark.parametrize("google", [GEMINI, INTERACTIONS], ids=repr)


def answer(google: Google, *, stream: bool, images: int = 0) -> Answer:
    return google.play([google.thought(THOUGHTS), *google.spoken(WORDS, images)], stream=stream)


@BOTH
@ANY
@EITHER
async def test_an_answer_with_its_thoughts_as_the_summary(
    google: Google, client: str, *, stream: bool
) -> None:
    stage = Stage(google, client, answer(google, stream=stream), stream=stream)
    received = read_answer(client, await stage.ask(), stream=stream)
    assert (received.text, received.summary, received.raw) == (WORDS, THOUGHTS, "")
    assert total(stage.registry, "summaries_total", outcome="native") == 1
    assert received.usage is not None
    assert received.usage.get("total_tokens", 93) == 93  # Messages has none


async def loop(
    stage: Stage, keeps: str, times: int, before: list[Json] | None = None, **more: Any
) -> list[Json]:
    """Run a client through rounds and return its history, or what is new since `before`."""
    history = [*before] if before else [{"role": "user", "content": "Where is it?"}]
    field = "messages" if stage.client == "chat" else "input"
    for _ in range(times):
        asked = {**(more if stage.client == "responses" else {}), field: history}
        reply = await stage.ask(tools=TOOLS[stage.client], **asked)
        assert reply.status == 200, reply.data
        items = client_items(stage.client, reply, stream=stage.stream)
        items = returned_items(items, keeps)
        history += [*items, *results(items)]
    return history[len(before or ()) :]


async def loop_of_messages(stage: Stage, kept: Callable[[Json], bool]) -> None:
    """Run a client of Messages, such as Claude Code, that returns the blocks that it keeps."""
    messages: list[Json] = [{"role": "user", "content": "Where is it?"}]
    key = {"x-api-key": "sk-anna-1234", "anthropic-version": "2023-06-01"}
    for _ in range(3):
        body = {
            "model": MODEL,
            "max_tokens": 4096,
            "messages": messages,
            "stream": stage.stream,
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        }
        reply = await call(stage.app, "/v1/messages", body, key, query_string=b"beta=true")
        assert reply.status == 200, reply.data
        whole = check_messages(reply.data).message if stage.stream else check_message(reply.json)
        content = list(filter(kept, whole["content"]))
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        outputs = [
            {"type": "tool_result", "tool_use_id": each, "content": "None."} for each in calls
        ]
        messages += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": outputs},
        ]


@BOTH
@EACH
@EITHER
@pytest.mark.parametrize("keeps", KEEPS)
async def test_each_round_of_calls_comes_back_as_the_model_wrote_it(
    google: Google, client: str, keeps: str, *, stream: bool
) -> None:
    made, answers = google.rounds(stream=stream)
    stage = Stage(google, client, *answers, stream=stream)
    await loop(stage, keeps, 3)
    assert stage.returned() == made[:2]
    ids = [call["id"] for call in _calls(made[0])]
    assert google.results(stage.sent) == [(each, "look") for each in ids]


def _calls(parts: list[Json]) -> list[Json]:
    calls = [part.get("functionCall", part) for part in parts]
    return [call for call in calls if str(call.get("id", "")).startswith(FIRST[:3])]


@BOTH
@EITHER
@pytest.mark.parametrize("keeps_thinking", [True, False])
async def test_a_client_of_messages_brings_each_round_back(
    google: Google, *, keeps_thinking: bool, stream: bool
) -> None:
    made, answers = google.rounds(stream=stream)
    stage = Stage(google, "messages", *answers, stream=stream)
    await loop_of_messages(stage, lambda block: keeps_thinking or "thinking" not in block["type"])
    assert b"beta" not in stage.played.requests[0].query
    assert stage.returned() == made[:2]


@BOTH
@ANY
@EITHER
async def test_without_a_store_the_client_brings_the_signatures_back(
    google: Google, client: str, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    """Each request goes to another replica, which has the keys alone."""
    monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
    made, answers = google.rounds(stream=stream)
    history = {"store": "none", "seal_keys_env": "KEYS"}
    envelope = {"envelope": "reasoning_details"}
    stage = Stage(google, client, *answers, stream=stream, history=history, chat=envelope)
    if client == "messages":
        await loop_of_messages(stage, lambda _: True)
    else:
        await loop(stage, "everything", 3, include=["reasoning.encrypted_content"])
    assert stage.returned() == made[:2]


@EACH
@EITHER
async def test_a_lost_signature_is_replaced_by_googles_placeholder(
    google: Google, client: str
) -> None:
    made, answers = google.rounds(stream=False)
    stage = Stage(google, client, *answers, stream=False, history={"store": "none"})
    await loop(stage, "standard fields", 2)
    assert stage.returned() == [google.replaced(made[0])]


@EACH
@pytest.mark.parametrize(
    ("google", "error"),
    [
        (GEMINI, {"code": 400, "message": "Corrupted thought signature."}),
        (GEMINI, {"code": 400, "message": "Invalid thought signature."}),
        (INTERACTIONS, {"code": "invalid_request", "message": "Invalid thought signature."}),
    ],
)
async def test_a_signature_that_is_refused_is_left_out_once(
    google: Google, error: Json, client: str
) -> None:
    made, (first, second, _) = google.rounds(stream=False)
    refusal = Answer.json({"error": {"status": "INVALID_ARGUMENT", **error}}, status=400)
    stage = Stage(google, client, first, refusal, second, stream=False)
    await loop(stage, "standard fields", 2)
    assert len(stage.played.requests) == 3
    assert stage.returned() == [google.replaced(made[0])]


@EACH
@EITHER
@pytest.mark.parametrize(
    ("keep", "earlier"), [("none", False), ("tool_rounds", False), ("all", True)]
)
async def test_what_is_kept_of_earlier_turns(
    google: Google, client: str, keep: str, *, earlier: bool
) -> None:
    """The calls of the current turn keep their signatures, whatever is kept."""
    made, answers = google.rounds(stream=False)
    stage = Stage(google, client, *answers, stream=False, history={"keep": keep})
    history = await loop(stage, "standard fields", 1)
    history.append({"role": "user", "content": "And elsewhere?"})
    history += await loop(stage, "standard fields", 1, history)
    await loop(stage, "standard fields", 1, history)
    assert stage.returned() == [made[0] if earlier else google.unsigned(made[0]), made[1]]


@BOTH
@EITHER
async def test_a_response_is_continued_by_its_id(google: Google, *, stream: bool) -> None:
    made, answers = google.rounds(stream=stream)
    stage = Stage(google, "responses", *answers, stream=stream)
    tools = TOOLS["responses"]
    first = read_answer("responses", await stage.ask(tools=tools), stream=stream)
    outputs = results(first.body["output"])
    await stage.ask(tools=tools, input=outputs, previous_response_id=first.body["id"])
    assert stage.returned() == [made[0]]


@EACH
@EITHER
async def test_a_renamed_model(google: Google, client: str) -> None:
    renamed = {"rename": {"fast": MODEL}}
    stage = Stage(google, client, answer(google, stream=False), stream=False, entry=renamed)
    reply = await stage.ask(model="fast")
    (sent,) = stage.played.requests
    if google is INTERACTIONS:
        assert sent.json["model"] == MODEL
    else:
        assert sent.path == f"/v1beta/models/{MODEL}:generateContent"
    assert reply.json["model"] == "fast"
    assert total(stage.registry, "summaries_total", outcome="native") == 1


@EACH
@pytest.mark.parametrize(
    ("google", "model", "limit", "expected"),
    [
        (GEMINI, MODEL, {"effort_max": "low"}, {"includeThoughts": True, "thinkingLevel": "low"}),
        (
            *(GEMINI, "gemini-2.5-flash", {"budget_max": 2000}),
            {"includeThoughts": True, "thinkingBudget": 2000},
        ),
        (
            *(INTERACTIONS, MODEL, {"effort_max": "low"}),
            {"thinking_level": "low", "thinking_summaries": "auto"},
        ),
    ],
)
async def test_a_limit_of_effort(
    google: Google, client: str, model: str, limit: Json, expected: Json
) -> None:
    stage = Stage(google, client, answer(google, stream=False), stream=False, entry=limit)
    await stage.ask(model=model, reasoning={"summary": "auto", "effort": "high"})
    assert google.thinks(stage.sent) == expected


@BOTH
@EACH
@EITHER
@pytest.mark.parametrize(("profile", "shown"), [("gemini-native", THOUGHTS), ("auto", OURS)])
async def test_where_raw_is_hidden_thoughts_are_a_summary_if_the_profile_vouches_for_them(
    google: Google, client: str, profile: str, shown: str, *, stream: bool
) -> None:
    entry, hiding = {"profile": profile}, {"expose": "summary"}
    played = answer(google, stream=stream)
    stage = Stage(google, client, played, stream=stream, reasoning=hiding, entry=entry)
    received = read_answer(client, await stage.ask(), stream=stream)
    assert (received.text, received.summary, received.raw) == (WORDS, shown, "")


@BOTH
@EACH
@pytest.mark.parametrize(
    ("google", "body"),
    [(GEMINI, ERROR), (GEMINI, [ERROR]), (INTERACTIONS, ERROR_OF_INTERACTIONS)],
)
async def test_an_error_comes_in_the_clients_shape(
    google: Google, body: Any, client: str, *, stream: bool
) -> None:
    reply = await Stage(google, client, Answer.json(body, status=429), stream=stream).ask()
    assert reply.status == 429
    assert reply.json["error"]["message"] == "Quota exceeded."
    assert reply.json["error"]["code"] == "rate_limit_exceeded"


@EACH
@EITHER
async def test_an_error_within_a_stream_ends_the_answer_failed(google: Google, client: str) -> None:
    reply = await Stage(google, client, Answer(google.broken), stream=True).ask()
    assert reply.status == 200
    assert b"Quota exceeded." in reply.data
    assert b'"response.completed"' not in reply.data
    assert b"[DONE]" not in reply.data


@EACH
@pytest.mark.parametrize(
    ("google", "end"), [(GEMINI, "MALFORMED_FUNCTION_CALL"), (INTERACTIONS, "failed")]
)
async def test_an_answer_that_failed_is_an_error(google: Google, end: str, client: str) -> None:
    reply = await Stage(google, client, google.play([], end, stream=False), stream=False).ask()
    assert reply.status == 502
    assert end in json.dumps(reply.json)


@BOTH
@EACH
@EITHER
@pytest.mark.parametrize("expose", ["both", "summary", "none"])
async def test_images_reach_clients_in_their_apis_form(
    google: Google, client: str, expose: str, *, stream: bool
) -> None:
    played = answer(google, stream=stream, images=2)
    stage = Stage(google, client, played, stream=stream, reasoning={"expose": expose})
    reply = await stage.ask()
    assert images_of(client, reply, stream=stream) == [f"data:image/png;base64,{PNG}"] * 2
    assert read_answer(client, reply, stream=stream).text == WORDS


@EACH
@EITHER
async def test_an_image_comes_back_as_the_model_sent_it(google: Google, client: str) -> None:
    """It does so too where the client does not return it, as many of Chat Completions do not."""
    parts = [google.thought("Hm."), *google.spoken(WORDS, 1)]
    answers = google.play(parts, stream=False), answer(google, stream=False)
    stage = Stage(google, client, *answers, stream=False)
    assert await ask_again(stage) == [parts]


@EACH
@EITHER
async def test_an_image_that_a_client_returns_needs_no_memory(google: Google, client: str) -> None:
    answers = answer(google, stream=False, images=1), answer(google, stream=False)
    stage = Stage(google, client, *answers, stream=False, history={"store": "none"})
    assert json.dumps(await ask_again(stage)).count(PNG) == 1


async def ask_again(stage: Stage) -> list[list[Json]]:
    """Ask twice, the client returning the first answer; return the model's own parts in that."""
    said = client_items(stage.client, await stage.ask(), stream=False)
    field = "messages" if stage.client == "chat" else "input"
    question = {"role": "user", "content": "Hi"}
    asked: Json = {field: [question, *said, question]}
    await stage.ask(**asked)
    return stage.returned()
