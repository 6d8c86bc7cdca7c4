"""Test writing Chat Completions streams: every dialect in, one order out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from abridge.apis import sse
from abridge.core.plan import SummaryPlan
from abridge.providers.catalog import PROFILES
from tests.support.checker import ChatStream, check_chat, frames
from tests.support.pipeline import Pipeline, chat
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    THOUGHT,
    call,
    chat_stream,
    chunk,
    completion,
    pieces,
    thinking,
)

ROLE = chunk({"role": "assistant", "content": ""})
SAID = chunk({"content": "So."})
USAGE = chunk(usage=CHAT_USAGE)
STOP = [chunk({}, finish="stop"), DONE]


def run(chunks: list[bytes], **settings: Any) -> ChatStream:
    return check_chat(chat(**settings).stream(b"".join(chunks)))


def thought_in(field: str) -> list[dict[str, Any]]:
    """Return the deltas in which a dialect spells THOUGHT."""
    texts = pieces(THOUGHT)
    match field:
        case "reasoning_details":
            entries = [{"type": "reasoning.text", "text": text, "index": 0} for text in texts]
            return [{field: [entry]} for entry in entries]
        case "reasoning and details":
            deltas = thought_in("reasoning_details")
            return [{**delta, "reasoning": text} for delta, text in zip(deltas, texts, strict=True)]
        case "thinking_blocks":
            return [{field: [{"type": "thinking", "thinking": text, "index": 0}]} for text in texts]
        case "content list":
            return [
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}
                for text in texts
            ]
        case "both":
            return [{"reasoning_content": text, "reasoning": text} for text in texts]
        case "inline":
            return [{"content": text} for text in pieces(f"<think>\n{THOUGHT}</think>\n\n")]
        case _:
            return [{field: text} for text in texts]


DIALECTS = [
    "reasoning_content",
    "reasoning",
    "both",
    "reasoning_details",
    "reasoning and details",
    "thinking_blocks",
    "content list",
    "inline",
]
FIELD = {"reasoning": "reasoning", "reasoning and details": "reasoning"}


@pytest.mark.parametrize("dialect", DIALECTS)
class TestDialects:
    def stream(self, dialect: str) -> list[bytes]:
        return [
            ROLE,
            *map(chunk, thought_in(dialect)),
            *(chunk({"content": text}) for text in pieces("The sum is 100.")),
            *STOP,
        ]

    def test_the_summary_takes_the_raw_reasonings_place(self, dialect: str) -> None:
        pipeline = chat()
        out = pipeline.stream(b"".join(self.stream(dialect)))
        seen = check_chat(out).choices[0]
        field = FIELD.get(dialect, "reasoning_content")
        assert pipeline.passages[0].text.strip() == THOUGHT.strip()
        assert seen.fields[field].startswith("**Part**")
        assert seen.text == "The sum is 100."
        assert seen.order == [field, "content"]
        assert seen.finish == "stop"
        assert b"odd numbers" not in out

    def test_raw_and_summary_are_shown_in_separate_fields(self, dialect: str) -> None:
        seen = run(self.stream(dialect), expose="both").choices[0]
        assert seen.fields["reasoning"].strip() == THOUGHT.strip()
        assert seen.fields["reasoning_content"].startswith("**Part**")
        assert seen.text == "The sum is 100."

    def test_the_original_is_recorded_in_upstreams_dialect(self, dialect: str) -> None:
        pipeline = chat()
        pipeline.stream(b"".join(self.stream(dialect)))
        (recorded,) = pipeline.recorded_turns()
        (original,) = recorded.original
        assert recorded.turn.text == "The sum is 100."
        expected = {
            "reasoning_content": {"reasoning_content": THOUGHT},
            "reasoning": {"reasoning": THOUGHT},
            "both": {"reasoning_content": THOUGHT, "reasoning": THOUGHT},
            "inline": {"content": f"<think>\n{THOUGHT}</think>\n\nThe sum is 100."},
            "content list": {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
                    {"type": "text", "text": "The sum is 100."},
                ]
            },
            "thinking_blocks": {
                "thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "index": 0}]
            },
            "reasoning_details": {
                "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "index": 0}]
            },
            "reasoning and details": {
                "reasoning": THOUGHT,
                "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "index": 0}],
            },
        }
        assert original == expected[dialect]


def test_blank_lines_separate_parts_but_do_not_precede_the_first() -> None:
    summaries = iter(["one", "two", "three", "four"])
    seen = run(
        chat_stream(thinking(1000), "So."),
        plan=SummaryPlan(part_chars=200),
        write=lambda _: next(summaries),
    )
    assert seen.choices[0].fields["reasoning_content"] == "one\n\ntwo\n\nthree\n\nfour"


class TestMixedChunks:
    def test_everything_in_one_chunk_is_split_in_order(self) -> None:
        seen = run(
            [
                chunk(
                    {
                        "role": "assistant",
                        "reasoning": THOUGHT,
                        "content": "Adding.",
                        "tool_calls": [call("add", "{}")],
                    },
                    finish="tool_calls",
                    usage=CHAT_USAGE,
                    x_vendor={"id": 7},
                ),
                DONE,
            ]
        )
        state = seen.choices[0]
        assert (state.role, state.text, state.finish) == ("assistant", "Adding.", "tool_calls")
        assert state.calls[0]["name"] == "add"
        assert state.order == ["reasoning", "content", "tool_calls"]
        assert seen.usage is not None
        assert seen.usage["completion_tokens"] == 75
        assert seen.chunks[-1]["x_vendor"] == {"id": 7}
        assert not any("x_vendor" in chunk for chunk in seen.chunks[:-1])

    def test_reasoning_in_the_chunk_that_finishes_is_summarized(self) -> None:
        seen = run([ROLE, chunk({"reasoning": THOUGHT}, finish="length"), DONE]).choices[0]
        assert seen.finish == "length"
        assert seen.fields["reasoning"].startswith("**Part**")

    def test_text_is_not_lost_from_a_content_list_with_thinking_in_it(self) -> None:
        mixed = [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
            {"type": "text", "text": "So."},
        ]
        out = chat().stream(b"".join([ROLE, chunk({"content": mixed}), *STOP]))
        assert [{"type": "text", "text": "So."}] in [
            choice["delta"].get("content")
            for _, data in frames(out)
            if data != "[DONE]"
            for choice in json.loads(data)["choices"]
        ]

    def test_an_unknown_field_goes_with_the_last_piece_unless_raw_is_hidden(self) -> None:
        stream = [ROLE, chunk({"content": "So.", "reasoning": THOUGHT, "vendor": 1}), *STOP]
        raw = run(stream, expose="raw")
        assert [chunk for chunk in raw.chunks if chunk["choices"][0]["delta"].get("vendor")]
        pipeline = chat(expose="summary")
        out = pipeline.stream(b"".join(stream))
        assert b"vendor" not in out
        assert pipeline.reader.dropped == 1

    def test_log_probabilities_beside_hidden_reasoning_are_dropped(self) -> None:
        beside = frame_with_logprobs({"content": "So.", "reasoning": THOUGHT})
        assert b"odd" not in chat(expose="summary").stream(b"".join([ROLE, beside, *STOP]))
        assert b'"odd"' in chat(expose="both").stream(b"".join([ROLE, beside, *STOP]))

    def test_unknown_fields_of_unchanged_chunks_survive(self) -> None:
        plain = chunk({"content": "So.", "vendor": {"a": 1}}, x_vendor=[1, 2])
        assert plain in chat().stream(b"".join([ROLE, plain, *STOP]))

    @pytest.mark.parametrize(("field", "times"), [("p", 0), ("x_vendor", 1)])
    def test_padding_goes_with_the_reasoning_it_pads_and_other_fields_stay(
        self, field: str, times: int
    ) -> None:
        thoughts = [chunk({"reasoning": text}, **{field: "abc"}) for text in pieces(THOUGHT)]
        answer = chunk({"content": "So."}, **{field: "abcd"})
        seen = run([ROLE, *thoughts, answer, *STOP])
        values = [chunk[field] for chunk in seen.chunks if field in chunk]
        assert values == [*["abc"] * (len(thoughts) * times), "abcd"]


def frame_with_logprobs(delta: dict[str, Any]) -> bytes:
    whole = json.loads(chunk(delta).removeprefix(b"data: "))
    whole["choices"][0]["logprobs"] = {"content": [{"token": "odd", "logprob": -1}]}
    return f"data: {json.dumps(whole)}\n\n".encode()


class TestChoices:
    def test_each_choice_is_a_lane(self) -> None:
        pipeline = chat(write=None)
        stream = [
            chunk({"role": "assistant", "content": ""}, index=0),
            chunk({"role": "assistant", "content": ""}, index=1),
            chunk({"reasoning": "First thoughts."}, index=0),
            chunk({"reasoning": "Second thoughts."}, index=1),
            chunk({"content": "A"}, index=1),
            chunk({"content": "B"}, index=0),
            chunk({}, index=0, finish="stop"),
            chunk({}, index=1, finish="length"),
            DONE,
        ]
        seen = check_chat(pipeline.stream(b"".join(stream)))
        assert [passage.text for passage in pipeline.passages] == [
            "Second thoughts.",
            "First thoughts.",
        ]
        assert [seen.choices[index].text for index in (0, 1)] == ["B", "A"]
        assert [seen.choices[index].finish for index in (0, 1)] == ["stop", "length"]
        assert all(choice.summary_error for choice in seen.choices.values())

    def test_choices_are_announced_in_order_however_they_come(self) -> None:
        stream = [
            chunk({"role": "assistant", "reasoning": THOUGHT}, index=1),
            chunk({"role": "assistant", "reasoning": THOUGHT}, index=0),
            chunk({"content": "B"}, index=1),
            chunk({"content": "A"}, index=0),
            chunk({}, index=0, finish="stop"),
            chunk({}, index=1, finish="stop"),
            DONE,
        ]
        seen = run(stream)
        assert list(seen.choices) == [0, 1]
        assert [choice.role for choice in seen.choices.values()] == ["assistant"] * 2

    @pytest.mark.parametrize("first", [(0, 2), (2,), (1, 2), (2, 0)])
    def test_choices_are_announced_in_order_whichever_a_chunk_holds(
        self, first: tuple[int, ...]
    ) -> None:
        together = json.loads(chunk({"role": "assistant", "content": ""}).removeprefix(b"data: "))
        together["choices"] = [{**together["choices"][0], "index": index} for index in first]
        stream = [
            f"data: {json.dumps(together)}\n\n".encode(),
            *(chunk({"content": str(index)}, index=index) for index in (1, 0, 2)),
            *(chunk({}, index=index, finish="stop") for index in range(3)),
            DONE,
        ]
        out = chat().stream(b"".join(stream))
        assert [choice.text for choice in check_chat(out).choices.values()] == ["0", "1", "2"]
        state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
        for _, data in frames(out)[:-1]:
            state.handle_chunk(ChatCompletionChunk.model_validate_json(data))
        final = state.get_final_completion()
        assert [choice.message.content for choice in final.choices] == ["0", "1", "2"]

    def test_several_choices_in_one_chunk_are_read(self) -> None:
        whole = json.loads(
            chunk({"role": "assistant", "reasoning": THOUGHT}).removeprefix(b"data: ")
        )
        other = {"index": 1, "delta": {"role": "assistant", "content": "A"}, "finish_reason": None}
        whole["choices"].append(other)
        both = f"data: {json.dumps(whole)}\n\n".encode()
        ends = [chunk({}, index=index, finish="stop") for index in (0, 1)]
        seen = run([both, *ends, DONE])
        assert seen.choices[0].fields["reasoning"].startswith("**Part**")
        assert seen.choices[1].text == "A"

    def test_a_role_repeated_in_every_chunk_goes_out_once(self) -> None:
        stream = [
            chunk({"role": "assistant", "reasoning_content": "Hm."}),
            chunk({"role": "assistant", "reasoning_content": " Yes."}),
            chunk({"role": "assistant", "content": "So."}),
            chunk({"role": "assistant", "content": ""}, finish="stop"),
            DONE,
        ]
        for expose in ("auto", "both", "raw", "summary", "none"):
            assert run(stream, expose=expose).choices[0].role == "assistant"


class TestStretches:
    STREAM = (
        ROLE,
        chunk({"reasoning": THOUGHT}),
        chunk({"content": "Let me see. "}),
        chunk({"reasoning": thinking(600)}),
        chunk({"content": "So."}),
        *STOP,
    )

    def test_reasoning_after_text_opens_a_new_stretch(self) -> None:
        seen = run(list(self.STREAM)).choices[0]
        assert seen.order == ["reasoning", "content", "reasoning", "content"]
        assert seen.text == "Let me see. So."

    def test_reasoning_after_the_finish_is_not_summarized(self) -> None:
        pipeline = chat(expose="both")
        late = chunk({"reasoning": thinking(900)})
        pipeline.stream(b"".join([ROLE, chunk({"content": "So."}), STOP[0], late, DONE]))
        assert not pipeline.passages


class TestUsage:
    def test_merged_totals_grow_and_the_share_is_apart(self) -> None:
        usage = run(chat_stream(THOUGHT, "So.")).usage
        assert usage == {
            **CHAT_USAGE,
            "prompt_tokens": 21,
            "completion_tokens": 75,
            "total_tokens": 96,
            "reasoning_summary": {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "model": "mini",
                "parts": 1,
                "incomplete": False,
            },
        }

    def test_separate_totals_stay_upstreams(self) -> None:
        usage = run(chat_stream(THOUGHT, "So."), merge_usage=False).usage
        assert usage is not None
        assert usage.pop("reasoning_summary")["total_tokens"] == 15
        assert usage == CHAT_USAGE

    def test_a_stream_without_usage_shows_none(self) -> None:
        out = chat().stream(b"".join(chat_stream(THOUGHT, "So.", usage=None)))
        assert b"reasoning_summary" not in out

    def test_a_total_alone_stays_as_it_is(self) -> None:
        usage = run(chat_stream(THOUGHT, "So.", usage={"total_tokens": 9})).usage
        assert usage is not None
        assert usage["total_tokens"] == 9

    def test_usage_with_the_finish_stays_with_it_and_comes_last(self) -> None:
        last = chunk({"content": "!"}, finish="stop", usage=CHAT_USAGE)
        seen = run([ROLE, chunk({"reasoning": THOUGHT}), chunk({"content": "So"}), last, DONE])
        assert seen.choices[0].text == "So!"
        assert seen.chunks[-1]["choices"][0]["finish_reason"] == "stop"
        assert seen.chunks[-1]["usage"]["total_tokens"] == 96

    def test_usage_on_every_chunk_is_reported_at_the_end(self) -> None:
        stream = [
            chunk({"role": "assistant", "content": ""}, usage={**CHAT_USAGE, "total_tokens": 1}),
            chunk({"reasoning": THOUGHT}, usage={**CHAT_USAGE, "total_tokens": 2}),
            chunk({"content": "So."}, usage={**CHAT_USAGE, "total_tokens": 3}),
            chunk({}, finish="stop", usage={**CHAT_USAGE, "total_tokens": 4}),
            DONE,
        ]
        out = chat().stream(b"".join(stream))
        totals = [
            json.loads(data)["usage"]["total_tokens"]
            for _, data in frames(out)[:-1]
            if "usage" in data
        ]
        assert totals[-1] == 19
        assert [total for total in totals if total > 4] == [19]

    def test_usage_after_the_finish_with_an_empty_delta_is_last(self) -> None:
        """As OpenRouter sends it: the finish, then a chunk with an empty choice."""
        stream = [
            ROLE,
            chunk({"reasoning": THOUGHT}),
            chunk({"content": "So."}, finish="stop"),
            chunk({"role": "assistant", "content": ""}, usage=CHAT_USAGE),
            DONE,
        ]
        usage = run(stream).usage
        assert usage is not None
        assert usage["total_tokens"] == 96

    @pytest.mark.parametrize(
        "stream",
        [
            [SAID, *STOP[:1], USAGE, DONE],
            [SAID, USAGE, *STOP],
            [SAID, USAGE, DONE],
            [SAID, USAGE],
            [USAGE, SAID, USAGE, SAID, USAGE, *STOP],
            [SAID, USAGE, sse.encode_frame(b'{"error": {"message": "Busy."}}'), DONE],
        ],
        ids=["last", "early", "unfinished", "cut", "often", "before an error"],
    )
    @pytest.mark.parametrize("expose", ["auto", "both", "summary"])
    def test_usage_that_the_client_did_not_ask_for_is_as_if_it_were_not_there(
        self, stream: list[bytes], expose: str
    ) -> None:
        stream = [ROLE, chunk({"reasoning": THOUGHT}), *stream]
        without = [frame for frame in stream if frame is not USAGE]
        seen = chat(expose=expose, hides_usage=True).stream(b"".join(stream))
        assert seen == chat(expose=expose).stream(b"".join(without))


class TestEnds:
    def test_a_stream_cut_short_ends_failed(self) -> None:
        stream = chat_stream(THOUGHT, "The sum is 100.")[:-4]
        out = chat().stream(b"".join(stream))
        seen = check_chat(out)
        assert seen.error is not None
        assert seen.error["code"] == "upstream_error"
        assert not seen.done
        assert seen.choices[0].text

    def test_what_was_shown_before_a_cut_stays(self) -> None:
        pipeline = chat(plan=SummaryPlan(part_chars=100))
        out = pipeline.stream(b"".join(chat_stream(THOUGHT)[:-30]))
        seen = check_chat(out)
        assert seen.error is not None
        assert seen.choices[0].fields["reasoning_content"].startswith("**Part**")

    def test_a_finished_stream_without_done_gets_one(self) -> None:
        seen = run(chat_stream(THOUGHT, "So.")[:-1])
        assert seen.done
        assert seen.error is None

    def test_an_error_chunk_goes_out_unchanged_once_and_last(self) -> None:
        error = b'data: {"error":{"message":"Overloaded","code":529}}\n\n'
        out = chat().stream(b"".join([ROLE, chunk({"reasoning": THOUGHT}), error]))
        assert out.endswith(error)
        assert out.count(b'"error"') == 1

    def test_an_error_chunk_may_still_be_followed_by_done(self) -> None:
        error = b'data: {"error":{"message":"Overloaded","code":529}}\n\n'
        out = chat().stream(b"".join([ROLE, error, DONE]))
        assert out.endswith(error + DONE)

    def test_an_error_chunk_begins_no_choice(self) -> None:
        """OpenRouter's says of its choice no more than that it finishes."""
        broken = {"index": 1, "delta": {"content": ""}, "finish_reason": "error"}
        error = sse.encode_frame(
            json.dumps({"error": {"message": "Busy."}, "choices": [broken]}).encode()
        )
        pipeline = chat()
        pipeline.stream(b"".join([ROLE, chunk({"content": "So."}), error, DONE]))
        assert [turn.turn.text for turn in pipeline.reader.recorded_turns()] == ["So."]

    def test_nothing_follows_the_end(self) -> None:
        late, pipeline = chunk({"content": "late"}), chat()
        seen = check_chat(pipeline.stream(b"".join([*chat_stream(THOUGHT, "So."), late, DONE])))
        assert (seen.choices[0].text, pipeline.reader.faults) == ("So.", 2)

    def test_an_empty_stream_is_a_failure(self) -> None:
        assert check_chat(chat().stream(b"")).error is not None

    @pytest.mark.parametrize("odd", [b"data: what is this\n\n", b'data: ["odd"]\n\n'])
    def test_a_frame_that_is_no_json_object_passes_unless_raw_is_hidden(self, odd: bytes) -> None:
        stream = b"".join([ROLE, odd, chunk({"content": "So."}), *STOP])
        assert odd in chat(expose="both").stream(stream)
        assert odd in chat().stream(stream)
        for expose in ("summary", "none"):
            pipeline = chat(expose=expose)
            out = pipeline.stream(stream)
            assert odd not in out
            assert check_chat(out).choices[0].text == "So."
            assert pipeline.reader.dropped == 1

    @pytest.mark.parametrize("expose", ["both", "summary", "raw", "none"])
    def test_half_a_frame_at_the_end_is_dropped(self, expose: str) -> None:
        half = chunk({"reasoning_content": "secret"})[:-25]
        seen = check_chat(chat(expose=expose).stream(ROLE + half))
        assert seen.error is not None
        assert len(seen.chunks) == 2


