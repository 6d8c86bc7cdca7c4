"""Test writing unstreamed Responses: the same rules, patched into the body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import Response

from abridge.core.plan import SummaryPlan
from abridge.providers.catalog import PROFILES
from tests.support.checker import check_responses
from tests.support.pipeline import responses
from tests.support.streams import (
    THOUGHT,
    call_item,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

ANSWER = message_item(1, "So.")
OUTPUT = [reasoning_item(0, THOUGHT), ANSWER]
CALLS = [
    reasoning_item(0, THOUGHT),
    call_item(1, "a", "{}"),
    reasoning_item(2, "Short."),
    call_item(3, "b", "{}"),
]
NATIVE = [{**reasoning_item(0, THOUGHT), "summary": [{"type": "summary_text", "text": "Theirs."}]}]
RAW_SUMMARY = [{**reasoning_item(0, ""), "summary": [{"type": "summary_text", "text": THOUGHT}]}]


def run(output: list[dict[str, Any]], more: dict[str, Any] | None = None, **settings: Any) -> Any:
    body = json.dumps(response(output, **(more or {}))).encode()
    return json.loads(responses(**settings).whole(body))


@pytest.mark.parametrize(
    ("output", "settings"),
    [
        (OUTPUT, {}),
        (OUTPUT, {"expose": "summary"}),
        (OUTPUT, {"expose": "none"}),
        (OUTPUT, {"write": None}),
        (OUTPUT, {"merge_usage": False}),
        (CALLS, {}),
        (NATIVE, {}),
        (RAW_SUMMARY, {"profile": PROFILES["ollama"]}),
    ],
    ids=[
        *("both", "raw hidden", "all hidden", "a failed summary", "usage apart"),
        *("two stretches", "a native summary", "a summary that is raw"),
    ],
)
def test_streamed_and_whole_agree(output: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    stream = responses(**settings).stream(b"".join(responses_stream(output)))
    assert check_responses(stream).response == run(output, **settings)


def test_a_response_without_reasoning_stays_as_it_is() -> None:
    assert run([message_item(0, "So.")]) == response(
        [message_item(0, "So.")], reasoning={"effort": None, "summary": "auto"}
    )


def test_fail_gives_the_whole_object_under_the_error() -> None:
    body = run(OUTPUT, write=None, plan=SummaryPlan(fail_response=True))
    assert body["error"]["code"] == "upstream_error"
    inner = body["error"]["response"]
    assert inner["status"] == "failed"
    assert inner["output"][1]["content"][0]["text"] == "So."


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error":{"message":"no"}}'])
def test_a_body_that_is_not_a_response_passes_as_it_came(body: bytes) -> None:
    assert responses().whole(body) == body


def test_an_item_without_summary_gets_one() -> None:
    bare = {"id": "rs_0", "type": "reasoning", "encrypted_content": "x"}
    assert run([bare, message_item(1, "So.")])["output"][0]["summary"] == []


SLOPPY: Any = {
    "id": "resp_1",
    "model": "m",
    "output": [
        {
            "type": "reasoning",
            "id": "same",
            "content": [{"type": "reasoning_text", "text": "t"}],
        },
        {"type": "message", "id": "same", "content": [{"type": "output_text", "text": "So."}]},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}


class TestRepair:
    """What upstream leaves out of a body is filled in as it is in a stream."""

    def read(self, body: Any = SLOPPY, **settings: Any) -> Any:
        return json.loads(responses(**settings).whole(json.dumps(body).encode()))

    @pytest.mark.parametrize("expose", ["both", "summary"])
    def test_a_strict_client_can_read_it(self, expose: str) -> None:
        shown = self.read(expose=expose)
        assert Response.model_validate(shown, strict=True).output_text == "So."
        assert shown["truncation"] == "disabled"
        assert shown["status"] == "completed"
        assert shown["usage"]["output_tokens_details"] == {"reasoning_tokens": 0}

    def test_each_item_has_an_id_of_its_own(self) -> None:
        ids = [item["id"] for item in self.read()["output"]]
        assert ids[0] == "same"
        assert len(set(ids)) == 3

    def test_a_stream_of_it_ends_with_the_same_fields(self) -> None:
        created = {"type": "response.created", "response": {"id": "resp_1", "status": "x"}}
        ended = {"type": "response.completed", "response": {**SLOPPY, "output": []}}
        stream = responses().stream(b"".join(map(frame, (created, ended))))
        final = json.loads(stream.split(b"event: response.completed\ndata: ")[1])["response"]
        whole = self.read({**SLOPPY, "output": []})
        assert final == whole

    def test_what_upstream_says_stays(self) -> None:
        said = {"status": "incomplete", "truncation": "auto", "top_p": 0.5, "x": 1}
        details = {"output_tokens_details": {"reasoning_tokens": None}, "input_tokens_details": {}}
        usage = {**SLOPPY["usage"], **details}
        shown = self.read({**SLOPPY, **said, "usage": usage})
        assert {key: shown[key] for key in said} == said
        assert {key: shown["usage"][key] for key in details} == details

    def test_an_answer_that_was_cut_off_says_so(self) -> None:
        cut = {**SLOPPY, "incomplete_details": {"reason": "max_output_tokens"}}
        shown = self.read(cut)
        assert shown["status"] == "incomplete"
        assert shown["output"][1]["status"] == "incomplete"

    def test_null_usage_stays_null(self) -> None:
        assert self.read({**SLOPPY, "usage": None})["usage"] is None
