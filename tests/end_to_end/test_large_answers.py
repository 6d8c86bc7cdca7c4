"""Large answers keep their summary: only patience ends the wait for it, never size."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from tests.apis.messages import scripts
from tests.end_to_end.translation.turn import ALL_UPSTREAMS, PATHS
from tests.end_to_end.translation.turn import answer as turn
from tests.support.asgi import Call, begin
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.messages_checker import check_message, check_messages
from tests.support.streams import (
    chat_stream,
    chunk,
    message_item,
    reasoning_item,
    responses_stream,
    thinking,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

MIB = 1 << 20
LONG = "It is so. " * (MIB // 10)
THOUGHT = thinking(100_000)
STATE = "c3RhdGU=" * 40_000
"""Opaque state of some 300 KB, or an image."""
SUMMARY = "**Adding up**\n\nI add the numbers."
PATIENT = {"grace": 60, "first_token": 60}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
    "messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
}

all_pairs = pytest.mark.parametrize(
    ("client", "api"), [(client, api) for client in BODIES for api in ALL_UPSTREAMS]
)
on_any_failure = pytest.mark.parametrize("on_failure", ["omit", "fail"])
in_either_way = pytest.mark.parametrize(
    "on_failure", ["omit", pytest.param("fail", marks=pytest.mark.repeat)]
)


async def ask(
    client: str, answer: Answer, writer: Scripted, api: str = "auto", **tables: Any
) -> Call:
    """Ask; where the writer has a gate, open it once upstream can send no more."""
    upstream = Upstream(answer)
    app = build_app(
        "sidecar",
        upstream,
        writer=writer,
        upstreams=[{"base_url": f"{ORIGIN}/v1", "api": client if api == "auto" else api}],
        summary={**PATIENT, **tables.pop("summary", {})},
        **tables,
    )
    stream = answer.headers["content-type"] == "text/event-stream"
    asking = {"model": "m", "stream": stream, "reasoning": {"summary": "auto"}}
    request = begin(app, PATHS[client], {**asking, **BODIES[client]})
    if writer.gate is not None:
        await upstream.until_stalled()
        writer.gate.set()
    return await request.finish()


class Seen(NamedTuple):
    """What a client gets where both reasoning and summary are shown."""

    text: str
    raw: str
    summary: str


def read_whole(client: str, answer: dict[str, Any]) -> Seen:
    match client:
        case "chat":
            message = answer["choices"][0]["message"]
            return Seen(message["content"], message["reasoning"], message["reasoning_content"])
        case "responses":
            item, message = answer["output"]
            summary = "\n\n".join(part["text"] for part in item["summary"])
            return Seen(message["content"][0]["text"], item["content"][0]["text"], summary)
    raw, summary, text = check_message(answer)["content"]
    return Seen(text["text"], raw["thinking"], summary["thinking"])


def read_stream(client: str, data: bytes) -> Seen:
    match client:
        case "chat":
            choice = check_chat(data).choices[0]
            fields = choice.fields
            return Seen(choice.text, fields["reasoning"], fields["reasoning_content"])
        case "responses":
            seen = check_responses(data)
            return Seen(seen.text, seen.raw, "\n\n".join(seen.summary))
    message = check_messages(data)
    return Seen(message.text, *message.thinking)


@pytest.mark.matrix(2)
@on_any_failure
@all_pairs
async def test_a_whole_answer_keeps_its_summary(client: str, api: str, on_failure: str) -> None:
    writer = Scripted()
    answer = await ask(
        client,
        turn(api, stream=False, thought=THOUGHT, text=LONG),
        writer,
        api,
        reasoning={"expose": "both"},
        summary={"on_failure": on_failure},
    )
    assert answer.status == 200
    assert answer.headers["x-abridge-summary"] == "model"
    summary = "\n\n".join([SUMMARY] * len(writer.requests))
    assert len(writer.requests) > 10
    assert read_whole(client, answer.json) == Seen(LONG, THOUGHT, summary)


@pytest.mark.matrix(1)
@on_any_failure
@all_pairs
async def test_a_stream_of_which_more_waits_than_is_held_keeps_every_part(
    client: str, api: str, on_failure: str
) -> None:
    text, thought = "It is so. " * 2_500, thinking(10_000)
    writer = Scripted(gate=asyncio.Event())
    answer = await ask(
        client,
        turn(api, stream=True, thought=thought, text=text),
        writer,
        api,
        reasoning={"expose": "both"},
        summary={"on_failure": on_failure},
        limits={"held": 10_000},
    )
    summary = "\n\n".join([SUMMARY] * len(writer.requests))
    assert len(writer.requests) > 5
    assert read_stream(client, answer.data) == Seen(text, thought, summary)


@in_either_way
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


@in_either_way
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


@in_either_way
async def test_a_messages_stream_with_large_blocks_keeps_every_part(on_failure: str) -> None:
    call, result = scripts.search()
    page = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": STATE}
    content = [
        scripts.thinking(THOUGHT, STATE),
        scripts.redacted(STATE),
        call,
        {**result, "content": [page]},
        scripts.text("Hello."),
    ]
    writer = Scripted(gate=asyncio.Event())
    answer = await ask(
        "messages", Answer(scripts.stream(content)), writer, summary={"on_failure": on_failure}
    )
    thought, *others = check_messages(answer.data).blocks
    assert thought["thinking"] == "\n\n".join([SUMMARY] * len(writer.requests))
    assert len(writer.requests) > 10
    assert others == content[1:]