class TestFailedSummary:
    def test_a_failed_summary_is_reported_once_beside_the_answer(self) -> None:
        seen = run(chat_stream(THOUGHT, "So."), write=None)
        assert seen.choices[0].text == "So."
        assert seen.choices[0].summary_error == {
            "code": "upstream_error",
            "message": "The summarizer answered 500.",
        }
        assert seen.choices[0].order == ["summary_error", "content"]
        assert seen.done

    def test_a_failed_summary_may_fail_the_stream_after_the_answer(self) -> None:
        seen = run(chat_stream(THOUGHT, "So."), write=None, plan=SummaryPlan(fail_response=True))
        assert seen.choices[0].text == "So."
        assert seen.choices[0].finish == "stop"
        assert seen.error is not None
        assert not seen.done
        assert seen.usage is None


def test_malformed_blocks_are_not_fatal() -> None:
    stream = [
        ROLE,
        chunk({"reasoning_details": [{"type": "reasoning.mystery", "index": 0}, "odd", None]}),
        chunk({"reasoning_details": "no list", "thinking_blocks": {"no": "list"}}),
        chunk({"reasoning": {"structured": "text"}}),
        chunk({"content": [{"type": "image", "image": "…"}, 7]}),
        chunk({"reasoning_content": "", "content": "So."}),
        *STOP,
    ]
    for expose in ("auto", "both", "summary", "raw", "none"):
        pipeline = chat(expose=expose)
        seen = check_chat(pipeline.stream(b"".join(stream)))
        assert seen.choices[0].text.endswith("So.")
        assert not pipeline.passages


