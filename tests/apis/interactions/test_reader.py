"""Test reading answers of the Interactions API: streams, bodies and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.endings import UNFINISHED
from abridge.apis.errors import CONNECTION_LOST
from abridge.apis.interactions.reasoning import write_state
from abridge.core.events import STRAY_ARGUMENTS, ContentDelta, Event, ImageDelta
from abridge.core.usage import Tokens
from tests.apis.interactions.scripts import (
    SIGNATURE,
    USAGE,
    event,
    events,
    frames,
    function_call,
    image,
    interaction,
    output,
    read_frames,
    reader,
    stream,
    text,
    thought,
    whole,
)
from tests.apis.messages.legality import ReadAnswer, check_events
from tests.support.streams import DONE, THOUGHT

STEPS = [
    thought(THOUGHT),
    output("I look. "),
    thought("", "Ev8C"),
    function_call("fc_1", city="Paris", days=[1, 2]),
    function_call("fc_2"),
]

Json = dict[str, Any]


def heard(steps: list[Json], status: str = "", *, streamed: bool, **display: Any) -> list[Event]:
    by = reader(**display)
    if streamed:
        return read_frames(stream(steps, status), by)
    return by.read_whole(json.dumps(whole(steps, status)).encode())


def read(steps: list[Json], status: str = "", *, streamed: bool, **display: Any) -> ReadAnswer:
    return check_events(heard(steps, status, streamed=streamed, **display))


def hear(*told: Json, ending: bytes = DONE, **display: Any) -> ReadAnswer:
    return check_events(read_frames([*frames(list(told)), ending], reader(**display)))


def start(index: int, kind: str, **more: Any) -> Json:
    return event("step.start", index=index, step={"type": kind, **more})


def delta(index: int, kind: str, **more: Any) -> Json:
    return event("step.delta", index=index, delta={"type": kind, **more})


def stop(index: int) -> Json:
    return event("step.stop", index=index)


STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
COMPLETED = event("interaction.completed", interaction=interaction("completed", usage=USAGE))


class TestEvents:
    @STREAMED
    def test_thoughts_text_and_calls(self, *, streamed: bool) -> None:
        seen = read(STEPS, streamed=streamed)
        assert seen.lines == [
            ("opened", "0"),
            ("raw", THOUGHT),
            ("signed", write_state(0, SIGNATURE)),
            ("closed",),
            ("text", "I look. "),
            ("opened", "1"),
            ("signed", write_state(1, "Ev8C")),
            ("closed",),
            ("call", "0"),
            ("call", "1"),
        ]
        first, second = seen.calls
        arguments = {"city": "Paris", "days": [1, 2]}
        assert [*first[:2], json.loads(first[2])] == ["fc_1", "look", arguments]
        assert second == ["fc_2", "look", "{}"]
        assert seen.reason == "tool_calls"

    @STREAMED
    def test_an_empty_thought_is_none(self, *, streamed: bool) -> None:
        seen = read([thought("", ""), output("Yes.")], streamed=streamed)
        assert seen.lines == [("text", "Yes.")]

    @STREAMED
    @pytest.mark.parametrize("hides_raw", [True, False])
    def test_images_stand_where_they_were_made(self, *, streamed: bool, hides_raw: bool) -> None:
        steps = [output("See: ", image("image/png", "iVBO"), " Nice?")]
        told = heard(steps, streamed=streamed, carries_images=True, hides_raw=hides_raw)
        kinds = [type(each).__name__ for each in told]
        assert kinds.index("ContentDelta") < kinds.index("ImageDelta")
        said = (each.text for each in told if isinstance(each, ContentDelta))
        assert "".join(said) == "See:  Nice?"
        (shown,) = (each for each in told if isinstance(each, ImageDelta))
        assert (shown.media_type, shown.data) == ("image/png", "iVBO")

    @STREAMED
    @pytest.mark.parametrize("kind", ["image", "audio", "video", "document"])
    def test_media_that_a_client_has_no_form_for_fail_the_answer(
        self, kind: str, *, streamed: bool
    ) -> None:
        medium = {"type": kind, "mime_type": f"{kind}/x", "data": "iVBO"}
        end = read([output("See: ", medium)], streamed=streamed).end
        assert end.error is not None
        assert kind in end.error.message

    @STREAMED
    def test_numbers_of_arguments_stay_as_they_are(self, *, streamed: bool) -> None:
        steps = [function_call("fc_1", number=12345678901234567890123)]
        (call,) = read(steps, streamed=streamed).calls
        assert call[2].replace(" ", "") == '{"number":12345678901234567890123}'

    @STREAMED
    def test_a_call_without_an_id_gets_one_that_is_always_the_same(self, *, streamed: bool) -> None:
        steps = [function_call("", city="Paris"), function_call("", city="Paris")]
        ids = [identity for identity, _, _ in read(steps, streamed=streamed).calls]
        assert ids == [identity for identity, _, _ in read(steps, streamed=streamed).calls]
        assert ids[0] != ids[1]

    @STREAMED
    def test_usage_counts_thoughts_as_output(self, *, streamed: bool) -> None:
        end = read(STEPS, streamed=streamed).end
        assert end.usage == Tokens(23, 70, 93, reasoning=50, cached=7)

    def test_usage_may_come_before_the_end(self) -> None:
        beside = event("step.delta", index=0, delta=text("Hi"), metadata={"total_usage": USAGE})
        completed = event("interaction.completed", interaction=interaction("completed"))
        assert hear(start(0, "model_output"), beside, completed).end.usage == Tokens(
            23, 70, 93, reasoning=50, cached=7
        )

    def test_what_no_other_api_has_is_counted(self) -> None:
        by = reader()
        code = {"type": "code_execution_call", "id": "c", "arguments": {"code": "print(1)"}}
        assert check_events(read_frames(stream([code, output("1")]), by)).text == "1"
        assert by.dropped == 1


class TestStreams:
    """What streams may look like beside those of the documentation's examples."""

    def test_a_step_may_start_with_some_of_its_content(self) -> None:
        told = [
            start(0, "thought", signature="", summary=[text("I consider")]),
            delta(0, "thought_summary", content=text(" it.")),
            delta(0, "thought_signature", signature=SIGNATURE),
            stop(0),
            start(1, "model_output", content=[text("Here")]),
            delta(1, "text", text=" it is."),
            stop(1),
            COMPLETED,
        ]
        assert hear(*told).lines == [
            ("opened", "0"),
            ("raw", "I consider it."),
            ("signed", write_state(0, SIGNATURE)),
            ("closed",),
            ("text", "Here it is."),
        ]

    def test_calls_may_stream_side_by_side(self) -> None:
        calls = [
            start(n, "function_call", id=f"fc_{n}", name="look", arguments={}) for n in range(2)
        ]
        pieces = [
            delta(n, "arguments_delta", arguments=piece)
            for piece in ('{"n":', "1}")
            for n in range(2)
        ]
        seen = hear(*calls, *pieces, stop(0), stop(1), COMPLETED)
        assert seen.calls == [[f"fc_{n}", "look", '{"n":1}'] for n in range(2)]

    def test_deltas_without_a_start_begin_steps(self) -> None:
        told = [
            delta(0, "thought_summary", content=text("Hm.")),
            delta(1, "text", text="Yes."),
            COMPLETED,
        ]
        assert hear(*told).lines == [
            ("opened", "0"),
            ("raw", "Hm."),
            ("closed",),
            ("text", "Yes."),
        ]

    @pytest.mark.parametrize("kind", ["arguments_delta", "function_call"])
    def test_arguments_may_be_an_object(self, kind: str) -> None:
        call = start(0, "function_call", id="fc_1", name="look", arguments={})
        said = [delta(0, kind, arguments=given) for given in ({}, {"a": 1})]
        assert hear(call, *said, stop(0), COMPLETED).calls == [["fc_1", "look", '{"a":1}']]
        assert not hear(said[1], COMPLETED).end.ok

    @STREAMED
    def test_a_call_is_whole_beyond_what_is_kept(self, *, streamed: bool) -> None:
        by = reader(1)
        called = [thought(THOUGHT), function_call("fc_1", a=1)]
        data = json.dumps(whole(called)).encode()
        told = read_frames(stream(called), by) if streamed else by.read_whole(data)
        assert [json.loads(call[2]) for call in check_events(told).calls] == [{"a": 1}]

    def test_arguments_without_a_call_fail_the_answer(self) -> None:
        end = hear(delta(0, "arguments_delta", arguments='{"a":1}'), COMPLETED).end
        assert end.error == STRAY_ARGUMENTS

    def test_arguments_after_the_end_of_their_call_fail_the_answer(self) -> None:
        call = start(0, "function_call", id="fc_1", name="look", arguments={})
        more = delta(0, "arguments_delta", arguments='{"a":1}')
        assert hear(call, stop(0), more, COMPLETED).end.error == STRAY_ARGUMENTS

    def test_thinking_within_a_text_is_reasoning_of_its_own(self) -> None:
        told = [
            start(0, "model_output"),
            delta(0, "text", text="Yes. "),
            delta(0, "thought_summary", content=text("Hm.")),
            delta(0, "text", text="No."),
            stop(0),
            COMPLETED,
        ]
        by = reader()
        seen = check_events(read_frames(frames(told), by))
        assert (seen.raw, seen.text) == (["Hm."], "Yes. No.")
        assert by.recorded_turns()[0].turn.text == "Yes. No."

    def test_any_text_of_a_thought_is_thinking(self) -> None:
        seen = hear(start(0, "thought"), delta(0, "text", text="Hm."), stop(0), COMPLETED)
        assert seen.raw == ["Hm."]

    def test_an_end_may_have_the_steps_that_did_not_stream(self) -> None:
        ended = interaction("completed", steps=[thought("Hm."), output("Yes.")])
        seen = hear(event("interaction.completed", interaction=ended))
        assert (seen.raw, seen.text) == (["Hm."], "Yes.")

    def test_a_stream_needs_no_beginning(self) -> None:
        _, _, *told = events([output("Yes.")])
        assert hear(*told).text == "Yes."

    def test_a_stop_of_no_step_is_a_fault(self) -> None:
        by = reader()
        told = [*events([output("Yes.")])[:-1], stop(0), stop(7), COMPLETED]
        check_events(read_frames(frames(told), by))
        assert by.faults == 2


