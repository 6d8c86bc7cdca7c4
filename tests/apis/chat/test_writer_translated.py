"""Chat Completions, written of the events of an upstream of another API."""

from __future__ import annotations

import json
from typing import Any

from abridge.apis.chat.api import CHAT
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.display import Display
from abridge.apis.protocols import RequestEcho
from abridge.apis.tools import as_function
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    NativeSummary,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    ToolCallDelta,
)
from abridge.core.model_request import Tool
from abridge.core.plan import SummaryPlan
from abridge.providers.catalog import PROFILES
from tests.support.checker import ChatStream, check_chat
from tests.support.openapi import faults
from tests.support.pipeline import LIMIT, Minting, translating
from tests.support.shared import needs_openapi
from tests.support.streams import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

ANSWER = "The sum is 100."
WITH_USAGE = RequestEcho({"stream_options": {"include_usage": True}})


def run(output: list[dict[str, Any]], *, length: int | None = None, **settings: Any) -> ChatStream:
    more = settings.pop("more", {})
    settings.setdefault("echo", WITH_USAGE)
    stream = responses_stream(output, **more)[:length]
    return check_chat(translating("responses", CHAT, **settings).stream(b"".join(stream)))


def whole(output: list[dict[str, Any]], **settings: Any) -> dict[str, Any]:
    body = json.dumps(response(output)).encode()
    found: dict[str, Any] = json.loads(translating("responses", CHAT, **settings).whole(body))
    return found


def compose(*events: Event, echo: RequestEcho | None = None, **display: Any) -> ChatStream:
    writer = ChatWriter(
        PROFILES["auto"], Display(**display), echo or RequestEcho(), LIMIT, Minting()
    )
    response = [
        ResponseStarted(None, None, "up", "thinker-1", 7),
        *events,
        ResponseEnded(None, None, ok=True),
    ]
    return check_chat(b"".join(map(writer.write, response)))


def summarized(number: int, *parts: str, **more: Any) -> dict[str, Any]:
    item = reasoning_item(number, "", **more)
    item["summary"] = [{"type": "summary_text", "text": text} for text in parts]
    return item


def listed(seen: ChatStream, name: str) -> list[dict[str, Any]]:
    """The entries of a list that deltas add up to, as the official client does it."""
    entries: list[dict[str, Any]] = []
    for chunk in seen.chunks:
        for choice in chunk.get("choices", ()):
            for entry in choice["delta"].get(name, ()):
                if entry["index"] == len(entries):
                    entries.append({})
                known = entries[entry["index"]]
                for key, value in entry.items():
                    text = isinstance(value, str) and key != "type"
                    known[key] = known.get(key, "") + value if text else value
    return entries


class TestOrder:
    def test_the_summary_streams_before_the_text(self) -> None:
        seen = run([summarized(0, "In short."), message_item(1, ANSWER)])
        choice = seen.choices[0]
        assert choice.order == ["reasoning_content", "content"]
        assert choice.fields["reasoning_content"] == "In short."
        assert choice.text == ANSWER

    def test_the_summary_is_in_the_field_that_is_configured(self) -> None:
        events = [
            ReasoningStarted(0, None, 0),
            NativeSummary(0, None, 0, 0, "delta", "So."),
            ReasoningEnded(0, None, 0),
        ]
        seen = compose(*events, show_raw=False, summary_field="reasoning")
        assert seen.choices[0].fields["reasoning"] == "So."

    def test_a_summary_takes_the_raw_reasonings_place(self) -> None:
        seen = run([reasoning_item(0, THOUGHT), message_item(1, ANSWER)])
        assert "Said of" in seen.choices[0].fields["reasoning_content"]
        assert "odd numbers" not in json.dumps(seen.chunks)

    def test_details_of_several_items_are_numbered_on(self) -> None:
        output = [summarized(0, "One."), call_item(1, "f", "{}"), summarized(2, "Two.", "Three.")]
        details = listed(run(output, details=True), "reasoning_details")
        assert [entry["summary"] for entry in details] == ["One.", "Two.", "Three."]

    def test_raw_and_summary_are_shown_in_separate_fields(self) -> None:
        seen = run([reasoning_item(0, THOUGHT), message_item(1, ANSWER)], expose="both")
        assert seen.choices[0].fields["reasoning"] == THOUGHT
        assert seen.choices[0].fields["reasoning_content"].startswith("**Part**")

    def test_blank_lines_separate_messages(self) -> None:
        seen = run([message_item(0, "One."), message_item(1, "Two.")])
        assert seen.choices[0].text == "One.\n\nTwo."

    def test_choices_are_lanes_and_announced_in_order(self) -> None:
        seen = compose(
            ContentDelta(1, None, "B"),
            ContentDelta(0, None, "A"),
            Finished(1, None, "stop"),
            Finished(0, None, "stop"),
        )
        assert [seen.choices[lane].text for lane in (0, 1)] == ["A", "B"]
        assert [seen.choices[lane].role for lane in (0, 1)] == ["assistant"] * 2

    def test_chunks_have_an_id_and_a_model(self) -> None:
        first = run([message_item(0, ANSWER)]).chunks[0]
        assert first["id"].startswith("chatcmpl-")
        assert (first["created"], first["model"]) == (1_700_000_000, "thinker-1")


