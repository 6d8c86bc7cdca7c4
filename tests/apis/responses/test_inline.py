"""Test that thinking inside messages becomes reasoning items, in streams and whole responses."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display, Exposure
from abridge.apis.openai import is_minted
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.texts import split_item
from abridge.core.events import ReasoningDelta
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from abridge.stages.thinking import Thinking
from tests.support.checker import ResponsesStream, check_chat, check_responses
from tests.support.checker import frames as frames_of
from tests.support.pipeline import responses, translating
from tests.support.streams import (
    call_item,
    message_item,
    numbered,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)

TRANSFORMERS = PROFILES["transformers"]
ANTHROPIC = PROFILES["anthropic"]  # parses what its models write
THOUGHT = "First I recall the rule.\n\nIt says n squared, so it is a hundred."
INLINE = f"<think>\n{THOUGHT}\n</think>\n\nOne hundred."
RAW = f"{THOUGHT}\n"
ANSWER = "One hundred."
MESSAGE = message_item(0, INLINE)
HIDING: list[Exposure] = ["summary", "none"]


def stream(frames: list[bytes], **settings: Any) -> ResponsesStream:
    return check_responses(responses(**settings).stream(b"".join(frames)))


def whole(output: list[dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    body = responses(**settings).whole(json.dumps(response(output)).encode())
    return json.loads(body)["output"]  # type: ignore[no-any-return]


def text_of(item: dict[str, Any]) -> str:
    return "".join(part["text"] for part in item.get("content", ()))


def shown(output: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the type of each item, and what it says."""
    return [(item["type"], item.get("arguments", text_of(item))) for item in output]


