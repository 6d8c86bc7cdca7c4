"""Every recording, read and written for a client of another API."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import RequestEcho
from abridge.apis.registry import APIS
from abridge.core.envelope import UNSEALED, UNSEALED_RAW
from abridge.core.plan import SummaryPlan
from tests.end_to_end.recordings.recordings import Recording, recordings
from tests.support.messages_checker import CHECKS
from tests.support.pipeline import translating
from tests.support.shared import needs_recordings
from tests.support.translated import Call, TranslatedTurn, read_turn

pytestmark = needs_recordings

RECORDED = recordings()


@pytest.fixture(params=RECORDED, ids=lambda recording: recording.name)
def recording(request: pytest.FixtureRequest) -> Recording:
    return request.param  # type: ignore[no-any-return]


def test_streams_and_bodies_of_one_model_have_the_same_content() -> None:
    """Some were recorded both ways, with other words but the same kinds of content."""
    for _, group in groupby(RECORDED, key=lambda recording: recording.name.split(".response")[0]):
        pair = list(group)
        if len(pair) < 2:
            continue
        answers = [read_turn(str(r.api), r.data, streamed=r.streamed).answer for r in pair]
        kinds = [{bool(a.text), bool(a.calls), bool(a.raw), bool(a.sealed)} for a in answers]
        assert kinds[0] == kinds[1]


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
