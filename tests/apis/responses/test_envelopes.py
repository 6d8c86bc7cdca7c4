"""Test sealed reasoning that Responses clients carry to the next request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.apis.display import Exposure
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.history import ResponsesHistory
from abridge.apis.responses.request import read_request
from abridge.core.envelope import Envelope, is_envelope
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
)
from abridge.core.model_request import MessagePart, ReasoningPart
from abridge.providers.catalog import PROFILES
from tests.apis.responses.test_writer_translated import make_writer
from tests.support.checker import ResponsesStream, check_responses
from tests.support.pipeline import Pipeline, responses, translating
from tests.support.sealers import STRETCHES, sealer, unseal
from tests.support.streams import (
    DONE,
    THOUGHT,
    call,
    call_item,
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

Items = list[dict[str, Any]]

USER = {"role": "user", "content": "Hi"}
THEIRS = "gAAAAABo" + "q3Jd-_8h" * 8
NATIVE = {"type": "summary_text", "text": "Theirs."}
OUTPUTS: dict[str, Items] = {
    "one item": [reasoning_item(0, THOUGHT), message_item(1, "One hundred.")],
    "state of its own": [
        reasoning_item(0, THOUGHT, encrypted_content=THEIRS, vendor={"cost": 0.1}),
        message_item(1, "One hundred."),
    ],
    "between calls": [
        reasoning_item(0, THOUGHT),
        call_item(1, "add", '{"a": 1}'),
        reasoning_item(2, "I go on."),
        call_item(3, "add", "{}"),
    ],
    "a native summary": [
        {**reasoning_item(0, THOUGHT), "summary": [NATIVE]},
        message_item(1, "One hundred."),
    ],
    "nothing after it": [reasoning_item(0, THOUGHT)],
}
EXPOSURES: list[Exposure] = ["auto", "both", "summary", "raw", "none"]


def returned(output: Items, keeps: str) -> dict[str, Any]:
    """Return the items as a client returns them.

    That is all of them, what the API requires or, as Codex does, the summary and the blob."""
    kept = {
        "all": lambda item: item,
        "no content": lambda item: {key: item[key] for key in item if key != "content"},
        "no id": lambda item: {
            key: item[key] for key in item if key not in ("content", "id", "status")
        },
    }[keeps]
    items = [kept(item) if item["type"] == "reasoning" else item for item in output]
    return {"model": "thinker-1", "input": [USER, *items, USER]}


def returned_to_upstream(output: Items, keeps: str = "all") -> Items:
    """Return what upstream gets of a returned answer, opened by another replica."""
    body = json.loads(json.dumps(returned(output, keeps)))
    items: Items = unseal(ResponsesHistory(body))["input"][1:-1]
    return items


def sealed(items: Iterable[dict[str, Any]]) -> list[bool]:
    return [
        is_envelope(item.get("encrypted_content")) for item in items if item["type"] == "reasoning"
    ]


def run(output: Items, **how: Any) -> ResponsesStream:
    stream = responses_stream(output, **how.pop("more", {}))
    pipeline = responses(seal=sealer().seal, **how)
    return check_responses(pipeline.stream(b"".join(stream)))


@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
class TestSameApi:
    @pytest.mark.parametrize("keeps", ["all", "no content", "no id"])
    def test_upstream_gets_what_a_client_that_sees_everything_would_send(
        self, output: Items, expose: Exposure, keeps: str
    ) -> None:
        assert returned_to_upstream(run(output, expose=expose).response["output"], keeps) == output

    def test_streamed_and_whole_answers_agree(self, output: Items, expose: Exposure) -> None:
        body = json.dumps(response(output)).encode()
        whole = json.loads(responses(seal=sealer().seal, expose=expose).whole(body))
        assert all(sealed(whole["output"]))
        assert returned_to_upstream(whole["output"]) == output

    def test_the_very_same_blob_is_in_the_item_and_in_the_response(
        self, output: Items, expose: Exposure
    ) -> None:
        seen = run(output, expose=expose)
        done = [item.done["encrypted_content"] for item in seen.reasoning if item.done is not None]
        final = [item for item in seen.response["output"] if item["type"] == "reasoning"]
        assert [item["encrypted_content"] for item in final] == done
        assert all(map(is_envelope, done))
        assert len(set(done)) == len(done)

    def test_no_item_begins_with_an_envelope(self, output: Items, expose: Exposure) -> None:
        added = [event for event in run(output, expose=expose).events if "added" in event["type"]]
        assert not any(sealed(event["item"] for event in added if "item" in event))

    def test_hidden_reasoning_is_nowhere_in_the_clear(
        self, output: Items, expose: Exposure
    ) -> None:
        body = json.dumps(response(output)).encode()
        for data in (
            responses(seal=sealer().seal, expose=expose).whole(body),
            responses(seal=sealer().seal, expose=expose).stream(b"".join(responses_stream(output))),
        ):
            hidden = expose in ("summary", "none")
            assert (b"odd numbers" in data or b"I go on." in data) is not hidden
            assert not (hidden and THEIRS.encode() in data)


def test_an_item_is_sealed_once_it_is_done_and_only_once() -> None:
    sealed: list[Envelope] = []

    def seal(envelope: Envelope) -> str:
        sealed.append(envelope)
        return f"abr1.{len(sealed)}"

    output = OUTPUTS["between calls"]
    pipeline = responses(seal=seal, expose="summary")
    for raw in responses_stream(output):
        done = bytes(pipeline.out).count(b"output_item.done")
        assert len(sealed) <= done
        pipeline.frame(raw)
    assert [envelope.item_id for envelope in sealed] == ["rs_0", "rs_2"]
    assert [envelope.reasoning for envelope in sealed] == [[output[0]], [output[2]]]


NOTHING_TO_SEAL: dict[str, Items] = {
    "no reasoning": [message_item(0, "One hundred.")],
    "opaque state": [reasoning_item(0, "", encrypted_content=THEIRS), message_item(1, "So.")],
    "a native summary": [
        {**reasoning_item(0, "", encrypted_content=THEIRS), "summary": [NATIVE]},
        message_item(1, "So."),
    ],
    "blank reasoning": [reasoning_item(0, " \n"), message_item(1, "So.")],
    "an item that is no reasoning": [
        {"id": "cmp_0", "type": "compaction", "encrypted_content": THEIRS},
        message_item(1, "So."),
    ],
}


@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("output", NOTHING_TO_SEAL.values(), ids=NOTHING_TO_SEAL)
def test_where_there_is_nothing_to_seal_not_a_byte_changes(output: Items, expose: Exposure) -> None:
    stream, body = b"".join(responses_stream(output)), json.dumps(response(output)).encode()

    def both(**how: Any) -> tuple[bytes, bytes]:
        vouched = PROFILES["openai"]  # else a native summary is taken for reasoning
        pipelines = [responses(expose=expose, profile=vouched, **how) for _ in range(2)]
        return pipelines[0].stream(stream), pipelines[1].whole(body)

    assert both() == both(seal=lambda _: pytest.fail("sealed"))


def test_without_a_blob_the_response_is_unchanged() -> None:
    """The writer has no way to seal one."""
    stream = b"".join(responses_stream(OUTPUTS["state of its own"]))
    assert responses(seal=lambda _: "").stream(stream) == responses().stream(stream)


def test_a_broken_answer_can_be_continued() -> None:
    output = OUTPUTS["between calls"]
    stream = responses_stream(output)
    for length in range(1, len(stream)):
        pipeline = responses(seal=sealer().seal, expose="summary")
        seen = check_responses(pipeline.stream(b"".join(stream[:length])))
        assert seen.response["status"] == "failed"
        assert b"odd numbers" not in pipeline.out
        remaining = returned_to_upstream(
            [item for item in seen.response["output"] if any(sealed([item]))]
        )
        for item in remaining:
            (whole,) = (known for known in output if known["id"] == item["id"])
            partial, complete = ("".join(map(_text, part["content"])) for part in (item, whole))
            assert partial
            assert complete.startswith(partial)


def _text(part: dict[str, str]) -> str:
    return part["text"]


def test_reasoning_under_the_name_of_a_summary_comes_back_as_upstream_reads_it() -> None:
    """Ollama reads `encrypted_content`, where it has the reasoning in clear text."""
    summary = [{"type": "summary_text", "text": THOUGHT}]
    masked = {**reasoning_item(0, "", encrypted_content=THOUGHT), "summary": summary}
    stream = b"".join(responses_stream([masked, message_item(1, "So.")]))
    pipeline = responses(seal=sealer().seal, expose="summary", profile=PROFILES["ollama"])
    seen = check_responses(pipeline.stream(stream))
    assert b"odd numbers" not in pipeline.out
    assert returned_to_upstream(seen.response["output"])[0]["encrypted_content"] == THOUGHT


def test_an_item_without_an_id_is_known_by_the_one_it_was_given() -> None:
    sloppy = [{**item, "id": ""} for item in OUTPUTS["one item"]]
    seen = run(sloppy, expose="summary")
    (item,) = seen.reasoning
    back = returned_to_upstream(seen.response["output"])[0]
    assert back == {**OUTPUTS["one item"][0], "id": item.id}


def test_the_size_of_stored_blobs_is_limited() -> None:
    output = [reasoning_item(number, "I go on.") for number in range(6)]
    pipeline = responses(seal=lambda envelope: "abr1." + envelope.item_id * 400_000, expose="none")
    seen = check_responses(pipeline.stream(b"".join(responses_stream(output))))
    assert sealed(seen.response["output"]) == [True] * 3 + [False] * 3


# Translated


def translate(stream: list[bytes], **how: Any) -> tuple[Pipeline, ResponsesStream]:
    pipeline = translating("chat", RESPONSES, seal=sealer().seal, **how)
    return pipeline, check_responses(pipeline.stream(b"".join(stream)))


def thoughts(output: Items, keeps: str = "all") -> list[MessagePart]:
    """Return what an upstream of another API gets of the reasoning."""
    body = {"model": "thinker-1", "input": returned_to_upstream(output, keeps)}
    speeches = read_request(body).messages
    return [
        ReasoningPart(part.text, part.summary, part.state, part.is_signature)
        for speech in speeches
        for part in speech.parts
        if isinstance(part, ReasoningPart)
    ]


def signed(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


BLOCKS = [
    signed("One.", "s1"),
    {"type": "redacted_thinking", "data": "opaque"},
    signed("Two.", "s2"),
]
STOP = [chunk({"content": "Yes"}), chunk({}, finish="stop"), DONE]
TOLD = [
    ReasoningPart("One.", state="s1", is_signature=True),
    ReasoningPart(state="opaque"),
    ReasoningPart("Two.", state="s2", is_signature=True),
]


@pytest.mark.parametrize("expose", EXPOSURES)
class TestBridged:
    @pytest.mark.parametrize("keeps", ["all", "no content", "no id"])
    def test_raw_reasoning_comes_back(self, expose: Exposure, keeps: str) -> None:
        stream = chat_stream(THOUGHT, "One hundred.", calls=[call("add", "{}")])
        pipeline, seen = translate(stream, expose=expose)
        assert thoughts(seen.response["output"], keeps) == [ReasoningPart(THOUGHT)]
        assert (b"odd numbers" in pipeline.out) is (expose not in ("summary", "none"))

    def test_each_stretch_has_a_blob_of_its_own(self, expose: Exposure) -> None:
        stream = [
            chunk({"reasoning": THOUGHT}),
            chunk({"tool_calls": [call("add", "{}", 0)]}),
            chunk({"reasoning": "I go on."}),
            chunk({"tool_calls": [call("add", "{}", 1)]}),
            chunk({}, finish="tool_calls"),
        ]
        _, seen = translate(stream, expose=expose)
        output = seen.response["output"]
        assert sealed(output) == [True, True]
        assert thoughts(output) == [ReasoningPart(THOUGHT), ReasoningPart("I go on.")]
        assert thoughts(output[2:]) == [ReasoningPart("I go on.")]
        assert [item.done for item in seen.items.values()] == output

    @pytest.mark.parametrize("streamed", [True, False])
    def test_each_piece_keeps_its_own_signature(self, expose: Exposure, *, streamed: bool) -> None:
        message = {"reasoning_content": "One.Two.", "thinking_blocks": BLOCKS, "content": "Yes"}
        pipeline = translating("chat", RESPONSES, seal=sealer().seal, expose=expose)
        if streamed:
            deltas = [
                {"thinking_blocks": [{**block, "index": index}]}
                for index, block in enumerate(BLOCKS)
            ]
            chunks = [*map(chunk, deltas), chunk({"content": "Yes"}), chunk({}, finish="stop")]
            output = check_responses(pipeline.stream(b"".join(chunks))).response["output"]
        else:
            output = json.loads(pipeline.whole(json.dumps(completion(message)).encode()))["output"]
        assert [item["type"] for item in output] == ["reasoning", "message"]
        assert thoughts(output) == TOLD

    def test_opaque_state_alone_passes_as_it_is(self, expose: Exposure) -> None:
        details = [{"type": "reasoning.encrypted", "data": THEIRS, "index": 0}]
        stream = [chunk({"reasoning_details": details}), *chat_stream("", "Yes")]
        _, seen = translate(stream, expose=expose)
        assert seen.response["output"][0]["encrypted_content"] == THEIRS


def test_a_translated_stream_that_is_cut_leaves_the_reasoning_so_far() -> None:
    pipeline, seen = translate(chat_stream(THOUGHT, "Yes")[:10], expose="summary")
    assert seen.response["status"] == "failed"
    (thought,) = thoughts(seen.response["output"])
    assert isinstance(thought, ReasoningPart)
    assert THOUGHT.startswith(thought.text)
    assert thought.text
    assert b"The user asks" not in pipeline.out


@given(STRETCHES, st.booleans())
def test_all_of_a_stretch_comes_back_in_order(
    reasoning: list[Event],
    shown: bool,  # noqa: FBT001 -- drawn
) -> None:
    writer = make_writer(show_raw=shown, seal=sealer().seal)
    events = [
        ReasoningStarted(0, None, 0),
        *reasoning,
        ReasoningEnded(0, None, 0),
        ContentDelta(0, None, "Yes"),
    ]
    for event in (*events, Finished(0, None, "stop")):
        writer.note(event)
    output = json.loads(writer.write_whole(ResponseEnded(None, None, ok=True)))["output"]
    pieces, text = [], ""
    for event in reasoning:
        if isinstance(event, ReasoningDelta):
            pieces.append((event.text, "", False))
            text += event.text
        elif isinstance(event, ProviderState):
            repeats = event.data.strip() == text.strip() and not event.signs
            pieces += [] if repeats else [("", event.data, event.signs)]
            text = ""
    back = [
        piece
        for part in thoughts(output)
        if isinstance(part, ReasoningPart)
        for piece in ((part.text, "", False), ("", part.state, part.is_signature))
    ]
    assert _joined(back) == _joined(pieces)


def _joined(pieces: list[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
    """Join adjacent text without state."""
    joined: list[tuple[str, str, bool]] = []
    for text, data, signs in pieces:
        if not (text or data):
            continue
        if text and joined and joined[-1][0]:
            joined[-1] = (joined[-1][0] + text, "", False)
        else:
            joined.append((text, data, signs))
    return joined


def test_without_a_blob_a_translated_response_is_unchanged() -> None:
    """Also state that needs items of its own."""
    stream = b"".join([*(chunk({"thinking_blocks": [block]}) for block in BLOCKS), *STOP])
    assert translating("chat", RESPONSES, seal=lambda _: "").stream(stream) == translating(
        "chat", RESPONSES
    ).stream(stream)