def of_message(kind: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    place = {"output_index": number, "item_id": f"msg_{number}", "content_index": 0}
    return {"type": f"response.{kind}", **place, **fields}


def delta(text: str, number: int = 0) -> dict[str, Any]:
    return of_message("output_text.delta", number, delta=text, logprobs=[])


CREATED = {"type": "response.created", "response": response([], status="in_progress", usage=None)}
ADDED = {
    "type": "response.output_item.added",
    "output_index": 0,
    "item": {**MESSAGE, "content": [], "status": "in_progress"},
}
PART = of_message("content_part.added", part={**MESSAGE["content"][0], "text": ""})
DONE = {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE}
COMPLETED = {"type": "response.completed", "response": response([MESSAGE])}


# Shown


def test_thinking_becomes_a_reasoning_item_before_its_message() -> None:
    seen = stream(responses_stream([MESSAGE]), profile=TRANSFORMERS)
    assert shown(seen.response["output"]) == [("reasoning", RAW), ("message", ANSWER)]
    assert (seen.raw, seen.text) == (RAW, ANSWER)
    assert is_minted(seen.items[0].id)
    assert seen.items[1].id == "msg_0"
    assert seen.summary, "it is summarized"
    for item in seen.items.values():
        assert item.done in seen.response["output"]


def test_it_streams_while_upstream_thinks() -> None:
    reader = RESPONSES.reader(TRANSFORMERS, Display(), 1 << 20)
    texts = []
    for raw in numbered(CREATED, ADDED, PART, delta("<think>\nFirst"), delta(" I recall")):
        texts += [each.text for each in reader.read(raw) if isinstance(each, ReasoningDelta)]
    assert "".join(texts) == "First I recall"


def test_the_message_is_announced_with_its_first_word() -> None:
    kinds = stream(responses_stream([MESSAGE]), profile=TRANSFORMERS, expose="raw").kinds
    order = [kind for kind in kinds if not kind.endswith("delta")]
    assert order == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_the_whole_response_has_the_same_items() -> None:
    streamed = stream(responses_stream([MESSAGE]), profile=TRANSFORMERS).response["output"]
    output = whole([MESSAGE], profile=TRANSFORMERS)
    assert [{**item, "id": ""} for item in output] == [{**item, "id": ""} for item in streamed]
    assert is_minted(output[0]["id"])


def test_later_items_move_on() -> None:
    output = [MESSAGE, call_item(1, "f", '{"a": 1}'), message_item(2, INLINE)]
    seen = stream(responses_stream(output), profile=TRANSFORMERS)
    expected = [("reasoning", RAW), ("message", ANSWER)]
    assert shown(seen.response["output"]) == [*expected, ("function_call", '{"a": 1}'), *expected]
    assert shown(whole(output, profile=TRANSFORMERS)) == shown(seen.response["output"])


def test_without_thinking_every_frame_passes() -> None:
    frames = responses_stream([message_item(0, "It ends with </think>."), call_item(1, "f", "{}")])
    for expose in ("raw", "both"):
        plain = responses(expose=expose, profile=PROFILES["openrouter"]).stream(b"".join(frames))
        assert responses(expose=expose, profile=TRANSFORMERS).stream(b"".join(frames)) == plain


def test_tags_belong_to_the_answer_after_a_reasoning_item() -> None:
    output = [reasoning_item(0, "Hm."), message_item(1, INLINE)]
    seen = stream(responses_stream(output), profile=TRANSFORMERS)
    assert shown(seen.response["output"]) == [("reasoning", "Hm."), ("message", INLINE)]
    assert shown(whole(output, profile=TRANSFORMERS)) == shown(seen.response["output"])


def test_only_the_beginning_of_a_message_counts() -> None:
    output = [message_item(0, f"As in {INLINE}")]
    seen = stream(responses_stream(output), profile=TRANSFORMERS)
    assert shown(seen.response["output"]) == shown(output)


def test_a_profile_that_does_not_say_so_leaves_tags_in_the_text() -> None:
    seen = stream(responses_stream([MESSAGE]), profile=PROFILES["auto"])
    assert shown(seen.response["output"]) == [("message", INLINE)]


def test_where_the_template_opens_the_block_text_begins_with_reasoning() -> None:
    output = [message_item(0, INLINE.removeprefix("<think>\n"))]
    prefilled = PROFILES["prefilled"]
    seen = stream(responses_stream(output), profile=prefilled)
    assert shown(seen.response["output"]) == [("reasoning", RAW), ("message", ANSWER)]
    assert shown(whole(output, profile=prefilled)) == shown(seen.response["output"])


def test_an_empty_block_makes_no_item() -> None:
    output = [message_item(0, f"<think>\n\n</think>\n\n{ANSWER}")]
    seen = stream(responses_stream(output), profile=TRANSFORMERS)
    assert shown(seen.response["output"]) == [("message", ANSWER)]
    assert shown(whole(output, profile=TRANSFORMERS)) == [("message", ANSWER)]


def test_a_message_of_thinking_alone_is_empty() -> None:
    output = [message_item(0, "<think>\nFirst I")]
    seen = stream(responses_stream(output, status="incomplete"), profile=TRANSFORMERS)
    assert shown(seen.response["output"]) == [("reasoning", "First I"), ("message", "")]
    assert shown(whole(output, profile=TRANSFORMERS)) == shown(seen.response["output"])


@given(cuts=st.lists(st.integers(1, len(INLINE) - 1), max_size=8))
@pytest.mark.parametrize("expose", ["auto", "both", "raw"])
@pytest.mark.parametrize("profile", [TRANSFORMERS, PROFILES["auto"]], ids=["inline", "auto"])
def test_what_stands_beside_a_text_that_is_split_keeps_its_order(
    profile: Profile, expose: Exposure, cuts: list[int]
) -> None:
    edges = [0, *sorted(cuts), len(INLINE)]
    deltas = [
        {**delta(INLINE[start:end]), "logprobs": [{"token": str(end)}], "x": [end, start]}
        for start, end in pairwise(edges)
    ]
    odd = [delta(""), {**delta(""), "x": "no text"}, of_message("output_text.odd", x="odd")]
    frames = numbered(CREATED, ADDED, PART, *odd, *deltas, DONE, COMPLETED)
    out = responses(profile=profile, expose=expose).stream(b"".join(frames))
    check_responses(out)
    seen = [json.loads(one) for _, one in frames_of(out)]
    assert [event["x"] for event in seen if event["type"].endswith(".delta") and "x" in event] == [
        *(event["x"] for event in (odd[1], *deltas))
    ]
    assert [event["x"] for event in seen if event["type"].endswith(".odd")] == ["odd"]


def test_it_keeps_its_numbers() -> None:
    split = {**delta("<think>\nFirst"), "n": "number"}
    data = b"".join(numbered(CREATED, ADDED, PART, split)).replace(b'"number"', b"1E400")
    out = responses(profile=TRANSFORMERS, expose="auto").stream(data)
    assert out.count(b'"n":1E400') == 1


# Translated


@pytest.mark.parametrize("expose", ["both", "summary"])
def test_a_chat_client_gets_it_in_its_field(expose: Exposure) -> None:
    pipeline = translating("responses", CHAT, profile=TRANSFORMERS, expose=expose)
    choice = check_chat(pipeline.stream(b"".join(responses_stream([MESSAGE])))).choices[0]
    assert choice.text == ANSWER
    assert (choice.fields.get("reasoning") == RAW) == (expose == "both")
    assert choice.fields["reasoning_content"].startswith("**Part**")


@pytest.mark.parametrize("expose", ["both", "summary"])
def test_a_chat_client_gets_it_in_a_whole_completion(expose: Exposure) -> None:
    pipeline = translating("responses", CHAT, profile=TRANSFORMERS, expose=expose)
    completion = json.loads(pipeline.whole(json.dumps(response([MESSAGE])).encode()))
    message = completion["choices"][0]["message"]
    assert message["content"] == ANSWER
    assert (message.get("reasoning") == RAW) == (expose == "both")


# Hidden


@pytest.mark.parametrize("expose", HIDING)
@pytest.mark.parametrize("profile", [PROFILES["auto"], TRANSFORMERS, PROFILES["openai"]])
@pytest.mark.parametrize(
    "text",
    [
        INLINE,
        f"\n <THINK>{THOUGHT}</think >\n{ANSWER}",
        f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|channel|>final<|message|>{ANSWER}",
    ],
)
def test_hidden_thinking_is_nowhere_in_the_bytes(text: str, profile: Any, expose: Exposure) -> None:
    pipeline = responses(expose=expose, profile=profile)
    out = pipeline.stream(b"".join(responses_stream([message_item(0, text)])))
    seen = check_responses(out)
    assert shown(seen.response["output"]) == [("reasoning", ""), ("message", ANSWER)]
    assert [passage.text.strip() for passage in pipeline.passages] == [THOUGHT] * (
        expose == "summary"
    )
    body = responses(expose=expose, profile=profile).whole(
        json.dumps(response([message_item(0, text)])).encode()
    )
    for bytes_ in (out, body):
        assert b"recall" not in bytes_
        assert b"squared" not in bytes_
    assert shown(json.loads(body)["output"]) == shown(seen.response["output"])


UNOPENED = f"{THOUGHT}\n</think>\n\n{ANSWER}"


@pytest.mark.parametrize("expose", HIDING)
def test_a_block_that_nothing_opened_is_hidden(expose: Exposure) -> None:
    output = [message_item(0, UNOPENED)]
    expected = [("reasoning", ""), ("message", ANSWER)]
    seen = stream(responses_stream(output), expose=expose)
    assert shown(seen.response["output"]) == expected
    assert shown(whole(output, expose=expose)) == expected


@pytest.mark.parametrize(
    ("output", "profile"),
    [
        ([message_item(0, "Like this\n</think>\nit ends.")], ANTHROPIC),
        (
            [reasoning_item(0, "Hm."), message_item(1, "Like this\n</think>\nit ends.")],
            PROFILES["auto"],
        ),
    ],
    ids=["its servers parse", "its reasoning came before"],
)
def test_text_streams_where_it_cannot_begin_inside_a_block(
    output: list[dict[str, Any]], profile: Any
) -> None:
    *frames, _done_text, _done_part, _done, _end = responses_stream(output)
    pipeline = responses(expose="none", profile=profile)
    for each in frames:
        pipeline.frame(each)
    assert check_responses(bytes(pipeline.out)).text.startswith("Like this\n")


def test_a_text_that_may_begin_inside_a_block_comes_at_its_end() -> None:
    output = [message_item(0, "It is one hundred, since n squared is."), call_item(1, "f", "{}")]
    seen = stream(responses_stream(output), expose="none")
    assert shown(seen.response["output"]) == shown(output)
    assert seen.kinds.count("response.output_text.delta") == 1


@pytest.mark.parametrize("expose", HIDING)
def test_thinking_after_the_first_word_is_dropped_and_counted(expose: Exposure) -> None:
    output = [message_item(0, f"So: <think>{THOUGHT}</think>{ANSWER}")]
    pipeline = responses(expose=expose)
    seen = check_responses(pipeline.stream(b"".join(responses_stream(output))))
    assert shown(seen.response["output"]) == [("message", f"So: {ANSWER}")]
    assert pipeline.reader.dropped == 1
    assert shown(whole(output, expose=expose)) == shown(seen.response["output"])


def test_a_quoted_tag_stays() -> None:
    output = [message_item(0, "It writes `<think>` and then `</think>`.")]
    seen = stream(responses_stream(output), expose="none")
    assert shown(seen.response["output"]) == shown(output)


ARGUMENTS = [
    (f"<think>{THOUGHT}</think>" + '{"a": 1}', '{"a": 1}', 1),
    (f'{{"a": "<think>{THOUGHT}</think>b"}}', '{"a": "b"}', 1),
    ('{"code": "if tag == <think>:"}', '{"code": "if tag == <think>:"}', 0),
    ('{"code": "split(</think>)"}', '{"code": "split(</think>)"}', 0),
    ('{"a < b": "`<think>`"}', '{"a < b": "`<think>`"}', 0),
]


@pytest.mark.parametrize("expose", HIDING)
@pytest.mark.parametrize(("given_", "expected", "dropped"), ARGUMENTS)
def test_closed_blocks_are_taken_out_of_arguments(
    given_: str, expected: str, dropped: int, expose: Exposure
) -> None:
    given_ = given_.replace("\n", "\\n")
    output = [call_item(0, "f", given_), call_item(1, "g", "{}")]
    pipeline = responses(expose=expose)
    seen = check_responses(pipeline.stream(b"".join(responses_stream(output))))
    assert seen.items[0].arguments == expected
    assert [item["arguments"] for item in seen.response["output"]] == [expected, "{}"]
    assert pipeline.reader.dropped == dropped
    assert shown(whole(output, expose=expose)) == shown(seen.response["output"])


def test_shown_arguments_stay_as_they_are() -> None:
    output = [call_item(0, "f", f"<think>{THOUGHT}</think>")]
    seen = stream(responses_stream(output), profile=TRANSFORMERS)
    assert shown(seen.response["output"]) == shown(output)


def test_thinking_in_a_custom_tools_input_is_taken_out() -> None:
    item = {
        "id": "ctc_0",
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "f",
        "input": f"<think>{THOUGHT}</think>ls",
    }
    place = {"output_index": 0, "item_id": "ctc_0"}
    kind = "response.custom_tool_call_input"
    events = [
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "input": ""}},
        *({"type": f"{kind}.delta", **place, "delta": text} for text in pieces(item["input"])),
        {"type": f"{kind}.done", **place, "input": item["input"]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response([item])},
    ]
    seen = stream(numbered(*events), expose="none")
    deltas = [event["delta"] for event in seen.events if event["type"].endswith(".delta")]
    assert "".join(deltas) == "ls"
    assert seen.response["output"][0]["input"] == "ls"
    assert whole([item], expose="none")[0]["input"] == "ls"


