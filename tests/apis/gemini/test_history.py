"""Test the history of a request for Gemini: its turns, and the changes made to them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from abridge.apis.gemini.history import GeminiHistory, record_turn
from abridge.apis.gemini.reasoning import NO_SIGNATURE
from abridge.core.conversation import Turn
from tests.apis.gemini.scripts import function_call, inline_data, signed, text, thought

Json = dict[str, Any]

ANSWER = [thought("Hm."), text("I look."), signed(function_call("fc_1", a=1), "c2ln")]
SENT = [text("I look."), signed(function_call("fc_1", a=1), NO_SIGNATURE)]
RESULT = {"functionResponse": {"id": "fc_1", "name": "look", "response": {"output": "7"}}}


def history(parts: list[Json]) -> tuple[GeminiHistory, Turn]:
    """Return a history with one turn of the model's, and that turn."""
    contents = [
        {"role": "user", "parts": [text("Hi")]},
        {"role": "model", "parts": deepcopy(parts)},
        {"role": "user", "parts": [RESULT]},
    ]
    read = GeminiHistory(
        {"systemInstruction": {"parts": [text("Be brief.")]}, "contents": contents}
    )
    return read, read.turns[2]


def parts_of(read: GeminiHistory) -> list[Json]:
    parts: list[Json] = read.body()["contents"][1]["parts"]
    return parts


class TestTurns:
    def test_a_placeholder_is_no_signature(self) -> None:
        (_, signed_turn), (_, turn) = history(ANSWER), history(SENT)
        assert signed_turn.has_opaque_state
        assert not turn.has_opaque_state

    def test_a_recorded_answer_is_found_as_the_turn_that_comes_back(self) -> None:
        (recorded,) = record_turn(ANSWER, ((0, 0),))
        assert recorded.turn.encode_identity() == history(SENT)[1].encode_identity()
        assert recorded.turn.encode_canonical() == history(SENT)[1].encode_canonical()

    def test_signatures_and_images_tell_whose_reasoning_it_is(self) -> None:
        read, turn = history([*ANSWER, inline_data("image/png", "iVBO"), *SENT])
        assert read.reasoning_states(turn) == {"c2ln", "iVBO"}


class TestRestoring:
    def test_an_answer_comes_back_as_the_model_wrote_it(self) -> None:
        read, turn = history(SENT)
        read.restore(turn, ANSWER)
        assert parts_of(read) == ANSWER

    def test_a_texts_signature_comes_back_at_its_part(self) -> None:
        original = [text("Yes."), signed(text(""), "c2ln")]
        read, turn = history([text("Yes.")])
        read.restore(turn, original)
        assert parts_of(read) == original

    def test_an_edited_answer_keeps_the_edit_and_its_calls_their_signatures(self) -> None:
        read, turn = history([text("I looked."), *SENT[1:]])
        read.restore(turn, ANSWER)
        assert parts_of(read) == [thought("Hm."), text("I looked."), ANSWER[2]]

    def test_an_edited_text_gets_no_signature_of_another(self) -> None:
        read, turn = history([text("No.")])
        read.restore(turn, [thought("Hm."), signed(text("Yes."), "c2ln")])
        assert parts_of(read) == [thought("Hm."), text("No.")]

    def test_a_call_that_was_never_signed_keeps_its_placeholder(self) -> None:
        read, turn = history(SENT)
        read.restore(turn, [*ANSWER[:2], function_call("fc_1", a=1)])
        assert parts_of(read) == [*ANSWER[:2], SENT[1]]

    def test_calls_of_the_current_turn_that_lose_their_signature_are_marked(self) -> None:
        read, turn = history([*ANSWER, function_call("fc_2")])
        assert read.drop_reasoning(turn)
        assert parts_of(read) == [*SENT, function_call("fc_2")]
        assert not read.drop_reasoning(read.turns[2])

    def test_calls_of_an_earlier_turn_lose_their_signature(self) -> None:
        read, turn = history(ANSWER)
        read.body()["contents"].append({"role": "user", "parts": [text("And?")]})
        assert read.drop_reasoning(turn)
        assert parts_of(read) == [text("I look."), function_call("fc_1", a=1)]
