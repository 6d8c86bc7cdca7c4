"""Test that a text which a field beside it marks as thinking is hidden, and any other is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.apis.messages import scripts
from tests.support.canaries import CANARY, SENTENCE
from tests.support.pipeline import Pipeline
from tests.support.streams import DONE, chunk, completion, message_item, response, responses_stream

Json = dict[str, Any]

ANSWER = "It is 42."

MARKS: dict[str, Json] = {
    "Gemini's": {"extra_content": {"google": {"thought": True}}},
    "of a part of Gemini's": {"thought": True},
    "a channel": {"channel": "analysis"},
    "a phase": {"phase": "thinking"},
    "a role": {"role": "thinking"},
    "in capitals": {"channel": "THOUGHT"},
}
NO_MARKS: dict[str, Json] = {
    "the answer's channel": {"channel": "final"},
    "what is said between calls": {"channel": "commentary"},
    "its phase": {"phase": "final_answer"},
    "a role": {"role": "model"},
    "a key of nobody's": {"kind": "inner monologue"},
    "a value of nobody's": {"channel": "musings", "phase": ["thinking"]},
    "an id": {"trace_id": "req_01js6ywk"},
    "figures": {"token_ids": [1, 2], "score": 0.5},
    "nothing": {"thought": False, "channel": None, "extra_content": {"google": {}}},
    "a signature": {"extra_content": {"google": {"thought_signature": "c2ln"}}},
    "opaque state": {"extra_content": "thought", "thought": "true enough"},
}
STREAMED = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
EVERY_API = pytest.mark.parametrize("api", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)


def in_chat(marked: Json, *, streams: bool) -> bytes:
    if not streams:
        return json.dumps(completion({"role": "assistant", "content": SENTENCE, **marked})).encode()
    said = chunk({"role": "assistant", "content": SENTENCE, **marked})
    return b"".join([said, chunk({"content": ""}), chunk({}, finish="stop"), DONE])


def in_responses(item: Json, *, streams: bool) -> bytes:
    if streams:
        return b"".join(responses_stream([item]))
    return json.dumps(response([item])).encode()


def with_text(api: Api, beside: Json, *, streams: bool) -> bytes:
    """Return an answer of a text with these fields beside it."""
    if api is CHAT:
        return in_chat(beside, streams=streams)
    if api is RESPONSES:
        item = message_item(0, SENTENCE)
        item["content"][0] |= beside
        return in_responses(item, streams=streams)
    if not streams:
        return json.dumps(scripts.message([{**scripts.text(SENTENCE), **beside}])).encode()
    start = scripts.start(0, {**scripts.text(""), **beside})
    block = [start, scripts.delta(0, "text", text=SENTENCE), scripts.stop(0)]
    return b"".join([scripts.begin(), *block, *scripts.finish_at_once()])


def show(api: Api, body: bytes, *, streams: bool = True, profile: str = "openai") -> str:
    """Return what a client is sent where raw reasoning is hidden."""
    pipeline = Pipeline(api, expose="none", profile=PROFILES[profile])
    return (pipeline.stream(body) if streams else pipeline.whole(body)).decode()


@STREAMED
@EVERY_API
@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_a_text_that_is_marked_as_thinking_is_no_answer(
    mark: Json, api: Api, *, streams: bool
) -> None:
    assert CANARY not in show(api, with_text(api, mark, streams=streams), streams=streams)


@STREAMED
@EVERY_API
@pytest.mark.parametrize("beside", NO_MARKS.values(), ids=NO_MARKS)
def test_any_other_text_stays(beside: Json, api: Api, *, streams: bool) -> None:
    assert CANARY in show(api, with_text(api, beside, streams=streams), streams=streams)


@STREAMED
@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_a_part_of_a_content_is_hidden_alone(mark: Json, *, streams: bool) -> None:
    parts = [{"type": "text", "text": SENTENCE, **mark}, {"type": "text", "text": ANSWER}]
    out = show(CHAT, in_chat({"content": parts}, streams=streams), streams=streams)
    assert CANARY not in out
    assert ANSWER in out


@STREAMED
@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_an_item_of_responses_that_is_marked_is_hidden(mark: Json, *, streams: bool) -> None:
    item = {**message_item(0, SENTENCE), **mark}
    assert CANARY not in show(RESPONSES, in_responses(item, streams=streams), streams=streams)


TAGGED: dict[str, tuple[list[str], str]] = {
    "closed by the answer": ([f"<thought>{SENTENCE}", SENTENCE], f"</thought>{ANSWER}"),
    "closed by itself": ([f"<thought>{SENTENCE}", f"{SENTENCE}</thought>\n"], ANSWER),
    "closed in a delta": ([f"<thought>{SENTENCE}</thought>"], ANSWER),
    "with the answer in it": ([f"<thought>{SENTENCE}</thought>{ANSWER}"], ""),
    "without tags": ([SENTENCE, SENTENCE], ANSWER),
}


@pytest.mark.parametrize(("thoughts", "answer"), TAGGED.values(), ids=TAGGED)
@pytest.mark.parametrize("profile", ["auto", "gemini"])
@pytest.mark.parametrize("mark", [MARKS["Gemini's"], MARKS["a channel"]], ids=["Gemini", "channel"])
def test_the_answer_after_marked_deltas_is_shown(
    mark: Json, profile: str, thoughts: list[str], answer: str
) -> None:
    frames = [
        *(chunk({"role": "assistant", "content": thought, **mark}) for thought in thoughts),
        *(chunk({"role": "assistant", "content": text}) for text in (answer, ANSWER)),
        chunk({}, finish="stop"),
        DONE,
    ]
    out = show(CHAT, b"".join(frames), profile=profile)
    assert CANARY not in out
    assert out.count(ANSWER) == 2
    assert "thought>" not in out


@pytest.mark.parametrize("profile", ["auto", "gemini"])
def test_a_whole_message_with_tags_keeps_what_follows_them(profile: str) -> None:
    text = f"<thought>\n{SENTENCE}\n</thought>\n{ANSWER}"
    body = in_chat({"content": text, **MARKS["Gemini's"]}, streams=False)
    out = show(CHAT, body, streams=False, profile=profile)
    assert CANARY not in out
    assert ANSWER in out


def test_a_role_holds_until_another_comes() -> None:
    frames = [
        chunk({"role": "assistant", "content": ANSWER}),
        *(chunk({"content": ANSWER}) for _ in range(3)),
        chunk({"role": "thinking", "content": ""}),
        *(chunk({"content": SENTENCE}) for _ in range(3)),
        chunk({"role": "assistant", "content": ANSWER}),
        *(chunk({"content": ANSWER}) for _ in range(3)),
        chunk({}, finish="stop"),
        DONE,
    ]
    out = show(CHAT, b"".join(frames))
    assert CANARY not in out
    assert out.count(ANSWER) == 8
    assert '"thinking"' not in out


def test_marked_text_is_reasoning_to_summarize() -> None:
    body = in_chat({"extra_content": {"google": {"thought": True}}}, streams=True)
    pipeline = Pipeline(CHAT, expose="summary", profile=PROFILES["gemini"])
    pipeline.stream(body)
    assert CANARY in str(pipeline.passages)


def test_a_delta_of_text_in_a_block_of_thinking_is_no_answer() -> None:
    deltas = [scripts.delta(0, "text", text=SENTENCE)] * 3
    frames = [
        scripts.begin(),
        *(scripts.start(0, scripts.thinking("", "")), *deltas, scripts.stop(0)),
        scripts.start(1, scripts.text("")),
        *(scripts.delta(1, "text", text=ANSWER), scripts.stop(1)),
        *scripts.finish_at_once(),
    ]
    out = show(MESSAGES, b"".join(frames))
    assert CANARY not in out
    assert ANSWER in out


def test_a_marked_event_of_text_is_no_answer() -> None:
    marked = {"text": SENTENCE, "channel": "analysis"}
    delta = scripts.event("content_block_delta", index=0, delta={"type": "text_delta", **marked})
    frames = [
        scripts.begin(),
        *(scripts.start(0, scripts.text("")), delta),
        *(scripts.delta(0, "text", text=ANSWER), scripts.stop(0)),
        *scripts.finish_at_once(),
    ]
    out = show(MESSAGES, b"".join(frames))
    assert CANARY not in out
    assert ANSWER in out
