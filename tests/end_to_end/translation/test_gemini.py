"""Gemini's own API as an upstream, beside what holds for both of Google's APIs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apis.gemini import scripts as gemini
from tests.end_to_end.translation.google import ANY, BOTH, EACH, GEMINI, IMAGE, MODEL, PNG, Stage
from tests.end_to_end.translation.images import images_of
from tests.end_to_end.translation.test_translation import KEY
from tests.end_to_end.translation.turn import PATHS, WORDS, read_answer

Json = dict[str, Any]


@BOTH
@ANY
async def test_the_model_is_in_the_path_and_the_key_in_its_header(
    client: str, *, stream: bool
) -> None:
    stage = Stage(GEMINI, client, GEMINI.play([gemini.text(WORDS)], stream=stream), stream=stream)
    await stage.ask()
    (sent,) = stage.played.requests
    method, query = (
        ("streamGenerateContent", b"alt=sse") if stream else ("generateContent", b"alt=json")
    )
    assert (sent.path, sent.query) == (f"/v1beta/models/{MODEL}:{method}", query)
    assert sent.header("x-goog-api-key") == KEY["authorization"].removeprefix("Bearer ")
    assert sent.header("authorization") is None
    assert sent.json["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert not {"model", "stream"} & sent.json.keys()


@pytest.mark.parametrize(
    ("model", "raw_path"),
    [
        ("models/gemini-3-flash", b"/v1beta/models/gemini-3-flash:generateContent"),
        ("../../../v1/files", b"/v1beta/models/files:generateContent"),
        ("..", b"/v1beta/models/..:generateContent"),
        ("a?alt=json&b#c", b"/v1beta/models/a%3Falt=json&b%23c:generateContent"),
        ("a%2F..%2Fb", b"/v1beta/models/a%252F..%252Fb:generateContent"),
        ("gemini\r\nx: y", b"/v1beta/models/gemini%0D%0Ax:%20y:generateContent"),
    ],
)
async def test_no_models_name_leads_out_of_its_place_in_the_path(
    model: str, raw_path: bytes
) -> None:
    stage = Stage(GEMINI, "chat", GEMINI.play([gemini.text(WORDS)], stream=False), stream=False)
    reply = await stage.ask(model=model)
    assert reply.status == 200
    assert stage.played.requests[0].raw_path.partition(b"?")[0] == raw_path


@EACH
async def test_a_request_without_a_model_is_refused(client: str) -> None:
    stage = Stage(GEMINI, client, GEMINI.play([gemini.text(WORDS)], stream=False), stream=False)
    reply = await stage.ask(model="")
    assert reply.status == 400
    assert reply.json["error"]["param"] == "model"
    assert stage.played.requests == []


@BOTH
@EACH
async def test_hidden_thoughts_stay_hidden_where_nothing_is_asked_for(
    client: str, *, stream: bool
) -> None:
    parts = [gemini.thought("A secret."), gemini.text(f"<think>A secret.</think>{WORDS}")]
    stage = Stage(
        GEMINI,
        client,
        GEMINI.play(parts, stream=stream),
        stream=stream,
        reasoning={"expose": "none"},
    )
    reply = await stage.ask()
    assert read_answer(client, reply, stream=stream).text == WORDS
    assert b"secret" not in reply.data


@BOTH
@EACH
async def test_an_answer_may_be_an_image_alone(client: str, *, stream: bool) -> None:
    stage = Stage(GEMINI, client, GEMINI.play([IMAGE], stream=stream), stream=stream)
    reply = await stage.ask()
    assert images_of(client, reply, stream=stream) == [f"data:image/png;base64,{PNG}"]


@BOTH
@pytest.mark.parametrize(
    ("client", "part", "words"),
    [
        ("messages", IMAGE, "an image"),
        *((each, gemini.inline_data("audio/L16", "AAEC"), "audio") for each in PATHS),
    ],
)
async def test_an_answer_with_what_the_clients_api_cannot_carry_fails(
    client: str, part: Json, words: str, *, stream: bool
) -> None:
    stage = Stage(
        GEMINI, client, GEMINI.play([gemini.text(WORDS), part], stream=stream), stream=stream
    )
    reply = await stage.ask()
    assert f"The answer contains {words}, which this API cannot represent.".encode() in reply.data
    assert reply.status == (200 if stream else 502)


async def test_an_image_that_is_nowhere_kept_comes_back_from_the_client() -> None:
    stage = Stage(
        GEMINI, "responses", GEMINI.play([gemini.text(WORDS)], stream=False), stream=False
    )
    call = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}
    question = {"role": "user", "content": "Hi"}
    assert (await stage.ask(input=[question, call, question])).status == 200
    assert stage.returned() == [[gemini.inline_data("image/png", PNG)]]
