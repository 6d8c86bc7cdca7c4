"""Test that a sloppy stream goes out to a client of Messages as a legal one, with every word."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Exposure
from abridge.apis.frames import encode_event
from tests.apis.messages.scripts import (
    USAGE,
    begin,
    delta,
    event,
    finish_at_once,
    start,
    stop,
    text,
    thinking,
    tool_use,
)
from tests.support.checker import check_chat
from tests.support.checker import frames as frames_of
from tests.support.messages_checker import MessagesStream, check_messages
from tests.support.pipeline import messages, translating
from tests.support.streams import DONE, frame

THOUGHT = "I think about it."
LOOK = {**tool_use(0), "input": {}}
BLOCKS = {"thinking": {"type": "thinking"}, "text": {"type": "text"}}


def said(*frames: bytes, **given: Any) -> MessagesStream:
    given = {"expose": "raw", **given}
    return check_messages(messages(**given).stream(b"".join(frames)))


def shape(answer: MessagesStream) -> list[tuple[str, Any]]:
    fields = {"thinking": "thinking", "text": "text", "tool_use": "input"}
    return [(block["type"], block[fields[block["type"]]]) for block in answer.blocks]


def end(**usage: Any) -> list[bytes]:
    return finish_at_once()


TURN = [("thinking", THOUGHT), ("text", "So it is.")]
THINKING = delta(0, "thinking", thinking=THOUGHT)
TEXT = delta(1, "text", text="So it is.")


class TestMissing:
    @pytest.mark.parametrize(
        "frames",
        [
            [start(0, thinking("", "")), THINKING, stop(0), start(1, text("")), TEXT, stop(1)],
            [begin(), THINKING, stop(0), TEXT, stop(1)],
            [begin(), start(0, thinking("", "")), THINKING, start(1, text("")), TEXT],
            [begin(), THINKING, TEXT],
            [THINKING, TEXT],
        ],
        ids=["message_start", "starts", "stops", "starts and stops", "all"],
    )
    def test_what_is_left_out_is_made(self, frames: list[bytes]) -> None:
        assert shape(said(*frames, *end())) == TURN

    def test_an_index_may_be_used_again(self) -> None:
        again = delta(0, "text", text="So it is.")
        assert shape(said(begin(), THINKING, again, *end())) == TURN

    def test_indexes_may_have_gaps(self) -> None:
        frames = [start(3, thinking("", "")), delta(3, "thinking", thinking=THOUGHT), stop(3)]
        frames += [start(7, text("")), delta(7, "text", text="So it is."), stop(7)]
        assert shape(said(begin(), *frames, *end())) == TURN

    def test_an_index_may_be_missing(self) -> None:
        for content_block in (text(""), {"type": "text"}):
            frames = [
                event("content_block_start", content_block=content_block),
                event("content_block_delta", delta={"type": "text_delta", "text": "So."}),
                event("content_block_stop"),
            ]
            assert shape(said(begin(), *frames, *end())) == [("text", "So.")]

    @pytest.mark.parametrize("kind", ["ping", "odd"])
    def test_a_block_without_a_stop_ends_before_what_follows_the_answer(self, kind: str) -> None:
        told, last = end()
        assert shape(said(begin(), THINKING, TEXT, told, event(kind), last)) == TURN

    def test_without_a_message_delta_the_reason_to_stop_is_told_by_the_calls(self) -> None:
        stopped = [begin(), start(0, LOOK), stop(0), event("message_stop")]
        assert said(*stopped).stop_reason == "tool_use"
        assert said(begin(), TEXT, stop(1), event("message_stop")).stop_reason == "end_turn"

    @pytest.mark.parametrize("last", [[], [DONE]])
    def test_without_a_message_stop_an_answer_that_gave_its_reason_is_whole(
        self, last: list[bytes]
    ) -> None:
        answer = said(begin(), THINKING, TEXT, end()[0], *last)
        assert answer.stopped
        assert shape(answer) == TURN

    def test_fields_of_the_message_that_are_missing_are_added(self) -> None:
        answer = said(event("message_start", message={"id": "x"}), TEXT, *end())
        assert (answer.message["id"], answer.message["role"]) == ("x", "assistant")
        assert answer.usage["output_tokens"] == USAGE["output_tokens"]

    def test_a_name_of_the_event_is_added(self) -> None:
        frames = [begin(), THINKING, TEXT, *end()]
        nameless = [one[one.index(b"data: ") :] for one in frames]
        assert shape(said(*nameless)) == TURN


class TestContentInStarts:
    def test_it_comes_in_deltas(self) -> None:
        blocks = [thinking(THOUGHT, "c2ln"), text("So it is."), tool_use(0, city="Paris")]
        frames = [one for i, block in enumerate(blocks) for one in (start(i, block), stop(i))]
        answer = said(begin(), *frames, *end())
        assert shape(answer) == [*TURN, ("tool_use", {"city": "Paris"})]
        assert answer.blocks[0]["signature"] == "c2ln"


class TestRepetition:
    def test_a_call_whose_start_is_repeated_is_one_call(self) -> None:
        arguments = delta(0, "input_json", partial_json='{"a":1}')
        answer = said(begin(), start(0, LOOK), start(0, LOOK), arguments, stop(0), *end())
        assert shape(answer) == [("tool_use", {"a": 1})]

    def test_another_call_under_the_index_of_an_open_one_is_another(self) -> None:
        other = {**LOOK, "id": "toolu_1"}
        answer = said(begin(), start(0, LOOK), start(0, other), stop(0), *end())
        assert [call["id"] for call in answer.calls] == ["toolu_0", "toolu_1"]


class TestOrder:
    @pytest.mark.parametrize("order", sorted(set(permutations("aabb"))))
    def test_calls_that_alternate_follow_each_other(self, order: tuple[str, ...]) -> None:
        pieces = {"a": iter(['{"a"', ":1}"]), "b": iter(['{"b"', ":2}"])}
        index = {"a": 0, "b": 1}
        fragments = [
            delta(index[name], "input_json", partial_json=next(pieces[name])) for name in order
        ]
        starts = [start(0, LOOK), start(1, {**LOOK, "id": "toolu_1"})]
        answer = said(begin(), *starts, *fragments, stop(0), stop(1), *end())
        assert shape(answer) == [("tool_use", {"a": 1}), ("tool_use", {"b": 2})]
        assert [call["id"] for call in answer.calls] == ["toolu_0", "toolu_1"]

    @pytest.mark.parametrize("expose", ["both", "summary"])
    @pytest.mark.parametrize("number", [int, float, str])
    def test_blocks_are_told_apart_however_their_index_is_spelled(
        self, number: Callable[[int], Any], expose: Exposure
    ) -> None:
        begun = [start(number(0), text("")), start(number(1), LOOK), start(number(2), LOOK)]
        pieces = [
            frame
            for piece in ('{"a"', ": 1}")
            for frame in (
                delta(number(1), "input_json", partial_json=piece),
                delta(number(0), "text", text="So. "),
                delta(number(2), "input_json", partial_json=piece),
            )
        ]
        sent = [begin(), *begun, *pieces, *(stop(number(index)) for index in range(3)), *end()]
        seen = check_chat(translating("messages", CHAT, expose=expose).stream(b"".join(sent)))
        (choice,) = seen.choices.values()
        assert choice.text == "So. So. "
        assert [each["arguments"] for each in choice.calls.values()] == ['{"a": 1}'] * 2

    def test_a_call_without_arguments_and_stop_holds_up_the_rest_until_the_end(self) -> None:
        answer = said(begin(), start(0, LOOK), start(1, text("")), TEXT, *end())
        assert shape(answer) == [("tool_use", {}), ("text", "So it is.")]

    def test_text_of_a_block_that_was_closed_for_another_goes_on_in_a_new_one(self) -> None:
        more = delta(0, "text", text="More.")
        first = delta(0, "text", text="So.")
        frames = [start(0, text("")), first, start(1, thinking("", "")), more, stop(0), stop(1)]
        assert said(begin(), *frames, *end()).text == "So.More."

    @pytest.mark.parametrize("expose", ["raw", "auto", "summary"])
    def test_usage_may_be_reported_before_the_end(self, expose: Exposure) -> None:
        usage = event("message_delta", delta={}, usage={"output_tokens": 1})
        look = delta(0, "input_json", partial_json='{"a":')
        more = delta(0, "input_json", partial_json="1}")
        frames = [begin(), start(0, LOOK), look, usage, more, stop(0), *end()]
        out = messages(expose=expose).stream(b"".join(frames))
        assert [name for name, _ in frames_of(out)] == [
            name for name, _ in frames_of(b"".join(frames))
        ]

    @pytest.mark.parametrize("expose", ["raw", "auto", "summary", "none"])
    @pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"input_tokens": 11}}])
    def test_a_stop_without_output_tokens_has_those_that_are_known(
        self, expose: Exposure, usage: dict[str, Any]
    ) -> None:
        stopped = event("message_delta", delta={"stop_reason": "end_turn"}, **usage)
        answer = said(begin(), TEXT, stopped, event("message_stop"), expose=expose)
        assert answer.usage["output_tokens"] == 1

    def test_nothing_follows_the_end(self) -> None:
        assert said(begin(), TEXT, *end(), TEXT, *end()).text == "So it is."


class TestFailures:
    @pytest.mark.parametrize("expose", ["raw", "auto", "both", "summary", "none"])
    def test_a_stream_that_breaks_off_ends_in_an_error(self, expose: Exposure) -> None:
        answer = said(begin(), THINKING, expose=expose)
        assert answer.error is not None
        assert not answer.stopped

    @pytest.mark.parametrize("expose", ["raw", "auto", "both", "summary", "none"])
    def test_an_error_of_upstreams_ends_it(self, expose: Exposure) -> None:
        error = {"type": "overloaded_error", "message": "Overloaded"}
        answer = said(begin(), THINKING, event("error", error=error), TEXT, expose=expose)
        assert answer.error is not None
        shown = "Overloaded" if expose in ("raw", "auto", "both") else "Upstream reported an error."
        assert answer.error == {**error, "message": shown}

    @pytest.mark.parametrize("error", ["No.", {"message": "No."}])
    def test_an_error_without_a_type_is_one(self, error: Any) -> None:
        answer = said(begin(), THINKING, frame({"error": error}))
        assert answer.error == {"type": "api_error", "message": "No."}

    def test_an_event_that_cannot_be_read_ends_it(self) -> None:
        assert said(begin(), b'data: {"type": oops}\n\n').error is not None


@pytest.mark.parametrize("body", [b'{"type": "error", "error": {"message": "No."}}', b"[]", b"{}"])
def test_a_body_that_is_no_message_has_failed(body: bytes) -> None:
    pipeline = messages(expose="raw")
    assert pipeline.whole(body) == body
    assert not pipeline.end.ok


def test_what_was_read_is_recorded_as_upstream_sent_it() -> None:
    pipeline = messages(expose="summary")
    block = {**thinking(THOUGHT, "c2ln"), "odd": 1}
    pipeline.whole(json.dumps({"type": "message", "content": [block, text("So.")]}).encode())
    (turn,) = pipeline.recorded_turns()
    assert turn.original == [block]


@pytest.mark.parametrize("expose", ["raw", "summary"])
def test_the_input_of_a_servers_call_may_be_cut_within_a_character(expose: Exposure) -> None:
    call = {"type": "server_tool_use", "id": "srv_0", "name": "search", "input": {}}
    cut = ['{"q": "\ud83d', '\ude00"}']
    pipeline = messages(expose=expose)
    deltas = [
        encode_event(
            "content_block_delta",
            {"index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}},
        )
        for piece in cut
    ]
    thought = [start(0, thinking("")), THINKING, stop(0)]
    frames = [begin(), *thought, start(1, call), *deltas, stop(1), *end()]
    pipeline.stream(b"".join(frames))
    (recorded,) = pipeline.recorded_turns()
    assert recorded.turn.items[-1] == {**call, "input": {"q": "\ud83d\ude00"}}
