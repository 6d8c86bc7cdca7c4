"""Test writing unstreamed Chat Completions: the same rules, patched into the body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.core.plan import SummaryPlan
from tests.support.pipeline import chat
from tests.support.streams import CHAT_USAGE, THOUGHT, completion, thinking

DIALECTS: dict[str, dict[str, Any]] = {
    "reasoning_content": {"reasoning_content": THOUGHT},
    "reasoning": {"reasoning": THOUGHT},
    "both": {"reasoning_content": THOUGHT, "reasoning": THOUGHT},
    "details": {"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]},
    "blocks": {"thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": "s"}]},
    "inline": {"content": f"<think>{THOUGHT}</think>So."},
    "list": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
            {"type": "text", "text": "So."},
        ]
    },
}


def run(message: dict[str, Any], more: dict[str, Any] | None = None, **settings: Any) -> Any:
    body = completion({"content": "So.", **message}, **(more or {}))
    return json.loads(chat(**settings).whole(json.dumps(body).encode()))


@pytest.mark.parametrize("dialect", DIALECTS)
class TestDialects:
    def test_the_summary_takes_the_raw_reasonings_place(self, dialect: str) -> None:
        message = run(DIALECTS[dialect])["choices"][0]["message"]
        field = "reasoning" if dialect == "reasoning" else "reasoning_content"
        assert message[field].startswith("**Part**")
        assert "odd numbers" not in json.dumps(message)
        text = [{"type": "text", "text": "So."}] if dialect == "list" else "So."
        assert message["content"] == text

    def test_raw_and_summary_are_shown(self, dialect: str) -> None:
        message = run(DIALECTS[dialect], expose="both")["choices"][0]["message"]
        assert message["reasoning"] == THOUGHT
        assert message["reasoning_content"].startswith("**Part**")

    def test_the_original_is_recorded(self, dialect: str) -> None:
        pipeline = chat()
        pipeline.whole(json.dumps(completion({"content": "So.", **DIALECTS[dialect]})).encode())
        (recorded,) = pipeline.recorded_turns()
        assert recorded.original == [DIALECTS[dialect]]
        assert recorded.turn.text == "So."


def test_a_body_without_reasoning_stays_as_it_is() -> None:
    body = completion({"content": "So.", "vendor": 1})
    assert run({"vendor": 1}) == body


def test_usage_is_merged() -> None:
    usage = run({"reasoning": THOUGHT})["usage"]
    assert usage["total_tokens"] == CHAT_USAGE["total_tokens"] + 15
    assert usage["reasoning_summary"]["parts"] == 1


def test_usage_that_is_null_stays_null_with_the_share_beside_it() -> None:
    body = run({"reasoning": THOUGHT}, {"usage": None})
    assert body["usage"] is None
    assert body["reasoning_summary_usage"]["total_tokens"] == 15


def test_long_reasoning_is_summarized_in_parts_and_joined_by_blank_lines() -> None:
    message = run({"reasoning": thinking(1000)}, plan=SummaryPlan(part_chars=200))["choices"][0][
        "message"
    ]
    assert message["reasoning"].count("**Part**") > 2
    assert message["reasoning"].count("\n\n**Part**") == message["reasoning"].count("**Part**") - 1


def test_a_failed_summary_is_reported_on_the_message() -> None:
    message = run({"reasoning": THOUGHT}, write=None)["choices"][0]["message"]
    assert message["summary_error"]["code"] == "upstream_error"
    assert message["content"] == "So."


def test_a_failed_summary_may_fail_the_response_with_the_completion_in_the_error() -> None:
    body = run({"reasoning": THOUGHT}, write=None, plan=SummaryPlan(fail_response=True))
    assert body["error"]["code"] == "upstream_error"
    assert body["error"]["response"]["choices"][0]["message"]["content"] == "So."


def test_unknown_fields_stay_unless_reasoning_is_hidden() -> None:
    message = {"reasoning": THOUGHT, "vendor": {"copy": "odd numbers"}}
    for expose, stays in (("auto", True), ("both", True), ("summary", False), ("none", False)):
        body = run(message, {"x_vendor": 1}, expose=expose)
        assert ("vendor" in body["choices"][0]["message"]) == stays
        assert ("x_vendor" in body) == stays


def test_log_probabilities_go_with_hidden_reasoning() -> None:
    body = completion({"content": "So.", "reasoning": THOUGHT})
    body["choices"][0]["logprobs"] = {"content": [{"token": "odd"}]}
    hidden = json.loads(chat(expose="summary").whole(json.dumps(body).encode()))
    assert hidden["choices"][0]["logprobs"] is None
    answer = json.loads(chat(expose="both").whole(json.dumps(body).encode()))
    assert answer["choices"][0]["logprobs"] == body["choices"][0]["logprobs"]


def test_every_choice_gets_a_summary() -> None:
    body = completion({"content": "A", "reasoning": THOUGHT})
    other = {**body["choices"][0], "index": 1}
    body["choices"].append({**other, "message": {"content": "B", "reasoning": "Short."}})
    choices = json.loads(chat().whole(json.dumps(body).encode()))["choices"]
    summaries = [choice["message"]["reasoning"] for choice in choices]
    assert summaries[0] != summaries[1]
    assert [choice["message"]["content"] for choice in choices] == ["A", "B"]


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"error":{"message":"no"}}', b'{"choices":null}']
)
def test_a_body_that_is_no_completion_passes_unchanged(body: bytes) -> None:
    assert chat().whole(body) == body
