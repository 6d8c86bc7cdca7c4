"""Test that nothing of Gemini's thoughts leaves where raw reasoning is hidden.

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
from tests.apis.gemini.scripts import (
    USAGE,
    Json,
    chunk,
    function_call,
    signed,
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
ANALYSIS = "<|channel|>analysis<|message|>x<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>So."
CLIENTS = (MESSAGES, CHAT, RESPONSES)
HIDING = [(api, expose) for api in CLIENTS for expose in ("summary", "none")]

PARTS: dict[str, list[Any]] = {
    "a thought": [thought(SENTENCE)],
    "a thought marked by a string": [{"text": SENTENCE, "thought": "true"}],
    "a thought marked by a number": [{"text": SENTENCE, "thought": 1}],
    "a thought marked by null": [{"text": SENTENCE, "thought": None}],
    "a thought marked by an object": [{"text": SENTENCE, "thought": {"summary": True}}],
    "a thought in capitals": [{"text": SENTENCE, "Thought": True}],
    "a thought under another name": [{"text": SENTENCE, "isThought": True}],
    "a thought of another kind": [{"text": SENTENCE, "thoughtSummary": True}],
    "a thought that is the mark": [{"text": "So.", "thought": SENTENCE}],
    "thoughts beside a text": [{"text": "So.", "thoughts": SENTENCE}],
    "reasoning beside a text": [{"text": "So.", "thought": False, "reasoning": SENTENCE}],
    "a text's signature": [signed(text("So."), SENTENCE)],
    "a thought's signature": [signed(thought("x"), SENTENCE)],
    "a call's signature": [signed(function_call("fc_1", "f"), SENTENCE)],
    "a signature under another name": [{**text("So."), "thought_signature": SENTENCE}],
    "code": [{"executableCode": {"language": "PYTHON", "code": SENTENCE}}],
    "code beside a text": [{**text("So."), "executableCode": {"code": SENTENCE}}],
    "code's output": [{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": SENTENCE}}],
    "data": [{"inlineData": {"mimeType": SENTENCE, "data": SENTENCE}}],
    "a file": [{"fileData": {"mimeType": SENTENCE, "fileUri": SENTENCE}}],
    "a tool's answer": [{"functionResponse": {"name": "f", "response": {"a": SENTENCE}}}],
    "notes of a part": [{**text("So."), "partMetadata": {"a": SENTENCE}}],
    "a part of unknown kind": [{"musing": {"text": SENTENCE}}],
    "a text that is an object": [{"text": {"thought": SENTENCE}}],
    "a text that is a list": [{"text": [SENTENCE]}],
    "a part that is a string": [SENTENCE],
    "a part that is a list": [[thought(SENTENCE)]],
    "tags": [text(f"{TAGGED}So.")],
    "tags after the answer has begun": [text(f"So. {TAGGED}Yes.")],
    "a tag that nothing closes": [text(f"So. <think>{SENTENCE}")],
    "tags around the end of a part": [text(f"So. <think>{SENTENCE}"), text(f"{SENTENCE}</think>")],
    "tags around a call": [
        *(text("So. <think>"), function_call("fc_1", "f"), text(f"{SENTENCE}</think>Yes.")),
    ],
    "tags around a thought": [text("So. <think>"), thought("x"), text(f"{SENTENCE}</think>Yes.")],
    "a sentence as a call's id": [function_call(SENTENCE, "f")],
    "a sentence as a call's name": [function_call("fc_1", SENTENCE)],
    "arguments that are a string": [{"functionCall": {"name": "f", "args": SENTENCE}}],
    "arguments that are a list": [{"functionCall": {"name": "f", "args": [SENTENCE]}}],
    "tags in arguments": [function_call("fc_1", "f", a=f"{TAGGED}b")],
    "tags deep in arguments": [function_call("fc_1", "f", a=[{"b": TAGGED}])],
    "tags in a name of arguments": [function_call("fc_1", "f", **{TAGGED: 1})],
    "unknown keys of a call": [
        {"functionCall": {"name": "f", "thought": SENTENCE, "partialArgs": [{"a": SENTENCE}]}}
    ],
    "a thought beside a call": [{**function_call("fc_1", "f"), "text": SENTENCE, "thought": True}],
    "a text beside a call": [{**function_call("fc_1", "f"), "text": SENTENCE}],
    "a call that is a string": [{"functionCall": SENTENCE, "text": SENTENCE}],
}
"""Ways for the parts of an answer to say what is hidden."""

CANDIDATES: dict[str, Json] = {
    "an unknown key": {"thoughts": SENTENCE},
    "why it finished": {"finishMessage": SENTENCE},
    "a sentence as a reason": {"finishReason": SENTENCE},
    "a malformed call": {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": SENTENCE},
    "citations": {"citationMetadata": {"citationSources": [{"uri": SENTENCE}]}},
    "its ground": {
        "groundingMetadata": {
            "webSearchQueries": [SENTENCE],
            "searchEntryPoint": {"renderedContent": SENTENCE},
            "groundingChunks": [
                {"web": {"uri": SENTENCE, "title": f"{TAGGED}Page", "x": SENTENCE}}
            ],
            "groundingSupports": [{"segment": {"text": SENTENCE}, "groundingChunkIndices": [0]}],
        }
    },
    "log probabilities": {"logprobsResult": {"chosenCandidates": [{"token": SENTENCE}]}},
    "what it read": {"urlContextMetadata": {"urlMetadata": [{"retrievedUrl": SENTENCE}]}},
    "ratings": {"safetyRatings": [{"category": SENTENCE}]},
    "a sentence as an index": {"index": SENTENCE},
    "a content that is a string": {"content": SENTENCE},
    "parts that are a string": {"content": {"parts": SENTENCE}},
    "beside the parts": {"content": {"role": SENTENCE, "text": SENTENCE, "parts": [text("So.")]}},
    "another candidate": {"index": 1, "content": {"parts": [text(SENTENCE)]}},
}
"""Ways for what stands beside the parts."""

ANSWERS: dict[str, Json] = {
    "an unknown key": {"thoughts": SENTENCE},
    "a text": {"text": SENTENCE},
    "a sentence as a model": {"modelVersion": SENTENCE},
    "a sentence as an id": {"responseId": SENTENCE},
    "a sentence as a time": {"createTime": SENTENCE},
    "a model's state": {"modelStatus": {"message": SENTENCE}},
    "feedback": {"promptFeedback": {"blockReason": SENTENCE, "blockReasonMessage": SENTENCE}},
    "words in the usage": {"usageMetadata": {**USAGE, "note": SENTENCE, SENTENCE: 1}},
    "a sentence as a figure": {"usageMetadata": {**USAGE, "thoughtsTokenCount": SENTENCE}},
    "an error": {
        "error": {"code": SENTENCE, "message": SENTENCE, "status": SENTENCE, "details": [SENTENCE]}
    },
    "an error that is a sentence": {"error": SENTENCE},
}
"""Ways for what stands beside the candidates."""

FRAMES: dict[str, bytes] = {
    "an id line": b"id: %b\n%b" % (SAID, frame(chunk([text("So.")]))),
    "a comment": b": %b\n\n" % SAID,
    "no JSON": b"data: %b\n\n" % SAID,
    "no object": b'data: ["%b"]\n\n' % SAID,
    "an error in a list": b'data: [{"error": {"message": "%b"}}]\n\n' % SAID,
    "more than the end": b"data: [DONE] %b\n\n" % SAID,
    "an object that breaks off": b'data: {"candidates": [{"why": "%b\n\n' % SAID,
    "half a character": b'data: {"why": "\xff%b"}\n\n' % SAID,
}
"""Ways for the frames of a stream."""


def client(api: Api, expose: str, profile: str = "auto") -> Pipeline:
    return Pipeline(
        api,
        expose=expose,  # type: ignore[arg-type]
        profile=PROFILES[profile],
        upstream="gemini",
        write=lambda _: "**Part**\n\nSaid.",
    )


def stream_of(*chunks: Json) -> bytes:
    return b"".join(map(frame, chunks))


def by_character(parts: list[Any]) -> bytes:
    """Return a stream of these parts, each character of a text in a chunk of its own."""
    pieces: list[Json] = []
    for part in parts:
        words = part.get("text") if isinstance(part, dict) and "functionCall" not in part else None
        pieces += [{**part, "text": one} for one in words] if isinstance(words, str) else [part]
    return stream_of(*(chunk([piece]) for piece in pieces), whole([]))


def check_hidden(answer: Json, *streams: bytes, profile: str = "auto") -> None:
    for api, expose in HIDING:
        for stream in streams:
            out = client(api, expose, profile).stream(stream)
            assert CANARY not in said(out)
            CHECKS[api.name](out)
        body = json.dumps(answer).encode()
        assert CANARY not in said(client(api, expose, profile).whole(body))


@pytest.mark.parametrize("profile", ["auto", "gemini-native", "prefilled"])
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_nothing_hidden_leaves_in_a_part(parts: list[Any], profile: str) -> None:
    at_once = stream_of(chunk(parts), whole([]))
    check_hidden(whole(parts), by_character(parts), at_once, profile=profile)


@pytest.mark.parametrize("fields", CANDIDATES.values(), ids=CANDIDATES)
def test_nothing_hidden_leaves_beside_the_parts(fields: Json) -> None:
    answer = whole([text("So.")])
    answer["candidates"] = [{**answer["candidates"][0], **fields}]
    check_hidden(answer, stream_of(chunk([text("Now.")]), answer, whole([])))


@pytest.mark.parametrize("fields", ANSWERS.values(), ids=ANSWERS)
def test_nothing_hidden_leaves_beside_the_candidates(fields: Json) -> None:
    answer = {**whole([text("So.")]), **fields}
    check_hidden(answer, stream_of(answer), stream_of(chunk([text("Now.")]), answer, whole([])))


@pytest.mark.parametrize("odd", FRAMES.values(), ids=FRAMES)
def test_nothing_hidden_leaves_in_a_frame(odd: bytes) -> None:
    stream = stream_of(chunk([text("Now.")])) + odd
    check_hidden(whole([]), stream, stream + stream_of(whole([text("So.")])))


@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
def test_only_the_first_candidate_is_read(api: Api) -> None:
    other = {"index": 1, "content": {"parts": [text(SENTENCE)]}, "finishReason": "STOP"}
    answer = whole([text("So.")])
    both = {**answer, "candidates": [other, *answer["candidates"]]}
    out = client(api, "auto").stream(stream_of({**answer, "candidates": [other]}, both))
    CHECKS[api.name](out)
    for shown in (out, client(api, "auto").whole(json.dumps(both).encode())):
        assert "So." in said(shown)
        assert CANARY not in said(shown)


@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
@pytest.mark.parametrize("ending", [b"", frame({"error": {"code": 500, "message": "x"}})])
def test_text_that_is_held_back_as_the_answer_breaks_off_is_not_shown(
    api: Api, ending: bytes
) -> None:
    out = client(api, "none").stream(stream_of(chunk([text(SENTENCE)])) + ending)
    CHECKS[api.name](out)
    assert CANARY not in said(out)


@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
def test_text_that_is_held_back_is_shown_at_the_end(api: Api) -> None:
    out = client(api, "none").stream(stream_of(chunk([text("So.")]), whole([])))
    CHECKS[api.name](out)
    assert "So." in said(out)


@pytest.mark.parametrize(
    ("parts", "dropped"),
    [
        ([text("So.")], 0),
        ([text(f"So. {TAGGED}Yes.")], 1),
        ([function_call("fc_1", "f", a=f"{TAGGED}b")], 1),
        ([text("So."), {"musing": {"text": SENTENCE}}], 1),
        ([{**text("So."), "why": SENTENCE}], 1),
        ([text(ANALYSIS), function_call("fc_1", "f"), text(FINAL)], 0),  # it is reasoning
    ],
)
def test_what_is_left_out_is_counted(parts: list[Json], dropped: int) -> None:
    pipeline = client(MESSAGES, "none")
    pipeline.stream(stream_of(whole(parts)))
    assert pipeline.reader.dropped == dropped


def test_a_sentence_as_an_id_is_counted() -> None:
    pipeline = client(MESSAGES, "none")
    pipeline.stream(stream_of({**whole([text("So.")]), "responseId": SENTENCE}))
    assert pipeline.reader.dropped == 1