def test_thinking_in_a_refusal_becomes_reasoning_if_hidden() -> None:
    part = {"type": "refusal", "refusal": f"<think>{THOUGHT}</think>No."}
    item = {**MESSAGE, "content": [part]}
    events = [
        CREATED,
        ADDED,
        of_message("content_part.added", part={**part, "refusal": ""}),
        *(of_message("refusal.delta", delta=text) for text in pieces(part["refusal"])),
        of_message("refusal.done", refusal=part["refusal"]),
        of_message("content_part.done", part=part),
        {**DONE, "item": item},
        {"type": "response.completed", "response": response([item])},
    ]
    for expose, expected in (("none", "No."), ("raw", part["refusal"])):
        seen = stream(numbered(*events), expose=expose, profile=TRANSFORMERS)
        assert seen.response["output"][-1]["content"][0]["refusal"] == expected
        assert len(seen.items) == (2 if expose == "none" else 1)


# Sloppy upstreams

SLOPPY = {
    "no text but in the end of the part": [ADDED, of_message("output_text.done", text=INLINE)],
    "no text but in the end of the item": [ADDED, DONE],
    "nothing but the end of the item": [DONE],
    "no beginnings": [delta(text) for text in pieces(INLINE)] + [DONE],
    "no ends": [ADDED, *(delta(text) for text in pieces(INLINE))],
    "nothing but the response": [],
    "text in the beginning of the part": [
        ADDED,
        of_message("content_part.added", part=MESSAGE["content"][0]),
    ],
    "every event twice": [
        each
        for event in (ADDED, PART, of_message("output_text.done", text=INLINE), DONE)
        for each in (event, event)
    ],
    "neither ids nor indexes": [
        {key: value for key, value in event.items() if key not in ("item_id", "output_index")}
        for event in (ADDED, PART, *map(delta, pieces(INLINE)), DONE)
    ],
    "another id in each event": [
        ADDED,
        *({**delta(text), "item_id": f"m{n}"} for n, text in enumerate(pieces(INLINE))),
        {**DONE, "item": {**MESSAGE, "id": "m"}},
    ],
    "an empty beginning": [ADDED, PART, delta(""), delta(INLINE), DONE],
}