class TestBlocks:
    def test_opaque_state_and_summaries_are_thinking_blocks(self) -> None:
        output = [
            summarized(0, encrypted_content="a"),
            call_item(1, "f", "{}"),
            summarized(2, "One.", "Two."),
            call_item(3, "f", "{}"),
            summarized(4, "Three.", encrypted_content="b"),
            message_item(5, ANSWER),
        ]
        expected = [
            {"type": "redacted_thinking", "data": "a", "index": 0},
            {"type": "thinking", "thinking": "One.\n\nTwo.", "index": 1},
            {"type": "thinking", "thinking": "Three.", "index": 2},
            {"type": "redacted_thinking", "data": "b", "index": 3},
        ]
        assert listed(run(output), "thinking_blocks") == expected
        assert whole(output)["choices"][0]["message"]["thinking_blocks"] == expected

    def test_a_signature_is_alone_in_a_stream_and_with_its_text_in_a_message(self) -> None:
        events = [
            ResponseStarted(None, None, "up", "m", 0),
            ReasoningStarted(0, None, 0),
            ReasoningDelta(0, None, 0, "Hm."),
            ProviderState(0, None, 0, "s1", signs=True),
            ReasoningEnded(0, None, 0),
        ]
        block = {"type": "thinking", "thinking": "", "signature": "s1", "index": 0}
        assert listed(compose(*events), "thinking_blocks") == [block]
        writer = ChatWriter(PROFILES["auto"], Display(), RequestEcho(), LIMIT, Minting())
        for event in events:
            writer.note(event)
        message = json.loads(writer.write_whole(ResponseEnded(None, None, ok=True)))["choices"][0][
            "message"
        ]
        assert message["thinking_blocks"] == [{**block, "thinking": "Hm."}]

    def test_hidden_reasoning_is_in_no_block(self) -> None:
        writer = ChatWriter(
            PROFILES["auto"], Display(show_raw=False), RequestEcho(), LIMIT, Minting()
        )
        for event in (
            ReasoningStarted(0, None, 0),
            ReasoningDelta(0, None, 0, "Hm."),
            ProviderState(0, None, 0, "s1", signs=True),
            ReasoningEnded(0, None, 0),
        ):
            writer.note(event)
        assert b"Hm." not in writer.write_whole(ResponseEnded(None, None, ok=True))

    def test_a_made_summary_is_in_no_block(self) -> None:
        seen = run([reasoning_item(0, THOUGHT), message_item(1, ANSWER)])
        assert not listed(seen, "thinking_blocks")

    def test_exposure_none_shows_no_native_summary(self) -> None:
        output = [summarized(0, "In short.", encrypted_content="a"), message_item(1, ANSWER)]
        assert "In short" not in json.dumps(run(output, expose="none").chunks)


class TestCalls:
    PATCH = Tool("apply_patch", "custom", client_name="apply_patch")

    def called(self, *pieces: str, tool: Tool, custom: bool) -> ChatStream:
        events: list[Event] = [
            ToolCallDelta(
                0,
                None,
                call_index=0,
                id="c" if not number else "",
                name=tool.name if not number else "",
                arguments=piece,
                custom=custom,
            )
            for number, piece in enumerate(pieces)
        ]
        echo = RequestEcho({}, {tool.name: tool})
        return compose(*events, Finished(0, None, "tool_calls"), echo=echo)

    def test_a_custom_tools_input_streams(self) -> None:
        seen = self.called("*** ", "Begin", tool=self.PATCH, custom=True)
        assert self.custom(seen) == [{"name": "apply_patch", "input": "*** "}, {"input": "Begin"}]

    def test_a_custom_tool_offered_as_a_function_gets_its_text(self) -> None:
        pieces = '{"input": "*** ', 'Begin"}'
        seen = self.called(*pieces, tool=as_function(self.PATCH), custom=False)
        assert self.custom(seen) == [
            {"name": "apply_patch", "input": ""},
            {"input": "*** Begin"},
        ]

    def custom(self, seen: ChatStream) -> list[dict[str, str]]:
        return [
            call["custom"]
            for chunk in seen.chunks
            for choice in chunk["choices"]
            for call in choice["delta"].get("tool_calls", ())
        ]

    def test_a_custom_tools_input_is_whole_in_a_message(self) -> None:
        writer = ChatWriter(
            PROFILES["auto"], Display(), RequestEcho({}, {"p": self.PATCH}), LIMIT, Minting()
        )
        writer.note(
            ToolCallDelta(0, None, call_index=0, id="c", name="p", arguments="x", custom=True)
        )
        message = json.loads(writer.write_whole(ResponseEnded(None, None, ok=True)))["choices"][0][
            "message"
        ]
        assert message["tool_calls"] == [
            {"id": "c", "type": "custom", "custom": {"name": "apply_patch", "input": "x"}}
        ]
        assert message["content"] is None

    def test_a_call_without_an_id_gets_one(self) -> None:
        seen = compose(ToolCallDelta(0, None, call_index=0, name="f", arguments="{}"))
        assert seen.choices[0].calls[0]["id"].startswith("call_")


