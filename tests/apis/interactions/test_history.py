"""Test the history of a request for the Interactions API: its turns, and the changes to them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from abridge.apis.gemini.reasoning import NO_SIGNATURE
from abridge.apis.interactions.history import InteractionsHistory
from abridge.core.conversation import Turn
from tests.apis.interactions.scripts import SIGNATURE, function_call, image, output, text, thought

Json = dict[str, Any]

ANSWER = [thought("Hm."), output("I look."), thought("", "Ev8C"), function_call("fc_1", a=1)]
UNSIGNED = {"type": "thought", "signature": NO_SIGNATURE}
SENT = [output("I look."), UNSIGNED, function_call("fc_1", a=1)]
ASKED = {**output("Hi"), "type": "user_input"}
RESULT: Json = {"type": "function_result", "call_id": "fc_1", "name": "look", "result": "7"}


def history(steps: list[Json], *more: Json) -> tuple[InteractionsHistory, Turn]:
    """Return a history with one turn of the model's, and that turn."""
    given = deepcopy([ASKED, *steps, RESULT, *more])
    read = InteractionsHistory({"system_instruction": "Be brief.", "input": given})
    return read, read.turns[2]


def steps_of(read: InteractionsHistory) -> list[Json]:
    steps: list[Json] = read.body()["input"]
    return steps[1 : steps.index(RESULT)]


class TestTurns:
    def test_a_placeholder_is_no_signature(self) -> None:
        (_, signed_turn), (_, turn) = history(ANSWER), history(SENT)
        assert signed_turn.has_opaque_state
        assert not turn.has_opaque_state

    def test_a_recorded_answer_is_found_as_the_turn_that_comes_back(self) -> None:
        (recorded,) = InteractionsHistory.record_joined_turn(ANSWER, ((0, 0),))
        assert recorded.turn.encode_identity() == history(SENT)[1].encode_identity()
        assert recorded.turn.encode_canonical() == history(SENT)[1].encode_canonical()

    def test_signatures_tell_whose_reasoning_it_is(self) -> None:
        read, turn = history([*ANSWER, UNSIGNED])
        assert read.reasoning_states(turn) == {SIGNATURE, "Ev8C"}

    def test_and_so_do_images(self) -> None:
        read, turn = history([output("See: ", image("image/png", "iVBO"))])
        assert read.reasoning_states(turn) == {"iVBO"}

    def test_the_text_of_a_result_is_read_in_either_form(self) -> None:
        results = [RESULT, {**RESULT, "result": [text("7")]}]
        assert [history([], one)[0].turns[-1].text for one in results] == ["7", "7"]


class TestRestoring:
    def test_an_answer_comes_back_as_the_model_wrote_it(self) -> None:
        read, turn = history(SENT)
        read.restore(turn, ANSWER)
        assert steps_of(read) == ANSWER

    def test_an_answer_comes_back_with_its_images(self) -> None:
        answer = [
            thought("Hm."),
            output("See: ", image("image/png", "iVBO")),
            function_call("fc_1"),
        ]
        read, turn = history([output("See: "), function_call("fc_1")])
        read.restore(turn, answer)
        assert steps_of(read) == answer

    def test_an_edited_answer_keeps_the_edit_after_its_thoughts(self) -> None:
        read, turn = history([output("I looked."), *SENT[1:]])
        read.restore(turn, ANSWER)
        assert steps_of(read) == [ANSWER[0], ANSWER[2], output("I looked."), ANSWER[3]]

    def test_a_call_that_was_never_signed_keeps_its_placeholder(self) -> None:
        read, turn = history(SENT)
        read.restore(turn, [thought("Hm.", ""), output("I look."), ANSWER[3]])
        assert steps_of(read) == [thought("Hm.", ""), *SENT]


class TestStripping:
    def test_a_signature_stays_without_our_summary(self) -> None:
        read, turn = history([thought("Ours."), *ANSWER[1:]])
        assert read.strip(turn, lambda said: said == "Ours.") == (1, False)
        assert steps_of(read) == [thought(), *ANSWER[1:]]


class TestDropping:
    def test_in_the_current_turn_a_signed_call_gets_a_placeholder(self) -> None:
        read, turn = history(ANSWER)
        assert read.drop_reasoning(turn)
        assert steps_of(read) == SENT

    def test_in_an_earlier_turn_nothing_is_left(self) -> None:
        read, turn = history(ANSWER, ASKED)
        assert read.drop_reasoning(turn)
        assert steps_of(read) == [output("I look."), function_call("fc_1", a=1)]