def test_a_native_summary_passes_unchanged_without_a_call() -> None:
    details = [{"type": "reasoning.summary", "summary": "I add.", "index": 0}]
    with_both = chunk({"reasoning": "I add.", "reasoning_details": details})
    pipeline = chat()
    out = pipeline.stream(b"".join([ROLE, with_both, chunk({"content": "So."}), *STOP]))
    assert with_both in out
    assert not pipeline.passages
    assert with_both not in chat(expose="none").stream(b"".join([ROLE, with_both, *STOP]))


def deltas(seen: ChatStream) -> list[Any]:
    return [choice["delta"] for chunk in seen.chunks for choice in chunk["choices"]]


@pytest.mark.parametrize("text", ["\n", "late"])
@pytest.mark.parametrize("expose", ["both", "summary", "raw", "none"])
def test_a_native_summary_outside_a_stretch_passes_unchanged_or_not_at_all(
    text: str, expose: str
) -> None:
    details = [{"type": "reasoning.summary", "summary": text, "index": 0}]
    given = chunk({"reasoning_details": details})
    before, after = ([], [given]) if text == "late" else ([given], [])
    stream = [ROLE, *before, chunk({"content": "So."}), STOP[0], *after, DONE]
    pipeline = chat(expose=expose, profile=PROFILES["openrouter"])
    seen = check_chat(pipeline.stream(b"".join(stream)))
    assert seen.choices[0].order == ["content"]
    assert ({"reasoning_details": details} in deltas(seen)) == (expose in ("both", "summary"))
    assert not pipeline.passages


