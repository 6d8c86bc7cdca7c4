"""Large answers keep their summary: only patience ends the wait for it, never size."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.end_to_end.translation.turn import PATHS
from tests.support.asgi import Call, begin
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import build_app
from tests.support.streams import (
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

MIB = 1 << 20
LONG = "It is so. " * (MIB // 10)
THOUGHT = thinking(200_000)
STATE = "c3RhdGU=" * 40_000
"""Opaque state of some 300 KB, or an image."""
SUMMARY = "**Adding up**\n\nI add the numbers."
PATIENT = {"grace": 60, "first_token": 60}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
}


async def ask(api: str, answer: Answer, writer: Scripted, **tables: Any) -> Call:
    """Ask; where the writer has a gate, open it once upstream can send no more."""
    upstream = Upstream(answer)
    app = build_app(
        "mounted",
        upstream,
        writer=writer,
        summary={**PATIENT, **tables.pop("summary", {})},
        **tables,
    )
    stream = answer.headers["content-type"] == "text/event-stream"
    asking = {"model": "m", "stream": stream, "reasoning": {"summary": "auto"}}
    request = begin(app, PATHS[api], {**asking, **BODIES[api]})
    if writer.gate is not None:
        await upstream.until_stalled()
        writer.gate.set()
    return await request.finish()


@pytest.mark.parametrize("on_failure", ["omit", "fail"])
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_whole_answer_keeps_its_summary(api: str, on_failure: str) -> None:
    body = {
        "chat": completion({"content": LONG, "reasoning_content": THOUGHT}),
        "responses": response([reasoning_item(0, THOUGHT), message_item(1, LONG)]),
    }[api]
    writer = Scripted()
    answer = await ask(
        api,
        Answer.json(body),
        writer,
        reasoning={"expose": "both"},
        summary={"on_failure": on_failure},
    )
    assert answer.status == 200
    assert answer.headers["x-abridge-summary"] == "model"
    summary = "\n\n".join([SUMMARY] * len(writer.requests))
    if api == "chat":
        message = answer.json["choices"][0]["message"]
        assert (message["content"], message["reasoning"]) == (LONG, THOUGHT)
        assert message["reasoning_content"] == summary
    else:
        item, message = answer.json["output"]
        assert message["content"][0]["text"] == LONG
        assert item["content"][0]["text"] == THOUGHT
        assert "\n\n".join(part["text"] for part in item["summary"]) == summary


@pytest.mark.parametrize("on_failure", ["omit", "fail"])
async def test_a_responses_stream_with_large_items_keeps_every_part(on_failure: str) -> None:
    image = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": STATE}
    output = [
        reasoning_item(0, THOUGHT, encrypted_content=STATE),
        image,
        message_item(2, "Hello."),
    ]
    writer = Scripted(gate=asyncio.Event())
    answer = await ask(
        "responses", Answer(responses_stream(output)), writer, summary={"on_failure": on_failure}
    )
    seen = check_responses(answer.data)
    assert seen.kinds[-1] == "response.completed"
    assert seen.summary == [SUMMARY] * len(writer.requests)
    assert len(writer.requests) > 10
    assert seen.raw == THOUGHT
    assert seen.text == "Hello."
    assert seen.response["output"][0]["encrypted_content"] == STATE
    assert seen.response["output"][1] == image


@pytest.mark.parametrize("on_failure", ["omit", "fail"])
async def test_a_chat_stream_with_large_chunks_keeps_every_part(on_failure: str) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{STATE}"}}
    head, *rest = chat_stream(THOUGHT, "Hello.")
    at = next(place for place, raw in enumerate(rest) if b'"content"' in raw)
    rest.insert(at + 1, chunk({"images": [image]}))
    writer = Scripted(gate=asyncio.Event())
    answer = await ask("chat", Answer([head, *rest]), writer, summary={"on_failure": on_failure})
    seen = check_chat(answer.data)
    assert seen.error is None
    assert seen.choices[0].text == "Hello."
    assert seen.choices[0].summary_error is None
    written = seen.choices[0].fields["reasoning_content"]
    assert written == "\n\n".join([SUMMARY] * len(writer.requests))
    assert answer.data.count(STATE.encode()) == 1
