"""Test Messages streams that do not end as Anthropic's do: no word of them is lost, and no end is
made up. For clients of every API, hidden and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.display import Exposure
from abridge.apis.endings import UNFINISHED
from abridge.apis.errors import SECOND_ANSWER, UNREADABLE
from abridge.apis.messages.api import MESSAGES
from abridge.core.events import STRAY_ARGUMENTS
from tests.apis.messages.scripts import (
    begin,
    delta,
    event,
    finish_at_once,
    message,
    start,
    stop,
    text,
    tool_use,
)
from tests.support.answers import Said, read_said
from tests.support.pipeline import Pipeline, all_clients
from tests.support.shared import RECORDINGS, needs_recordings
from tests.support.streams import DONE

LOOK = {**tool_use(0), "input": {}}
STOP = event("message_stop")
SAID = [start(0, text("")), delta(0, "text", text="Hi"), stop(0)]

shown_and_hidden = pytest.mark.parametrize("expose", ["auto", "raw", "summary", "none"])


def reason(given: str) -> bytes:
    return finish_at_once(given)[0]


def fragment(index: int, piece: str) -> bytes:
    return delta(index, "input_json", partial_json=piece)


class Ask:
    """A client of one API, with an upstream that speaks Messages."""

    def __init__(self, client: Api, expose: Exposure) -> None:
        upstream = None if client is MESSAGES else "messages"
        self.client, self.pipeline = client, Pipeline(client, upstream=upstream, expose=expose)

    def hear(self, *frames: bytes) -> Said:
        return read_said(self.client, self.pipeline.stream(b"".join(frames)))

    @property
    def faults(self) -> int:
        return self.pipeline.reader.faults


@pytest.fixture
def ask(client: Api, expose: Exposure) -> Ask:
    return Ask(client, expose)


@all_clients
@shown_and_hidden
class TestContentInTheStartOfTheMessage:
    def test_a_call_is_made_and_why_it_stops_is_told(self, ask: Ask) -> None:
        call = {**tool_use(7, city="Paris"), "caller": {"type": "direct"}}
        begun = event("message_start", message=message([call], "tool_use"))
        said = ask.hear(begun, STOP)
        assert said.calls == [("look", {"city": "Paris"})]
        assert (said.stop, said.failure, ask.faults) == ("tool_calls", None, 0)

    def test_what_follows_it_is_read(self, ask: Ask) -> None:
        begun = event("message_start", message=message([text("One, ")], "tool_use"))
        more = [start(1, LOOK), fragment(1, '{"a":1}'), stop(1)]
        said = ask.hear(begun, *more, *finish_at_once("tool_use"))
        assert (said.text, said.calls, said.stop) == ("One, ", [("look", {"a": 1})], "tool_calls")

    def test_it_is_no_end(self, ask: Ask) -> None:
        begun = event("message_start", message=message([text("Hi")], None))
        assert ask.hear(begun).failure is not None

    @needs_recordings
    def test_programmatic_calls_as_recorded(self, ask: Ask) -> None:
        """But for a figure that Anthropic's models demand since."""
        recorded = (RECORDINGS / "more" / "messages-012a27d9.response.sse").read_bytes()
        figure = b'"web_search_requests":0'
        said = ask.hear(recorded.replace(figure, figure + b',"web_fetch_requests":0'))
        assert said.calls == [("rollDie", {"player": "player2"})]
        assert (said.stop, said.failure, ask.faults) == ("tool_calls", None, 0)


NOTHING = [b"data: null\n\n", b"event: content_block_delta\ndata: null\n\n"]


