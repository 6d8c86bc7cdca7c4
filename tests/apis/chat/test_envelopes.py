"""Test sealed reasoning that Chat Completions clients carry to the next request."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.apis.chat.api import CHAT
from abridge.apis.chat.history import ChatHistory, read_answer, take_blobs
from abridge.apis.chat.request import read_request
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.display import Display, Exposure, ListField
from abridge.core.envelope import is_envelope
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ToolCallDelta,
)
from abridge.core.model_request import MessagePart, ReasoningPart
from abridge.providers.catalog import PROFILES
from tests.apis.chat.test_writer_stream import DIALECTS, ROLE, STOP, thought_in
from tests.support.checker import check_chat, frames
from tests.support.pipeline import LIMIT, Minting, chat, translating
from tests.support.sealers import STRETCHES, sealer, unseal
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    THOUGHT,
    call,
    call_item,
    chat_stream,
    chunk,
    completion,
    message_item,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)

Json = dict[str, Any]

USER = {"role": "user", "content": "Hi"}
ANSWER = "The sum is 100."
SECRETS = [text for text in pieces(THOUGHT) if "\n" not in text and text not in ANSWER]
"""Substrings of the reasoning to search for, streamed or not."""

LISTS: list[ListField] = ["reasoning_details", "thinking_blocks"]
EXPOSURES: list[Exposure] = ["auto", "both", "summary", "raw", "none"]
KINDS = {"reasoning_details": "reasoning.encrypted", "thinking_blocks": "redacted_thinking"}
STREAMS = {
    "an answer": chat_stream(THOUGHT, ANSWER),
    "calls": chat_stream(
        THOUGHT, calls=[call("add", '{"a": 1}'), call("add", "{}", 1)], finish="tool_calls"
    ),
    "text and a call": chat_stream(THOUGHT, ANSWER, calls=[call("add", "{}")], finish="tool_calls"),
    "no usage": chat_stream(THOUGHT, ANSWER, usage=None),
    "no mark of the end": chat_stream(THOUGHT, ANSWER, usage=None)[:-1],
    "no finish": [*chat_stream(THOUGHT, ANSWER, usage=None)[:-2], DONE],
    "a refusal": [*chat_stream(THOUGHT, usage=None)[:-2], chunk({"refusal": "No."}), *STOP],
    "usage with the finish": [
        *chat_stream(THOUGHT, ANSWER)[:-3],
        chunk({}, finish="stop", usage=CHAT_USAGE),
        DONE,
    ],
    "all with the finish": [
        ROLE,
        chunk(
            {"reasoning_content": THOUGHT, "content": ANSWER, "tool_calls": [call("f", "{}")]},
            finish="tool_calls",
        ),
        DONE,
    ],
    "the last word with the finish": [
        *chat_stream(THOUGHT, ANSWER, usage=None)[:-2],
        chunk({"content": " So."}, finish="stop"),
        DONE,
    ],
    "two stretches": [
        ROLE,
        chunk({"reasoning": THOUGHT}),
        chunk({"content": "First. "}),
        chunk({"reasoning": "I go on."}),
        chunk({"content": ANSWER}),
        *STOP,
    ],
}

ACCEPTED = [
    (dialect, expose)
    for dialect in DIALECTS
    for expose in ("auto", "none", "both")
    if (dialect, expose) != ("content list", "both")
]
"""Strict clients accept no list of content in a delta."""


def messages_of_client(stream: bytes) -> dict[int, Json]:
    """Return the message of each choice, accumulated by the official client."""
    check_chat(stream)
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for _, data in frames(stream):
        if not data.startswith("[DONE]"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(data))
    final = state.current_completion_snapshot
    return {
        choice.index: choice.message.to_dict(exclude_none=True, exclude_unset=True)
        for choice in final.choices
    }


def returned_to_upstream(message: Json) -> Json:
    """Return what upstream gets of a returned message, opened by another replica."""
    body = json.loads(json.dumps({"model": "thinker-1", "messages": [USER, message, USER]}))
    carried: Json = unseal(ChatHistory(body))["messages"][1]
    return carried


def run(stream: list[bytes], **options: Any) -> Json:
    pipeline = chat(seal=sealer().seal, **options)
    return messages_of_client(pipeline.stream(b"".join(stream)))[0]


def whole(message: Json, **options: Any) -> Json:
    body = json.dumps(completion(message)).encode()
    rewritten = json.loads(chat(seal=sealer().seal, **options).whole(body))
    found: Json = rewritten["choices"][0]["message"]
    return found


def originals(stream: list[bytes]) -> Json:
    """Return what a client that saw everything would send: upstream's reasoning, unchanged."""
    pipeline = chat(expose="summary")
    pipeline.stream(b"".join(stream))
    (recorded,) = pipeline.recorded_turns()
    (original,) = recorded.original
    return original


