"""Test answers that upstream ends without saying why, on all pairs of APIs: with a part open they
fail; else they are complete, and their parts tell the reason. A stream that just stops was cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.display import Exposure
from abridge.apis.endings import UNFINISHED
from abridge.apis.errors import CONNECTION_LOST
from tests.apis.gemini import scripts as gemini
from tests.support.answers import Said, read_said
from tests.support.pipeline import Pipeline, all_clients
from tests.support.streams import (
    DONE,
    call,
    call_item,
    chunk,
    completion,
    frame,
    message_item,
    responses_stream,
)

CALLS = [("look", {"a": 1})]
CUT = '{"a":'
WHOLE = '{"a":1}'

shown_and_hidden = pytest.mark.parametrize("expose", ["auto", "raw", "summary", "none"])


class Ask:
    """A client of one API, with an upstream of any."""

    def __init__(self, client: Api, expose: Exposure) -> None:
        self._client, self._expose = client, expose
        self.faults = 0

    def _pipeline(self, upstream: str) -> Pipeline:
        same = upstream == self._client.name
        return Pipeline(self._client, upstream=None if same else upstream, expose=self._expose)

    def hear(self, upstream: str, *frames: bytes) -> Said:
        pipeline = self._pipeline(upstream)
        said = read_said(self._client, pipeline.stream(b"".join(frames)))
        self.faults = pipeline.reader.faults
        return said

    def read(self, upstream: str, body: dict[str, Any]) -> bool:
        """Read a body; return whether its answer is whole."""
        pipeline = self._pipeline(upstream)
        pipeline.whole(json.dumps(body).encode())
        self.faults = pipeline.reader.faults
        return pipeline.end.ok


@pytest.fixture
def ask(client: Api, expose: Exposure) -> Ask:
    return Ask(client, expose)


ROLE = chunk({"role": "assistant"})


def called(*fragments: str) -> list[bytes]:
    """Return chunks with one call, its arguments in these fragments."""
    first, *more = fragments
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in more]
    return [ROLE, *(chunk({"tool_calls": [one]}) for one in (call("look", first), *rest))]


@all_clients
@shown_and_hidden
class TestChatCompletions:
    def test_done_ends_a_text(self, ask: Ask) -> None:
        said = ask.hear("chat", ROLE, chunk({"content": "Hi"}), DONE)
        assert (said.text, said.stop, ask.faults) == ("Hi", "stop", 1)

    def test_done_ends_a_whole_call(self, ask: Ask) -> None:
        said = ask.hear("chat", *called(CUT, "1}"), DONE)
        assert (said.calls, said.stop, ask.faults) == (CALLS, "tool_calls", 1)

    def test_a_call_without_arguments_is_whole(self, ask: Ask) -> None:
        assert ask.hear("chat", *called(""), DONE).failure is None

    def test_done_within_a_call_fails(self, ask: Ask) -> None:
        said = ask.hear("chat", *called(CUT, '{"b"'), DONE)
        assert (said.failure, said.stop) == (UNFINISHED.message, None)

    def test_fragments_without_an_index_are_those_of_one_call(self, ask: Ask) -> None:
        first = {"id": "call_1", "function": {"name": "look", "arguments": CUT}}
        fragments = [first, {"function": {"arguments": "1}"}}]
        stream = [ROLE, *(chunk({"tool_calls": [one]}) for one in fragments), DONE]
        said = ask.hear("chat", *stream)
        assert (said.calls, said.stop) == (CALLS, "tool_calls")

    def test_a_stream_that_just_ends_was_cut(self, ask: Ask) -> None:
        assert ask.hear("chat", *called(WHOLE)).failure == CONNECTION_LOST.message

    def test_a_finish_needs_no_done(self, ask: Ask) -> None:
        said = ask.hear("chat", ROLE, chunk({"content": "Hi"}, finish="stop"))
        assert (said.stop, ask.faults) == ("stop", 0)

    @pytest.mark.parametrize(("arguments", "is_whole"), [(WHOLE, True), (CUT, False)])
    def test_of_a_body_the_calls_tell_it(self, ask: Ask, arguments: str, *, is_whole: bool) -> None:
        body = completion({"content": None, "tool_calls": [call("look", arguments)]})
        body["choices"][0]["finish_reason"] = None
        assert ask.read("chat", body) == is_whole
        assert ask.faults == 1


@all_clients
@shown_and_hidden
class TestResponses:
    def test_done_ends_whole_items(self, ask: Ask) -> None:
        *frames, _ = responses_stream([message_item(0, "Hi"), call_item(1, "look", WHOLE)])
        said = ask.hear("responses", *frames, DONE)
        assert (said.text, said.calls, said.stop) == ("Hi", CALLS, "tool_calls")
        assert ask.faults == 1

    def test_done_within_an_item_fails(self, ask: Ask) -> None:
        *frames, _, _ = responses_stream([message_item(0, "Hi"), call_item(1, "look", WHOLE)])
        assert ask.hear("responses", *frames, DONE).failure == UNFINISHED.message

    def test_done_before_any_item_fails(self, ask: Ask) -> None:
        first, *_ = responses_stream([message_item(0, "Hi")])
        assert ask.hear("responses", first, DONE).failure == UNFINISHED.message

    def test_a_stream_that_just_ends_was_cut(self, ask: Ask) -> None:
        *frames, _ = responses_stream([message_item(0, "Hi"), call_item(1, "look", WHOLE)])
        assert ask.hear("responses", *frames).failure == CONNECTION_LOST.message


@all_clients
@shown_and_hidden
class TestGemini:
    """Its streams have no other end than that of the connection."""

    def test_a_text_may_have_gone_on(self, ask: Ask) -> None:
        chunks = gemini.chunk([gemini.function_call(a=1)]), gemini.chunk([gemini.text("Hi")])
        said = ask.hear("gemini", *map(frame, chunks))
        assert said.failure == CONNECTION_LOST.message

    def test_a_call_comes_whole(self, ask: Ask) -> None:
        said = ask.hear("gemini", frame(gemini.chunk([gemini.function_call(a=1)])))
        assert (said.calls, said.stop, ask.faults) == (CALLS, "tool_calls", 1)

    def test_an_answer_of_nothing_is_none(self, ask: Ask) -> None:
        assert ask.hear("gemini", frame(gemini.chunk([]))).failure == CONNECTION_LOST.message

    @pytest.mark.parametrize(("parts", "is_whole"), [([gemini.text("Hi")], True), ([], False)])
    def test_of_a_body_the_parts_tell_it(
        self, ask: Ask, parts: list[Any], *, is_whole: bool
    ) -> None:
        assert ask.read("gemini", gemini.chunk(parts)) == is_whole
        assert ask.faults == is_whole
