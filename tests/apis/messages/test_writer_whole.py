"""Test what a client of Messages sees of a whole message whose upstream speaks Messages, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.display import Exposure
from abridge.core.envelope import Envelope
from abridge.core.plan import SummaryPlan
from tests.apis.messages.scripts import (
    Block,
    message,
    redacted,
    search,
    stream,
    text,
    thinking,
    tool_use,
)
from tests.support.matrix import some
from tests.support.messages_checker import check_message, check_messages
from tests.support.pipeline import messages
from tests.support.shared import RECORDINGS, needs_recordings
from tests.support.streams import THOUGHT

PLAN = SummaryPlan(style="auto", part_chars=60, tail_chars=5, min_chars=0)
EXPOSURES: tuple[Exposure, ...] = ("auto", "both", "summary", "raw", "none")
CONTENT = [
    thinking(THOUGHT, "c2lnbmVk"),
    redacted("b3BhcXVl"),
    text("I look. "),
    tool_use(0, city="Paris"),
    thinking("", "b21pdHRlZA=="),
    *search(),
    text("Done."),
]
BLOCKS = st.lists(
    st.sampled_from(
        [
            thinking(THOUGHT, "c2ln"),
            thinking("", "b21pdHRlZA=="),
            redacted("b3BhcXVl"),
            text("So it is."),
            tool_use(0, city="Paris"),
            tool_use(1),
            *search(),
        ]
    ),
    max_size=6,
    unique_by=str,
)


def encode(content: list[Block], **more: Any) -> bytes:
    return json.dumps(message(content, **more)).encode()


def shown(content: list[Block] | None = None, **given: Any) -> dict[str, Any]:
    answer = json.loads(messages(plan=PLAN, **given).whole(encode(content or CONTENT)))
    check_message(answer)
    return answer


def seal(envelope: Envelope) -> str:
    """Return a readable blob."""
    return "abr1." + "".join(block["thinking"] for block in envelope.reasoning)


@needs_recordings
@pytest.mark.parametrize(
    "name", sorted(path.name for path in RECORDINGS.glob("anthropic*onse.json"))
)
def test_recordings_pass_byte_for_byte(name: str) -> None:
    recording = (RECORDINGS / name).read_bytes()
    assert messages(expose="raw").whole(recording) == recording


@settings(max_examples=some(50))
@given(content=BLOCKS, expose=st.sampled_from(EXPOSURES), sealed=st.booleans())
def test_a_whole_message_is_what_its_stream_adds_up_to(
    content: list[Block], expose: Exposure, *, sealed: bool
) -> None:
    given: dict[str, Any] = {"plan": PLAN, "expose": expose, "seal": seal if sealed else None}
    whole = json.loads(messages(**given).whole(encode(content)))
    streamed = b"".join(stream(content))
    assert check_messages(messages(**given).stream(streamed)).message == whole


def test_a_failed_summary_is_told_at_its_block() -> None:
    first = shown(write=None)["content"][0]
    assert first["summary_error"]["code"] == "upstream_error"
    assert first["thinking"] == ""


def test_unknown_keys_and_blocks_pass() -> None:
    content = [{**thinking(THOUGHT), "odd": 1}, {"type": "odd", "thinking": "x"}, text("So.")]
    body = message(content, container={"id": "x"}, odd=2)
    answer = json.loads(messages(plan=PLAN).whole(json.dumps(body).encode()))
    (first, *rest) = answer.pop("content")
    assert first["odd"] == 1
    assert rest == content[1:]
    assert {**answer, "usage": body["usage"]} == {
        key: value for key, value in body.items() if key != "content"
    }


def test_what_a_block_lacks_is_filled_in_as_in_a_stream() -> None:
    content = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text"}]
    assert shown(content, expose="raw")["content"] == [thinking(THOUGHT, ""), text("")]


def test_past_the_limit_of_what_is_kept_nothing_is_lost() -> None:
    body = encode([text("x" * 60), *search(), tool_use(0, a="b")])
    assert messages(expose="raw", limit=10).whole(body) == body


def test_a_field_for_an_error_makes_none_of_a_message_without_a_type() -> None:
    for error in (None, {"message": "Late."}):
        given = {**message([text("Hi")]), "error": error}
        del given["type"]
        answer = json.loads(messages(expose="raw").whole(json.dumps(given).encode()))
        assert answer == {**given, "type": "message"}


@pytest.mark.parametrize("given", ["x", '{"a": 1}', 7, {"a": 1}])
def test_an_input_that_is_no_object_stays_as_it_is(given: Any) -> None:
    call = {**tool_use(0), "input": given}
    body = json.dumps(message([thinking(THOUGHT), call])).encode()
    answer = json.loads(messages(plan=PLAN).whole(body))
    assert answer["content"][-1] == call


def test_the_summarizers_usage_is_added() -> None:
    usage = shown()["usage"]
    assert usage["output_tokens"] == 70 + usage["reasoning_summary"]["output_tokens"]
    assert usage["cache_read_input_tokens"] == 7


def test_usage_is_left_alone_where_it_is_to_be_shown_apart() -> None:
    usage = shown(merge_usage=False)["usage"]
    assert usage["output_tokens"] == 70
    assert usage["reasoning_summary"]["output_tokens"] > 0


def test_an_answer_that_is_to_fail_with_its_summary_is_told_as_an_error() -> None:
    plan = SummaryPlan(style="auto", part_chars=60, tail_chars=5, min_chars=0, fail_response=True)
    error = json.loads(messages(plan=plan, write=None).whole(encode(CONTENT)))
    assert error["type"] == "error"
    assert error["error"]["response"]["content"][2] == CONTENT[2]
    frames = stream(CONTENT)
    streamed = check_messages(messages(plan=plan, write=None).stream(b"".join(frames)))
    assert streamed.error is not None
    assert streamed.text == "I look. Done."


@pytest.mark.parametrize("expose", EXPOSURES)
def test_a_sloppy_body_is_completed(expose: Exposure) -> None:
    body = {"content": [text("So."), tool_use(0)], "model": "m"}
    answer = check_message(json.loads(messages(expose=expose).whole(json.dumps(body).encode())))
    assert answer["content"] == body["content"]
    assert (answer["model"], answer["stop_reason"]) == ("m", "tool_use")
