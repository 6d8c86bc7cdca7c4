"""Test attribution in the dialects of Chat Completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.core.plan import SummaryPlan
from tests.support.attribution import (
    ARGUMENTS,
    attribution_texts,
    read_attributions,
    without_attributions,
)
from tests.support.checker import check_chat
from tests.support.pipeline import LIMIT, Pipeline, chat
from tests.support.streams import DONE, THOUGHT, call, chunk, completion

Json = dict[str, Any]

CALL = {"tool_calls": [call("look", ARGUMENTS)]}
PLAIN = SummaryPlan(style=None)
SUMMARY = f"**Part**\n\nSaid of {len(THOUGHT)} characters."


def pipeline(**options: Any) -> Pipeline:
    return chat(**{"expose": "both", "attribution_limit": LIMIT, **options})


def sent(*deltas: Json) -> bytes:
    """Return a stream that ends with calls."""
    given = [{"role": "assistant", "content": ""}, *deltas]
    return b"".join([*map(chunk, given), chunk({}, finish="tool_calls"), DONE])


def streamed(*deltas: Json, **options: Any) -> list[Any]:
    return read_attributions("chat", pipeline(**options).stream(sent(*deltas)), stream=True)


def whole(message: Json, **options: Any) -> list[Any]:
    body = json.dumps(completion(message)).encode()
    return read_attributions("chat", pipeline(**options).whole(body), stream=False)


def thinking(text: str, **more: Any) -> Json:
    return {"thinking_blocks": [{"type": "thinking", "thinking": text, "index": 0, **more}]}


def detail(kind: str, index: int, **fields: str) -> Json:
    return {"reasoning_details": [{"type": f"reasoning.{kind}", "index": index, **fields}]}


RAW_FIELDS = ["reasoning_content", "reasoning"]


@pytest.mark.parametrize("field", RAW_FIELDS)
@pytest.mark.parametrize("options", [{}, {"expose": "raw"}, {"plan": PLAIN}, {"details": True}])
def test_raw_reasoning_in_either_field_is_attributed(field: str, options: Json) -> None:
    wanted = [[{"type": "reasoning_text", "text": THOUGHT}]]
    assert streamed({field: THOUGHT[:9]}, {field: THOUGHT[9:]}, CALL, **options) == wanted
    assert whole({field: THOUGHT, **CALL}, **options) == wanted


@pytest.mark.parametrize("field", RAW_FIELDS)
@pytest.mark.parametrize("details", [True, False])
def test_a_summary_in_the_place_of_raw_reasoning_is_attributed(
    field: str, *, details: bool
) -> None:
    options: Json = {"expose": "summary", "details": details}
    wanted = [[{"type": "summary_text", "text": SUMMARY}]]
    assert streamed({field: THOUGHT}, CALL, **options) == wanted
    assert whole({field: THOUGHT, **CALL}, **options) == wanted


@pytest.mark.parametrize("options", [{}, {"plan": PLAIN}, {"expose": "raw"}])
def test_thinking_blocks_are_parts(options: Json) -> None:
    blocks = [thinking("A a"), thinking("", signature="s"), thinking("B"), thinking(" b")]
    redacted = {"thinking_blocks": [{"type": "redacted_thinking", "data": "x", "index": 0}]}
    last = thinking("", signature="t")
    attributed = streamed(*blocks, last, redacted, thinking("C"), CALL, **options)
    assert attribution_texts(attributed) == [["A a", "B b", "[redacted]", "C"]]
    given = [
        thinking("A a", signature="s"),
        thinking("B b", signature="t"),
        redacted,
        thinking("C"),
    ]
    message = {"thinking_blocks": [block for one in given for block in one["thinking_blocks"]]}
    assert whole({**message, **CALL}, **options) == attributed


def test_entries_that_repeat_a_text_are_attributed_once() -> None:
    given = {"reasoning": "A", **detail("text", 0, text="A")}
    opaque = detail("encrypted", 1, data="x")
    assert attribution_texts(streamed(given, given, opaque, CALL)) == [["AA", "[redacted]"]]
    entries = [detail("text", 0, text="AA"), opaque]
    listed = [entry for one in entries for entry in one["reasoning_details"]]
    assert attribution_texts(whole({"reasoning": "AA", "reasoning_details": listed, **CALL})) == [
        ["AA", "[redacted]"]
    ]


def test_redacted_entries_come_after_the_text_beside_them() -> None:
    given = {"reasoning": "A", **detail("encrypted", 0, data="x")}
    assert attribution_texts(streamed(given, {"reasoning": "B"}, CALL)) == [
        ["A", "[redacted]", "B"]
    ]
    assert attribution_texts(whole({**given, **CALL})) == [["A", "[redacted]"]]


def test_a_list_without_text_is_ignored() -> None:
    given: Json = {"reasoning": "A", "reasoning_details": [], "thinking_blocks": None}
    assert attribution_texts(streamed(given, given, {"tool_calls": []}, CALL)) == [["AA"]]
    assert attribution_texts(whole({**given, **CALL})) == [["A"]]


def test_thinking_chunks_of_a_content_are_one_text() -> None:
    def chunks(*texts: str) -> list[Json]:
        return [{"type": "thinking", "thinking": [{"type": "text", "text": t}]} for t in texts]

    deltas = [{"content": chunks("A")}, {"content": chunks("B")}, {"content": "So"}]
    given = [*chunks("A", "B"), {"type": "text", "text": "So"}]
    for options in ({"plan": PLAIN}, {}):
        assert attribution_texts(streamed(*deltas, CALL, **options)) == [["AB"]]
        assert attribution_texts(whole({"content": given, **CALL}, **options)) == [["AB"]]


@pytest.mark.parametrize("expose", ["both", "raw", "summary"])
def test_inline_reasoning_is_attributed_as_it_is_shown(expose: str) -> None:
    text = f"<think>{THOUGHT}</think>So"
    wanted = ["summary_text" if expose == "summary" else "reasoning_text"]
    for attributed in (
        streamed({"content": text[:90]}, {"content": text[90:]}, CALL, expose=expose),
        whole({"content": text, **CALL}, expose=expose),
    ):
        assert [part["type"] for part in attributed[0]] == wanted


@pytest.mark.parametrize("expose", ["summary", "none"])
def test_where_raw_is_hidden_its_summary_is_attributed(expose: str) -> None:
    opaque, visible = detail("encrypted", 1, data="x"), {"reasoning": THOUGHT}
    listed = {**visible, **opaque, **CALL}
    wanted = SUMMARY if expose == "summary" else "[redacted]"
    assert attribution_texts(streamed(visible, opaque, CALL, expose=expose)) == [[wanted]]
    assert attribution_texts(whole(listed, expose=expose)) == [[wanted]]


# Sloppy calls


def fragment(index: Any, **more: Any) -> Json:
    return {"tool_calls": [{"index": index, **more}]}


def function(name: str = "", arguments: str = "") -> Json:
    return {"function": {"name": name, "arguments": arguments}}


def test_a_call_id_that_comes_late_is_referred_to() -> None:
    deltas = [
        {"reasoning": "A"},
        fragment(0, **function("look")),
        fragment(0, id="call_a", **function(arguments="{}")),
        fragment(1, id="call_b", **function("look", "{}")),
    ]
    assert streamed(*deltas)[1] == "call_a"


def test_a_call_without_an_id_is_not_referred_to() -> None:
    calls = [fragment(number, **function("look", "{}")) for number in range(2)]
    assert attribution_texts(streamed({"reasoning": "A"}, *calls)) == [["A"], False]
    given = [{"type": "function", **function("look", "{}")}] * 2
    assert attribution_texts(whole({"reasoning": "A", "tool_calls": given})) == [["A"], False]


@pytest.mark.parametrize("called", [function("look", "{}"), {"custom": {"name": "look"}}])
def test_an_index_that_comes_again_with_another_id_begins_another_call(called: Json) -> None:
    deltas = [
        {"reasoning": "A"},
        fragment(0, id="call_a", **called),
        {"reasoning": "B"},
        fragment(0, id="call_b", **called),
    ]
    out = pipeline().stream(sent(*deltas))
    given = [
        made.get("reasoning")
        for line in out.splitlines()
        if line.startswith(b"data: {")
        for choice in json.loads(line[6:])["choices"]
        for made in choice["delta"].get("tool_calls", ())
    ]
    assert [parts[0]["text"] for parts in given] == ["A", "B"]


def test_fragments_that_repeat_their_id_are_of_one_call() -> None:
    deltas = [
        fragment(0, id="call_a", **function("look", "{")),
        {"reasoning": "A"},
        fragment(0, id="call_x", **function(arguments="}")),
    ]
    out = pipeline().stream(sent(*deltas))
    assert b'"reasoning":[' not in out


def test_several_calls_in_one_delta_are_attributed() -> None:
    both = {"tool_calls": [call("look", "{}", number) for number in range(2)]}
    assert streamed({"reasoning": "A"}, both)[1] == "call_0"


# Fields that Abridge did not add


LEAK = {**call("look", ARGUMENTS), "reasoning": [{"type": "reasoning_text", "text": "secret"}]}


@pytest.mark.parametrize("attribution_limit", [None, LIMIT])
@pytest.mark.parametrize("expose", ["summary", "none"])
def test_attribution_by_another_abridge_is_hidden_too(
    expose: str, attribution_limit: int | None
) -> None:
    for calls in ([LEAK], [LEAK, {**call("look", "{}", 1), "reasoning_ref": "call_0"}]):
        thought = {"reasoning": THOUGHT}
        out = pipeline(expose=expose, attribution_limit=attribution_limit).stream(
            sent(thought, {"tool_calls": calls})
        )
        assert b"secret" not in out
        assert check_chat(out).choices[0].attributions[0] != LEAK["reasoning"]
        body = json.dumps(completion({**thought, "tool_calls": calls})).encode()
        out = pipeline(expose=expose, attribution_limit=attribution_limit).whole(body)
        assert b"secret" not in out
        assert attribution_limit or b"reasoning_ref" not in out


def test_unknown_fields_of_a_call_stay() -> None:
    made = {**call("look", ARGUMENTS), "reasoning": "because"}
    out = pipeline().stream(sent({"content": "So"}, {"tool_calls": [made]}))
    assert b'"reasoning": "because"' in out


@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
def test_a_chunk_without_calls_or_lists_passes_unchanged(line: bytes) -> None:
    given = sent({"reasoning": "A"}, {"content": "So"}, CALL).replace(b"\n", line)
    frames = given.split(line * 2)
    out = pipeline(plan=PLAIN).stream(given).split(line * 2)
    if line == b"\n":
        assert [frame for frame in frames if frame not in out] == [frames[3]]
        (mine,) = [frame for frame in out if frame not in frames]
        assert without_attributions(json.loads(mine[6:])) == json.loads(frames[3][6:])
    else:
        assert frames[:3] == out[:3]


def test_the_answer_within_a_failure_is_attributed() -> None:
    body = json.dumps(completion({"reasoning": THOUGHT, **CALL})).encode()
    plan = SummaryPlan(fail_response=True)
    failed = json.loads(pipeline(plan=plan, write=None).whole(body))["error"]["response"]
    given = json.dumps(failed).encode()
    assert attribution_texts(read_attributions("chat", given, stream=False)) == [[THOUGHT]]


@pytest.mark.parametrize("calls", [None, "x", [7], [], {}])
def test_malformed_calls_are_left_alone(calls: Any) -> None:
    message = {"content": "So", "reasoning": "A", "tool_calls": calls}
    body = json.dumps(completion(message)).encode()
    plain = json.loads(pipeline(plan=PLAIN, attribution_limit=None).whole(body))
    assert json.loads(pipeline(plan=PLAIN).whole(body)) == plain
