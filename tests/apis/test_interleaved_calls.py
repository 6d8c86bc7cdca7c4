"""Calls that Chat Completions sends in fragments arrive whole, whatever comes between these."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.core.events import STRAY_ARGUMENTS
from tests.support.checker import check_chat, check_responses
from tests.support.matrix import some
from tests.support.messages_checker import check_messages
from tests.support.pipeline import Pipeline, all_clients
from tests.support.streams import DONE, chunk

Json = dict[str, Any]
Call = tuple[str, str, Any]

EXPOSURES = ("auto", "both", "raw", "summary", "none")
ENCRYPTED = {"type": "reasoning.encrypted", "data": "b3BhcXVl", "index": 0}
BETWEEN: list[Json] = [
    {"reasoning": "I weigh it. "},
    {"reasoning_content": "I doubt it. "},
    {"reasoning_details": [ENCRYPTED]},
    {"reasoning": "I see. ", "reasoning_details": [ENCRYPTED]},
    {"content": "<think>"},
    {"content": "</think>"},
    {"content": "It is so. "},
]
NAMES = st.sampled_from(["look", "ask"])
VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "}", "{x", "one two"]))


class Answer(NamedTuple):
    ok: bool
    text: str
    calls: list[Call]


def send(
    client: Api, deltas: list[Json], expose: str = "auto", finish: str = "tool_calls"
) -> bytes:
    frames = [chunk({"role": "assistant"}), *map(chunk, deltas), chunk({}, finish=finish), DONE]
    upstream = None if client is CHAT else "chat"
    return Pipeline(client, upstream=upstream, expose=expose).stream(b"".join(frames))  # type: ignore[arg-type]


def seen_by(client: Api, out: bytes) -> Answer:
    return _READ[client.name](out)


def _read_chat(out: bytes) -> Answer:
    seen = check_chat(out)
    calls = [
        _call(call["id"], call["name"], call["arguments"])
        for call in seen.choices[0].calls.values()
    ]
    return Answer(seen.error is None, seen.choices[0].text, calls)


def _read_responses(out: bytes) -> Answer:
    seen = check_responses(out)
    items = [item for item in seen.response["output"] if item["type"] == "function_call"]
    calls = [_call(item["call_id"], item["name"], item["arguments"]) for item in items]
    return Answer(seen.response["status"] == "completed", seen.text, calls)


def _read_messages(out: bytes) -> Answer:
    seen = check_messages(out)
    calls = [(block["id"], block["name"], block["input"]) for block in seen.calls]
    return Answer(seen.stopped, seen.text, calls)


def _call(identity: str, name: str, arguments: str) -> Call:
    return identity, name, json.loads(arguments or "{}")


_READ: dict[str, Callable[[bytes], Answer]] = {
    "chat": _read_chat,
    "responses": _read_responses,
    "messages": _read_messages,
}


# Interleavings


def head(number: int, name: str, arguments: str = "") -> Json:
    function = {"name": name, "arguments": arguments}
    return {"index": number, "id": f"call_{number}", "type": "function", "function": function}


def more(number: int, arguments: str) -> Json:
    return {"index": number, "function": {"arguments": arguments}}


@st.composite
def spoken_calls(draw: st.DrawFn) -> list[tuple[str, Json, list[str]]]:
    """Return calls: the name, the arguments, and these in pieces, of which some may be empty."""
    calls = []
    for values in draw(st.lists(VALUES, min_size=1, max_size=3)):
        text = json.dumps(values)
        edges = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=3))), len(text)]
        calls.append((draw(NAMES), values, [text[start:end] for start, end in pairwise(edges)]))
    return calls


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[list[Json], list[Call]]:
    """Return deltas, and the calls in them. A delta may hold several things."""
    spoken = draw(spoken_calls())
    turns = draw(st.permutations([n for n, call in enumerate(spoken) for _ in call[2]]))
    if draw(st.booleans()):  # all names come first
        turns = [*range(len(spoken)), *turns]
        spoken = [(name, values, ["", *pieces]) for name, values, pieces in spoken]
    spoken = [spoken[n] for n in dict.fromkeys(turns)]  # in the order in which they begin
    numbers = {n: number for number, n in enumerate(dict.fromkeys(turns))}
    deltas: list[Json] = []
    left = [list(pieces) for _, _, pieces in spoken]
    for number in map(numbers.__getitem__, turns):
        for delta in draw(st.lists(st.sampled_from(BETWEEN), max_size=3)):
            _append(draw, deltas, delta)
        name, _, pieces = spoken[number]
        is_first, text = len(left[number]) == len(pieces), left[number].pop(0)
        fragment = head(number, name, text) if is_first else more(number, text)
        _append(draw, deltas, {"tool_calls": [fragment]})
    return deltas, [(f"call_{n}", name, values) for n, (name, values, _) in enumerate(spoken)]


def _append(draw: st.DrawFn, deltas: list[Json], delta: Json) -> None:
    """Append a delta, or put what it holds into the last one."""
    if deltas and not deltas[-1].keys() & delta.keys() and draw(st.booleans()):
        deltas[-1] = {**deltas[-1], **delta}
    else:
        deltas.append(delta)


@all_clients
@settings(max_examples=some(100))
@given(interleavings(), st.sampled_from(EXPOSURES))
def test_every_call_arrives_whole_whatever_comes_between_its_fragments(
    client: Api, sent: tuple[list[Json], list[Call]], expose: str
) -> None:
    deltas, calls = sent
    seen = seen_by(client, send(client, deltas, expose))
    assert seen.ok
    assert seen.calls == calls
    contents = [delta.get("content", "") for delta in deltas]
    if not any("think" in content for content in contents):
        assert seen.text == "".join(contents)


bridged_clients = pytest.mark.parametrize("client", [RESPONSES, MESSAGES], ids=lambda api: api.name)


@bridged_clients
def test_reasoning_between_fragments_comes_after_the_call(client: Api) -> None:
    thought = {"reasoning": "I weigh it."}
    out = send(
        client,
        [
            {"tool_calls": [head(0, "look", '{"a":')]},
            thought,
            {"tool_calls": [more(0, '"1"}')]},
            {"content": "Done."},
        ],
        "raw",
    )
    assert seen_by(client, out) == (True, "Done.", [("call_0", "look", {"a": "1"})])
    if client is RESPONSES:
        seen = [item["type"] for item in check_responses(out).response["output"]]
        assert seen == ["function_call", "reasoning", "message"]
    else:
        messages = check_messages(out)
        assert [block["type"] for block in messages.blocks] == ["tool_use", "thinking", "text"]
        assert messages.thinking == ["I weigh it."]


@bridged_clients
@pytest.mark.parametrize("between", [{"content": "So."}, {"reasoning": "I see."}])
def test_an_answer_in_which_a_whole_call_goes_on_later_fails(client: Api, between: Json) -> None:
    out = send(
        client,
        [{"tool_calls": [head(0, "look", "{}")]}, between, {"tool_calls": [more(0, '{"a":"1"}')]}],
    )
    assert not seen_by(client, out).ok
    assert STRAY_ARGUMENTS.message in out.decode()


@bridged_clients
def test_a_blank_after_a_whole_call_changes_nothing(client: Api) -> None:
    deltas = [{"tool_calls": [head(0, "look", "{}")]}, {"content": "So."}]
    out = send(client, [*deltas, {"tool_calls": [more(0, " \n")]}])
    assert seen_by(client, out) == (True, "So.", [("call_0", "look", {})])


def test_calls_that_the_limit_cuts_are_incomplete() -> None:
    names = [{"tool_calls": [head(number, "look")]} for number in range(2)]
    cut = [{"tool_calls": [more(number, '{"a":')]} for number in range(2)]
    out = send(RESPONSES, [*names, {"reasoning": "I see."}, *cut], finish="length")
    output = check_responses(out).response["output"]
    assert [item["status"] for item in output if "arguments" in item] == ["incomplete"] * 2
