"""Test repairing Chat Completions streams that leave out required fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display, Exposure
from abridge.providers.catalog import PROFILES
from tests.support.checker import check_chat
from tests.support.openapi import faults
from tests.support.pipeline import chat
from tests.support.shared import needs_openapi
from tests.support.sloppy_streams import CALLS, SLOPPY_CHAT, TEXT
from tests.support.streams import CHAT_USAGE, DONE, THOUGHT, call, chat_stream, chunk, frame


@pytest.fixture(params=SLOPPY_CHAT)
def sloppy(request: pytest.FixtureRequest) -> list[bytes]:
    return SLOPPY_CHAT[request.param]()


@pytest.mark.parametrize("expose", ["auto", "both", "none"])
def test_missing_fields_are_supplied(sloppy: list[bytes], expose: Exposure) -> None:
    seen = check_chat(chat(expose=expose).stream(b"".join(sloppy)))
    choice = seen.choices[0]
    assert (choice.role, choice.text, seen.done) == ("assistant", TEXT, True)
    assert [(each["name"], each["arguments"]) for each in choice.calls.values()] == [*CALLS]
    assert choice.finish in ("stop", "tool_calls")
    assert {each["object"] for each in seen.chunks} == {"chat.completion.chunk"}
    assert len({each["id"] for each in seen.chunks}) == 1


@pytest.mark.parametrize("expose", ["auto", "both", "raw", "summary", "none"])
def test_every_chunk_has_a_finish_reason_and_one_says_it(
    sloppy: list[bytes], expose: Exposure
) -> None:
    seen = check_chat(chat(expose=expose).stream(b"".join(sloppy)))
    said = [choice["finish_reason"] for chunk in seen.chunks for choice in chunk["choices"]]
    assert len([reason for reason in said if reason is not None]) == 1


@pytest.mark.parametrize("expose", ["both", "summary"])
def test_text_that_was_held_back_has_a_finish_reason_too(expose: Exposure) -> None:
    for ending in ([chunk({}, finish="stop"), DONE], [DONE], []):
        seen = check_chat(
            chat(expose=expose).stream(b"".join([chunk({"content": "<thi"}), *ending]))
        )
        choices = [choice for each in seen.chunks for choice in each.get("choices", ())]
        assert choices
        assert all("finish_reason" in choice for choice in choices)


@pytest.mark.parametrize("expose", ["both", "summary", "none"])
def test_a_call_in_a_message_in_the_place_of_a_delta_is_whole(expose: Exposure) -> None:
    sent = {"id": "call_1", "function": {"name": "look", "arguments": "{}"}}
    message = {"content": None, "tool_calls": [sent]}
    said = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    seen = check_chat(chat(expose=expose).stream(frame({"id": "c", "choices": [said]}) + DONE))
    choice = seen.choices[0]
    assert choice.role == "assistant"
    assert [(each["name"], each["arguments"]) for each in choice.calls.values()] == [("look", "{}")]


@pytest.mark.parametrize("expose", ["auto", "both", "summary"])
def test_a_fragment_that_begins_a_call_has_its_type(sloppy: list[bytes], expose: Exposure) -> None:
    seen = check_chat(chat(expose=expose).stream(b"".join(sloppy)))
    deltas = [choice["delta"] for chunk in seen.chunks for choice in chunk["choices"]]
    begun = [call for delta in deltas for call in delta.get("tool_calls") or () if call.get("id")]
    assert [call["type"] for call in begun] == ["function"] * len(CALLS)


def test_a_free_text_call_is_of_another_type() -> None:
    begun = {"index": 0, "id": "call_0", "custom": {"name": "f", "input": "So."}}
    more = {"index": 0, "custom": {"input": " Yes."}}
    out = chat().stream(b"".join(chat_stream(THOUGHT, calls=[begun, more])))
    deltas = [choice["delta"] for each in check_chat(out).chunks for choice in each["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert calls == [{**begun, "type": "custom"}, more]


@needs_openapi
def test_every_chunk_matches_the_description(sloppy: list[bytes]) -> None:
    seen = check_chat(chat(expose="none").stream(b"".join(sloppy)))
    for each in seen.chunks:
        assert not faults("CreateChatCompletionStreamResponse", each)


def test_a_cut_anywhere_fails(sloppy: list[bytes]) -> None:
    finishes = [b'"finish_reason": "stop"' in each for each in sloppy]
    whole = finishes.index(True) if True in finishes else len(sloppy) - 2
    for place in range(1, whole + 1):
        assert check_chat(chat().stream(b"".join(sloppy[:place]))).error is not None


@pytest.mark.parametrize(("calls", "finish"), [([call("f", "{}")], "tool_calls"), ([], "stop")])
def test_done_finishes_unfinished_choices(calls: list[dict[str, object]], finish: str) -> None:
    stream = [
        each.replace(b'"finish_reason": "stop"', b'"finish_reason": null')
        for each in chat_stream(THOUGHT, "So.", calls=calls)
    ]
    seen = check_chat(chat().stream(b"".join(stream)))
    assert seen.choices[0].finish == finish
    assert seen.usage is not None
    assert seen.usage["total_tokens"] > 81


@pytest.mark.parametrize("expose", ["both", "summary"])
def test_a_message_that_repeats_the_deltas_is_said_once(expose: Exposure) -> None:
    whole = frame({"choices": [{"index": 0, "message": {"content": "So."}}]})
    finish = chunk({}, finish="stop")
    for pieces in ([chunk({"content": "So"}), chunk({"content": "."}), whole], [whole]):
        out = chat(expose=expose).stream(b"".join([*pieces, finish, DONE]))
        assert check_chat(out).choices[0].text == "So."


@pytest.mark.parametrize("expose", ["none", "both", "raw"])
def test_a_message_tells_what_no_delta_has_told(expose: Exposure) -> None:
    says = {"role": "assistant", "reasoning_content": THOUGHT, "content": "So."}
    whole = frame({"choices": [{"index": 0, "message": says, "finish_reason": "stop"}]})
    out = chat(expose=expose).stream(b"".join([chunk({"reasoning_content": THOUGHT}), whole, DONE]))
    assert check_chat(out).choices[0].text == "So."
    assert out.count(THOUGHT.encode()) < 2


def test_usage_before_the_answer_is_passed_on() -> None:
    """It comes last, as clients expect it."""
    usage = chunk(usage={"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1})
    finish, pipeline = chunk({}, finish="stop"), chat()
    stream = [chunk({"role": "assistant"}), usage, chunk({"content": "So."}), finish, DONE]
    out = pipeline.stream(b"".join(stream))
    assert out == b"".join([*stream[:1], *stream[2:4], usage, DONE])
    assert check_chat(out).usage is not None
    assert pipeline.end.usage is not None
    assert pipeline.end.usage.total == 1


@pytest.mark.parametrize("expose", ["both", "summary"])
@pytest.mark.parametrize("finish", [[chunk({}, finish="stop")], []], ids=["finish", "no finish"])
def test_usage_beside_an_earlier_delta_is_in_the_last_chunk(
    expose: Exposure, finish: list[bytes]
) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    thought = chunk({"role": "assistant", "reasoning_content": THOUGHT})
    for delta in ({"content": "So."}, {"role": "assistant", "content": ""}):
        stream = [thought, chunk({"content": "So."}), chunk(delta, usage=usage), *finish, DONE]
        last = check_chat(chat(expose=expose).stream(b"".join(stream))).chunks[-1]
        assert last["usage"]["reasoning_summary"]["total_tokens"] == 15
        assert last["usage"]["total_tokens"] == 18


def test_usage_that_is_reported_again_is_not_repeated() -> None:
    """A server may tell the figures so far with every chunk."""
    usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
    later = chunk({}, finish="stop", usage={**usage, "completion_tokens": 2, "total_tokens": 3})
    stream = [chunk({"role": "assistant", "content": "So."}, usage=usage), later, DONE]
    seen = check_chat(chat().stream(b"".join(stream)))
    reported = [each["usage"]["total_tokens"] for each in seen.chunks if each.get("usage")]
    assert reported == [1, 3]


def test_frames_that_are_no_chunks_are_left_alone() -> None:
    """Azure's filter results come with an empty `object`, by which strict clients know them."""
    prelude = frame(
        {"choices": [], "object": "", "id": "", "model": "", "prompt_filter_results": []}
    )
    later = {"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 1}}
    results = frame({"choices": [later], "object": "", "id": "", "model": "", "created": 0})
    out = chat().stream(b"".join([prelude, *chat_stream("", "So.")[:2], results, *STOP]))
    assert prelude in out
    assert json.loads(results[6:]) in [json.loads(each[6:]) for each in out.split(b"\n\n")[:-2]]


STOP = [chunk({}, finish="stop"), DONE]


def test_a_complete_stream_keeps_its_bytes() -> None:
    stream = chat_stream(THOUGHT, TEXT, calls=[call("f", "{}")])
    reader = CHAT.reader(PROFILES["auto"], Display(), 1 << 20)
    read = [each.frame for one in stream for each in reader.read(one)]
    assert [one for one in read if one is not None] == stream


@pytest.mark.parametrize("delta", [{}, {"images": [1]}, {"content": ""}])
def test_a_finish_beside_the_usage_keeps_its_frame_if_nothing_else_is_said(
    delta: dict[str, object],
) -> None:
    sent = json.loads(chunk(delta, finish="stop")[6:]) | {"usage": CHAT_USAGE}
    stream = [chunk({"role": "assistant", "content": TEXT}), frame(sent), DONE]
    assert chat(expose="raw").stream(b"".join(stream)) == b"".join(stream)
    sent["choices"][0]["delta"] = {"content": "More."}
    seen = check_chat(chat(expose="raw").stream(b"".join([stream[0], frame(sent), DONE])))
    assert (seen.choices[0].text, seen.usage) == (TEXT + "More.", CHAT_USAGE)
    assert seen.chunks[-1]["choices"][0]["delta"] == {}


def test_repaired_fragments_of_calls_that_alternate_stay_apart() -> None:
    """Those that lack the index, and those that lack the finish reason alone."""
    for lacking in ("index", "finish_reason"):
        chunks = []
        for text, number in zip("abcdef", [0, 1] * 3, strict=True):
            fragment = {"index": number, "id": f"call_{number}", "function": {"arguments": text}}
            if lacking == "index":
                del fragment["index"]
            sent = json.loads(chunk({"tool_calls": [fragment]})[6:])
            if lacking == "finish_reason":
                del sent["choices"][0]["finish_reason"]
            chunks.append(frame(sent))
        out = chat().stream(b"".join([chunk({"role": "assistant"}), *chunks, *STOP]))
        deltas = [json.loads(each[6:])["choices"][0]["delta"] for each in out.split(b"\n\n")[1:-3]]
        calls = [call for delta in deltas for call in delta["tool_calls"]]
        assert [(call["index"], call["function"]["arguments"]) for call in calls] == [
            *zip([0, 1] * 3, "abcdef", strict=True)
        ]


class TestIntegersInOtherSpellings:
    """Java's Gson writes `1.0`, and protobuf `"1"` if the type has 64 bits."""

    @pytest.mark.parametrize("expose", ["both", "summary", "none"])
    @pytest.mark.parametrize("number", [int, float, str])
    def test_choices_and_calls_stay_apart(
        self, number: Callable[[int], Any], expose: Exposure
    ) -> None:
        begun = [chunk({"content": "<think>"}, index=number(1))]
        begun += [chunk({"content": text}, index=number(0)) for text in ("So.", "</think>", "Yes.")]
        fragments = [call("look", '{"a"', 0), call("read", '{"b"', 1)]
        fragments += [{"index": index, "function": {"arguments": ": 1}"}} for index in (0, 1)]
        calls = [{**fragment, "index": number(fragment["index"])} for fragment in fragments]
        begun += [chunk({"tool_calls": [fragment]}, index=number(1)) for fragment in calls]
        ends = [chunk({}, index=number(index), finish="stop") for index in (0, 1)]
        seen = check_chat(chat(expose=expose).stream(b"".join([*begun, *ends, DONE])))
        said = [each["arguments"] for each in seen.choices[1].calls.values()]
        assert said == ['{"a": 1}', '{"b": 1}']
        assert not seen.choices[0].calls
        assert {type(each["index"]) for one in seen.chunks for each in one["choices"]} == {int}

    @pytest.mark.parametrize("number", [int, float, str])
    def test_the_totals_of_usage_grow(self, number: Callable[[int], Any]) -> None:
        usage = {"prompt_tokens": number(11), "completion_tokens": number(70)}
        stream = chat_stream(THOUGHT, TEXT, usage=usage)
        seen = check_chat(chat(expose="summary").stream(b"".join(stream)))
        assert seen.usage is not None
        assert (seen.usage["prompt_tokens"], seen.usage["completion_tokens"]) == (21, 75)


@pytest.mark.parametrize("expose", ["both", "none"])
@pytest.mark.parametrize(
    ("indexes", "ids", "expected"),
    [
        ([0, 0, 0, 0], "aabb", [0, 0, 1, 1]),
        ([0, 0, 1, 1], "aabb", [0, 0, 1, 1]),
        ([0, 0, 1, 0], "abca", [0, 1, 2, 0]),
        ([0, 0, 0, 0], "aaaa", [0, 0, 0, 0]),
    ],
)
def test_an_index_that_comes_again_with_another_id_and_a_name_is_another_calls(
    indexes: list[int], ids: str, expected: list[int], expose: Exposure
) -> None:
    sent = [
        {"index": index, "id": identity, "function": {"name": identity, "arguments": "1 "}}
        for index, identity in zip(indexes, ids, strict=True)
    ]
    pipeline = chat(expose=expose)
    chunks = [chunk({"tool_calls": [one]}) for one in sent]
    out = pipeline.stream(b"".join([chunk({"role": "assistant"}), *chunks, *STOP]))
    deltas = [json.loads(each[6:])["choices"][0]["delta"] for each in out.split(b"\n\n")[1:-3]]
    assert [call["index"] for delta in deltas for call in delta["tool_calls"]] == expected
    (recorded,) = pipeline.recorded_turns()
    assert [(one.id, one.arguments) for one in recorded.turn.calls] == [
        (identity, "1 " * ids.count(identity)) for identity in dict.fromkeys(ids)
    ]


class TestAFrameThatSaysNothing:
    NOTHING = b"data: null\n\n"

    @pytest.mark.parametrize("expose", ["auto", "summary", "none"])
    @pytest.mark.parametrize("arguments", ["", '{"city":'])
    def test_it_fails_an_answer_whose_call_is_open(self, expose: Exposure, arguments: str) -> None:
        """A fragment of the arguments may have been in its place."""
        begun = chunk({"tool_calls": [call("look", arguments)]})
        rest = chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})
        ending = [chunk({}, finish="tool_calls"), DONE]
        pipeline = chat(expose=expose)
        seen = check_chat(pipeline.stream(b"".join([begun, self.NOTHING, rest, *ending])))
        assert pipeline.end.ok is False
        assert (seen.done, seen.choices[0].finish) == (False, None)

    @pytest.mark.parametrize("beat", [b"event: ping\ndata: null\n\n", b": hi\n\n"])
    def test_a_heartbeat_fails_none(self, beat: bytes) -> None:
        begun = chunk({"tool_calls": [call("look", "{")]})
        rest = chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})
        pipeline = chat()
        pipeline.stream(b"".join([begun, beat, rest, chunk({}, finish="tool_calls"), DONE]))
        assert pipeline.end.ok

    @pytest.mark.parametrize("said", [{"content": TEXT}, {"tool_calls": [call("look", "{}")]}])
    def test_it_passes_where_no_call_is_open(self, said: dict[str, object]) -> None:
        stream = [chunk(said), self.NOTHING, chunk({}, finish="stop"), DONE]
        pipeline = chat()
        assert self.NOTHING in pipeline.stream(b"".join(stream))
        assert pipeline.end.ok
