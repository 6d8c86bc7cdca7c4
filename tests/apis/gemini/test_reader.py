"""Test reading Gemini's answers: streams, bodies and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST
from abridge.apis.gemini.api import GEMINI
from abridge.apis.gemini.messages import MADE_ID
from abridge.apis.gemini.reasoning import write_state
from abridge.core.usage import Tokens
from abridge.providers.catalog import PROFILES
from tests.apis.gemini.scripts import (
    USAGE,
    chunk,
    function_call,
    read_frames,
    reader,
    signed,
    stream,
    text,
    thought,
    whole,
)
from tests.apis.messages.legality import ReadAnswer, check_events
from tests.support.streams import THOUGHT, frame

PARTS = [
    thought(THOUGHT),
    text("I look. "),
    signed(function_call("fc_1", city="Paris", days=[1, 2]), "c2lnbmVk"),
    function_call("fc_2"),
]


def read(parts: list[dict[str, Any]], reason: str = "STOP", *, streamed: bool) -> ReadAnswer:
    if streamed:
        return check_events(read_frames(stream(parts, reason)))
    return check_events(reader().read_whole(json.dumps(whole(parts, reason)).encode()))


STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


class TestEvents:
    @STREAMED
    def test_thoughts_text_and_calls(self, *, streamed: bool) -> None:
        seen = read(PARTS, streamed=streamed)
        assert seen.lines == [
            ("opened", "0"),
            ("raw", THOUGHT),
            ("closed",),
            ("text", "I look. "),
            ("opened", "1"),
            ("signed", write_state(0, "c2lnbmVk")),
            ("closed",),
            ("call", "0"),
            ("call", "1"),
        ]
        first, second = seen.calls
        assert [*first[:2], json.loads(first[2])] == [
            "fc_1",
            "look",
            {"city": "Paris", "days": [1, 2]},
        ]
        assert second == ["fc_2", "look", "{}"]
        assert seen.reason == "tool_calls"

    @STREAMED
    def test_a_calls_signature_belongs_to_the_thoughts_before_it(self, *, streamed: bool) -> None:
        seen = read([thought("Hm."), signed(function_call("fc_1"), "c2ln")], streamed=streamed)
        assert seen.lines == [
            ("opened", "0"),
            ("raw", "Hm."),
            ("signed", write_state(0, "c2ln")),
            ("closed",),
            ("call", "0"),
        ]

    @STREAMED
    def test_a_call_is_never_taken_for_a_thought(self, *, streamed: bool) -> None:
        seen = read([{**function_call("fc_1"), "thought": True}], streamed=streamed)
        assert seen.lines == [("call", "0")]

    @STREAMED
    def test_a_texts_signature_is_no_part_of_the_text(self, *, streamed: bool) -> None:
        seen = read([text("Yes."), signed(text(" Or no."), "c2ln")], streamed=streamed)
        assert seen.lines == [("text", "Yes. Or no.")]

    @STREAMED
    def test_a_call_without_an_id_gets_one_that_is_always_the_same(self, *, streamed: bool) -> None:
        parts = [function_call(city="Paris"), function_call(city="Paris")]
        ids = [identity for identity, _, _ in read(parts, streamed=streamed).calls]
        assert ids == [identity for identity, _, _ in read(parts, streamed=streamed).calls]
        assert ids[0] != ids[1]
        assert all(identity.startswith(MADE_ID) for identity in ids)

    @STREAMED
    def test_numbers_of_arguments_stay_as_they_are(self, *, streamed: bool) -> None:
        part = function_call("fc_1", number=12345678901234567890123)
        assert read([part], streamed=streamed).calls[0][2] == '{"number":12345678901234567890123}'

    @STREAMED
    def test_usage_counts_thoughts_as_output(self, *, streamed: bool) -> None:
        end = read(PARTS, streamed=streamed).end
        assert end.usage == Tokens(23, 70, 93, reasoning=50, cached=7)

    def test_what_no_other_api_has_is_counted(self) -> None:
        by = reader()
        code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
        assert check_events(read_frames(stream([code, text("1")]), by)).text == "1"
        assert by.dropped == 1

    def test_what_follows_the_finish_reason_is_read(self) -> None:
        frames = [frame(chunk([text("One")], "STOP")), frame(chunk([text(", two.")]))]
        assert check_events(read_frames(frames)).text == "One, two."


class TestEndings:
    @STREAMED
    @pytest.mark.parametrize(
        ("reason", "expected"),
        [
            ("STOP", "stop"),
            ("OTHER", "stop"),
            ("NEW_REASON", "stop"),
            ("MAX_TOKENS", "length"),
            ("SAFETY", "content_filter"),
            ("RECITATION", "content_filter"),
            ("PROHIBITED_CONTENT", "content_filter"),
        ],
    )
    def test_finish_reasons(self, reason: str, expected: str, *, streamed: bool) -> None:
        assert read([text("One")], reason, streamed=streamed).reason == expected

    @STREAMED
    def test_a_malformed_call_is_a_failure(self, *, streamed: bool) -> None:
        end = read([text("One")], "MALFORMED_FUNCTION_CALL", streamed=streamed).end
        assert end.error is not None
        assert not end.ok
        assert "MALFORMED_FUNCTION_CALL" in end.error.message

    @STREAMED
    def test_a_blocked_prompt_is_filtered_content(self, *, streamed: bool) -> None:
        blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}
        events = (
            read_frames([frame(blocked)])
            if streamed
            else reader().read_whole(json.dumps(blocked).encode())
        )
        assert check_events(events).reason == "content_filter"

    def test_a_stream_without_a_finish_reason_broke_off(self) -> None:
        end = check_events(read_frames([frame(chunk([text("One")]))])).end
        assert (end.ok, end.error) == (False, CONNECTION_LOST)

    def test_an_error_within_a_stream(self) -> None:
        error = {"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}
        seen = check_events(read_frames([frame(chunk([text("One")])), frame(error)]))
        assert seen.failures == ["Overloaded."]
        assert not seen.end.ok

    def test_a_body_that_is_no_answer(self) -> None:
        (ended,) = reader().read_whole(b'{"models": []}')
        assert check_events([ended]).end is ended

    def test_a_chunk_that_cannot_be_read_ends_the_answer(self) -> None:
        seen = check_events(read_frames([frame(chunk([text("One")])), b'data: {"cut": \n\n']))
        assert not seen.end.ok


class TestHidden:
    @STREAMED
    def test_thinking_inside_a_text_is_left_out(self, *, streamed: bool) -> None:
        parts = [thought("Hm."), text("<think>Secret.</think>Yes.")]
        by = reader(hides_raw=True)
        events = (
            read_frames(stream(parts), by)
            if streamed
            else by.read_whole(json.dumps(whole(parts)).encode())
        )
        assert check_events(events).text == "Yes."
        assert by.dropped == 1

    @STREAMED
    def test_thinking_that_a_text_begins_with_is_reasoning(self, *, streamed: bool) -> None:
        parts = [text("<think>Hm.</think>"), text("Yes."), function_call("fc_1"), text("No.")]
        by = reader(hides_raw=True)
        if streamed:
            events = read_frames(stream(parts), by)
        else:
            events = by.read_whole(json.dumps(whole(parts)).encode())
        seen = check_events(events)
        assert (seen.lines[:3], seen.text) == (
            [("opened", "-1"), ("raw", "Hm."), ("closed",)],
            "Yes.No.",
        )
        (turn,) = by.recorded_turns()
        assert turn.item_keys == ((0, -1),)
        assert turn.original == [thought("Hm."), text("Yes."), parts[2], text("No.")]
        assert (turn.raw, turn.turn.text) == ("Hm.", "Yes.No.")

    def test_of_an_answer_that_begins_inside_a_block_only_the_first_text_does(self) -> None:
        parts = [text("</think>Yes."), function_call("fc_1"), text("No.")]
        by = GEMINI.translating_reader(PROFILES["prefilled"], Display(hides_raw=True), 1 << 20)
        assert check_events(read_frames(stream(parts), by)).text == "Yes.No."

    def test_text_that_is_held_back_stays_before_what_follows_it(self) -> None:
        parts = [text("a <"), function_call("fc_1"), text("b <"), thought("Hm."), text("c <")]
        seen = check_events(read_frames(stream(parts), reader(hides_raw=True)))
        assert [line for line in seen.lines if line[0] in ("text", "call")] == [
            ("text", "a <"),
            ("call", "0"),
            ("text", "b <"),
            ("text", "c <"),
        ]

    def test_an_error_is_told_in_other_words(self) -> None:
        error = frame({"error": {"message": "I think: secret."}})
        (failure,) = check_events(
            read_frames([frame(chunk([text("One")])), error], reader(hides_raw=True))
        ).failures
        assert "secret" not in failure


class TestRecordedTurns:
    @STREAMED
    def test_the_original_is_the_whole_answer(self, *, streamed: bool) -> None:
        by = reader()
        parts = [*PARTS[:1], text("I look. "), signed(text("Here."), "dGV4dA=="), *PARTS[2:]]
        if streamed:
            read_frames(stream(parts), by)
        else:
            by.read_whole(json.dumps(whole(parts)).encode())
        (turn,) = by.recorded_turns()
        assert _joined(turn.original) == _joined(parts)
        assert turn.raw == THOUGHT
        assert turn.turn.text == "I look. Here."
        assert [call.id for call in turn.turn.calls] == ["fc_1", "fc_2"]

    def test_an_answer_without_thinking_is_recorded_as_bare(self) -> None:
        by = reader()
        read_frames(stream([text("Yes.")]), by)
        (turn,) = by.recorded_turns()
        assert turn.is_bare
        assert turn.turn.text == "Yes."

    def test_nothing_is_kept_beyond_the_limit(self) -> None:
        by = reader(limit=10)
        read_frames(stream(PARTS), by)
        assert by.recorded_turns() == []


def _joined(parts: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return texts and calls with their signatures, adjacent texts of one kind joined."""
    seen: list[tuple[str, Any]] = []
    for part in parts:
        if "text" in part:
            kind = "thought" if part.get("thought") else "text"
            joins = seen and seen[-1][0] == kind
            seen.append((kind, (seen.pop()[1] if joins else "") + part["text"]))
        else:
            seen.append(("call", part["functionCall"]))
        if "thoughtSignature" in part:
            seen.append(("signature", part["thoughtSignature"]))
    return seen