class TestEndings:
    @STREAMED
    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            ("completed", "stop"),
            ("requires_action", "stop"),
            ("incomplete", "length"),
            ("requires_continuation", "length"),
            ("budget_exceeded", "length"),
            ("new_status", "stop"),
        ],
    )
    def test_finish_reasons(self, status: str, expected: str, *, streamed: bool) -> None:
        assert read([output("One")], status, streamed=streamed).reason == expected

    @STREAMED
    def test_an_answer_that_completes_with_calls_is_to_go_on(self, *, streamed: bool) -> None:
        assert read(STEPS, "completed", streamed=streamed).reason == "tool_calls"

    @STREAMED
    @pytest.mark.parametrize("status", ["failed", "cancelled"])
    def test_a_failure(self, status: str, *, streamed: bool) -> None:
        end = read([output("One")], status, streamed=streamed).end
        assert end.error is not None
        assert status in end.error.message

    def test_a_failure_says_why(self) -> None:
        body = whole([], "failed", errors=[{"code": "x", "message": "No more."}])
        end = check_events(reader().read_whole(json.dumps(body).encode())).end
        assert end.error is not None
        assert end.error.message == "No more."

    @STREAMED
    def test_an_output_may_be_an_error(self, *, streamed: bool) -> None:
        failed = {"type": "model_output", "content": [], "error": {"code": 3, "message": "No."}}
        end = read([output("One"), failed], streamed=streamed).end
        assert end.error is not None
        assert end.error.message == "No."

    def test_a_call_that_was_cut_is_none_that_anybody_runs(self) -> None:
        call = start(0, "function_call", id="fc_1", name="look", arguments={})
        cut = event("interaction.completed", interaction=interaction("incomplete"))
        for said in ([], [delta(0, "arguments_delta", arguments='{"a": ')]):
            seen = hear(call, *said, cut)
            assert seen.reason == "length"
            with pytest.raises(ValueError, match="Expecting"):
                json.loads(seen.calls[0][2])

    def test_a_stream_without_an_end_broke_off(self) -> None:
        end = check_events(read_frames(frames(events([output("One")])[:-1]))).end
        assert (end.ok, end.error) == (False, CONNECTION_LOST)

    @pytest.mark.parametrize(("kept", "error"), [(-1, None), (-2, UNFINISHED)])
    def test_done_alone_ends_what_is_whole(self, kept: int, error: Any) -> None:
        assert hear(*events([output("One")])[:kept]).end.error == error

    def test_an_error_within_a_stream(self) -> None:
        error = event("error", error={"code": "gateway_timeout", "message": "Too late."})
        seen = hear(*events([output("One")])[:-1], error)
        assert seen.failures == ["Too late."]
        assert not seen.end.ok

    def test_an_error_that_is_no_event(self) -> None:
        error = {"error": {"code": "prohibited_content", "message": "No."}}
        told = frames(events([output("One")])[:2])
        seen = check_events(read_frames([*told, json.dumps(error).encode() + b"\n\n"]))
        assert seen.failures == ["No."]

    def test_a_body_that_is_no_answer(self) -> None:
        (ended,) = reader().read_whole(b'{"models": []}')
        assert check_events([ended]).end is ended

    def test_an_event_that_cannot_be_read_ends_the_answer(self) -> None:
        told = [*frames(events([output("One")])[:-1]), b'data: {"cut": \n\n']
        assert not check_events(read_frames(told)).end.ok