@pytest.mark.parametrize("expose", ["raw", "none"])
@pytest.mark.parametrize("events", SLOPPY.values(), ids=SLOPPY)
def test_whatever_upstream_leaves_out_the_items_are_the_same(
    events: list[dict[str, Any]], expose: Exposure
) -> None:
    pipeline = responses(profile=TRANSFORMERS, expose=expose)
    out = pipeline.stream(b"".join(numbered(CREATED, *events, COMPLETED)))
    expected = [("reasoning", RAW if expose == "raw" else ""), ("message", ANSWER)]
    assert shown(json.loads(out.split(b"\ndata: ")[-1])["response"]["output"]) == expected
    if events:  # what was not streamed is in the final response alone
        seen = check_responses(out)
        assert seen.text == ANSWER
        assert seen.raw == expected[0][1]
    pipeline = translating("responses", CHAT, profile=TRANSFORMERS, expose=expose)
    choice = check_chat(pipeline.stream(b"".join(numbered(CREATED, *events, COMPLETED)))).choices[0]
    assert choice.text == ANSWER


def test_what_follows_a_message_that_is_not_done_waits_for_none_of_its_text() -> None:
    call = call_item(1, "f", "{}")
    place = {"output_index": 1, "item_id": "fc_1"}
    kind = "response.function_call_arguments"
    events = [
        CREATED,
        ADDED,
        *map(delta, pieces(INLINE)),
        {"type": "response.output_item.added", **place, "item": {**call, "arguments": ""}},
        {"type": f"{kind}.delta", **place, "delta": "{}"},
        of_message("output_text.done", text=INLINE),
        DONE,
        {"type": "response.output_item.done", **place, "item": call},
        {"type": "response.completed", "response": response([MESSAGE, call])},
    ]
    for expose in ("raw", "none"):
        seen = stream(numbered(*events), expose=expose, profile=TRANSFORMERS)
        assert [item.type for item in seen.items.values()] == [
            "reasoning",
            "message",
            "function_call",
        ]
        assert seen.text == ANSWER