def blobs(message: Json) -> list[str]:
    entries = [entry for name in LISTS for entry in message.get(name) or ()]
    return [entry["data"] for entry in entries if is_envelope(entry.get("data"))]


@pytest.mark.parametrize("envelope", LISTS)
class TestOriginalFrames:
    @pytest.mark.parametrize("expose", EXPOSURES)
    @pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
    def test_upstream_gets_what_a_client_that_saw_everything_would_send(
        self, stream: list[bytes], expose: Exposure, envelope: ListField
    ) -> None:
        received = run(stream, expose=expose, envelope=envelope)
        (entry,) = received[envelope]
        assert (entry["type"], entry["index"]) == (KINDS[envelope], 0)
        answer = {
            key: received[key]
            for key in ("role", "content", "tool_calls", "refusal")
            if key in received
        }
        assert returned_to_upstream(received) == {**answer, **originals(stream)}

    @pytest.mark.parametrize(("dialect", "expose"), ACCEPTED)
    def test_reasoning_in_each_dialect_comes_back(
        self, dialect: str, expose: Exposure, envelope: ListField
    ) -> None:
        answer = [chunk({"content": text}) for text in pieces(ANSWER)]
        stream = [ROLE, *map(chunk, thought_in(dialect)), *answer, *STOP]
        received = run(stream, expose=expose, envelope=envelope)
        assert len(blobs(received)) == 1
        assert returned_to_upstream(received) == {
            "role": "assistant",
            "content": ANSWER,
            **originals(stream),
        }

    @pytest.mark.parametrize("expose", EXPOSURES)
    @pytest.mark.parametrize("dialect", DIALECTS)
    def test_reasoning_of_a_whole_completion_comes_back(
        self, dialect: str, expose: Exposure, envelope: ListField
    ) -> None:
        answer = [chunk({"content": text}) for text in pieces(ANSWER)]
        stream = [ROLE, *map(chunk, thought_in(dialect)), *answer, *STOP]
        upstream = {"role": "assistant", "content": ANSWER, **originals(stream)}
        received = whole(upstream, expose=expose, envelope=envelope)
        assert len(blobs(received)) == 1
        assert returned_to_upstream(received) == upstream

    @pytest.mark.parametrize("streamed", [True, False])
    def test_hidden_reasoning_is_nowhere_in_the_clear(
        self, envelope: ListField, *, streamed: bool
    ) -> None:
        for expose in ("summary", "none"):
            pipeline = chat(seal=sealer().seal, expose=expose, envelope=envelope)
            if streamed:
                out = pipeline.stream(b"".join(STREAMS["an answer"]))
            else:
                message = {"reasoning": THOUGHT, "content": ANSWER}
                out = pipeline.whole(json.dumps(completion(message)).encode())
            assert b"abr1." in out
            assert not any(text.encode() in out for text in SECRETS)

    def test_each_choice_has_an_envelope(self, envelope: ListField) -> None:
        stream = [
            *(chunk({"role": "assistant"}, index=index) for index in range(3)),
            *(chunk({"reasoning": f"I am {index}."}, index=index) for index in (2, 0)),
            *(chunk({"content": str(index)}, index=index) for index in (1, 2, 0)),
            *(chunk({}, index=index, finish="stop") for index in (2, 1, 0)),
            DONE,
        ]
        out = chat(seal=sealer().seal, envelope=envelope).stream(b"".join(stream))
        received = messages_of_client(out)
        assert [len(blobs(received[index])) for index in range(3)] == [1, 0, 1]
        assert returned_to_upstream(received[0])["reasoning"] == "I am 0."
        assert returned_to_upstream(received[2])["reasoning"] == "I am 2."

    def test_the_envelope_comes_right_before_the_finish(self, envelope: ListField) -> None:
        for stream in STREAMS.values():
            out = check_chat(chat(seal=sealer().seal, envelope=envelope).stream(b"".join(stream)))
            deltas = [choice for chunk in out.chunks for choice in chunk["choices"]]
            (place,) = (n for n, choice in enumerate(deltas) if choice["delta"].get(envelope))
            assert deltas[place]["finish_reason"] is None
            assert deltas[place + 1]["finish_reason"]
            assert deltas[place]["delta"].keys() == {envelope}


