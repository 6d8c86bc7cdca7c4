"""Test that nothing of the thoughts of an interaction leaves where raw reasoning is hidden.

That is so whichever way they come, streamed or whole, and whichever API the client speaks.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.apis.interactions.scripts import (
    USAGE,
    Json,
    event,
    events,
    frames,
    function_call,
    interaction,
    output,
    stream,
    text,
    thought,
    whole,
)
from tests.support.canaries import CANARY, SENTENCE, said
from tests.support.messages_checker import CHECKS
from tests.support.pipeline import Pipeline
from tests.support.streams import frame

TAGGED = f"<think>{SENTENCE}</think>"
SAID = SENTENCE.encode()
CLIENTS = (MESSAGES, CHAT, RESPONSES)
HIDING = [(api, expose) for api in CLIENTS for expose in ("summary", "none")]
SECRET = text(SENTENCE)

STEPS: dict[str, list[Any]] = {
    "a thought": [thought(SENTENCE)],
    "a thought's signature": [thought("x", SENTENCE)],
    "a thought with a content": [{**thought("x"), "content": [SECRET]}],
    "a thought with an image": [{**thought("x"), "summary": [{"type": "image", "data": SENTENCE}]}],
    "a thought with a text": [{**thought("x"), "text": SENTENCE}],
    "a thought of another type": [{"type": "thought_summary", "summary": [SECRET]}],
    "a step of unknown type": [{"type": "musing", "content": [SECRET], "text": SENTENCE}],
    "a step without a type": [{"content": [SECRET]}],
    "a sentence as a type": [{"type": SENTENCE, "content": [SECRET]}],
    "an output that says that it is a thought": [{**output(SECRET), "thought": True}],
    "an output with a summary": [{**output("So."), "summary": [SECRET]}],
    "an output that is an error": [{**output("So."), "error": {"code": 3, "message": SENTENCE}}],
    "a text that says that it is a thought": [output({**SECRET, "thought": True})],
    "a text of another type": [output({"type": "thought_text", "text": SENTENCE})],
    "reasoning beside a text": [output({**text("So."), "reasoning": SENTENCE})],
    "a text that is an object": [output({"type": "text", "text": {"thought": SENTENCE}})],
    "a content that is a string": [{"type": "model_output", "content": SENTENCE}],
    "data": [output({"type": "image", "mime_type": SENTENCE, "data": SENTENCE})],
    "words in data": [output({"type": "image", "mime_type": "image/png", "data": SENTENCE})],
    "a file": [output({"type": "document", "uri": SENTENCE})],
    "code": [{"type": "code_execution_call", "id": "c", "arguments": {"code": SENTENCE}}],
    "code's output": [{"type": "code_execution_result", "call_id": "c", "result": SENTENCE}],
    "a hosted tool's name": [{"type": "mcp_server_tool_call", "id": "c", "name": SENTENCE}],
    "a function's result": [{"type": "function_result", "call_id": "c", "result": SENTENCE}],
    "what the user said": [{"type": "user_input", "content": [SECRET]}],
    "a source": [
        output(text("So.", {"type": "url_citation", "url": SENTENCE, "title": f"{TAGGED}Page"}))
    ],
    "notes of a source": [
        output(text("So.", {"type": "url_citation", "url": "https://a.example", "why": SENTENCE}))
    ],
    "tags": [output(f"{TAGGED}So.")],
    "tags after the answer has begun": [output(f"So. {TAGGED}Yes.")],
    "a tag that nothing closes": [output(f"So. <think>{SENTENCE}")],
    "tags around the end of a content": [output(f"So. <think>{SENTENCE}", f"{SENTENCE}</think>")],
    "tags around a call": [
        *(output("So. <think>"), function_call("fc_1"), output(f"{SENTENCE}</think>Yes.")),
    ],
    "a sentence as a call's id": [function_call(SENTENCE, "f")],
    "a sentence as a call's name": [function_call("fc_1", SENTENCE)],
    "tags in arguments": [function_call("fc_1", "f", a=f"{TAGGED}b")],
    "tags in a name of arguments": [function_call("fc_1", "f", **{TAGGED: 1})],
    "unknown keys of a call": [{**function_call("fc_1", "f"), "thought": SENTENCE}],
}
"""Ways for the steps of an answer to say what is hidden."""

ANSWERS: dict[str, Json] = {
    "an unknown key": {"thoughts": SENTENCE},
    "a text": {"output_text": SENTENCE},
    "a sentence as a model": {"model": SENTENCE},
    "a sentence as an id": {"id": SENTENCE},
    "a sentence as a time": {"created": SENTENCE},
    "a sentence as a status": {"status": SENTENCE},
    "errors": {"status": "failed", "errors": [{"code": SENTENCE, "message": SENTENCE}]},
    "an echo": {"system_instruction": SENTENCE, "input": [output(SENTENCE)]},
    "words in the usage": {"usage": {**USAGE, "note": SENTENCE, SENTENCE: 1}},
    "a sentence as a figure": {"usage": {**USAGE, "total_thought_tokens": SENTENCE}},
}
"""Ways for what stands beside the steps."""

DELTAS: dict[str, Json] = {
    "a summary": {"type": "thought_summary", "content": SECRET},
    "a summary of another kind": {"type": "thought_text", "text": SENTENCE},
    "a text that says that it is a thought": {"type": "text", "text": SENTENCE, "thought": True},
    "a text without a type": {"text": SENTENCE},
    "a sentence as a type": {"type": SENTENCE, "text": SENTENCE},
    "what a hosted tool says": {"type": "code_execution_result", "result": SENTENCE},
}
"""Ways for the deltas of an output."""

EVENTS: dict[str, Json] = {
    "a text whose event says that it is a thought": event(
        "step.delta", index=1, delta=SECRET, thought=True
    ),
    "an event of unknown type": event("step.musing", index=1, delta=SECRET),
    "an event of no type": {"index": 1, "delta": SECRET},
    "a text of a thought": event("step.delta", index=0, delta=SECRET),
    "a status": event("interaction.status_update", status=SENTENCE, interaction_id=SENTENCE),
    "an error": event("error", error={"code": SENTENCE, "message": SENTENCE}),
    "an error that is a sentence": event("error", error=SENTENCE),
    "usage beside": event("step.stop", index=1, usage={"total_tokens": SENTENCE, SENTENCE: 1}),
}
"""Ways for the events of a stream, in which step 0 is a thought."""

FRAMES: dict[str, bytes] = {
    "an event's name": frame(event("step.stop", index=1), SENTENCE),
    "an id line": b"id: %b\n%b" % (SAID, frame(event("step.stop", index=1))),
    "a comment": b": %b\n\n" % SAID,
    "no JSON": b"data: %b\n\n" % SAID,
    "no object": b'data: ["%b"]\n\n' % SAID,
    "an error that is no event": b'{"error": {"message": "%b"}}\n\n' % SAID,
    "more than the end": b"data: [DONE] %b\n\n" % SAID,
    "an object that breaks off": b'data: {"why": "%b\n\n' % SAID,
    "half a character": b'data: {"why": "\xff%b"}\n\n' % SAID,
}
"""Ways for the frames of a stream."""


def client(api: Api, expose: str, profile: str = "auto") -> Pipeline:
    return Pipeline(
        api,
        expose=expose,  # type: ignore[arg-type]
        profile=PROFILES[profile],
        upstream="interactions",
        write=lambda _: "**Part**\n\nSaid.",
    )


def check_hidden(answer: Json | None, *streams: bytes, profile: str = "auto") -> None:
    for api, expose in HIDING:
        for streamed in streams:
            out = client(api, expose, profile).stream(streamed)
            assert CANARY not in said(out)
            CHECKS[api.name](out)
        if answer is not None:
            body = json.dumps(answer).encode()
            assert CANARY not in said(client(api, expose, profile).whole(body))


def at_once(steps: list[Any]) -> bytes:
    """Return a stream whose steps start with all their content."""
    told = [
        each
        for index, step in enumerate(steps)
        for each in (
            event("step.start", index=index, step=step),
            event("step.stop", index=index),
        )
    ]
    ended = event("interaction.completed", interaction=interaction("completed"))
    return b"".join(frames([*told, ended]))


@pytest.mark.parametrize("profile", ["auto", "gemini-native", "prefilled"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_nothing_hidden_leaves_in_a_step(steps: list[Any], profile: str) -> None:
    beginnings = [at_once(steps)]
    if all(isinstance(step.get("content", []), list) for step in steps) and "type" in steps[0]:
        beginnings.append(b"".join(stream(steps)))
    check_hidden(whole([{"type": "x", **step} for step in steps]), *beginnings, profile=profile)


@pytest.mark.parametrize("fields", ANSWERS.values(), ids=ANSWERS)
def test_nothing_hidden_leaves_beside_the_steps(fields: Json) -> None:
    created, *told = events([output("Now.")])
    created["interaction"] |= fields
    ended = event("interaction.completed", interaction={**told.pop()["interaction"], **fields})
    answer = {**whole([output("So.")]), **fields}
    check_hidden(answer, b"".join(frames([created, *told, ended])))


@pytest.mark.parametrize("delta", DELTAS.values(), ids=DELTAS)
@pytest.mark.parametrize("index", [0, 1, 7])
def test_nothing_hidden_leaves_in_a_delta(delta: Json, index: int) -> None:
    *told, ended = events([output("Now."), thought("x")])
    odd = event("step.delta", index=index, delta=delta)
    check_hidden(None, b"".join(frames([*told[:4], odd, *told[4:], odd, ended])))


@pytest.mark.parametrize("odd", EVENTS.values(), ids=EVENTS)
def test_nothing_hidden_leaves_in_an_interactions_event(odd: Json) -> None:
    start, status, thinks, *told, ended = events([thought("x"), output("Now.")])
    for sent in ([start, status, thinks, odd, *told, ended], [start, *told, odd, ended]):
        check_hidden(None, b"".join(frames(sent)))


@pytest.mark.parametrize("odd", FRAMES.values(), ids=FRAMES)
def test_nothing_hidden_leaves_in_a_frame_of_an_interaction(odd: bytes) -> None:
    *told, ended = frames(events([output("Now.")]))
    check_hidden(None, b"".join([*told, odd]), b"".join([*told, odd, ended]))


def test_a_call_is_whole_whatever_stands_beside_its_arguments() -> None:
    told = events([output("So."), function_call("fc_1", "f", a="b")])
    for each in told:
        each["x_trace"] = SENTENCE
    out = client(CHAT, "none").stream(b"".join(frames(told)))
    assert CANARY not in said(out)
    (call,) = CHECKS["chat"](out).choices[0].calls.values()
    assert json.loads(call["arguments"]) == {"a": "b"}


@pytest.mark.parametrize(
    ("steps", "dropped"),
    [
        ([output("So.")], 0),
        ([output(f"So. {TAGGED}Yes.")], 1),
        ([function_call("fc_1", "f", a=f"{TAGGED}b")], 1),
        ([output("So."), {"type": "musing", "content": [SECRET]}], 1),
        ([output({**text("So."), "why": SENTENCE})], 1),
    ],
)
def test_what_is_left_out_of_an_interaction_is_counted(steps: list[Json], dropped: int) -> None:
    pipeline = client(MESSAGES, "none")
    pipeline.whole(json.dumps(whole(steps)).encode())
    assert pipeline.reader.dropped == dropped