@pytest.mark.parametrize("count", range(len(pieces(INLINE))))
@pytest.mark.parametrize("expose", ["raw", "none"])
def test_a_cut_stream_is_legal_and_loses_no_word(count: int, expose: Exposure) -> None:
    texts = pieces(INLINE)[:count]
    pipeline = responses(profile=TRANSFORMERS, expose=expose)
    seen = check_responses(
        pipeline.stream(b"".join(numbered(CREATED, ADDED, PART, *map(delta, texts))))
    )
    assert seen.terminal is not None
    assert seen.terminal["type"] == "response.failed"
    _, _, answer = "".join(texts).partition("</think>\n\n")
    assert seen.text == answer
    assert b"recall" not in pipeline.out or expose == "raw"


def test_a_snapshot_of_the_response_has_no_thinking_in_its_messages() -> None:
    snapshot = {
        "type": "response.in_progress",
        "response": response([MESSAGE], status="in_progress"),
    }
    frames = numbered(CREATED, ADDED, snapshot, *map(delta, pieces(INLINE)), DONE, COMPLETED)
    seen = stream(frames, profile=TRANSFORMERS)
    assert shown(seen.events[1]["response"]["output"]) == [("message", ANSWER)]
    assert shown(seen.response["output"]) == [("reasoning", RAW), ("message", ANSWER)]