class TestRecordedTurns:
    @STREAMED
    def test_the_original_is_the_whole_answer(self, *, streamed: bool) -> None:
        by = reader(carries_images=True)
        steps = [*STEPS, output("Here.", image("image/png", "iVBO"), "There.")]
        if streamed:
            read_frames(stream(steps), by)
        else:
            by.read_whole(json.dumps(whole(steps)).encode())
        (turn,) = by.recorded_turns()
        assert turn.original == steps
        assert turn.raw == THOUGHT
        assert turn.turn.text == "I look. Here.There."
        assert [call.id for call in turn.turn.calls] == ["fc_1", "fc_2"]
        assert turn.item_keys == ((0, 0), (0, 1))

    def test_what_a_whole_answer_says_beside_comes_back_too(self) -> None:
        by = reader()
        steps = [{**thought("Hm."), "new": 1}, {**function_call("fc_1"), "signature": "c2ln"}]
        by.read_whole(json.dumps(whole(steps)).encode())
        assert by.recorded_turns()[0].original == steps

    def test_an_answer_without_thinking_is_recorded_as_bare(self) -> None:
        by = reader()
        read_frames(stream([output("Yes.")]), by)
        (turn,) = by.recorded_turns()
        assert turn.is_bare
        assert turn.turn.text == "Yes."

    def test_nothing_is_kept_beyond_the_limit(self) -> None:
        by = reader(limit=10)
        read_frames(stream(STEPS), by)
        assert by.recorded_turns() == []


class TestHidden:
    @STREAMED
    def test_thinking_that_a_text_begins_with_is_reasoning(self, *, streamed: bool) -> None:
        by = reader(hides_raw=True)
        steps = [output("<think>Hm.</think>Yes."), function_call("fc_1"), output("No.")]
        if streamed:
            told = read_frames(stream(steps), by)
        else:
            told = by.read_whole(json.dumps(whole(steps)).encode())
        seen = check_events(told)
        assert (seen.lines[:3], seen.text) == (
            [("opened", "-1"), ("raw", "Hm."), ("closed",)],
            "Yes.No.",
        )
        (turn,) = by.recorded_turns()
        assert turn.original == [thought("Hm.", ""), output("Yes."), steps[1], output("No.")]

    def test_an_error_is_told_in_other_words(self) -> None:
        error = event("error", error={"code": "x", "message": "I think: secret."})
        (failure,) = hear(*events([output("One")])[:-1], error, hides_raw=True).failures
        assert "secret" not in failure