class TestEnds:
    def test_an_error_is_reported_once_unchanged(self) -> None:
        more = {"status": "failed", "error": {"message": "It broke."}}
        seen = run([message_item(0, ANSWER)], more=more)
        assert seen.error is not None
        assert seen.error["message"] == "It broke."
        assert seen.choices[0].text == ANSWER

    def test_a_failed_summary_is_reported_once(self) -> None:
        output = [reasoning_item(0, THOUGHT), call_item(1, "f", "{}"), reasoning_item(2, THOUGHT)]
        seen = run(output, write=None)
        assert seen.choices[0].summary_error == {
            "code": "upstream_error",
            "message": "The summarizer answered 500.",
        }
        assert whole(output, write=None)["choices"][0]["message"]["summary_error"]

    def test_a_failed_summary_may_fail_the_response_after_the_answer(self) -> None:
        output = [reasoning_item(0, THOUGHT), message_item(1, ANSWER)]
        seen = run(output, write=None, plan=SummaryPlan(fail_response=True))
        assert seen.choices[0].text == ANSWER
        assert seen.error
        assert seen.usage is None
        body = whole(output, write=None, plan=SummaryPlan(fail_response=True))
        assert body["error"]["response"]["choices"][0]["message"]["content"] == ANSWER


class TestUsage:
    OUTPUT = (reasoning_item(0, THOUGHT), message_item(1, ANSWER))

    def test_reasoning_tokens_are_upstreams(self) -> None:
        usage = run([*self.OUTPUT]).usage
        assert usage is not None
        assert usage["completion_tokens_details"] == {"reasoning_tokens": 50}
        assert usage["total_tokens"] == 81 + 15
        assert usage["reasoning_summary"]["total_tokens"] == 15

    def test_usage_is_reported_if_requested(self) -> None:
        seen = run([*self.OUTPUT], echo=RequestEcho())
        assert not any("usage" in chunk for chunk in seen.chunks)
        assert seen.done

    def test_usage_comes_last_in_a_separate_chunk(self) -> None:
        chunks = run([*self.OUTPUT]).chunks
        assert chunks[-1]["choices"] == []
        assert all(chunk["usage"] is None for chunk in chunks[:-1])

    def test_usage_that_nobody_reported_is_null(self) -> None:
        last = run([*self.OUTPUT], more={"usage": None}).chunks[-1]
        assert last["usage"] is None
        assert last["reasoning_summary_usage"]["total_tokens"] == 15


def test_log_probabilities_have_their_bytes() -> None:
    entry = {"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "é", "logprob": -2.0}]}
    seen = compose(ContentDelta(0, None, "Yes", [entry]))
    (logprobs,) = [
        choice["logprobs"]
        for chunk in seen.chunks
        for choice in chunk["choices"]
        if "logprobs" in choice
    ]
    assert logprobs["content"][0]["bytes"] == [89, 101, 115]
    assert logprobs["content"][0]["top_logprobs"][0]["bytes"] == [195, 169]


@needs_openapi
def test_a_stream_and_a_body_agree() -> None:
    output = [
        summarized(0, "In short.", encrypted_content="opaque"),
        message_item(1, ANSWER),
        call_item(2, "f", '{"a": 1}'),
    ]
    body, seen = whole(output), run(output)
    (choice,) = body["choices"]
    message, streamed = choice["message"], seen.choices[0]
    assert message["content"] == streamed.text
    assert message["reasoning_content"] == streamed.fields["reasoning_content"]
    assert message["thinking_blocks"] == listed(seen, "thinking_blocks")
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"a": 1}']
    assert choice["finish_reason"] == streamed.finish
    assert body["usage"] == seen.usage
    assert not faults("CreateChatCompletionResponse", body)
    for chunk in seen.chunks:
        assert not faults("CreateChatCompletionStreamResponse", chunk)


def test_a_frame_of_upstreams_never_passes() -> None:
    writer = CHAT.writer(PROFILES["auto"], Display(), RequestEcho(), LIMIT)
    writer.write(ResponseStarted(None, None, "resp_1", "m", 1))
    assert b"upstream" not in writer.write(Passthrough(None, b"data: upstream\n\n"))