@all_clients
@shown_and_hidden
class TestAFrameThatSaysNothing:
    @pytest.mark.parametrize("lost", NOTHING)
    def test_it_fails_an_answer_whose_call_is_open(self, ask: Ask, lost: bytes) -> None:
        """A fragment of the arguments may have been in its place."""
        call = [start(0, LOOK), fragment(0, '{"city":'), lost, fragment(0, "}"), stop(0)]
        said = ask.hear(begin(), *call, *finish_at_once("tool_use"))
        assert (said.failure, said.calls) == (UNREADABLE.message, [])

    @pytest.mark.parametrize("beat", [b"event: ping\ndata: null\n\n", b"data: \n\n", b": hi\n\n"])
    def test_a_heartbeat_fails_none(self, ask: Ask, beat: bytes) -> None:
        call = [start(0, LOOK), fragment(0, '{"city":'), beat, fragment(0, "1}"), stop(0)]
        said = ask.hear(begin(), *call, *finish_at_once("tool_use"))
        assert (said.failure, said.calls) == (None, [("look", {"city": 1})])

    def test_where_no_call_is_open_it_is_a_fault(self, ask: Ask) -> None:
        said = ask.hear(begin(), *SAID, NOTHING[0], *finish_at_once())
        assert (said.failure, said.text, ask.faults) == (None, "Hi", 1)


@all_clients
@shown_and_hidden
class TestASecondStart:
    def test_it_fails_the_answer_whose_call_stays_cut(self, ask: Ask) -> None:
        again = event("message_start", message=message([], None, id="msg_2"))
        cut = [begin(), start(0, LOOK), fragment(0, '{"city":"Par')]
        said = ask.hear(*cut, again, *SAID, *finish_at_once())
        assert said.failure == SECOND_ANSWER.message
        assert (said.text, said.stop) == ("", None)

    def test_the_same_message_begun_anew_is_a_second_answer(self, ask: Ask) -> None:
        said = ask.hear(begin(), *SAID, begin(), *SAID, *finish_at_once())
        assert (said.failure, said.text) == (SECOND_ANSWER.message, "Hi")

    def test_one_that_is_only_repeated_is_a_fault(self, ask: Ask) -> None:
        said = ask.hear(begin(), begin(), *SAID, *finish_at_once())
        assert (said.failure, said.text, ask.faults) == (None, "Hi", 1)


@all_clients
@shown_and_hidden
class TestAfterTheReasonToStop:
    def test_text_is_read(self, ask: Ask) -> None:
        more = [start(1, text("")), delta(1, "text", text=", all"), stop(1)]
        said = ask.hear(begin(), *SAID, reason("end_turn"), *more, STOP)
        assert (said.text, said.stop, said.failure) == ("Hi, all", "stop", None)

    def test_a_call_is_read(self, ask: Ask) -> None:
        call = [start(1, LOOK), fragment(1, '{"a":'), fragment(1, "1}"), stop(1)]
        said = ask.hear(begin(), *SAID, reason("tool_use"), *call, STOP)
        assert (said.calls, said.stop) == ([("look", {"a": 1})], "tool_calls")

    def test_the_rest_of_a_call_is_read(self, ask: Ask) -> None:
        call = [start(0, LOOK), fragment(0, '{"a":'), reason("tool_use"), fragment(0, "1}")]
        said = ask.hear(begin(), *call, stop(0), STOP)
        assert (said.calls, said.stop) == ([("look", {"a": 1})], "tool_calls")

    def test_the_last_reason_counts(self, ask: Ask) -> None:
        said = ask.hear(begin(), *SAID, reason("end_turn"), reason("max_tokens"), STOP)
        assert (said.stop, said.failure) == ("length", None)

    def test_a_stream_that_breaks_off_once_it_went_on_is_cut(self, ask: Ask) -> None:
        more = [start(1, text("")), delta(1, "text", text=", al")]
        said = ask.hear(begin(), *SAID, reason("end_turn"), *more)
        assert said.failure is not None
        assert "Hi, al".startswith(said.text)