class TestIndex:
    """Strict clients read an index as a position in the list and merge equal ones."""

    ENCRYPTED: ClassVar = {"type": "reasoning.encrypted", "data": "opaque", "index": 1}

    def stream(self, *details: Json) -> list[bytes]:
        chunks = [chunk({"reasoning_details": [detail]}) for detail in details]
        return [ROLE, *chunks, chunk({"content": ANSWER}), *STOP]

    @pytest.mark.parametrize(
        ("expose", "before"), [("raw", [0, 1]), ("both", [0, 1]), ("summary", [1]), ("none", [1])]
    )
    def test_the_index_follows_upstreams_entries(self, expose: Exposure, before: list[int]) -> None:
        text = {"type": "reasoning.text", "text": THOUGHT, "index": 0}
        stream = self.stream(text, self.ENCRYPTED)
        received = run(stream, expose=expose)
        assert [entry["index"] for entry in received["reasoning_details"]] == [*before, 2]
        assert received["reasoning_details"][-2]["data"] == "opaque"
        assert returned_to_upstream(received)["reasoning_details"] == [text, self.ENCRYPTED]
        body = whole(
            {"content": ANSWER, "reasoning_details": [text, self.ENCRYPTED]}, expose=expose
        )
        assert body["reasoning_details"][-1]["index"] == 2
        assert returned_to_upstream(body)["reasoning_details"] == [text, self.ENCRYPTED]

    @pytest.mark.parametrize("envelope", LISTS)
    @pytest.mark.parametrize("expose", ["both", "summary", "raw"])
    def test_the_index_follows_entries_of_the_summary(
        self, expose: Exposure, envelope: ListField
    ) -> None:
        stream = STREAMS["an answer"]
        received = run(stream, expose=expose, details=True, envelope=envelope)
        details = received["reasoning_details"]
        assert [entry["index"] for entry in details] == list(range(len(details)))
        assert len(received[envelope]) == (len(details) if envelope == "reasoning_details" else 1)
        assert received[envelope][-1]["index"] == len(received[envelope]) - 1
        assert returned_to_upstream(received) == {
            "role": "assistant",
            "content": ANSWER,
            "reasoning_content": THOUGHT,
        }
        body = whole(
            {"content": ANSWER, "reasoning_content": THOUGHT},
            expose=expose,
            details=True,
            envelope=envelope,
        )
        indexes = [entry["index"] for entry in body[envelope]]
        assert indexes == list(range(len(indexes)))

    @pytest.mark.parametrize("odd", [{}, {"index": None}, {"index": "1"}])
    def test_entries_without_an_index_are_counted(self, odd: Json) -> None:
        entry = {"type": "reasoning.encrypted", "data": "opaque", **odd}
        received = whole({"reasoning": THOUGHT, "reasoning_details": [entry, entry]})
        assert received["reasoning_details"][-1]["index"] == 2

    @pytest.mark.parametrize("odd", [{}, "text", 7])
    def test_a_value_that_is_no_list_is_replaced(self, odd: Any) -> None:
        received = whole({"reasoning": THOUGHT, "reasoning_details": odd}, expose="raw")
        (entry,) = received["reasoning_details"]
        assert is_envelope(entry["data"])


