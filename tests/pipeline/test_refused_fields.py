"""Test that no client pays for a field that Abridge added and upstream refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.config.upstreams import UpstreamSettings
from abridge.pipeline.findings import FOUND_TTL
from abridge.pipeline.refused_fields import ADDABLE, REFUSED, TAKEN, RefusedFields, refused_field
from tests.pipeline.test_renaming import PATHS, answer_of
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.upstream import Answer, ReceivedRequest, Upstream

UPSTREAM = UpstreamSettings(base_url="http://up.test/v1")
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
RESPONSES = {"model": "m", "input": "Hi", "stream": True}
SAYINGS = {
    "openai": {"message": "Unsupported parameter.", "param": "reasoning_effort"},
    "groq": {"message": "property 'reasoning_effort' is unsupported"},
    "azure": {"message": "Unrecognized request argument supplied: reasoning_effort"},
    "vertex": {"message": 'Unknown name "reasoning_effort": Cannot find field.'},
}
FORBIDDEN = {
    "detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "No."}]
}


class Strict(Upstream):
    """Refuses a field, in these words, with this status."""

    def __init__(self, field: str, error: Any, status: int = 400, *, stream: bool = False) -> None:
        super().__init__(answer_of("chat", stream=stream))
        self.field, self.refusal = field, Answer.json(error, status)

    def answer(self, request: ReceivedRequest) -> Answer:
        answer = super().answer(request)
        return self.refusal if self.field in json.loads(request.body) else answer

    def had(self) -> list[bool]:
        return [self.field in json.loads(each.body) for each in self.requests]


@pytest.mark.parametrize("said", SAYINGS)
async def test_a_request_is_sent_again_without_it_and_later_ones_have_it_no_more(said: str) -> None:
    upstream = Strict("reasoning_effort", {"error": SAYINGS[said]})
    app = build_app("mounted", upstream, upstreams=[{"effort": "low"}])
    answers = [await call(app, PATHS["chat"], CHAT) for _ in range(2)]
    assert [each.status for each in answers] == [200, 200]
    assert upstream.had() == [True, False, False]
    await call(app, PATHS["chat"], {**CHAT, "model": "another"})
    assert upstream.had() == [True, False, False, True, False]


async def test_also_one_that_a_translation_adds() -> None:
    upstream = Strict("stream_options", FORBIDDEN, 422, stream=True)
    app = build_app("mounted", upstream, upstreams=[{"api": "chat"}])
    answers = [await call(app, PATHS["responses"], RESPONSES) for _ in range(2)]
    assert [each.status for each in answers] == [200, 200]
    assert upstream.had() == [True, False, False]


async def test_what_the_client_sent_is_the_clients() -> None:
    error = {"error": SAYINGS["groq"]}
    upstream = Strict("reasoning_effort", error)
    app = build_app("mounted", upstream, upstreams=[{"effort": "low"}])
    answer = await call(app, PATHS["chat"], {**CHAT, "reasoning_effort": "high"})
    assert (answer.status, answer.json, upstream.had()) == (400, error, [True])


async def test_a_client_cannot_make_upstream_seem_to_refuse_a_field() -> None:
    upstream = Strict("bad", {"error": SAYINGS["groq"]})  # the error repeats what the client sent
    app = build_app("mounted", upstream, upstreams=[{"effort": "low"}])
    answer = await call(app, PATHS["chat"], {**CHAT, "bad": "reasoning_effort is unsupported"})
    await call(app, PATHS["chat"], CHAT)
    efforts = ["reasoning_effort" in json.loads(each.body) for each in upstream.requests]
    assert (answer.status, efforts) == (400, [True, False, True])


async def test_any_other_refusal_passes_as_it_came() -> None:
    error = {"error": {"message": "The model reasoning_effort-9 is overloaded."}}
    upstream = Strict("reasoning_effort", error)
    app = build_app("mounted", upstream, upstreams=[{"effort": "low"}])
    answer = await call(app, PATHS["chat"], CHAT)
    assert (answer.status, answer.json, upstream.had()) == (400, error, [True])


def test_an_error_that_repeats_the_request_names_no_field() -> None:
    error = {"error": {"message": "Unknown model", "request": {"reasoning_effort": "low"}}}
    assert refused_field(json.dumps(error).encode(), ADDABLE) is None


class TestWhatIsKnown:
    def test_it_expires(self) -> None:
        now = [0.0]
        fields = RefusedFields(lambda: now[0])
        fields.note_accepted(UPSTREAM, "m", (), ["thinking"])
        assert fields.those(REFUSED, UPSTREAM, "m") == {"thinking"}
        now[0] = FOUND_TTL
        assert not fields.those(REFUSED, UPSTREAM, "m")

    def test_what_was_taken_once_is_not_tried_for_each_request(self) -> None:
        fields = RefusedFields()
        fields.note_accepted(UPSTREAM, "m", ["thinking"], ())
        assert fields.those(TAKEN, UPSTREAM, "m") == {"thinking"}
        assert not fields.those(REFUSED, UPSTREAM, "m")

    def test_it_is_told_with_names_and_time_left(self) -> None:
        fields, other = RefusedFields(), RefusedFields()
        fields.note_accepted(UPSTREAM, "m", (), ["thinking"])
        ((words, seconds),) = fields.known(UPSTREAM)
        assert words == ("m", "thinking", REFUSED)
        other.take_over(UPSTREAM, words, seconds)
        assert other.those(REFUSED, UPSTREAM, "m") == {"thinking"}
