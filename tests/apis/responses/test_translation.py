"""Test reading the Responses API for clients of other APIs."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from abridge.apis.display import Display
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.items import ItemContents
from abridge.core.events import ContentDelta, ResponseStarted, ToolCallDelta
from abridge.providers.catalog import PROFILES
from tests.support.streams import (
    THOUGHT,
    call_item,
    frame,
    message_item,
    numbered,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.translated import Call, TranslatedTurn, read_events, read_turn, turn_of

ANSWER = "The sum is 100."
ARGUMENTS = '{"a": 1}'


def translated(stream: list[bytes], **how: Any) -> TranslatedTurn:
    return turn_of(read_events("responses", b"".join(stream), **how))


def summarized(number: int, *parts: str, **more: Any) -> dict[str, Any]:
    item = reasoning_item(number, "", **more)
    item["summary"] = [{"type": "summary_text", "text": text} for text in parts]
    return item


def without(stream: list[bytes], *kinds: str) -> list[bytes]:
    return [raw for raw in stream if not any(f'"type": "{kind}"'.encode() in raw for kind in kinds)]


def both_ways(output: list[dict[str, Any]], **more: Any) -> list[TranslatedTurn]:
    body = json.dumps(response(output, **more)).encode()
    return [
        translated(responses_stream(output, **more)),
        turn_of(read_events("responses", body, streamed=False)),
    ]


def test_a_response_starts_once() -> None:
    events = read_events("responses", b"".join(responses_stream([message_item(0, ANSWER)])))
    began = [event for event in events if isinstance(event, ResponseStarted)]
    assert began == [ResponseStarted(0, None, "resp_1", "thinker-1", 1_700_000_000)]


@pytest.mark.parametrize(
    ("status", "reason", "calls", "stop"),
    [
        ("completed", None, 0, "stop"),
        ("completed", None, 1, "tool_calls"),
        ("incomplete", "max_output_tokens", 1, "length"),
        ("incomplete", "content_filter", 0, "content_filter"),
        ("incomplete", "steered", 0, "length"),
    ],
)
def test_the_finish_reason(status: str, reason: str | None, calls: int, stop: str) -> None:
    details = {"reason": reason} if reason else None
    output = [message_item(0, ANSWER), *[call_item(1, "add", "{}")] * calls]
    for turn in both_ways(output, status=status, incomplete_details=details):
        assert turn.answer.stop == stop


def test_a_call_that_upstream_runs_is_not_translated() -> None:
    search = {"id": "ws_0", "type": "web_search_call", "status": "completed", "action": {}}
    for turn in both_ways([search, message_item(1, ANSWER)]):
        assert turn.answer.stop == "stop"
        assert turn.answer.text == ANSWER


class TestSealed:
    def test_opaque_state_is_the_done_items(self) -> None:
        output = [summarized(0, "In short.", encrypted_content="final"), message_item(1, ANSWER)]
        stream = [
            raw.replace(b'"final"', b'"provisional"') if b"item.added" in raw else raw
            for raw in responses_stream(output)
        ]
        turn = translated(stream)
        assert turn.answer.sealed == [("final", False)]
        assert turn.answer.native == ["In short."]

    @pytest.mark.parametrize("raw", [True, False])
    def test_state_that_repeats_the_reasoning_is_not_opaque(self, *, raw: bool) -> None:
        """It is translated, or hidden, as raw reasoning."""
        for item in (reasoning_item(0, THOUGHT), summarized(0, THOUGHT)):
            output = [{**item, "encrypted_content": THOUGHT}, message_item(1, ANSWER)]
            turn = translated(responses_stream(output), raw=raw)
            assert not turn.answer.sealed


class TestNative:
    def test_a_summary_that_is_raw_reasoning(self) -> None:
        stream = responses_stream([summarized(0, THOUGHT), message_item(1, ANSWER)])
        turn = translated(stream, profile=PROFILES["ollama"])
        assert (turn.answer.raw, turn.answer.native) == (THOUGHT, [])

    def test_an_empty_summary_yields_nothing(self) -> None:
        for turn in both_ways([summarized(0, ""), message_item(1, ANSWER)]):
            assert turn.answer.native in ([], [""])
            assert turn.answer.text == ANSWER


class TestRepair:
    """Test that what a sloppy upstream leaves out is recovered from what it sends."""

    OUTPUT = (reasoning_item(0, THOUGHT), message_item(1, ANSWER), call_item(2, "add", "{}"))
    DELTAS = (
        "response.reasoning_text.delta",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
    )

    def check(self, turn: TranslatedTurn) -> None:
        assert turn.answer.order == ["think", "say", "call 0"]
        assert (turn.answer.raw, turn.answer.text) == (THOUGHT, ANSWER)
        assert turn.answer.calls == [Call("call_2", "add", "{}")]
        assert turn.answer.stop == "tool_calls"

    def test_no_deltas(self) -> None:
        self.check(translated(without(responses_stream([*self.OUTPUT]), *self.DELTAS)))

    def test_items_that_are_only_done(self) -> None:
        kept = ("output_item.done", "response.created", "response.completed")
        stream = responses_stream([*self.OUTPUT])
        self.check(
            translated([raw for raw in stream if any(kind.encode() in raw for kind in kept)])
        )

    def test_only_the_final_response(self) -> None:
        self.check(translated(responses_stream([*self.OUTPUT])[-1:]))

    def test_items_that_are_never_done(self) -> None:
        stream = without(responses_stream([*self.OUTPUT]), "response.output_item.done")
        self.check(translated(stream))

    def test_reasoning_of_no_item(self) -> None:
        stream = responses_stream([*self.OUTPUT])
        added = [raw for raw in stream if b"output_item.added" in raw and b"rs_0" in raw]
        self.check(translated([raw for raw in stream if raw not in added]))

    def test_text_of_no_item(self) -> None:
        stream = responses_stream([*self.OUTPUT])
        added = [raw for raw in stream if b"output_item.added" in raw and b"msg_1" in raw]
        self.check(translated([raw for raw in stream if raw not in added]))

    @pytest.mark.parametrize("event", [{}, {"type": 7}, {"type": "response.new.delta"}])
    def test_unknown_events_are_ignored(self, event: dict[str, Any]) -> None:
        stream = responses_stream([*self.OUTPUT])
        self.check(translated([*stream[:9], frame({**event, "delta": "x"}), *stream[9:]]))

    def test_an_item_whose_id_changes_from_event_to_event(self) -> None:
        stream = responses_stream([*self.OUTPUT])
        changed = [raw.replace(b"msg_1", f"msg_{n}".encode()) for n, raw in enumerate(stream)]
        self.check(translated(changed))

    def test_an_item_that_was_not_added_is_translated_once(self) -> None:
        item, at = message_item(0, ANSWER), {"output_index": 0, "item_id": "msg_0"}
        text_deltas = [
            {"type": "response.output_text.delta", "delta": text} for text in pieces(ANSWER)
        ]
        end = {"type": "response.completed", "response": response([item])}
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        for place, closing in itertools.product((at, {}), ([end], [done, end])):
            deltas = [{**delta, **place} for delta in text_deltas]
            turn = translated(numbered(*deltas, *closing))
            assert turn.answer.messages == {0: ANSWER}

    def test_arguments_that_a_call_is_added_with_are_translated_once(self) -> None:
        item, at = call_item(0, "add", ARGUMENTS), {"output_index": 0, "item_id": "fc_0"}
        added = {"type": "response.output_item.added", "output_index": 0, "item": item}
        delta = {"type": "response.function_call_arguments.delta", **at, "delta": ARGUMENTS}
        end = {"type": "response.completed", "response": response([item])}
        for deltas in ([delta], []):
            (called,) = translated(numbered(added, *deltas, end)).answer.calls
            assert called.arguments == ARGUMENTS


class TestMessages:
    def test_several_are_counted(self) -> None:
        for turn in both_ways([message_item(0, "First."), message_item(1, "Then.")]):
            assert turn.answer.messages == {0: "First.", 1: "Then."}

    def test_log_probabilities(self) -> None:
        at = {"output_index": 0, "item_id": "msg_0", "content_index": 0}
        entry = {"token": "Yes", "logprob": -0.1, "top_logprobs": []}
        item = message_item(0, "Yes")
        stream = numbered(
            {"type": "response.created", "response": response([])},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_text.delta", **at, "delta": "Yes", "logprobs": [entry]},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response([item])},
        )
        events = read_events("responses", b"".join(stream))
        (text_deltas,) = [event for event in events if isinstance(event, ContentDelta)]
        assert text_deltas.logprobs == [entry]

    def test_reasoning_in_a_message_is_no_answer(self) -> None:
        item = message_item(0, ANSWER)
        for kind in ("reasoning_text", "thinking", "summary_text"):
            part = {"type": kind, "text": THOUGHT}
            more = {**item, "content": [part, *item["content"]]}
            body = json.dumps(response([more])).encode()
            assert turn_of(read_events("responses", body, streamed=False)).answer.text == ANSWER
            done = {"type": "response.content_part.done", "output_index": 0, "part": part}
            assert not translated(numbered(done)).answer.text


def test_unknown_items_are_skipped_and_counted() -> None:
    stream = responses_stream([{"id": "x_0", "type": "acme:thing"}, message_item(1, ANSWER)])
    reader = RESPONSES.upstream.translating_reader(PROFILES["auto"], Display(), 1 << 22)
    events = [event for raw in stream for event in reader.read(raw)]
    assert turn_of(events).answer.text == ANSWER
    assert reader.faults == 1


def test_a_call_without_a_name_is_translated_at_its_end() -> None:
    for turn in both_ways([call_item(0, "", "{}"), call_item(1, "add", "{}")]):
        assert turn.answer.calls == [Call("call_0", "", "{}"), Call("call_1", "add", "{}")]


def test_a_calls_head_comes_when_it_is_added() -> None:
    stream = responses_stream([call_item(0, "add", '{"a": 1}')])
    added = next(place for place, raw in enumerate(stream) if b"output_item.added" in raw)
    events = read_events("responses", b"".join(stream[: added + 1]))
    (head,) = [event for event in events if isinstance(event, ToolCallDelta)]
    assert (head.id, head.name, head.arguments) == ("call_0", "add", "")


def test_no_arguments_are_an_empty_object_unless_they_were_cut_short() -> None:
    call = call_item(0, "add", "")
    for turn in both_ways([call]):
        assert turn.answer.calls[0].arguments == "{}"
    for turn in both_ways([{**call, "status": "incomplete"}], status="incomplete"):
        assert turn.answer.calls[0].arguments == ""


class TestFailure:
    def test_a_cut(self) -> None:
        turn = translated(responses_stream([reasoning_item(0, THOUGHT)])[:-3])
        assert turn.ok is False
        assert turn.error is not None

    def test_a_failed_response(self) -> None:
        error = {"code": "server_error", "message": "It broke."}
        for turn in both_ways([message_item(0, ANSWER)], status="failed", error=error):
            assert turn.ok is False
            assert turn.error is not None
            assert turn.error.message == "It broke."
            assert turn.answer.stop is None

    def test_a_cancelled_response(self) -> None:
        body = json.dumps(response([message_item(0, ANSWER)], status="cancelled")).encode()
        turn = turn_of(read_events("responses", body, streamed=False))
        assert turn.ok is False
        assert turn.answer.text == ANSWER

    @pytest.mark.parametrize("named", [{"type": "error"}, {}], ids=["typed", "untyped"])
    @pytest.mark.parametrize("said", [{"message": "It broke."}, "It broke."])
    def test_an_error_event(self, named: dict[str, str], said: object) -> None:
        error = {**named, "error": said}
        turn = translated([*responses_stream([])[:1], frame(error)])
        assert turn.error is not None
        assert turn.error.message == "It broke."

    def test_a_body_that_is_no_response(self) -> None:
        assert read_turn("responses", b"[]", streamed=False).ok is False


def test_deltas_do_not_add_up_what_was_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    added_up = []

    def add_up(repair: ItemContents) -> str:
        added_up.append(repair)
        return ""

    monkeypatch.setattr(ItemContents, "text", property(add_up))
    logprobs = [{"token": "w", "logprob": -0.1, "bytes": [], "top_logprobs": []}]
    stream = responses_stream([message_item(0, ANSWER)])
    stream = [
        each.replace(b'"logprobs":[]', b'"logprobs":%b' % json.dumps(logprobs).encode())
        for each in stream
    ]
    reader = RESPONSES.upstream.translating_reader(PROFILES["auto"], Display(), 1 << 22)
    deltas = [each for each in stream if b"output_text.delta" in each]
    for each in stream[: stream.index(deltas[-1]) + 1]:
        reader.read(each)
    assert len(deltas) > 1
    assert not added_up


@pytest.mark.parametrize("status", ["queued", "in_progress"])
@pytest.mark.parametrize("output", [[], [message_item(0, ANSWER)]], ids=["empty", "begun"])
def test_a_response_that_is_not_finished_is_an_error_that_says_so(
    status: str, output: list[dict[str, Any]]
) -> None:
    body = json.dumps(response(output, status=status)).encode()
    turn = turn_of(read_events("responses", body, streamed=False))
    assert not turn.ok
    assert turn.error is not None
    assert status in turn.error.message


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_in_a_stream_the_last_event_says_that_it_is(status: str) -> None:
    *begun, last = responses_stream([message_item(0, ANSWER)])
    ended = last.replace(b'"status": "completed"', b'"status": "%b"' % status.encode(), 1)
    assert ended != last
    turn = turn_of(read_events("responses", b"".join([*begun, ended]), streamed=True))
    assert (turn.ok, turn.answer.text) == (True, ANSWER)


@pytest.mark.parametrize(
    ("details", "stop"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        ({"reason": "max_tokens"}, "length"),
        (None, "length"),
    ],
)
@pytest.mark.parametrize("calls", [0, 1])
def test_an_incomplete_response_was_cut_by_its_length_unless_it_was_filtered(
    details: dict[str, str] | None, stop: str, calls: int
) -> None:
    output = [message_item(0, ANSWER), *[call_item(1, "add", ARGUMENTS)] * calls]
    body = json.dumps(response(output, status="incomplete", incomplete_details=details)).encode()
    turn = turn_of(read_events("responses", body, streamed=False))
    assert (turn.answer.stop, turn.ok) == (stop, True)
