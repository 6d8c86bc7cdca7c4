"""Translated events, written for clients of each API, one by one."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from abridge.apis.display import Display
from abridge.apis.errors import ANSWER_TOO_LONG
from abridge.apis.protocols import RequestEcho, Writer
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    NativeSummary,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ToolCallDelta,
)
from abridge.core.model_request import Tool
from abridge.core.usage import SummaryShare, Tokens
from abridge.providers.catalog import PROFILES
from abridge.stages.order import is_object
from tests.support.checker import check_chat, check_responses
from tests.support.pipeline import LIMIT, TRANSLATING_WRITERS, Minting
from tests.support.translated import TranslatedTurn, read_turn

APIS = ("chat", "responses")
REQUEST = RequestEcho()
END = ResponseEnded(None, None, ok=True)


def make_writer(api: str, echo: RequestEcho = REQUEST, limit: int = LIMIT) -> Writer:
    return TRANSLATING_WRITERS[api](
        PROFILES["auto"], Display(show_raw=True), echo, limit, Minting()
    )


def streamed(api: str, *events: Event, **how: Any) -> bytes:
    return b"".join(map(make_writer(api, **how).write, [*events, END]))


def whole(api: str, *events: Event) -> dict[str, Any]:
    writer = make_writer(api)
    for event in events:
        writer.note(event)
    body: dict[str, Any] = json.loads(writer.write_whole(END))
    return body


def streamed_and_whole(api: str, *events: Event) -> list[TranslatedTurn]:
    body = json.dumps(whole(api, *events)).encode()
    return [read_turn(api, streamed(api, *events)), read_turn(api, body, streamed=False)]


def test_a_response_has_one_choice() -> None:
    texts = ((0, "A"), (1, "x"), (0, "B"), (1, "y"))
    said = [ContentDelta(lane, None, text) for lane, text in texts]
    stops = [Finished(0, None, "stop"), Finished(1, None, "length")]
    for turn in streamed_and_whole("responses", *said, *stops):
        assert (turn.answer.text, turn.answer.stop) == ("AB", "stop")
    assert len(check_responses(streamed("responses", *said, *stops)).items) == 1


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_the_first_choice_answers_whichever_streams_first(api: str) -> None:
    other = [ReasoningStarted(1, None, 0), ReasoningEnded(1, None, 0), ContentDelta(1, None, "x")]
    said = [
        *other,
        ContentDelta(0, None, "A"),
        ContentDelta(1, None, "y"),
        Finished(1, None, "length"),
    ]
    for turn in streamed_and_whole(api, *said, Finished(0, None, "stop")):
        assert (turn.answer.text, turn.answer.stop) == ("A", "stop")
        assert not turn.answer.stretches


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_another_choice_answers_where_there_is_no_first(api: str) -> None:
    said = [ContentDelta(lane, None, text) for lane, text in ((2, "x"), (1, "A"), (1, "B"))]
    for turn in streamed_and_whole(api, *said, Finished(1, None, "length")):
        assert (turn.answer.text, turn.answer.stop, turn.ok) == ("AB", "length", True)


@pytest.mark.parametrize("custom", [True, False])
def test_a_call_without_arguments_has_empty_ones(*, custom: bool) -> None:
    called = ToolCallDelta(0, None, call_index=0, id="call_0", name="now", custom=custom)
    (said,) = whole("chat", called)["choices"][0]["message"]["tool_calls"]
    assert said[said["type"]] == {"name": "now", ("input" if custom else "arguments"): ""}
    (item,) = whole("responses", called)["output"]
    assert item["input" if custom else "arguments"] == ""


def interleaved(count: int, *pieces: str) -> list[Event]:
    """Calls side by side: all of them begin, then all go on."""
    heads = [ToolCallDelta(0, None, call_index=n, id=f"call_{n}", name="f") for n in range(count)]
    rest = [
        ToolCallDelta(0, None, call_index=n, arguments=text)
        for text in pieces
        for n in range(count)
    ]
    return [*heads, *rest]


def test_the_cost_of_interleaved_calls_does_not_grow_with_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[int] = []

    def parse(text: str) -> bool:
        parsed.append(len(text))
        return is_object(text)

    monkeypatch.setattr("abridge.stages.order.is_object", parse)
    events = interleaved(2, '{"a": "', *["word "] * 500, '"}')
    turn = read_turn("responses", streamed("responses", *events))
    assert len(turn.answer.calls) == 2
    assert len(parsed) < 10


def test_any_number_of_calls_may_end_in_any_order() -> None:
    heads = interleaved(1000)
    ends = [
        ToolCallDelta(0, None, call_index=number, arguments="{}")
        for number in reversed(range(1000))
    ]
    turn = read_turn("responses", streamed("responses", *heads, *ends))
    assert [call.id for call in turn.answer.calls] == [f"call_{n}" for n in range(1000)]


@pytest.mark.parametrize(
    "event",
    [
        ContentDelta(0, None, "x" * 10),
        ContentDelta(0, None, "x", [{"token": "x", "logprob": 0.0}]),
        RefusalDelta(0, None, refusal="x" * 10),
        ToolCallDelta(0, None, call_index=0, name="f", arguments="x" * 10),
        ReasoningDelta(0, None, 0, "x" * 10),
        NativeSummary(0, None, 0, 0, "delta", "x" * 10),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_response_that_is_too_long_for_one_event_fails(event: Event) -> None:
    opening = ReasoningStarted(0, None, 0)
    out = streamed("responses", opening, *[event] * 1000, limit=2000)
    assert len(out) < 200_000
    seen = check_responses(out)
    assert seen.response["status"] == "failed"
    assert seen.response["error"]["message"] == ANSWER_TOO_LONG.message
    assert len(seen.response["output"]) == len(seen.items)


def test_a_completion_with_a_call_that_is_too_long_fails() -> None:
    tool = Tool("patch", "custom", parameters={}, client_name="patch")
    called = [ToolCallDelta(0, None, call_index=0, id="call_0", name="patch")]
    called += [ToolCallDelta(0, None, call_index=0, arguments="x" * 10)] * 1000
    out = streamed("chat", *called, echo=RequestEcho(tools={"patch": tool}), limit=2000)
    seen = check_chat(out)
    assert seen.error is not None
    assert seen.error["message"] == ANSWER_TOO_LONG.message
    assert not seen.done


def test_a_long_answer_takes_no_more_memory_than_its_text() -> None:
    """And not in an object for each of its pieces."""
    writer = make_writer("responses")
    tracemalloc.start()
    for number in range(110_000):
        writer.write(ContentDelta(0, None, f"{number:6}"))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4 * 6 * 110_000


@pytest.mark.parametrize("odd", [{}, {"token": "x"}, {"token": 1, "logprob": 0.0}])
def test_what_is_no_log_probability_is_not_passed_on(odd: dict[str, Any]) -> None:
    good = {"token": "Yes", "logprob": -0.1}
    entries = [odd, {**good, "bytes": ["x"], "top_logprobs": [odd, good]}]
    whole_token = {**good, "bytes": list(b"Yes")}
    meant = [{**whole_token, "top_logprobs": [whole_token]}]
    said = ContentDelta(0, None, "Yes", entries)
    assert whole("chat", said)["choices"][0]["logprobs"]["content"] == meant
    assert whole("responses", said)["output"][0]["content"][0]["logprobs"] == meant


@pytest.mark.parametrize("api", APIS)
def test_a_total_alone_stays_as_it_is(api: str) -> None:
    share = SummaryShare(Tokens(10, 5, 15), ("mini",), 1, incomplete=False)
    end = ResponseEnded(None, None, ok=True, usage=Tokens(total=9), share=share)
    billed = RequestEcho({"stream_options": {"include_usage": True}})
    usage = json.loads(make_writer(api, billed).write_whole(end))["usage"]
    assert usage["total_tokens"] == 9
    assert sum(figure for name, figure in usage.items() if name.endswith("put_tokens")) == 0
    assert usage["reasoning_summary"]["total_tokens"] == 15
    writer = make_writer(api, billed)
    turn = read_turn(api, writer.write(Finished(0, None, "stop")) + writer.write(end))
    assert turn.usage is not None
    assert turn.usage.total == 9