NOTHING_TO_SEAL: dict[str, list[Json]] = {
    "no reasoning": [{}],
    "opaque state": [{"reasoning_details": [TestIndex.ENCRYPTED]}],
    "redacted": [{"thinking_blocks": [{"type": "redacted_thinking", "data": "x", "index": 0}]}],
    "a native summary": [
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "So.", "index": 0}]}
    ],
    "blank reasoning": [{"reasoning": " "}, {"reasoning": "\n"}],
}


@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("deltas", NOTHING_TO_SEAL.values(), ids=NOTHING_TO_SEAL)
def test_without_reasoning_to_seal_no_byte_changes(deltas: list[Json], expose: Exposure) -> None:
    stream = b"".join([ROLE, *map(chunk, deltas), chunk({"content": ANSWER}), *STOP])
    body = json.dumps(completion({**deltas[0], "content": ANSWER})).encode()

    def both(**options: Any) -> tuple[bytes, bytes]:
        profile = PROFILES["openrouter"]
        pipelines = [chat(expose=expose, profile=profile, **options) for _ in range(2)]
        return pipelines[0].stream(stream), pipelines[1].whole(body)

    assert both() == both(seal=lambda _: pytest.fail("sealed"))


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_without_sealing_only_the_envelope_is_missing(stream: list[bytes]) -> None:
    """The writer has no way to seal one."""
    data = b"".join(stream)
    assert chat(seal=lambda _: "").stream(data) == chat().stream(data)


def test_a_cut_answer_has_no_envelope() -> None:
    stream = STREAMS["text and a call"]
    for length in range(1, len(stream) - 3):
        pipeline = chat(seal=lambda _: pytest.fail("sealed"))
        assert check_chat(pipeline.stream(b"".join(stream[:length]))).error is not None


def test_an_answer_over_the_limit_has_no_envelope() -> None:
    pipeline = chat(seal=lambda _: pytest.fail("sealed"), limit=100)
    assert check_chat(pipeline.stream(b"".join(STREAMS["an answer"]))).done


def test_an_answer_is_sealed_once() -> None:
    stream = [*STREAMS["an answer"][:-2], chunk({}, finish="stop"), DONE]
    sealed: list[object] = []
    chat(seal=lambda envelope: sealed.append(envelope) or "").stream(b"".join(stream))  # type: ignore[func-returns-value]
    assert len(sealed) == 1


# Translated


def thoughts(message: Json) -> list[MessagePart]:
    """Return the reasoning that an upstream of another API would get."""
    body = {"model": "thinker-1", "messages": [USER, returned_to_upstream(message), USER]}
    parts = [part for speech in read_request(body).messages for part in speech.parts]
    return [
        ReasoningPart(part.text, part.summary, part.state, part.is_signature)
        for part in parts
        if isinstance(part, ReasoningPart)
    ]


OUTPUT = [
    reasoning_item(0, THOUGHT, encrypted_content="gAAAAABo"),
    message_item(1, "First."),
    call_item(2, "add", '{"a": 1}'),
    reasoning_item(3, "I go on."),
    message_item(4, ANSWER),
]
REASONING = [ReasoningPart(THOUGHT), ReasoningPart(state="gAAAAABo"), ReasoningPart("I go on.")]