@all_clients
@shown_and_hidden
class TestAfterTheStopOfABlock:
    def test_text_is_read(self, ask: Ask) -> None:
        late = delta(0, "text", text=", all")
        said = ask.hear(begin(), *SAID, late, *finish_at_once())
        assert (said.text, said.stop, said.failure) == ("Hi, all", "stop", None)

    @pytest.mark.parametrize("given", ["", '{"city":"Paris"}'])
    def test_arguments_fail_the_answer(self, ask: Ask, given: str) -> None:
        """The call was stopped: clients may run it already."""
        call = [start(0, LOOK), fragment(0, given), stop(0), fragment(0, 'is"}')]
        said = ask.hear(begin(), *call, *finish_at_once("tool_use"))
        assert said.failure == STRAY_ARGUMENTS.message
        assert said.stop is None

    def test_blank_arguments_change_nothing(self, ask: Ask) -> None:
        call = [start(0, LOOK), fragment(0, '{"a":1}'), stop(0), fragment(0, " ")]
        said = ask.hear(begin(), *call, *finish_at_once("tool_use"))
        assert (said.calls, ask.faults) == ([("look", {"a": 1})], 1)


@all_clients
@shown_and_hidden
class TestAfterTheStopOfTheMessage:
    def test_a_refusal_is_one(self, ask: Ask) -> None:
        said = ask.hear(begin(), *SAID, STOP, reason("refusal"))
        assert (said.stop, said.text, ask.faults) == ("content_filter", "Hi", 0)

    def test_what_comes_without_a_reason_is_read(self, ask: Ask) -> None:
        more = [start(1, text("")), delta(1, "text", text=", all"), stop(1)]
        assert ask.hear(begin(), *SAID, STOP, *more).text == "Hi, all"


@all_clients
@shown_and_hidden
class TestWithoutAReason:
    def test_an_open_text_fails(self, ask: Ask) -> None:
        said = ask.hear(begin(), *SAID[:-1], STOP)
        assert said.failure == UNFINISHED.message
        assert "Hi".startswith(said.text)

    @pytest.mark.parametrize("other", [[], [start(1, text("Hi")), stop(1)]])
    def test_an_open_call_fails(self, ask: Ask, other: list[bytes]) -> None:
        said = ask.hear(begin(), start(0, LOOK), fragment(0, '{"a":'), *other, STOP)
        assert (said.failure, said.stop) == (UNFINISHED.message, None)

    def test_whole_parts_tell_it(self, ask: Ask) -> None:
        said = ask.hear(begin(), *SAID, STOP)
        assert (said.stop, said.failure, ask.faults) == ("stop", None, 1)

    def test_whole_calls_tell_it(self, ask: Ask) -> None:
        said = ask.hear(begin(), start(0, LOOK), fragment(0, '{"a":1}'), stop(0), STOP)
        assert (said.stop, said.failure, ask.faults) == ("tool_calls", None, 1)

    def test_a_stream_that_just_ends_was_cut(self, ask: Ask) -> None:
        assert ask.hear(begin(), *SAID).failure is not None

    def test_of_a_body_the_parts_tell_it(self, ask: Ask, client: Api) -> None:
        body: Any = json.dumps(message([text("Hi"), tool_use(0)], None)).encode()
        answer = json.loads(ask.pipeline.whole(body))
        assert ask.faults == 1
        if client is MESSAGES:
            assert answer["stop_reason"] == "tool_use"


class TestOrder:
    def test_what_is_no_part_of_the_answer_keeps_its_place(self) -> None:
        odd = event("odd_event", odd=True)
        frames = [begin(), *SAID, reason("end_turn"), odd, STOP]
        out = Pipeline(MESSAGES, expose="raw").stream(b"".join(frames))
        assert out == b"".join(frames)

    def test_done_ends_it_where_the_stop_is_missing(self) -> None:
        frames = [begin(), *SAID, reason("end_turn")]
        out = Pipeline(MESSAGES, expose="raw").stream(b"".join([*frames, DONE]))
        assert out.removeprefix(b"".join(frames)).startswith(b"event: message_stop")

    def test_an_error_after_the_reason_follows_it(self) -> None:
        error = event("error", error={"type": "api_error", "message": "No."})
        frames = [begin(), *SAID, reason("end_turn"), error]
        out = Pipeline(MESSAGES, expose="raw").stream(b"".join(frames))
        assert out == b"".join(frames)
