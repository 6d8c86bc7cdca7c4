"""The attribution of calls in the answers of each API."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abridge.apis.display import Exposure
from abridge.apis.registry import APIS
from abridge.core.envelope import ENVELOPE_PREFIX, Envelope
from abridge.core.plan import SummaryPlan
from abridge.providers.catalog import PROFILES
from tests.support.attribution import (
    ARGUMENTS,
    Step,
    attribution_texts,
    chat_frames,
    encode_turn,
    expected_texts,
    items,
    read_attributions,
    without_attributions,
)
from tests.support.checker import attribution_of, check_chat, check_responses, frames
from tests.support.matrix import some
from tests.support.messages_checker import check_messages
from tests.support.pipeline import LIMIT, Pipeline
from tests.support.streams import (
    DONE,
    call,
    call_item,
    chunk,
    completion,
    numbered,
    reasoning_item,
    response,
    responses_stream,
)

ApiPair = tuple[str, str]
"""A client's API, and upstream's."""

CLIENTS = {api.name: api for api in APIS}
BRIDGED: list[ApiPair] = [
    ("chat", "responses"),
    ("chat", "messages"),
    ("responses", "chat"),
    ("responses", "messages"),
    ("messages", "chat"),
    ("messages", "responses"),
]
ATTRIBUTED_WHOLE = [("responses", "responses"), *[pair for pair in BRIDGED if pair[1] != "chat"]]
"""Whose answers say, streamed or not, what was thought before which call."""

OF_CHAT = [("chat", "chat"), ("responses", "chat"), ("messages", "chat")]
EXPOSURES = ["both", "raw", "summary", "none"]
PAIRS: list[ApiPair] = [*((api, api) for api in CLIENTS), *BRIDGED]
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize(("client", "upstream"), PAIRS)

A, B, SAY, CALL, REDACT = (
    ("think", "First.\n"),
    ("think", "Then."),
    ("say", "So"),
    ("call", ""),
    ("redact", ""),
)
SPACED = "  a b\n\nc\td \u00e9\U0001f642 " * 9


def pipeline(
    client: str, upstream: str, attribution_limit: int | None = LIMIT, **how: Any
) -> Pipeline:
    pair = {} if client == upstream else {"upstream": upstream}
    return Pipeline(
        CLIENTS[client], attribution_limit=attribution_limit, **{"expose": "both", **pair, **how}
    )


def run(pair: ApiPair, steps: list[Step], *, stream: bool, **how: Any) -> bytes:
    data = encode_turn(pair[1], steps, stream=stream)
    run = pipeline(*pair, **how)
    return run.stream(data) if stream else run.whole(data)


def led(pair: ApiPair, steps: list[Step], *, stream: bool, **how: Any) -> list[Any]:
    return attribution_texts(
        read_attributions(pair[0], run(pair, steps, stream=stream, **how), stream=stream)
    )


def in_order(pair: ApiPair, *, stream: bool) -> bool:
    """Whether it is known what was thought before which call: a message does not say it."""
    return stream or pair[1] != "chat"


@BOTH
@EACH
def test_each_call_gets_the_reasoning_since_the_previous_one(
    client: str, upstream: str, *, stream: bool
) -> None:
    said = led((client, upstream), [A, CALL, B, CALL], stream=stream)
    if in_order((client, upstream), stream=stream):
        assert said == [[A[1]], [B[1]]]
    else:
        assert said == [[A[1] + B[1]], True]


@BOTH
@EACH
@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([SAY, CALL, CALL], [False, False]),
        ([("think", " \n"), CALL, CALL], [False, False]),
        ([("think", SPACED), CALL], [[SPACED]]),
        ([A, SAY, CALL, SAY, CALL], [[A[1]], True]),
    ],
    ids=["no reasoning", "blank", "every character", "text between does not spend it"],
)
def test_what_led_to_a_call(
    client: str, upstream: str, steps: list[Step], said: list[Any], *, stream: bool
) -> None:
    assert led((client, upstream), steps, stream=stream) == said


@BOTH
@pytest.mark.parametrize("upstream", ["responses", "messages"])
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_several_blocks_go_to_one_call_in_order(
    client: str, upstream: str, *, stream: bool
) -> None:
    assert led((client, upstream), [A, B, CALL], stream=stream) == [[A[1], B[1]]]


@BOTH
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[1] != "chat" or pair[0] == "chat"])
def test_hidden_reasoning_is_a_placeholder_in_its_place(pair: ApiPair, *, stream: bool) -> None:
    said = run(pair, [A, REDACT, B, CALL], stream=stream)
    (parts,) = read_attributions(pair[0], said, stream=stream)
    assert isinstance(parts, list)
    kinds = [part["type"] for part in parts]
    assert kinds == ["reasoning_text", "redacted", "reasoning_text"]
    assert led(pair, [REDACT, CALL, CALL], stream=stream) == [["[redacted]"], True]


SERVER = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {}}
RUN = {"id": "ci_3", "type": "code_interpreter_call", "code": "1", "outputs": [{"logs": "1"}]}
SHELL = {"id": "sh_1", "type": "shell_call", "call_id": "call_sh", "action": {}}
OUTPUT = {"id": "sho_1", "type": "shell_call_output", "call_id": "call_sh", "output": []}


@BOTH
def test_tools_of_the_servers_are_attributed_and_their_results_are_no_calls(
    *, stream: bool
) -> None:
    output = [reasoning_item(0, "A"), SERVER, RUN, reasoning_item(3, "B"), SHELL, OUTPUT, SERVER]
    output = [*output[:-1], {**SERVER, "id": "ws_2"}]
    data = b"".join(responses_stream(output)) if stream else json.dumps(response(output)).encode()
    done = pipeline("responses", "responses")
    out = done.stream(data) if stream else done.whole(data)
    said = check_responses(out).response if stream else json.loads(out)
    assert attribution_texts([attribution_of(item) for item in said["output"]]) == [
        *(False, ["A"], True, False),
        *(["B"], False, True),
    ]
    assert [item.get("reasoning_ref") for item in said["output"][2::4]] == ["ws_1", "call_sh"]


@BOTH
@EACH
def test_a_turn_without_a_call_stays_as_it_is(client: str, upstream: str, *, stream: bool) -> None:
    pair = client, upstream
    said = [
        run(pair, [A, SAY, B], stream=stream, attribution_limit=attribution_limit)
        for attribution_limit in (LIMIT, None)
    ]
    assert said[0] == said[1]


@BOTH
@EACH
def test_reasoning_is_in_no_arguments(client: str, upstream: str, *, stream: bool) -> None:
    data = run((client, upstream), [A, CALL, B, CALL], stream=stream)
    if client == "messages":
        message = check_messages(data).message if stream else json.loads(data)
        made = [block["input"] for block in message["content"] if block["type"] == "tool_use"]
        assert made == [json.loads(ARGUMENTS)] * 2
        return
    if client == "responses":
        final = check_responses(data).response if stream else json.loads(data)
        given = [item["arguments"] for item in final["output"] if "arguments" in item]
    elif stream:
        given = [made["arguments"] for made in check_chat(data).choices[0].calls.values()]
    else:
        calls = json.loads(data)["choices"][0]["message"]["tool_calls"]
        given = [made["function"]["arguments"] for made in calls]
    assert [json.loads(one) for one in given] == [json.loads(ARGUMENTS)] * 2


def test_what_the_final_response_lacks_is_filled_in_from_the_stream() -> None:
    output = items([A, CALL, B, CALL])
    sent = responses_stream(output)
    last = json.loads(sent[-1].split(b"data: ")[1])
    last["response"]["output"] = [item for item in output if item["type"] == "function_call"]
    data = b"".join([*sent[:-1], *numbered(last)]).replace(
        b'"type": "response.completed", "response"',
        b'"type": "response.completed", "sequence_number": 99, "response"',
    )
    seen = check_responses(pipeline("responses", "responses").stream(data))
    assert attribution_texts([attribution_of(item) for item in seen.response["output"]]) == [
        *(False, [A[1]]),
        *(False, [B[1]]),
    ]


def test_obfuscation_passes() -> None:
    obfuscated = [
        frame.replace(b'"delta": "', b'"obfuscation": "xyz", "delta": "')
        for frame in responses_stream(items([A, CALL]))
    ]
    seen = check_responses(pipeline("responses", "responses").stream(b"".join(obfuscated)))
    deltas = [event for event in seen.events if event["type"].endswith(".delta")]
    assert {event.get("obfuscation") for event in deltas if "summary" not in event["type"]} == {
        "xyz"
    }
    chunks = [
        frame.replace(b'"id": ', b'"obfuscation": "xyz", "id": ', 1)
        for frame in chat_frames([A, CALL])
    ]
    said = check_chat(
        pipeline("chat", "chat", plan=SummaryPlan(style=None)).stream(b"".join(chunks))
    )
    assert {each.get("obfuscation") for each in said.chunks} == {"xyz"}
    assert attribution_texts(said.choices[0].attributions) == [[A[1]]]


# What is shown


@BOTH
@EACH
@pytest.mark.parametrize("expose", ["summary", "none"])
def test_hidden_reasoning_is_attributed_nowhere(
    expose: Exposure, client: str, upstream: str, *, stream: bool
) -> None:
    data = run((client, upstream), [A, SAY, CALL, CALL], stream=stream, expose=expose)
    assert b"First" not in data
    said = read_attributions(client, data, stream=stream)
    if expose == "none":
        assert said == [None, None]
    else:
        text = f"**Part**\n\nSaid of {len(A[1])} characters."
        assert said[0] == [{"type": "summary_text", "text": text}]
        assert isinstance(said[1], str)


@BOTH
@EACH
@pytest.mark.parametrize("details", [True, False])
def test_parts_of_a_summary_stay_separate(
    client: str, upstream: str, *, stream: bool, details: bool
) -> None:
    plan = SummaryPlan(part_chars=30, tail_chars=5)
    thought = "One thing is this here now. " * 2 + "\n\n" + "Another thing is that there then. " * 2
    how: dict[str, Any] = {"expose": "summary", "plan": plan, "details": details}
    steps = [("think", thought), CALL]
    data = run((client, upstream), steps, stream=stream, **how)
    (parts,) = read_attributions(client, data, stream=stream)
    assert isinstance(parts, list)
    assert len(parts) > 1
    assert all(part["text"].startswith("**Part**\n\nSaid of ") for part in parts)
    assert all(part["text"].count("**Part**") == 1 for part in parts)


@BOTH
@pytest.mark.parametrize("attribution_limit", [None, LIMIT])
@pytest.mark.parametrize("client", ["responses", "messages"])
def test_what_another_abridge_attributed_is_hidden_too(
    client: str, attribution_limit: int | None, *, stream: bool
) -> None:
    """Its calls repeat raw reasoning."""
    data = encode_turn(client, [A, CALL, CALL], stream=stream)
    name = b'"name": "look"'
    assert name in data
    leak = b'"reasoning": [{"type": "reasoning_text", "text": "secret"}]'
    data = data.replace(name, b'%b, %b, "reasoning_ref": "secret"' % (name, leak))
    run = pipeline(client, client, attribution_limit, expose="summary")
    assert b"secret" not in (run.stream(data) if stream else run.whole(data))


def sealing(_: Envelope) -> str:
    return f"{ENVELOPE_PREFIX}k.AAAA"


@BOTH
@EACH
@pytest.mark.parametrize("envelope", ["reasoning_details", "thinking_blocks"])
def test_an_envelope_that_stands_for_an_item_is_a_placeholder(
    client: str, upstream: str, envelope: str, *, stream: bool
) -> None:
    how: dict[str, Any] = {"seal": sealing, "envelope": envelope}
    wanted = {"none": ["[redacted]"] if client == "responses" else False, "both": [A[1]]}
    for expose, parts in wanted.items():
        data = run((client, upstream), [A, CALL], stream=stream, expose=expose, **how)
        assert ENVELOPE_PREFIX.encode() in data
        assert attribution_texts(read_attributions(client, data, stream=stream)) == [parts]


def test_a_native_summary_is_attributed_as_summary() -> None:
    part = {"type": "summary_text", "text": "Theirs."}
    output = [{**reasoning_item(0, ""), "summary": [part, {**part, "text": "More."}]}]
    data = b"".join(responses_stream([*output, call_item(1, "look", ARGUMENTS)]))
    wanted = [part, {**part, "text": "More."}]
    for client in CLIENTS:
        assert read_attributions(
            client, pipeline(client, "responses").stream(data), stream=True
        ) == [wanted]
    detail = {"type": "reasoning.summary", "summary": "Theirs.", "index": 0}
    thought = {"reasoning": "Theirs.", "reasoning_details": [detail]}
    sent = [chunk({"role": "assistant", "content": ""}), chunk(thought)]
    sent += [chunk({"tool_calls": [call("look", ARGUMENTS)]}), chunk({}, finish="tool_calls"), DONE]
    body = completion({**thought, "tool_calls": [call("look", ARGUMENTS)]})
    hidden = {"expose": "summary", "profile": PROFILES["openrouter"]}
    for how in ({}, hidden, {"plan": SummaryPlan(style=None)}):
        said = pipeline("chat", "chat", **how).stream(b"".join(sent))
        assert read_attributions("chat", said, stream=True) == [[part]]
        said = pipeline("chat", "chat", **how).whole(json.dumps(body).encode())
        assert read_attributions("chat", said, stream=False) == [[part]]


# What holds for every turn

thoughts = st.text("ab .\n\u00e9", min_size=1, max_size=30).filter(str.strip)
kinds = st.one_of(
    st.tuples(st.just("think"), thoughts),
    st.sampled_from([REDACT, SAY, CALL, CALL]),
)


@st.composite
def turns(draw: st.DrawFn, *, items: bool = True) -> list[Step]:
    """Any turn that ends with a call. Without `items` what follows reasoning is something else: in
    a chat nothing parts one stretch from the next."""
    steps = draw(st.lists(kinds, max_size=9))
    if not items:
        said = pairwise([*(step for step in steps if step != REDACT), CALL])
        steps = [step for step, then in said if (step[0], then[0]) != ("think", "think")]
    return [*steps, CALL]


@settings(max_examples=some(60), deadline=None)
@given(st.data(), st.sampled_from(PAIRS), st.sampled_from(["both", "raw"]))
def test_any_turn_however_it_arrives(data: st.DataObject, pair: ApiPair, expose: str) -> None:
    steps = data.draw(turns(items=pair[1] != "chat" or pair[0] == "chat"))
    sent = encode_turn(pair[1], steps, stream=True)
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=6))
    out = pipeline(*pair, expose=expose).stream(sent, cuts)
    joins = pair == ("chat", "chat")
    assert attribution_texts(read_attributions(pair[0], out, stream=True)) == expected_texts(
        steps, joins=joins
    )


@settings(max_examples=some(60), deadline=None)
@given(turns(), st.sampled_from(ATTRIBUTED_WHOLE), st.sampled_from(EXPOSURES))
def test_streamed_and_whole_agree(steps: list[Step], pair: ApiPair, expose: str) -> None:
    streamed = read_attributions(pair[0], run(pair, steps, stream=True, expose=expose), stream=True)
    whole = read_attributions(pair[0], run(pair, steps, stream=False, expose=expose), stream=False)
    assert [_without_ref(one) for one in streamed] == [_without_ref(one) for one in whole]


@settings(max_examples=some(60), deadline=None)
@given(turns(), st.integers(1, 3), st.sampled_from(OF_CHAT), st.sampled_from(EXPOSURES))
@example([("think", " " * 7 + "a"), CALL], 1, ("responses", "chat"), "both")
def test_a_whole_message_agrees_where_all_reasoning_preceded_the_calls(
    steps: list[Step], calls: int, pair: ApiPair, expose: str
) -> None:
    said = [step for step in steps if step[0] in ("think", "redact")] + [SAY] + [CALL] * calls
    streamed = read_attributions(pair[0], run(pair, said, stream=True, expose=expose), stream=True)
    whole = read_attributions(pair[0], run(pair, said, stream=False, expose=expose), stream=False)
    assert [_without_ref(one) for one in streamed] == [_without_ref(one) for one in whole]


def _without_ref(led: Any) -> Any:
    return "ref" if isinstance(led, str) else led


@settings(max_examples=some(40), deadline=None)
@given(st.lists(turns(), min_size=1, max_size=3), st.randoms())
def test_each_choice_is_a_turn(turns: list[list[Step]], random: Any) -> None:
    lanes = [chat_frames(steps, index)[:-1] for index, steps in enumerate(turns)]
    sent = [lane.pop(0) for lane in lanes]
    while left := [lane for lane in lanes if lane]:
        sent.append(random.choice(left).pop(0))
    said = check_chat(pipeline("chat", "chat").stream(b"".join([*sent, DONE])))
    for index, steps in enumerate(turns):
        assert attribution_texts(said.choices[index].attributions) == expected_texts(
            steps, joins=True
        )


@BOTH
@given(
    steps=turns(), pair=st.sampled_from(PAIRS), expose=st.sampled_from(["both", "raw", "summary"])
)
def test_nothing_else_is_changed(
    steps: list[Step], pair: ApiPair, expose: str, *, stream: bool
) -> None:
    plain, said = (
        run(pair, steps, stream=stream, expose=expose, attribution_limit=attribution_limit)
        for attribution_limit in (None, LIMIT)
    )
    if not stream:
        assert without_attributions(json.loads(said)) == json.loads(plain)
        return
    for (name, before), (same, after) in zip(frames(plain), frames(said), strict=True):
        assert name == same
        assert before == after or without_attributions(json.loads(after)) == json.loads(before)


@BOTH
@settings(max_examples=some(40), deadline=None)
@given(steps=turns(), pair=st.sampled_from(PAIRS), attribution_limit=st.integers(0, 600))
def test_over_the_limit_nothing_is_attributed(
    steps: list[Step], pair: ApiPair, attribution_limit: int, *, stream: bool
) -> None:
    whole = led(pair, steps, stream=stream)
    said = led(pair, steps, stream=stream, attribution_limit=attribution_limit)
    same = [one == other for one, other in zip(said, whole, strict=True)]
    known = same.index(False) if False in same else len(same)
    assert said[known:] == [False] * (len(said) - known)