def test_events_that_a_message_holds_are_bounded() -> None:
    annotation = of_message(
        "output_text.annotation.added", annotation={"type": "file_path", "file_id": "x" * 900}
    )
    frames = numbered(CREATED, ADDED, *[annotation] * 9, *map(delta, pieces(INLINE)), DONE)
    for raw in [True, False]:
        reader = RESPONSES.reader(TRANSFORMERS, Display(show_raw=raw, hides_raw=not raw), 4096)
        counts = [len(reader.read(each)) for each in frames]
        assert any(counts[2:11]), "there is no room to hold them all"


# Several parts


def in_part(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {**of_message(kind, **fields), "content_index": index}


@pytest.mark.parametrize("expose", ["raw", *HIDING])
@pytest.mark.parametrize(
    ("turns", "raw", "texts"),
    [
        ([(0, "A"), (1, "B"), (0, "a"), (1, "b")], "", ["Aa", "Bb"]),
        ([(0, "<think>Hm"), (0, ".</think>A"), (1, "B"), (0, "a"), (1, "b")], "Hm.", ["Aa", "Bb"]),
        ([(0, " "), (1, "B"), (0, "A"), (1, "b")], "", [" A", "Bb"]),
        ([(0, "<think>Hm.</think>"), (1, "B"), (0, "A"), (1, " < b")], "Hm.", ["A", "B < b"]),
    ],
)
def test_parts_that_stream_by_turns_keep_their_words(
    turns: list[tuple[int, str]], raw: str, texts: list[str], expose: Exposure
) -> None:
    given = ["".join(text for index, text in turns if index == at) for at in (0, 1)]
    content = [{**MESSAGE["content"][0], "text": text} for text in given]
    item = {**MESSAGE, "content": content}
    events = [
        *(in_part(at, "content_part.added", part={**content[at], "text": ""}) for at in (0, 1)),
        *(in_part(at, "output_text.delta", delta=text) for at, text in turns),
        *(in_part(at, "output_text.done", text=text) for at, text in enumerate(given)),
        *(in_part(at, "content_part.done", part=part) for at, part in enumerate(content)),
        {**DONE, "item": item},
        {"type": "response.completed", "response": response([item])},
    ]
    seen = stream(numbered(CREATED, ADDED, *events), profile=TRANSFORMERS, expose=expose)
    message = list(seen.items.values())[-1]
    assert [part.text for part in message.contents] == texts
    assert [part["text"] for part in seen.response["output"][-1]["content"]] == texts
    assert seen.raw == (raw if expose == "raw" else "")


# What is remembered


def test_the_reasoning_is_recorded_for_a_later_request() -> None:
    for make in (responses, lambda **more: translating("responses", CHAT, **more)):
        pipeline = make(profile=TRANSFORMERS)
        pipeline.stream(b"".join(responses_stream([MESSAGE])))
        (turn,) = pipeline.recorded_turns()
        assert (turn.raw, turn.turn.text) == (RAW, ANSWER)
        assert is_minted(turn.original[0]["id"]), "and so not sent upstream"


# Laws

WORDS = ["a", "So. ", "\n", " " * 200, "`", "<", "{", *("<think>", "</think>") * 2, "<thought>"]


def split_at(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return [text[start:end] for start, end in pairwise(edges)]


@given(
    text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map("".join),
    cuts=st.lists(st.integers(0, 60), max_size=12),
    hides=st.booleans(),
    parses=st.booleans(),
)
def test_any_split_into_deltas_gives_what_the_whole_response_gives(
    text: str, cuts: list[int], *, hides: bool, parses: bool
) -> None:
    profile = replace(TRANSFORMERS, parses_text=parses)
    expose: Exposure = "none" if hides else "raw"
    deltas = map(delta, split_at(text, cuts))
    item = message_item(0, text)
    ends = [of_message("output_text.done", text=text), {**DONE, "item": item}]
    final = {"type": "response.completed", "response": response([item])}
    frames = numbered(CREATED, ADDED, PART, *deltas, *ends, final)
    pipeline = responses(profile=profile, expose=expose)
    seen = check_responses(pipeline.stream(b"".join(frames)))
    at_once = responses(profile=profile, expose=expose)
    output = json.loads(at_once.whole(json.dumps(response([item])).encode()))["output"]
    assert shown(seen.response["output"]) == shown(output)
    assert seen.text == text_of(output[-1])
    assert pipeline.reader.dropped == at_once.reader.dropped
    raws = [["".join(t.raw for t in p.recorded_turns())] for p in (pipeline, at_once)]
    assert raws[0] == raws[1]


def say(*texts: str) -> dict[str, Any]:
    """Return a message with these texts; one that begins with `!` is a refusal."""
    parts = [
        {"type": "refusal", "refusal": text[1:]}
        if text.startswith("!")
        else {"type": "output_text", "text": text}
        for text in texts
    ]
    return {"type": "message", "content": parts}


FUNCTION = {"type": "function_call", "arguments": '{"a": "<think>", "b": ["</think>"]}'}
CUSTOM = {"type": "custom_tool_call", "input": 'a <think>"x"</think>b'}
CHOICES: dict[str, tuple[dict[str, Any], bool, dict[str, Any]]] = {
    "tags in two strings of arguments": (FUNCTION, False, FUNCTION),
    "a block in another input": (CUSTOM, False, {**CUSTOM, "input": "a b"}),
    "a refusal after an open block": (say("So. <think>x", "!No."), False, say("So. ", "!No.")),
    "a text after an open block": (
        say("So. <think>x", "y</think>Yes."),
        False,
        say("So. ", "Yes."),
    ),
    "a refusal that begins inside": (say("!x</think>No."), False, say("!xNo.")),
    "a text that begins inside": (say("x</think>So."), False, say("So.")),
    "one after reasoning": (say("x</think>So."), True, say("xSo.")),
    "one after thinking": (say("<think>x</think>", "y</think>So."), False, say("", "ySo.")),
}
"""Items, whether reasoning came before them, and what is left of them where it is hidden."""


def hidden_in(
    item: dict[str, Any], profile: Profile, *, has_reasoned: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return the thinking that a message begins with where it is hidden, and what is left."""
    thinking = Thinking(
        profile,
        1000,
        count(),
        hides_raw=True,
        drops_inline=False,
        hidden=Counter(),
        by_message=True,
        has_reasoned=has_reasoned,
    )
    return split_item(item, thinking)


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES)
def test_each_text_of_an_item_is_looked_through_by_its_kind_and_place(
    case: tuple[dict[str, Any], bool, dict[str, Any]],
) -> None:
    item, follows, left = case
    assert hidden_in(item, PROFILES["auto"], has_reasoned=follows)[1] == left


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")],
)
@pytest.mark.parametrize("profile", [ANTHROPIC, PROFILES["auto"]], ids=lambda one: one.name)
def test_a_block_that_goes_on_in_the_next_part_ends_by_its_own_tag(
    profile: Profile, opening: str, closing: str
) -> None:
    parts = [f"{opening}I add", f" and add.{closing}So.", "More."]
    _, left = hidden_in(say(*parts), profile)
    assert [part["text"] for part in left["content"]] == ["", "So.", "More."]


# Counted anew


def test_reasoning_after_a_message_with_thinking_streams_under_its_new_index() -> None:
    output = [MESSAGE, reasoning_item(1, f"{THOUGHT} " * 9), message_item(2, "So it is.")]
    seen = stream(responses_stream(output), profile=TRANSFORMERS, expose="both")
    assert [item.type for item in seen.items.values()] == ["reasoning", "message"] * 2
    assert seen.items[2].id == "rs_1"
    assert seen.raw == f"{RAW}{THOUGHT} " + f"{THOUGHT} " * 8
    assert len(seen.summary) > len(stream(responses_stream([MESSAGE])).summary)


def test_what_breaks_off_amid_thinking_ends_with_a_reasoning_item() -> None:
    frames = numbered(CREATED, ADDED, PART, delta("<think>\nFirst I"))
    seen = stream(frames, profile=TRANSFORMERS, expose="both")
    assert seen.terminal is not None
    assert shown(seen.terminal["response"]["output"]) == [("reasoning", "First I")]
    assert seen.terminal["response"]["output"][0]["status"] == "incomplete"


@pytest.mark.parametrize("expose", HIDING)
def test_held_text_behind_a_call_that_breaks_off_stays_hidden(expose: Exposure) -> None:
    begun = {**call_item(0, "f", ""), "status": "in_progress"}
    place = {"output_index": 0, "item_id": "fc_0"}
    kind = "response.function_call_arguments.delta"
    events = [
        {"type": "response.output_item.added", **place, "item": begun},
        {"type": kind, **place, "delta": '{"a": '},
        {**ADDED, "output_index": 1},
        {**delta(THOUGHT), "output_index": 1},
    ]
    pipeline = responses(expose=expose)
    check_responses(pipeline.stream(b"".join(numbered(CREATED, *events))))
    assert b"recall" not in pipeline.out


def test_a_source_keeps_its_place_after_a_message_with_thinking() -> None:
    cited = message_item(1, "It is so.")
    cited["content"][0]["annotations"] = [
        {
            "type": "url_citation",
            "url": "https://a.b",
            "title": "t",
            "start_index": 0,
            "end_index": 5,
        }
    ]
    pipeline = translating("responses", CHAT, profile=TRANSFORMERS)
    out = pipeline.whole(json.dumps(response([MESSAGE, cited])).encode())
    (annotation,) = json.loads(out)["choices"][0]["message"]["annotations"]
    source, start = annotation["url_citation"], len(ANSWER)
    text = json.loads(out)["choices"][0]["message"]["content"]
    assert text[source["start_index"] : source["end_index"]].strip().startswith("It is")
    assert source["start_index"] >= start


@pytest.mark.parametrize("said", ["<think>I add.</think>Two.", "Two <b>."])
@pytest.mark.parametrize("expose", HIDING)
def test_a_tag_that_comes_after_the_end_of_its_part_hides_what_follows(
    said: str, expose: Exposure
) -> None:
    frames = responses_stream([message_item(0, said)])
    ends = next(n for n, frame in enumerate(frames) if b"content_part.done" in frame)
    at = {"item_id": json.loads(frames[ends].split(b"data: ")[1])["item_id"]}
    late = [
        {"type": "response.output_text.delta", **at, "output_index": 0, "content_index": 0}
        | {"delta": delta, "logprobs": []}
        for delta in ("<think>" if "<think>" in said else "<", "think>", "Secret.")
    ]
    late = late[:1] + late[2:] if "<think>" in said else late
    added = [f"data: {json.dumps(event)}\n\n".encode() for event in late]
    data = b"".join([*frames[: ends + 1], *added, *frames[ends + 1 :]])
    assert b"Secret" not in responses(expose=expose, profile=ANTHROPIC).stream(data)