def test_a_blank_native_summary_of_a_whole_completion_is_read() -> None:
    details = [{"type": "reasoning.summary", "summary": "\n", "index": 0}]
    body = completion({"content": "So.", "reasoning_details": details})
    assert json.loads(chat().whole(json.dumps(body).encode())) == body


def test_raw_text_beside_a_native_summary_is_raw() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "I add.", "index": 0},
        {"type": "reasoning.text", "text": "odd thoughts", "index": 1},
    ]
    for delta in (
        {"reasoning_details": details},
        {"reasoning": "odd", "reasoning_details": details[:1]},
    ):
        assert b"odd" not in chat(expose="none").stream(b"".join([ROLE, chunk(delta), *STOP]))


def test_composed_chunks_have_the_answers_header() -> None:
    """Azure sends a prelude first, without a name."""
    prelude = b'data: {"choices":[],"created":0,"id":"","model":"","object":"","filters":[1]}\n\n'
    out = chat().stream(b"".join([prelude, *chat_stream(THOUGHT, "So.")]))
    assert out.startswith(prelude)
    assert {chunk["id"] for chunk in check_chat(out).chunks[1:]} == {"chatcmpl-1"}


def test_an_empty_usage_object_is_no_usage() -> None:
    stream = [ROLE, chunk({"content": "So."}, usage={}), *STOP]
    assert run(stream).choices[0].text == "So."