@pytest.mark.parametrize("envelope", LISTS)
@pytest.mark.parametrize("expose", EXPOSURES)
class TestTranslated:
    def test_reasoning_comes_back(self, expose: Exposure, envelope: ListField) -> None:
        pipeline = translating(
            "responses", CHAT, seal=sealer().seal, expose=expose, envelope=envelope
        )
        out = pipeline.stream(b"".join(responses_stream(OUTPUT)))
        received = messages_of_client(out)[0]
        assert thoughts(received) == REASONING
        shown = any(THOUGHT in text for text in received.values() if isinstance(text, str))
        assert shown is (expose in ("both", "raw"))
        assert shown is any(text.encode() in out for text in SECRETS)
        index = received[envelope][-1]["index"]
        assert index == len(received[envelope]) - 1

    def test_a_stream_and_a_body_have_the_same_envelope(
        self, expose: Exposure, envelope: ListField
    ) -> None:
        body = json.dumps(response(OUTPUT)).encode()
        pipeline = translating(
            "responses", CHAT, seal=sealer().seal, expose=expose, envelope=envelope
        )
        received = json.loads(pipeline.whole(body))["choices"][0]["message"]
        assert len(blobs(received)) == 1
        assert thoughts(received) == REASONING

    def test_opaque_state_alone_passes_without_an_envelope(
        self, expose: Exposure, envelope: ListField
    ) -> None:
        output = [reasoning_item(0, "", encrypted_content="gAAAAABo"), message_item(1, "Yes")]
        stream = b"".join(responses_stream(output))
        options = {"expose": expose, "envelope": envelope}
        sealing = translating("responses", CHAT, seal=lambda _: pytest.fail("sealed"), **options)
        assert sealing.stream(stream) == translating("responses", CHAT, **options).stream(stream)


def test_minted_call_ids_are_those_in_the_envelope() -> None:
    writer = _translating_writer()
    events: list[Event] = [
        ReasoningStarted(0, None, 0),
        ReasoningDelta(0, None, 0, THOUGHT),
        ReasoningEnded(0, None, 0),
        ToolCallDelta(0, None, call_index=0, name="add", arguments="{}"),
        ToolCallDelta(0, None, call_index=1, name="add", arguments="{}"),
        Finished(0, None, "tool_calls"),
    ]
    received = messages_of_client(b"".join(map(writer.write, events)))[0]
    assert all(call["id"] for call in received["tool_calls"])
    assert thoughts(received) == [ReasoningPart(THOUGHT)]


def test_reasoning_repeated_in_opaque_state_comes_back_once() -> None:
    """Ollama has it there in clear text."""
    output = [reasoning_item(0, THOUGHT, encrypted_content=THOUGHT), message_item(1, "Yes")]
    pipeline = translating("responses", CHAT, seal=sealer().seal, expose="both")
    received = messages_of_client(pipeline.stream(b"".join(responses_stream(output))))[0]
    assert thoughts(received) == [ReasoningPart(THOUGHT)]


def test_a_native_summary_comes_back_where_there_is_no_raw_text() -> None:
    native = [{"type": "summary_text", "text": text} for text in ("One.", "Two.")]
    output = [
        {**reasoning_item(0, "", encrypted_content="s"), "summary": native},
        {**reasoning_item(1, THOUGHT), "summary": native},
        message_item(2, "Yes"),
    ]
    pipeline = translating("responses", CHAT, seal=sealer().seal)
    received = messages_of_client(pipeline.stream(b"".join(responses_stream(output))))[0]
    summaries = [ReasoningPart(summary=("One.",)), ReasoningPart(summary=("Two.",))]
    assert thoughts(received) == [*summaries, ReasoningPart(state="s"), ReasoningPart(THOUGHT)]


