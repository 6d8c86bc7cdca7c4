"""Responses streams: a summary woven into OpenAI's order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.core.events import ErrorDetail
from abridge.core.plan import SummaryPlan
from abridge.providers.catalog import PROFILES
from tests.support.checker import ResponsesStream, check_responses, frames
from tests.support.pipeline import responses
from tests.support.streams import (
    RESPONSES_USAGE,
    THOUGHT,
    call_item,
    frame,
    message_item,
    pieces,
    reasoning_item,
    responses_stream,
    thinking,
)

ANSWER = "One hundred."
OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, ANSWER)]


def run(stream: list[bytes], **settings: Any) -> ResponsesStream:
    return check_responses(responses(**settings).stream(b"".join(stream)))


def edited(stream: list[bytes], kind: str, **changes: Any) -> list[bytes]:
    """The stream with some fields changed in every event of a kind."""
    return [
        frame({**json.loads(data), **changes}, name) if name == kind else raw
        for raw in stream
        for name, data in frames(raw)
    ]


class TestOrder:
    def test_a_summary_in_openais_order(self) -> None:
        seen = run(responses_stream(OUTPUT), expose="summary")
        assert seen.kinds == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            *["response.output_text.delta"] * len(pieces(ANSWER)),
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]

    def test_the_same_text_in_deltas_item_and_final_response(self) -> None:
        seen = run(responses_stream(OUTPUT))
        (item,) = seen.reasoning
        assert item.summary == [f"**Part**\n\nSaid of {len(THOUGHT)} characters."]
        assert item.done is not None
        assert [part["text"] for part in item.done["summary"]] == item.summary
        assert seen.response["output"][0]["summary"] == item.done["summary"]

    def test_several_parts_in_one_item(self) -> None:
        output = [reasoning_item(0, thinking(1000)), message_item(1, ANSWER)]
        seen = run(responses_stream(output), plan=SummaryPlan(part_chars=200))
        assert len(seen.summary) > 2
        assert seen.text == ANSWER

    def test_parts_come_while_the_model_still_thinks(self) -> None:
        pipeline = responses(plan=SummaryPlan(part_chars=200))
        stream = responses_stream([reasoning_item(0, thinking(900)), message_item(1, ANSWER)])
        last = max(place for place, raw in enumerate(stream) if b"reasoning_text.delta" in raw)
        for raw in stream[:last]:
            pipeline.frame(raw)
        assert bytes(pipeline.out).count(b"summary_part.done") >= 3

    def test_raw_and_summary_stand_side_by_side(self) -> None:
        seen = run(responses_stream(OUTPUT))
        assert seen.raw == THOUGHT
        final = seen.response["output"][0]
        assert final["content"] == [{"type": "reasoning_text", "text": THOUGHT}]
        assert final["summary"][0]["type"] == "summary_text"

    def test_reasoning_precedes_parallel_calls_that_share_it(self) -> None:
        output = [reasoning_item(0, THOUGHT), call_item(1, "a", "{}"), call_item(2, "b", "{}")]
        seen = run(responses_stream(output))
        assert [item.type for item in seen.items.values()] == [
            "reasoning",
            "function_call",
            "function_call",
        ]
        assert len(seen.summary) == 1

    def test_reasoning_call_reasoning_call_are_two_items_with_two_summaries(self) -> None:
        output = [
            reasoning_item(0, THOUGHT),
            call_item(1, "a", '{"x": 1}'),
            reasoning_item(2, thinking(700)),
            call_item(3, "b", "{}"),
        ]
        seen = run(responses_stream(output))
        assert [len(item.summary) for item in seen.reasoning] == [1, 1]
        assert seen.items[1].arguments == '{"x": 1}'

    def test_ids_and_indexes_stay_upstreams(self) -> None:
        output = [reasoning_item(0, THOUGHT, encrypted_content="opaque"), message_item(1, ANSWER)]
        seen = run(responses_stream(output))
        assert [item.id for item in seen.items.values()] == ["rs_0", "msg_1"]
        assert seen.response["output"][0]["encrypted_content"] == "opaque"

    def test_untouched_events_go_out_in_their_own_bytes_but_for_their_number(self) -> None:
        spaced = (
            b'event: response.output_text.delta\ndata: {"type" : "response.output_text.delta", '
        )
        spaced += (
            b'"sequence_number" : 99, "output_index": 1, "item_id": "msg_1", "content_index":0'
        )
        spaced += b', "delta": "x", "vendor": 1.0}\n\n'
        stream = responses_stream(OUTPUT)
        place = next(i for i, raw in enumerate(stream) if b"output_text.delta" in raw)
        out = responses().stream(b"".join([*stream[: place + 1], spaced, *stream[place + 1 :]]))
        assert spaced.split(b"99")[0] in out
        assert spaced.split(b"99")[1] in out

    def test_obfuscation_passes_through(self) -> None:
        stream = edited(responses_stream(OUTPUT), "response.output_text.delta", obfuscation="aZ3")
        events = run(stream).events
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        assert all(event["obfuscation"] == "aZ3" for event in deltas)

    def test_a_sequence_number_in_a_tools_schema_is_left_alone(self) -> None:
        tool = {"type": "function", "name": "f", "parameters": {"sequence_number": 7}}
        seen = run(responses_stream(OUTPUT, tools=[tool]))
        assert seen.events[0]["response"]["tools"] == [tool]
        assert seen.response["tools"] == [tool]

    def test_a_sequence_number_within_an_event_without_one_is_left_alone(self) -> None:
        stream, odd = responses_stream(OUTPUT), {"vendor": {"sequence_number": 3}, "n": {}}
        place = next(i for i, raw in enumerate(stream) if b"output_text.delta" in raw)
        given = json.loads(next(data for _, data in frames(stream[place])))
        del given["sequence_number"]
        stream[place] = frame({"type": given["type"], **odd, **given}, given["type"])
        [shown] = [event for event in run(stream).events if "vendor" in event]
        assert {key: shown[key] for key in odd} == odd

    def test_done_after_the_end_passes(self) -> None:
        out = responses().stream(b"".join([*responses_stream(OUTPUT), frame("[DONE]")]))
        assert out.endswith(b"data: [DONE]\n\n")


class TestExposure:
    def test_none_leaves_the_item_empty_in_its_place(self) -> None:
        seen = run(responses_stream(OUTPUT), expose="none")
        assert seen.response["output"][0]["summary"] == []
        assert seen.response["output"][0]["content"] == []
        assert seen.response["output"][1]["id"] == "msg_1"

    def test_opaque_state_stays_unless_it_is_the_reasoning_in_the_clear(self) -> None:
        sealed = [reasoning_item(0, THOUGHT, encrypted_content="gAAAA"), message_item(1, ANSWER)]
        final = run(responses_stream(sealed), expose="summary").response["output"][0]
        assert final["encrypted_content"] == "gAAAA"
        plain = [reasoning_item(0, THOUGHT, encrypted_content=THOUGHT), message_item(1, ANSWER)]
        out = responses(expose="summary").stream(b"".join(responses_stream(plain)))
        assert b"odd numbers" not in out

    def test_the_style_in_the_response_is_the_one_in_effect(self) -> None:
        stream = responses_stream(OUTPUT, reasoning={"effort": "low", "summary": "detailed"})
        assert run(stream).response["reasoning"] == {"effort": "low", "summary": "auto"}
        assert run(stream, expose="raw").response["reasoning"] == {"effort": "low", "summary": None}

    def test_an_unknown_reasoning_event_is_hidden_with_the_rest(self) -> None:
        stream = responses_stream(OUTPUT)
        odd = frame(
            {"type": "response.reasoning_mood.delta", "delta": "odd"},
            "response.reasoning_mood.delta",
        )
        stream.insert(4, odd)
        assert b"mood" not in responses(expose="summary").stream(b"".join(stream))


class TestNative:
    SUMMARY = ({"type": "summary_text", "text": "**Theirs**\n\nI add up."},)
    OUTPUT = (
        {**reasoning_item(0, ""), "summary": list(SUMMARY)},
        message_item(1, ANSWER),
    )

    def test_a_native_summary_passes_untouched_without_a_call(self) -> None:
        stream = b"".join(responses_stream(list(self.OUTPUT), reasoning={"summary": "auto"}))
        pipeline = responses()
        assert pipeline.stream(stream) == stream
        assert not pipeline.passages

    def test_a_native_summary_only_in_the_done_item_counts_as_one(self) -> None:
        stream = [
            raw for raw in responses_stream(list(self.OUTPUT)) if b"reasoning_summary" not in raw
        ]
        pipeline = responses()
        seen = check_responses(pipeline.stream(b"".join(stream)))
        assert not pipeline.passages
        assert seen.response["output"][0]["summary"] == list(self.SUMMARY)

    def test_parts_of_abridge_that_began_first_precede_native_ones(self) -> None:
        both = {**reasoning_item(0, thinking(900)), "summary": list(self.SUMMARY)}
        seen = run(
            responses_stream([both, message_item(1, ANSWER)]), plan=SummaryPlan(part_chars=200)
        )
        assert seen.summary[0].startswith("**Part**")
        assert seen.summary[-1] == self.SUMMARY[0]["text"]

    def test_a_summary_that_is_raw_is_treated_as_raw(self) -> None:
        """As Ollama has it: the thinking in the summary, and again in encrypted_content."""
        raw = {
            **reasoning_item(0, ""),
            "summary": [{"type": "summary_text", "text": THOUGHT}],
            "encrypted_content": THOUGHT,
        }
        stream = b"".join(responses_stream([raw, message_item(1, ANSWER)]))
        ollama = PROFILES["ollama"]
        shown = check_responses(responses(profile=ollama).stream(stream))
        assert shown.raw == THOUGHT
        assert shown.summary[0].startswith("**Part**")
        hidden = responses(profile=ollama, expose="summary").stream(stream)
        assert b"odd numbers" not in hidden
        assert check_responses(hidden).summary == shown.summary


class TestUsage:
    def test_merged_the_totals_grow_and_the_share_stands_apart(self) -> None:
        usage = run(responses_stream(OUTPUT)).response["usage"]
        assert usage["input_tokens"] == RESPONSES_USAGE["input_tokens"] + 10
        assert usage["output_tokens"] == RESPONSES_USAGE["output_tokens"] + 5
        assert usage["total_tokens"] == RESPONSES_USAGE["total_tokens"] + 15
        assert usage["output_tokens_details"] == {"reasoning_tokens": 50}
        assert usage["reasoning_summary"]["model"] == "mini"

    def test_separate_the_totals_stay_upstreams(self) -> None:
        usage = run(responses_stream(OUTPUT), merge_usage=False).response["usage"]
        assert usage.pop("reasoning_summary")["parts"] == 1
        assert usage == RESPONSES_USAGE

    def test_usage_that_is_null_stays_null(self) -> None:
        final = run(responses_stream(OUTPUT, usage=None)).response
        assert final["usage"] is None
        assert final["reasoning_summary_usage"]["total_tokens"] == 15


class TestRepair:
    def test_an_item_left_open_is_closed_when_the_next_begins(self) -> None:
        stream = [
            raw
            for raw in responses_stream(OUTPUT)
            if not (b"output_item.done" in raw and b"rs_0" in raw)
        ]
        seen = run(stream)
        assert seen.items[0].done is not None
        assert seen.items[0].done["content"][0]["text"] == THOUGHT
        assert seen.summary

    def test_reasoning_of_a_closed_item_is_a_counted_fault(self) -> None:
        stream = responses_stream(OUTPUT)
        late = next(raw for raw in stream if b"reasoning_text.delta" in raw)
        pipeline = responses()
        seen = check_responses(pipeline.stream(b"".join([*stream[:-2], late, *stream[-2:]])))
        assert pipeline.reader.faults == 1
        assert seen.raw == THOUGHT

    def test_numbers_that_are_missing_are_added(self) -> None:
        bare = [
            frame(
                {key: value for key, value in json.loads(data).items() if key != "sequence_number"},
                name,
            )
            for raw in responses_stream(OUTPUT)
            for name, data in frames(raw)
        ]
        assert run(bare).text == ANSWER

    def test_old_names_of_raw_deltas_are_understood(self) -> None:
        stream = [
            raw.replace(b"response.reasoning_text.", b"response.reasoning.")
            for raw in responses_stream(OUTPUT)
        ]
        pipeline = responses()
        seen = check_responses(pipeline.stream(b"".join(stream)))
        assert pipeline.passages[0].text == THOUGHT
        assert seen.raw == THOUGHT
        assert seen.summary

    def test_reasoning_only_in_the_done_item_is_summarized_too(self) -> None:
        stream = [
            raw
            for raw in responses_stream(OUTPUT)
            if not any(
                name in raw for name in (b"reasoning_text.d", b'"reasoning_text", "text": ""')
            )
            or b"output_item" in raw
            or b"completed" in raw
        ]
        pipeline = responses()
        pipeline.stream(b"".join(stream))
        assert [passage.text for passage in pipeline.passages] == [THOUGHT]


class TestEnds:
    def test_incomplete_is_an_ordinary_end(self) -> None:
        details = {"reason": "max_output_tokens"}
        stream = responses_stream(OUTPUT, status="incomplete", incomplete_details=details)
        seen = run(stream)
        assert seen.terminal is not None
        assert seen.terminal["type"] == "response.incomplete"
        assert seen.response["incomplete_details"] == details
        assert seen.summary

    def test_an_item_that_a_length_stop_leaves_open_is_incomplete(self) -> None:
        stream = responses_stream(OUTPUT[:1], status="incomplete")
        left_open = [raw for raw in stream if b"output_item.done" not in raw]
        seen = run(left_open)
        assert seen.items[0].done is not None
        assert seen.items[0].done["status"] == "incomplete"

    @pytest.mark.parametrize("kept", [1, 2, 6, 20, -3, -1])
    def test_a_stream_cut_short_ends_failed(self, kept: int) -> None:
        seen = run(responses_stream(OUTPUT)[:kept], plan=SummaryPlan(part_chars=60))
        assert seen.terminal is not None
        assert seen.terminal["type"] == "response.failed"
        assert seen.response["status"] == "failed"
        assert seen.response["error"]["code"] == "server_error"

    def test_cut_after_thinking_the_items_that_were_done_are_in_the_failed_response(self) -> None:
        seen = run(responses_stream(OUTPUT)[:-3])
        assert [item["id"] for item in seen.response["output"]] == ["rs_0"]
        assert seen.response["output"][0]["summary"][0]["text"] == seen.summary[0]

    def test_nothing_follows_the_end_but_done(self) -> None:
        stream, pipeline = responses_stream(OUTPUT), responses()
        late = frame({"type": "error", "code": "q", "message": "late", "param": None}, "error")
        done = frame("[DONE]")
        out = pipeline.stream(b"".join([*stream, late, stream[5], done]))
        assert check_responses(out).response["status"] == "completed"
        assert out.endswith(done)
        assert pipeline.reader.faults == 2

    def test_a_stream_that_never_began_is_an_error(self) -> None:
        seen = run([])
        assert seen.errors[0]["code"] == "upstream_error"

    def test_an_error_event_and_response_failed_pass_as_they_came(self) -> None:
        error = {"type": "error", "sequence_number": 2, "error": {"message": "quota", "code": "q"}}
        failed = responses_stream(OUTPUT, status="failed", error={"code": "q", "message": "quota"})
        stream = [*failed[:2], frame(error, "error"), failed[-1]]
        seen = run(stream)
        assert seen.errors[0]["error"] == error["error"]
        assert seen.response["error"] == {"code": "q", "message": "quota"}

    def test_an_error_event_alone_is_followed_by_response_failed(self) -> None:
        error = {"type": "error", "code": "q", "message": "quota", "param": None}
        seen = run([*responses_stream(OUTPUT)[:4], frame(error, "error")])
        assert seen.kinds[-2:] == ["error", "response.failed"]
        assert seen.response["error"]["message"] == "quota"

    @pytest.mark.parametrize("expose", ["both", "none"])
    def test_so_is_one_without_a_type(self, expose: str) -> None:
        broken = [*responses_stream(OUTPUT)[:4], frame({"error": {"message": "quota"}})]
        seen = check_responses(responses(expose=expose).stream(b"".join(broken)))
        assert seen.kinds[-2:] == ["error", "response.failed"]
        assert ("quota" in seen.response["error"]["message"]) is (expose == "both")

    def test_but_not_one_that_only_says_that_there_is_none(self) -> None:
        frames = responses_stream(OUTPUT)
        frames.insert(4, frame({"note": 1, "error": None}))
        assert b"event: error" not in responses(expose="both").stream(b"".join(frames))

    def test_the_cause_of_a_broken_connection_is_in_the_response(self) -> None:
        pipeline = responses()
        for raw in responses_stream(OUTPUT)[:5]:
            pipeline.frame(raw)
        pipeline.close(ErrorDetail("upstream_error", "Upstream fell silent."))
        seen = check_responses(bytes(pipeline.out))
        assert seen.response["error"]["message"] == "Upstream fell silent."


class TestFailedSummary:
    def test_omit_keeps_the_answer_and_marks_the_item(self) -> None:
        seen = run(responses_stream(OUTPUT), write=None)
        assert seen.text == ANSWER
        final = seen.response["output"][0]
        assert final["summary"] == []
        assert final["summary_error"]["code"] == "upstream_error"
        assert seen.response["status"] == "completed"

    def test_fail_ends_with_response_failed_that_carries_the_output(self) -> None:
        seen = run(responses_stream(OUTPUT), write=None, plan=SummaryPlan(fail_response=True))
        assert seen.terminal is not None
        assert seen.terminal["type"] == "response.failed"
        assert seen.response["output"][1]["content"][0]["text"] == ANSWER
        assert seen.response["usage"]["total_tokens"]
        assert seen.response["error"]["code"] == "server_error"


def test_a_keep_alive_is_the_last_lifecycle_event_once_more() -> None:
    pipeline = responses()
    stream = responses_stream(OUTPUT)
    for raw in stream[:6]:
        pipeline.frame(raw)
    pipeline.out += pipeline.writer.keep_alive()
    for raw in stream[6:]:
        pipeline.frame(raw)
    seen = check_responses(bytes(pipeline.out))
    assert seen.kinds.count("response.in_progress") == 2


def test_an_item_without_raw_reasoning_gets_no_call() -> None:
    output = [reasoning_item(0, "", encrypted_content="gAAAA"), message_item(1, ANSWER)]
    pipeline = responses()
    seen = check_responses(pipeline.stream(b"".join(responses_stream(output))))
    assert not pipeline.passages
    assert seen.summary == []


def test_original_reasoning_is_recorded_with_its_turn() -> None:
    output = [
        reasoning_item(0, THOUGHT),
        call_item(1, "a", "{}"),
        reasoning_item(2, "Then the text."),
        message_item(3, ANSWER),
    ]
    pipeline = responses()
    pipeline.stream(b"".join(responses_stream(output)))
    first, second = pipeline.recorded_turns()
    assert first.original == [output[0]]
    assert first.turn.calls[0].id == "call_1"
    assert first.item_keys == ((0, 0),)
    assert second.original == [output[2]]
    assert second.turn.text == ANSWER
    assert second.item_keys == ((0, 2),)


@given(st.data())
def test_any_split_of_the_bytes_gives_the_same_stream(data: st.DataObject) -> None:
    stream = b"".join(responses_stream(OUTPUT))
    expose = data.draw(st.sampled_from(["auto", "both", "summary", "raw", "none"]))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    assert responses(expose=expose).stream(stream, cuts) == responses(expose=expose).stream(stream)
