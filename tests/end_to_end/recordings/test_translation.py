"""Every recording, replayed to the clients of every other API, through the application."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.end_to_end.recordings.recordings import (
    Content,
    Recording,
    chunks_of,
    content_of,
    recordings,
)
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import Call, call
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.messages_checker import check_message, check_messages
from tests.support.openapi import event_faults, faults
from tests.support.shared import OPENAPI, needs_recordings
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

pytestmark = needs_recordings

RECORDED = recordings("chat", "responses", "messages")
BRIDGED = [
    pytest.param(recording, client, id=f"{client} <- {recording.name}")
    for recording in RECORDED
    for client in ("chat", "responses", "messages")
    if client != recording.api
]
EACH = pytest.mark.parametrize(("recording", "client"), BRIDGED)
SUMMARY = "**Adding up**\n\nI add the numbers."
ENDS = {
    "chat": (("stop", "length"), ("tool_calls",)),
    "responses": (("completed", "incomplete"), ("completed", "incomplete")),
    "messages": (("end_turn", "max_tokens"), ("tool_use",)),
}
"""The reasons to finish, without calls and with some."""
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


async def replay(
    recording: Recording, client: str, *, summary: str | None = None, expose: str = "both"
) -> Call:
    played = Answer([recording.data], headers={"content-type": recording.content_type})
    app = build_app(
        "sidecar",
        Upstream(played),
        writer=Scripted(SUMMARY),
        upstreams=[{"api": recording.api, "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
    )
    wish = {"thinking": {"type": "adaptive"}} if client == "messages" else {}
    body = request_body(client, stream=recording.streamed, summary=summary, **wish)
    return await call(app, PATHS[client], body, {"x-abridge-usage": "separate"})


def bodies(recording: Recording, data: bytes) -> list[dict[str, Any]]:
    return chunks_of(data) if recording.streamed else [json.loads(data)]


def usage_of(recording: Recording, data: bytes) -> dict[str, Any]:
    """Return the reported usage, later values replacing earlier ones."""
    merged: dict[str, Any] = {}
    for body in bodies(recording, data):
        for holder in (body, body.get("response") or {}, body.get("message") or {}):
            given = holder.get("usage") or {}
            merged |= {name: figure for name, figure in given.items() if figure is not None}
    return merged


def spent(usage: dict[str, Any]) -> tuple[int, int]:
    """Return total tokens and reasoning tokens."""
    total = usage.get("total_tokens")
    if total is None:
        names = ("input", "output", "cache_read_input", "cache_creation_input")
        total = sum(usage.get(f"{name}_tokens", 0) for name in names)
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return total, details.get("reasoning_tokens") or details.get("thinking_tokens") or 0


def failed(recording: Recording) -> bool:
    return any(
        body.get("error") or body.get("type") in ("error", "response.failed")
        for body in bodies(recording, recording.data)
    )


def check(recording: Recording, client: str, reply: Call) -> None:
    """Check order, OpenAI's description, and the official client's types."""
    described = OPENAPI.is_file()
    if not recording.streamed and client == "messages":
        check_message(reply.json)
    elif client == "messages":
        assert check_messages(reply.data).stopped != failed(recording)
    elif not recording.streamed and client == "chat":
        ChatCompletion.model_validate(reply.json)
        assert not described or not faults("CreateChatCompletionResponse", reply.json)
    elif not recording.streamed:
        Response.model_validate(reply.json)
        assert not described or not faults("Response", reply.json)
    elif client == "chat":
        seen = check_chat(reply.data)
        assert seen.done != failed(recording)
        for chunk in (chunk for chunk in seen.chunks if "error" not in chunk):
            ChatCompletionChunk.model_validate(chunk)
            assert not described or not faults("CreateChatCompletionStreamResponse", chunk)
    else:
        terminal = check_responses(reply.data).terminal
        assert terminal is not None
        assert (terminal["type"] == "response.failed") == failed(recording)
        for event in chunks_of(reply.data):
            EVENT.validate_python(event)
            assert not described or not event_faults(event)


def words(expected: Content) -> list[str]:
    return expected.text.split()


def calls(expected: Content) -> list[tuple[str, str, Any]]:
    return [(identity, name, json.loads(text or "{}")) for identity, name, text in expected.calls]


@EACH
async def test_text_calls_reasoning_and_usage_survive_translation(
    recording: Recording, client: str
) -> None:
    reply = await replay(recording, client)
    check(recording, client, reply)
    expected = content_of(recording, recording.data)
    shown = content_of(recording, reply.data, client)
    assert words(shown) == words(expected)
    assert calls(shown) == calls(expected)
    if expected.native:
        assert shown.raw or shown.native
    else:  # on Messages whoever asks for thinking asks for a summary
        assert shown.raw.replace(SUMMARY, "").split() == expected.raw.split()
    if not failed(recording):
        usage = usage_of(recording, recording.data)
        assert spent(usage_of(recording, reply.data)) == spent(usage)
        assert shown.finish in ENDS[client][bool(expected.calls)]


@pytest.mark.matrix(1)
@EACH
@pytest.mark.parametrize("expose", ["both", "summary", "none"])
async def test_only_a_summary_is_added(recording: Recording, client: str, expose: str) -> None:
    reply = await replay(recording, client, summary="auto", expose=expose)
    check(recording, client, reply)
    expected, shown = (
        content_of(recording, recording.data),
        content_of(recording, reply.data, client),
    )
    assert words(shown) == words(expected)
    assert calls(shown) == calls(expected)
    # Where raw reasoning is hidden, a native summary that nobody vouches for is summarized, too.
    is_native = expected.native and expose != "summary"
    due = bool(expected.raw.strip() or expected.native) and not is_native and expose != "none"
    assert (b"Adding up" in reply.data or b"I add the numbers" in reply.data) == due
    if expose == "both" or expected.native:
        return
    for line in expected.raw.splitlines():
        if len(line) > 40 and line not in expected.text:
            assert json.dumps(line)[1:-1].encode() not in reply.data
            assert line.encode() not in reply.data


def test_all_three_apis_were_recorded() -> None:
    assert {recording.api for recording in RECORDED} == {"chat", "responses", "messages"}
