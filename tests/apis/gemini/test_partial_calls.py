"""Test calls of Gemini's whose arguments stream in parts: each becomes one call, whole or none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis import sse
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
from tests.apis.gemini.scripts import chunk, read_frames, reader, signed, text, thought
from tests.apis.messages.legality import ReadAnswer, check_events
from tests.support.shared import RECORDINGS, needs_recordings
from tests.support.streams import frame

Json = dict[str, Any]


def begin(name: str = "look") -> Json:
    return {"functionCall": {"name": name, "willContinue": True}}


def piece(path: str, **value: Any) -> Json:
    argument = {"jsonPath": path, **value}
    return {"functionCall": {"partialArgs": [argument], "willContinue": True}}


END: Json = {"functionCall": {}}


def read(*parts: Json, reason: str = "STOP", **display: Any) -> ReadAnswer:
    frames = [frame(chunk([part])) for part in parts]
    last = [frame(chunk([], reason))] if reason else []
    return check_events(read_frames([*frames, *last], reader(**display)))


def arguments(*parts: Json, **display: Any) -> Any:
    seen = read(begin(), *parts, END, **display)
    assert (len(seen.calls), seen.reason) == (1, "tool_calls")
    return json.loads(seen.calls[0][2])


def pieces(value: Any, path: str = "$") -> list[Json]:
    """Return the parts in which a value streams."""
    if isinstance(value, dict):
        inner = [(f"{path}[{json.dumps(key)}]", value[key]) for key in value]
        return [one for address, each in inner for one in pieces(each, address)]
    if isinstance(value, list):
        return [one for n, each in enumerate(value) for one in pieces(each, f"{path}[{n}]")]
    if isinstance(value, str):
        return [
            *(piece(path, stringValue=letter, willContinue=True) for letter in value),
            piece(path, stringValue=""),
        ]
    if value is None:
        return [piece(path, nullValue="NULL_VALUE")]
    kind = "boolValue" if isinstance(value, bool) else "numberValue"
    return [piece(path, **{kind: value})]


scalars = (
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("ab'\"\\[]. $é", max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text("ab'\"\\[].", max_size=4), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=3))
def test_any_arguments_arrive_as_they_were(value: Json) -> None:
    assert arguments(*pieces(value)) == value


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.a", {"a": "x"}),
        ("$.a.b[0].c", {"a": {"b": [{"c": "x"}]}}),
        ("$['it\\'s'][\"q\\\"\"]", {"it's": {'q"': "x"}}),
    ],
)
def test_paths(path: str, expected: Json) -> None:
    assert arguments(piece(path, stringValue="x")) == expected


def test_arguments_may_come_whole_in_a_part() -> None:
    whole = {"functionCall": {"args": {"a": 1}, "willContinue": True}}
    assert arguments(whole, piece("$.b", numberValue=2)) == {"a": 1, "b": 2}


def test_numbers_stay_as_they_are() -> None:
    seen = read(begin(), piece("$.n", numberValue=12345678901234567890123), END)
    assert seen.calls[0][2] == '{"n":12345678901234567890123}'


def test_a_call_may_be_a_single_part() -> None:
    only = {"name": "look", "partialArgs": [{"jsonPath": "$.a", "boolValue": True}]}
    assert json.loads(read({"functionCall": only}).calls[0][2]) == {"a": True}


def test_several_calls_and_what_is_between_them() -> None:
    one, other = [begin(), piece("$.a", numberValue=1), END], [begin("other"), END]
    seen = read(thought("Hm."), *one, text("So."), *other)
    assert [line[0] for line in seen.lines] == ["opened", "raw", "closed", "call", "text", "call"]
    assert [call[1:] for call in seen.calls] == [["look", '{"a":1}'], ["other", "{}"]]
    assert seen.calls[0][0] != seen.calls[1][0]


def test_the_turn_is_recorded_as_a_whole_call_with_its_signature() -> None:
    by = reader()
    parts = [signed(begin(), "c2ln"), piece("$.a", numberValue=1), END]
    check_events(read_frames([frame(chunk([part], "STOP")) for part in parts], by))
    (turn,) = by.recorded_turns()
    whole = {"functionCall": {"name": "look", "args": {"a": 1}}, "thoughtSignature": "c2ln"}
    assert turn.original == [whole]


def test_thinking_in_an_argument_is_left_out_where_it_is_hidden() -> None:
    told = pieces({"a": "<think>Secret.</think>Yes."})
    assert arguments(*told, hides_raw=True) == {"a": "Yes."}


class TestCut:
    def test_without_an_end_the_answer_fails(self) -> None:
        seen = read(begin(), piece("$.a", stringValue="Par"), reason="")
        assert seen.calls == []
        assert seen.end.error == CONNECTION_LOST

    def test_by_the_bound_it_is_no_call_that_could_be_run(self) -> None:
        seen = read(begin(), piece("$.a", stringValue="Par"), reason="MAX_TOKENS")
        assert (seen.reason, seen.calls[0][2]) == ("length", '{"a":"Par')

    def test_a_reason_to_stop_ends_it(self) -> None:
        seen = read(begin(), piece("$.a", numberValue=1))
        assert (seen.reason, seen.calls[0][2]) == ("tool_calls", '{"a":1}')


@pytest.mark.parametrize(
    "parts",
    [
        [piece("a", stringValue="x")],
        [piece("$", stringValue="x")],
        [piece("$[0]", stringValue="x")],
        [piece("$.a[1]", stringValue="x")],
        [piece("$.a[999999999]", stringValue="x")],
        [piece("$.a[*]", stringValue="x")],
        [piece("$['\\x']", stringValue="x")],
        [piece("$" + ".a" * 300, stringValue="x")],
        [piece("$.a", stringValue="x"), piece("$.a.b", stringValue="x")],
        [piece("$.a.b", stringValue="x"), piece("$.a", stringValue="x")],
        [piece("$.a.b", stringValue="x"), piece("$.a", numberValue=1)],
        [piece("$.a[0]", stringValue="x"), piece("$.a.b", stringValue="x")],
        [piece("$.a.b", stringValue="x"), piece("$.a[0]", stringValue="x")],
        [piece("$.a", stringValue="x" * 2000)],
        [begin("other")],
    ],
    ids=str,
)
def test_what_cannot_be_put_together_ends_the_answer_failed(parts: list[Json]) -> None:
    frames = [frame(chunk([part])) for part in (begin(), *parts, END)]
    seen = check_events(read_frames(frames, reader(limit=1000)))
    assert seen.calls == []
    assert seen.end.error == UNREADABLE


@needs_recordings
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "gemini-9521f4b3",
            [
                ("getWeather", {"location": "Boston"}),
                ("getWeather", {"location": "San Francisco"}),
            ],
        ),
        ("gemini-59b79d4a", None),
    ],
)
def test_calls_as_recorded(name: str, expected: Any) -> None:
    recorded = (RECORDINGS / "more" / f"{name}.response.sse").read_bytes()
    decoder = sse.FrameDecoder(1 << 20)
    seen = check_events(read_frames([*decoder.feed(recorded), *decoder.end()]))
    calls = [(call[1], json.loads(call[2])) for call in seen.calls]
    assert seen.reason == "tool_calls"
    if expected is not None:
        assert calls == expected
        return
    ((called, given),) = calls
    assert called == "cookRecipe"
    assert given["recipe"]["ingredients"][0] == {"amount": "16 oz", "name": "Lasagna noodles"}
    assert len(given["recipe"]["ingredients"]) > 5
