"""Every recording of real provider traffic, replayed by a scripted upstream."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.end_to_end.recordings.recordings import Recording, chunks_of, content_of, recordings
from tests.support.asgi import Call, call
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import build_app
from tests.support.messages_checker import check_messages
from tests.support.openapi import event_faults, faults
from tests.support.shared import needs_openapi, needs_recordings
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

pytestmark = needs_recordings

RECORDED = recordings("chat", "responses", "messages")
SUMMARY = "**Adding up**\n\nI add the numbers."
CUTS = ["whole", "frames", "bytes", "random"]


@pytest.fixture(params=RECORDED, ids=lambda recording: recording.name)
def recording(request: pytest.FixtureRequest) -> Recording:
    return request.param  # type: ignore[no-any-return]


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
    recording: Recording, how: str, writer: Scripted, *, ask: bool = True, **settings: Any
) -> Call:
    answer = Answer(cut(recording.data, how), headers={"content-type": recording.content_type})
    app = build_app(
        "mounted", Upstream(answer), writer=writer, registry=CollectorRegistry(), **settings
    )
    body = {"model": "m", "input": "Hi", "messages": [{"role": "user", "content": "Hi"}]}
    reasoning = {"reasoning": {"summary": "auto"}} if ask else {}
    return await call(app, recording.endpoint, {**body, **reasoning, "stream": recording.streamed})


def checked(recording: Recording, data: bytes) -> Any:
    """Return a stream's contents, checked."""
    checks = {"chat": check_chat, "responses": check_responses, "messages": check_messages}
    return checks[str(recording.api)](data)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("how", CUTS)
async def test_summaries_off_the_bytes_are_identical(recording: Recording, how: str) -> None:
    answer = await replay(recording, how, Scripted(), ask=False)
    assert answer.data == recording.data


@pytest.mark.matrix(1)
@pytest.mark.parametrize("how", CUTS)
async def test_summaries_on_the_answer_is_identical(recording: Recording, how: str) -> None:
    writer = Scripted()
    answer = await replay(recording, how, writer)
    expected, shown = content_of(recording, recording.data), content_of(recording, answer.data)
    assert shown.text == expected.text
    assert shown.calls == expected.calls
    assert shown.finish == expected.finish
    due = bool(expected.raw.strip()) and not expected.native
    assert bool(writer.requests) == due
    assert (b"I add the numbers" in answer.data or b"Adding up" in answer.data) == due
    if recording.streamed:
        checked(recording, answer.data)


async def test_what_the_summarizer_gets_is_the_reasoning(recording: Recording) -> None:
    writer = Scripted()
    await replay(recording, "random", writer, summary={"tail_chars": 0})
    expected = content_of(recording, recording.data)
    if not expected.native:
        given = "".join(passage.text for passage in writer.requests)
        assert given.split() == expected.raw.split()


@pytest.mark.parametrize("expose", ["summary", "none"])
async def test_hidden_reasoning_is_nowhere_in_the_bytes(recording: Recording, expose: str) -> None:
    expected = content_of(recording, recording.data)
    answer = await replay(recording, "whole", Scripted(), reasoning={"expose": expose})
    if recording.streamed:
        checked(recording, answer.data)
    shown = content_of(recording, answer.data)
    assert shown.text == expected.text
    if not expected.native:
        assert not shown.raw.replace(SUMMARY, "").strip()
        for line in expected.raw.splitlines():
            if len(line) > 40 and line not in expected.text:
                assert json.dumps(line)[1:-1].encode() not in answer.data
                assert line.encode() not in answer.data


@pytest.mark.matrix(1)
@needs_openapi
@pytest.mark.parametrize("expose", ["auto", "both", "summary"])
async def test_every_body_and_event_is_as_valid_as_upstreams(
    recording: Recording, expose: str
) -> None:
    """Abridge adds no violation of the description to upstream's own."""
    answer = await replay(recording, "frames", Scripted(), reasoning={"expose": expose})
    if recording.streamed and recording.api == "chat":
        schema = "CreateChatCompletionStreamResponse"
        before = {fault for chunk in chunks_of(recording.data) for fault in faults(schema, chunk)}
        after = {fault for chunk in chunks_of(answer.data) for fault in faults(schema, chunk)}
    elif recording.streamed:
        before = {fault for event in chunks_of(recording.data) for fault in event_faults(event)}
        after = {fault for event in chunks_of(answer.data) for fault in event_faults(event)}
        ours = [event for event in chunks_of(answer.data) if "I add" in json.dumps(event)]
        assert not any(event_faults(event) for event in ours if "summary_index" in event)
    else:
        schema = "CreateChatCompletionResponse" if recording.api == "chat" else "Response"
        before, after = faults(schema, json.loads(recording.data)), faults(schema, answer.json)
    assert after <= before


def test_there_are_recordings_of_every_api() -> None:
    assert {recording.api for recording in RECORDED} == {"chat", "responses", "messages"}
    assert len(RECORDED) > 50
