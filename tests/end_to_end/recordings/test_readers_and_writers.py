"""Every recording, read and written for a client of another API."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from abridge.apis.api import Api, RequestEcho
from abridge.apis.registry import APIS
from abridge.core.plan import SummaryPlan
from tests.end_to_end.recordings.recordings import Recording, chunks_of, recordings, said_in
from tests.support.checker import check_chat, check_responses
from tests.support.openapi import event_faults, faults
from tests.support.pipeline import translating
from tests.support.shared import needs_openapi, needs_recordings
from tests.support.translated import TranslatedTurn, read_turn

pytestmark = needs_recordings

RECORDED = recordings()


@pytest.fixture(params=RECORDED, ids=lambda recording: recording.name)
def recording(request: pytest.FixtureRequest) -> Recording:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("raw", [True, False])
def test_the_events_have_all_that_was_recorded(recording: Recording, raw: bool) -> None:  # noqa: FBT001
    said = said_in(recording, recording.data)
    told = read_turn(str(recording.api), recording.data, streamed=recording.streamed, raw=raw)
    answer = told.answer
    assert answer.text == said.text
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == said.calls
    assert not answer.open
    if said.native:
        assert any(answer.native)
    else:
        assert answer.raw.split() == said.raw.split()
    if told.ok:
        assert answer.stop is not None
        assert (answer.stop == "tool_calls") == bool(said.calls)


def test_usage_is_upstreams(recording: Recording) -> None:
    told = read_turn(str(recording.api), recording.data, streamed=recording.streamed)
    bodies = chunks_of(recording.data) if recording.streamed else [json.loads(recording.data)]
    reported = [body.get("usage") or (body.get("response") or {}).get("usage") for body in bodies]
    usage = next(filter(None, reversed(reported)), None)
    if usage is None:
        assert told.usage is None
        return
    assert told.usage is not None
    assert told.usage.total == usage.get("total_tokens")
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    assert told.usage.reasoning == details.get("reasoning_tokens")


def test_a_stream_and_a_body_of_one_model_read_alike() -> None:
    """Some were recorded both ways; the model said something else each time, but no other kind of
    thing."""
    for _, group in groupby(RECORDED, key=lambda recording: recording.name.split(".response")[0]):
        pair = list(group)
        if len(pair) < 2:
            continue
        answers = [read_turn(str(r.api), r.data, streamed=r.streamed).answer for r in pair]
        kinds = [{bool(a.text), bool(a.calls), bool(a.raw), bool(a.sealed)} for a in answers]
        assert kinds[0] == kinds[1]


ECHO = RequestEcho({"stream_options": {"include_usage": True}}, now=lambda: 1_800_000_000.5)
UNSUMMARIZED = SummaryPlan(style=None)


def composed(recording: Recording, client: Api, **settings: Any) -> bytes:
    pipeline = translating(str(recording.api), client, echo=ECHO, **settings)
    if not recording.streamed:
        return pipeline.whole(recording.data)
    out = pipeline.stream(recording.data)
    check_chat(out) if client.name == "chat" else check_responses(out)
    return out


def told_of(api: str, recording: Recording, data: bytes) -> TranslatedTurn:
    return read_turn(api, data, streamed=recording.streamed)


@pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)
def test_the_translated_answer_has_all_that_was_read(recording: Recording, client: Api) -> None:
    told = told_of(str(recording.api), recording, recording.data)
    out = composed(recording, client, expose="both", plan=UNSUMMARIZED)
    again = told_of(client.name, recording, out)
    answer, heard = again.answer, told.answer
    assert answer.text == "\n\n".join(heard.messages.values())
    assert (answer.refusal, answer.calls, answer.stop) == (
        heard.refusal,
        heard.calls,
        heard.stop,
    )
    assert again.ok == told.ok
    assert answer.tokens == heard.tokens
    if client.name == "chat":  # has one place for both
        assert sorted(answer.raw) == sorted("\n\n".join(filter(None, [heard.raw, *heard.native])))
    else:
        assert answer.raw.split() == heard.raw.split()
        assert answer.native == heard.native
    assert [data.removeprefix("sig1.") for data, _ in answer.sealed] == [
        data for data, _ in heard.sealed
    ]
    if told.usage is not None:
        assert again.usage is not None
        assert (again.usage.total, again.usage.reasoning) == (
            told.usage.total or 0,
            told.usage.reasoning or 0,
        )


@pytest.mark.matrix(2)
@pytest.mark.parametrize("expose", ["summary", "none"])
@pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)
def test_no_writer_shows_what_is_hidden(recording: Recording, client: Api, expose: str) -> None:
    said = said_in(recording, recording.data)
    out = composed(recording, client, expose=expose)
    for line in said.raw.splitlines():
        if len(line) > 40 and line not in said.text and not said.native:
            assert json.dumps(line)[1:-1].encode() not in out
            assert line.encode() not in out


@pytest.mark.matrix(2)
@needs_openapi
@pytest.mark.parametrize("expose", ["both", "summary"])
@pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)
def test_every_composed_body_and_event_is_what_openai_describes(
    recording: Recording, client: Api, expose: str
) -> None:
    out = composed(recording, client, expose=expose)
    if not recording.streamed:
        schema = "CreateChatCompletionResponse" if client.name == "chat" else "Response"
        assert not faults(schema, json.loads(out))
        return
    for event in chunks_of(out):
        if client.name == "responses":
            assert not event_faults(event), event
        elif "error" not in event:
            assert not faults("CreateChatCompletionStreamResponse", event), event
