"""Every recording, replayed to the clients of every API, through the application."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
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
from tests.support.matrix import each_in_turn
from tests.support.messages_checker import CHECKS, check_message, check_messages
from tests.support.openapi import event_faults, faults
from tests.support.shared import OPENAPI, needs_recordings
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

pytestmark = needs_recordings

RECORDED = recordings("chat", "responses", "messages")
EACH = pytest.mark.parametrize("recording", RECORDED, ids=lambda recording: recording.name)
BRIDGED = [
    pytest.param(recording, client, id=f"{client} <- {recording.name}")
    for number, recording in enumerate(RECORDED)
    for client in each_in_turn([api for api in PATHS if api != recording.api], number, 2)
]
"""Each with one of the other clients, which take turns; with `--matrix` with both."""
SUMMARY = "**Adding up**\n\nI add the numbers."
ENDS = {
    "chat": (("stop", "length"), ("tool_calls",)),
    "responses": (("completed", "incomplete"), ("completed", "incomplete")),
    "messages": (("end_turn", "max_tokens"), ("tool_use",)),
}
"""The reasons to finish, without calls and with some."""
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BODIES = {"chat": "CreateChatCompletionResponse", "responses": "Response"}
CHUNKS = "CreateChatCompletionStreamResponse"
CUTS = ["whole", "frames", "bytes", "random"]
SHOWN = {"chat": None, "responses": None, "messages": "auto"}
"""On Messages whoever asks for thinking asks for a summary."""


def cut(data: bytes, how: str) -> list[bytes]:
    """Split the bytes as they may arrive; long ones into 13 bytes rather than one."""
    if how == "whole":
        return [data]
    if how == "frames":
        return re.findall(rb".*?\n\n|.+", data, re.DOTALL)
    if how == "bytes":
        step = 1 if len(data) < 20_000 else 13
        return [data[start : start + step] for start in range(0, len(data), step)]
    places = sorted(random.Random(len(data)).sample(range(len(data)), min(50, len(data) - 1)))
    edges = [0, *places, len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


async def replay(
    recording: Recording,
    client: str,
    *,
    summary: str | None = None,
    expose: str = "both",
    how: str = "whole",
    writer: Scripted | None = None,
    **tables: Any,
) -> Call:
    played = cut(recording.data, how)
    app = build_app(
        "sidecar",
        Upstream(Answer(played, headers={"content-type": recording.content_type})),
        writer=writer or Scripted(SUMMARY),
        upstreams=[{"api": recording.api, "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
        summary={"tail_chars": 0},
        **tables,
    )
    wish = {"thinking": {"type": "adaptive"}} if client == "messages" and summary else {}
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
    """Check order, OpenAI's description, and the official client's types.

    What upstream itself writes in another form its own clients get so: then Abridge adds no fault.
    """
    described, streamed = OPENAPI.is_file(), recording.streamed
    if client == recording.api:
        if streamed:
            CHECKS[client](reply.data)
        assert not described or violations(recording, reply.data) <= violations(
            recording, recording.data
        )
    elif client == "messages":
        if not streamed:
            check_message(reply.json)
        else:
            assert check_messages(reply.data).stopped != failed(recording)
    elif not streamed:
        (ChatCompletion if client == "chat" else Response).model_validate(reply.json)
        assert not described or not faults(BODIES[client], reply.json)
    elif client == "chat":
        seen = check_chat(reply.data)
        assert seen.done != failed(recording)
        for chunk in (chunk for chunk in seen.chunks if "error" not in chunk):
            ChatCompletionChunk.model_validate(chunk)
            assert not described or not faults(CHUNKS, chunk)
    else:
        terminal = check_responses(reply.data).terminal
        assert terminal is not None
        assert (terminal["type"] == "response.failed") == failed(recording)
        for event in chunks_of(reply.data):
            EVENT.validate_python(event)
            assert not described or not event_faults(event)


def violations(recording: Recording, data: bytes) -> set[str]:
    """Return what of an answer is not as OpenAI describes it, where its API is OpenAI's."""
    if recording.api == "messages":
        return set()
    if not recording.streamed:
        return faults(BODIES[recording.api or ""], json.loads(data))
    if recording.api == "chat":
        return {fault for chunk in chunks_of(data) for fault in faults(CHUNKS, chunk)}
    return {fault for event in chunks_of(data) for fault in event_faults(event)}


def words(expected: Content) -> list[str]:
    return expected.text.split()


def calls(expected: Content) -> list[tuple[str, str, Any]]:
    return [(identity, name, json.loads(text or "{}")) for identity, name, text in expected.calls]


@pytest.mark.matrix(1)
@EACH
@pytest.mark.parametrize("how", CUTS)
async def test_summaries_off_the_bytes_are_identical(recording: Recording, how: str) -> None:
    answer = await replay(recording, str(recording.api), how=how)
    assert answer.data == recording.data


@EACH
async def test_what_the_summarizer_gets_is_the_reasoning(recording: Recording) -> None:
    writer = Scripted()
    await replay(recording, str(recording.api), how="random", summary="auto", writer=writer)
    expected = recording.content
    if not expected.native:
        given = "".join(passage.text for passage in writer.requests)
        assert given.split() == expected.raw.split()


@pytest.mark.parametrize(("recording", "client"), BRIDGED)
async def test_text_calls_reasoning_and_usage_survive_translation(
    recording: Recording, client: str
) -> None:
    reply = await replay(recording, client, summary=SHOWN[client])
    check(recording, client, reply)
    expected = recording.content
    shown = content_of(recording, reply.data, client)
    assert words(shown) == words(expected)
    assert calls(shown) == calls(expected)
    if expected.native:
        assert shown.raw or shown.native
    else:
        assert shown.raw.replace(SUMMARY, "").split() == expected.raw.split()
    if not failed(recording):
        usage = usage_of(recording, recording.data)
        assert spent(usage_of(recording, reply.data)) == spent(usage)
        assert shown.finish in ENDS[client][bool(expected.calls)]


@pytest.mark.matrix(1)
@EACH
@pytest.mark.parametrize("client", PATHS)
@pytest.mark.parametrize("expose", ["both", "summary", "none"])
async def test_only_a_summary_is_added(recording: Recording, client: str, expose: str) -> None:
    how = CUTS[len(recording.data) % len(CUTS)]
    reply = await replay(recording, client, summary="auto", expose=expose, how=how)
    check(recording, client, reply)
    expected = recording.content
    shown = content_of(recording, reply.data, client)
    assert words(shown) == words(expected)
    assert calls(shown) == calls(expected)
    if client == recording.api:
        assert (shown.text, shown.finish) == (expected.text, expected.finish)
    # Where raw reasoning is hidden, a native summary that nobody vouches for is summarized, too.
    is_native = expected.native and expose != "summary"
    due = bool(expected.raw.strip() or expected.native) and not is_native and expose != "none"
    assert (b"Adding up" in reply.data or b"I add the numbers" in reply.data) == due
    if expose == "both" or expected.native:
        return
    assert not shown.raw.replace(SUMMARY, "").strip()
    for line in expected.raw.splitlines():
        if len(line) > 40 and line not in expected.text:
            assert json.dumps(line)[1:-1].encode() not in reply.data
            assert line.encode() not in reply.data


def test_all_three_apis_were_recorded() -> None:
    assert {recording.api for recording in RECORDED} == {"chat", "responses", "messages"}
    assert len(RECORDED) > 50
