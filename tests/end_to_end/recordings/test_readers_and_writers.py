"""Every recording, read and written for a client of another API."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from abridge.apis.api import Api, RequestEcho
from abridge.apis.chat.api import CHAT
from abridge.apis.display import UNSEALED, UNSEALED_RAW
from abridge.apis.messages.api import MESSAGES
from abridge.apis.registry import APIS
from abridge.apis.responses.api import RESPONSES
from abridge.core.plan import SummaryPlan
from tests.end_to_end.recordings.recordings import Recording, chunks_of, content_of, recordings
from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_message, check_messages
from tests.support.openapi import event_faults, faults
from tests.support.pipeline import translating
from tests.support.shared import needs_openapi, needs_recordings
from tests.support.translated import Call, TranslatedTurn, read_turn

pytestmark = needs_recordings

RECORDED = recordings()


@pytest.fixture(params=RECORDED, ids=lambda recording: recording.name)
def recording(request: pytest.FixtureRequest) -> Recording:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("raw", [True, False])
def test_the_events_hold_the_whole_recording(recording: Recording, raw: bool) -> None:  # noqa: FBT001
    expected = content_of(recording, recording.data)
    turn = read_turn(str(recording.api), recording.data, streamed=recording.streamed, raw=raw)
    answer = turn.answer
    assert answer.text == expected.text
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == expected.calls
    assert not answer.open
    if expected.native:
        assert any(answer.native)
    else:
        assert answer.raw.split() == expected.raw.split()
    if turn.ok:
        assert answer.stop is not None
        assert (answer.stop == "tool_calls") == bool(expected.calls)


def test_usage_is_upstreams(recording: Recording) -> None:
    turn = read_turn(str(recording.api), recording.data, streamed=recording.streamed)
    bodies = chunks_of(recording.data) if recording.streamed else [json.loads(recording.data)]
    reported = [body.get("usage") or (body.get("response") or {}).get("usage") for body in bodies]
    usage = next(filter(None, reversed(reported)), None)
    if usage is None:
        assert turn.usage is None
        return
    assert turn.usage is not None
    assert turn.usage.total == usage.get("total_tokens")
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    assert turn.usage.reasoning == details.get("reasoning_tokens")


def test_streams_and_bodies_of_one_model_have_the_same_content() -> None:
    """Some were recorded both ways, with other words but the same kinds of content."""
    for _, group in groupby(RECORDED, key=lambda recording: recording.name.split(".response")[0]):
        pair = list(group)
        if len(pair) < 2:
            continue
        answers = [read_turn(str(r.api), r.data, streamed=r.streamed).answer for r in pair]
        kinds = [{bool(a.text), bool(a.calls), bool(a.raw), bool(a.sealed)} for a in answers]
        assert kinds[0] == kinds[1]


CHECKS = {"chat": check_chat, "responses": check_responses, "messages": check_messages}
ECHO = RequestEcho({"stream_options": {"include_usage": True}}, now=lambda: 1_800_000_000.5)
UNSUMMARIZED = SummaryPlan(style=None)


def translate(recording: Recording, client: Api, **settings: Any) -> bytes:
    pipeline = translating(str(recording.api), client, echo=ECHO, **settings)
    if not recording.streamed:
        return pipeline.whole(recording.data)
    out = pipeline.stream(recording.data)
    CHECKS[client.name](out)
    return out


def read_translated(api: str, recording: Recording, data: bytes) -> TranslatedTurn:
    return read_turn(api, data, streamed=recording.streamed)


@pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)
def test_the_translated_answer_holds_the_whole_recording(recording: Recording, client: Api) -> None:
    turn = read_translated(str(recording.api), recording, recording.data)
    out = translate(recording, client, expose="both", plan=UNSUMMARIZED)
    again = read_translated(client.name, recording, out)
    answer, recorded = again.answer, turn.answer
    assert answer.text == "\n\n".join(recorded.messages.values())
    assert (answer.refusal, answer.stop) == (recorded.refusal, recorded.stop)
    assert list(map(told, answer.calls)) == list(map(told, recorded.calls))
    assert again.ok == turn.ok
    assert answer.tokens == (recorded.tokens if client is not MESSAGES else [])
    if not client.has_summary_parts:  # has one field for both
        both = "".join([recorded.raw, *recorded.native])
        assert sorted("".join(answer.raw.split())) == sorted("".join(both.split()))
    else:
        assert answer.raw.split() == recorded.raw.split()
        assert answer.native == recorded.native
    marks = (UNSEALED, UNSEALED_RAW)
    sealed = [data.removeprefix("sig1.") for data, _ in answer.sealed if data not in marks]
    assert sealed == [data for data, _ in recorded.sealed]
    if turn.usage is not None:
        assert again.usage is not None
        assert again.usage.total == (turn.usage.total or 0)
        assert (again.usage.reasoning or 0) == (turn.usage.reasoning or 0)


def told(call: Call) -> tuple[str, str, Any]:
    """Return what a call says: a whole message has its arguments as an object, not as text."""
    return call.id, call.name, json.loads(call.arguments or "{}")


@pytest.mark.matrix(2)
@pytest.mark.parametrize("expose", ["summary", "none"])
@pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)
def test_no_writer_shows_what_is_hidden(recording: Recording, client: Api, expose: str) -> None:
    expected = content_of(recording, recording.data)
    out = translate(recording, client, expose=expose)
    for line in expected.raw.splitlines():
        if len(line) > 40 and line not in expected.text and not expected.native:
            assert json.dumps(line)[1:-1].encode() not in out
            assert line.encode() not in out


@pytest.mark.matrix(2)
@pytest.mark.parametrize("expose", ["both", "summary"])
def test_every_translated_message_is_valid(recording: Recording, expose: str) -> None:
    """The checker of streams also asserts that of each event, for `translate`."""
    out = translate(recording, MESSAGES, expose=expose)
    if not recording.streamed:
        check_message(json.loads(out))


@pytest.mark.matrix(2)
@needs_openapi
@pytest.mark.parametrize("expose", ["both", "summary"])
@pytest.mark.parametrize("client", [CHAT, RESPONSES], ids=lambda api: api.name)
def test_every_translated_body_and_event_is_valid(
    recording: Recording, client: Api, expose: str
) -> None:
    out = translate(recording, client, expose=expose)
    if not recording.streamed:
        schema = "CreateChatCompletionResponse" if client.name == "chat" else "Response"
        assert not faults(schema, json.loads(out))
        return
    for event in chunks_of(out):
        if client.name == "responses":
            assert not event_faults(event), event
        elif "error" not in event:
            assert not faults("CreateChatCompletionStreamResponse", event), event