def test_opaque_state_is_no_reasoning_and_passes() -> None:
    sealed = chunk(
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 0}]}
    )
    for expose in ("auto", "none"):
        seen = check_chat(chat(expose=expose).stream(b"".join([ROLE, sealed, *STOP])))
        assert json.loads(sealed.removeprefix(b"data: ")) == seen.chunks[1]


def test_details_carry_an_index_and_repeat_no_string() -> None:
    out = run(chat_stream(THOUGHT, "So."), details=True)
    details = [
        entry
        for chunk in out.chunks
        for choice in chunk["choices"]
        for entry in choice["delta"].get("reasoning_details", ())
    ]
    assert "".join(entry["summary"] for entry in details).startswith("**Part**")
    assert {entry["index"] for entry in details} == {0}


def test_reasoning_of_a_prefilled_template_needs_the_profile() -> None:
    stream = [
        ROLE,
        *(chunk({"content": text}) for text in pieces(f"{THOUGHT}</think>So.")),
        *STOP,
    ]
    seen = run(stream, profile=PROFILES["prefilled"]).choices[0]
    assert seen.text == "So."
    assert seen.fields["reasoning_content"].startswith("**Part**")


def test_surrogates_and_long_numbers_survive() -> None:
    head = b'"id":"a","object":"chat.completion.chunk","created":0,"model":"m"'
    given = b'[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":null}]'
    odd = b'data: {%s,"choices":%s,"n":NaN}\n\n' % (head, given)
    assert odd in chat().stream(b"".join([ROLE, odd, *STOP]))
    both = odd.replace(b'"content"', b'"reasoning":"\\ud83d","content"')
    assert b"\\ud83d" in chat(expose="both").stream(b"".join([ROLE, both, *STOP]))


@given(st.data())
def test_any_split_of_the_bytes_gives_the_same_stream(data: st.DataObject) -> None:
    dialect = data.draw(st.sampled_from(DIALECTS))
    stream = b"".join([ROLE, *map(chunk, thought_in(dialect)), chunk({"content": "So. 😀"}), *STOP])
    expose = data.draw(st.sampled_from(["auto", "both", "summary", "raw", "none"]))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    whole: Pipeline = chat(expose=expose)
    split = chat(expose=expose)
    assert split.stream(stream, cuts) == whole.stream(stream)
