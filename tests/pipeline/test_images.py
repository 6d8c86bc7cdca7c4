"""Answers with images where raw reasoning is hidden: what stays of them, and what does not pass."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.apis.sse import frame_data
from tests.support.asgi import Call, call
from tests.support.deployments import FORMS, PREFIX, Form, build_app
from tests.support.streams import split_frames
from tests.support.upstream import Answer, Upstream

SECRET = "I should draw the fox to the left, since"
PIXELS = base64.b64encode(bytes(range(256))).decode()
PATHS = ("/v1/images/generations", "/v1/images/edits", "/v1/images/variations")
USAGE = {"total_tokens": 9, "input_tokens": 5, "input_tokens_details": {"text_tokens": 5}}
MADE_WITH = {"background": "opaque", "output_format": "png", "quality": "high", "size": "8x8"}
IMAGES = {
    **MADE_WITH,
    "created": 1_700_000_000,
    "data": [
        {"b64_json": PIXELS, "revised_prompt": "A fox, im Schnee, 雪"},
        {"url": "https://images.test/fox.png?sig=a%2Fb"},
    ],
    "usage": USAGE,
}
EVENTS = [
    {
        **MADE_WITH,
        "type": "image_generation.partial_image",
        "b64_json": PIXELS,
        "created_at": 1_700_000_000,
        "partial_image_index": 0,
    },
    {**MADE_WITH, "type": "image_edit.completed", "b64_json": PIXELS, "usage": USAGE},
]
STREAM = {"content-type": "text/event-stream"}
HIDING = {"expose": "none"}


async def draw(
    answer: Answer,
    path: str = PATHS[0],
    form: Form = "mounted",
    registry: CollectorRegistry | None = None,
    **tables: Any,
) -> Call:
    app = build_app(form, Upstream(answer), registry=registry, **{"reasoning": HIDING, **tables})
    return await call(app, PREFIX[form] + path, {"model": "m", "prompt": "A fox"})


def stream(*events: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", PATHS)
async def test_what_is_understood_of_a_body_stays(path: str, form: Form) -> None:
    received = await draw(Answer.json(IMAGES), path, form)
    assert received.json == IMAGES


async def test_what_a_model_thought_beside_its_images_does_not_pass() -> None:
    said = [{**image, "cot_output": SECRET} for image in IMAGES["data"]]  # type: ignore[attr-defined]
    body = {**IMAGES, "data": said, "cot_output": SECRET, "size": SECRET, "metrics": {"a": SECRET}}
    registry = CollectorRegistry()
    received = await draw(Answer.json(body), registry=registry)
    assert received.json == {key: IMAGES[key] for key in IMAGES if key != "size"}
    assert registry.get_sample_value("abridge_dropped_fields_total", {"api": "images"}) == 5


@pytest.mark.parametrize("size", [7, 10_000])
async def test_partial_images_stay_and_nothing_else_of_a_stream(size: int) -> None:
    told = [{**event, "cot_output": SECRET} for event in EVENTS]
    sent = b": " + SECRET.encode() + b"\n\n" + stream(*told, {"type": "musing", "text": SECRET})
    sent += b"data: " + SECRET.encode() + b"\n\ndata: [DONE]\n\n"
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    received = await draw(Answer(pieces, headers=STREAM))
    assert SECRET.encode() not in received.data
    assert received.data.endswith(b"data: [DONE]\n\n")
    frames = split_frames(received.data.removesuffix(b"data: [DONE]\n\n"))
    payloads = [payload for payload in map(frame_data, frames) if payload is not None]
    assert [json.loads(payload) for payload in payloads] == EVENTS


async def test_errors_keep_what_identifies_them() -> None:
    error = {"message": f"The prompt is too long: {SECRET}", "code": "moderation_blocked"}
    refused = await draw(Answer.json({"error": error}, 400))
    assert refused.json["error"]["code"] == "moderation_blocked"
    assert refused.json["error"]["message"] == error["message"]  # it came before any answer
    failed = await draw(Answer.json({"error": error, "cot_output": SECRET}, 500))
    within = await draw(Answer.json({"error": error}))
    streamed = await draw(Answer([stream({"error": error})], headers=STREAM))
    for received in (failed, within, streamed):
        assert b"moderation_blocked" in received.data
        assert SECRET.encode() not in received.data


@pytest.mark.parametrize(
    "answer",
    [
        Answer([SECRET.encode()], headers={"content-type": "text/plain"}),
        Answer([SECRET.encode()], headers={"content-type": "application/json"}),
        Answer([json.dumps([SECRET]).encode()], headers={"content-type": "application/json"}),
        Answer([SECRET.encode()], 302, {"location": SECRET}),
    ],
)
async def test_a_body_that_cannot_be_read_is_an_error(answer: Answer) -> None:
    received = await draw(answer)
    assert received.status == 502
    assert SECRET.encode() not in received.data


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_body_that_is_too_long_is_an_error(*, is_streamed: bool) -> None:
    long = {**IMAGES, "data": [{"b64_json": PIXELS * 400}]}
    answer = Answer([stream(long)], headers=STREAM) if is_streamed else Answer.json(long)
    received = await draw(answer, limits={"body": 4096})
    assert PIXELS.encode() not in received.data
    assert b"upstream_error" in received.data


@pytest.mark.parametrize(
    "reasoning", [{"expose": "auto"}, {**HIDING, "open_paths": ["/v1/images/*"]}]
)
async def test_bodies_pass_unread_where_nothing_is_hidden_or_their_path_is_opened(
    reasoning: dict[str, Any],
) -> None:
    body = {**IMAGES, "cot_output": SECRET}
    assert (await draw(Answer.json(body), reasoning=reasoning)).json == body