def test_more_than_the_limit_is_not_sealed() -> None:
    answer: list[Event] = [ContentDelta(0, None, "x" * 60), RefusalDelta(0, None, refusal="y" * 60)]
    thought: list[Event] = [
        ReasoningDelta(0, None, 0, "z" * 60),
        ProviderState(0, None, 0, "s" * 60, signs=False),
    ]
    for part in ([*thought], [*answer], [NativeSummary(0, None, 0, 0, "delta", "n" * 120)]):
        writer = _translating_writer(limit=100)
        events = [
            ReasoningStarted(0, None, 0),
            ReasoningDelta(0, None, 0, "I think."),
            *part,
            ReasoningEnded(0, None, 0),
        ]
        out = b"".join(map(writer.write, [*events, Finished(0, None, "stop")]))
        assert b"abr1." not in out


@given(
    STRETCHES.filter(lambda events: any(isinstance(event, ReasoningDelta) for event in events)),
    st.booleans(),
)
def test_everything_in_a_stretch_comes_back_in_order(
    stretch: list[Event],
    show_raw: bool,  # noqa: FBT001 -- drawn
) -> None:
    writer = _translating_writer(show_raw=show_raw)
    events = [
        ReasoningStarted(0, None, 0),
        *stretch,
        ReasoningEnded(0, None, 0),
        ContentDelta(0, None, "Yes"),
    ]
    out = b"".join(map(writer.write, [*events, Finished(0, None, "stop")]))
    expected: list[ReasoningPart] = []
    text = ""
    for event in stretch:
        if isinstance(event, ReasoningDelta):
            text += event.text
        elif isinstance(event, ProviderState) and event.signs:
            expected.append(ReasoningPart(text, state=event.data, is_signature=True))
            text = ""
        elif isinstance(event, ProviderState):
            expected += [ReasoningPart(text)] * bool(text)
            expected += [ReasoningPart(state=event.data)] * (event.data != text.strip())
            text = ""
    expected += [ReasoningPart(text)] * bool(text)
    assert thoughts(messages_of_client(out)[0]) == _signed(expected)


def _signed(thoughts: list[ReasoningPart]) -> list[ReasoningPart]:
    """Attach a lone signature to the unsigned reasoning before it."""
    joined: list[ReasoningPart] = []
    for thought in thoughts:
        last = joined[-1] if joined else None
        if thought.is_signature and not thought.text and last is not None and not last.state:
            joined[-1] = ReasoningPart(last.text, state=thought.state, is_signature=True)
        else:
            joined.append(thought)
    return joined


def _translating_writer(limit: int = LIMIT, **display: Any) -> ChatWriter:
    echo = translating("responses", CHAT).echo
    shown = Display(**display, seal=sealer().seal)
    return ChatWriter(PROFILES["auto"], shown, echo, limit, Minting())


ENTRIES = st.lists(
    st.sampled_from(
        [
            {"type": "redacted_thinking", "data": "abr1.old.AA"},
            {"type": "reasoning.text", "text": "I add.", "data": "abr1.old.AA"},
            {"type": "text", "text": "Five."},
            {"type": "thinking", "thinking": "I add."},
        ]
    ),
    max_size=3,
)

TEXTS = st.sampled_from(["", "Five.", "<think>I add.</think>Five.", "<think>", "I add.</think>\n"])


@given(
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": st.none() | TEXTS | ENTRIES,
            "refusal": st.just("No."),
            "reasoning": TEXTS,
            "reasoning_details": ENTRIES,
            "thinking_blocks": ENTRIES,
        },
    )
)
def test_a_blob_is_no_part_of_the_answer_that_is_read(message: dict[str, Any]) -> None:
    """What is not read again, since it is the answer as before, is what reading it would give."""
    without_blobs = json.loads(json.dumps(message))
    take_blobs(without_blobs)
    history = ChatHistory({"messages": [message]})
    turn = history.turns[0]
    history.open_envelopes(turn, lambda *_: None)
    assert turn.text == read_answer(without_blobs)
