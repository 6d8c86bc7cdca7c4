"""Test that messages written in an API's format and read back keep their meaning."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.api import UpstreamOptions
from abridge.apis.chat import request as chat
from abridge.apis.json import dumps, loads
from abridge.apis.messages import request as messages
from abridge.apis.responses import request as responses
from abridge.core.model_request import (
    SIGNATURE_PREFIX,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ModelRequest,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolOutputPart,
    joined_text,
    normalized,
)
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import ReasoningReturn
from tests.apis.translation import Json
from tests.support.matrix import some

KNOWING = UpstreamOptions(replace(PROFILES["openai"], returns=ReasoningReturn("reasoning_details")))
"""A chat upstream that supports everything."""

OPEN = UpstreamOptions(PROFILES["auto"])

texts = st.text(min_size=1, max_size=20)
nonblank = texts.filter(lambda text: bool(text.strip()) and not set("<◁") & set(text))
"""Exclude texts that could begin inline reasoning."""

thoughts = st.one_of(
    st.builds(ReasoningPart, nonblank),
    st.builds(
        ReasoningPart, state=texts.filter(lambda data: not data.startswith(SIGNATURE_PREFIX))
    ),
)
summaries = st.builds(lambda text: ReasoningPart(summary=(text,)), nonblank)
signed = st.builds(
    lambda text, by: ReasoningPart(text, state=by, is_signature=True), nonblank, nonblank
)

user_parts = st.one_of(
    st.builds(TextPart, texts),
    st.builds(
        ImagePart, st.just("https://example.com/a.png"), detail=st.sampled_from(["auto", "low"])
    ),
    st.builds(FilePart, st.just("data:application/pdf;base64,AA=="), name=texts),
)
user_messages = st.builds(
    Message,
    st.sampled_from(["user", "system", "developer"]),
    st.lists(st.builds(TextPart, texts), min_size=1, max_size=2) | st.lists(user_parts, min_size=1),
)


@st.composite
def answers(draw: st.DrawFn, reasoning: st.SearchStrategy[ReasoningPart]) -> list[Message]:
    """Draw a run of the assistant's messages and the results of its calls."""
    ids = draw(st.lists(st.uuids().map(str), max_size=3, unique=True))
    custom = draw(st.booleans())
    calls: list[MessagePart] = [
        ToolCallPart(id_, "tool", draw(texts) if custom else "{}", custom=custom) for id_ in ids
    ]
    answer: list[MessagePart] = draw(
        st.lists(st.builds(TextPart, nonblank) | st.builds(RefusalPart, nonblank), max_size=1)
    )
    before: list[MessagePart] = list(draw(st.lists(reasoning, max_size=3)))
    outputs: list[MessagePart] = [
        ToolOutputPart(id_, tuple(draw(st.lists(st.builds(TextPart, texts), max_size=2))))
        for id_ in ids
    ]
    message = Message("assistant", [*before, *answer, *calls])
    return [message, Message("tool", outputs)] if outputs else [message]


def conversations(reasoning: st.SearchStrategy[ReasoningPart]) -> st.SearchStrategy[list[Message]]:
    turn = st.builds(
        lambda question, answer: [question, *answer], user_messages, answers(reasoning)
    )
    return st.lists(turn, min_size=1, max_size=4).map(
        lambda turns: [message for turn in turns for message in turn]
    )


def meaning_of(speeches: list[Message]) -> list[Message]:
    return [replace(message, param="") for message in normalized(speeches)]


def sent(body: Json) -> Json:
    read: Json = loads(dumps(body))
    return read


def by_chat(speeches: list[Message]) -> list[Message]:
    written = chat.write_request(ModelRequest("m", speeches), KNOWING)
    assert not written.unsupported
    return chat.read_request(sent(written.body)).messages


def by_responses(speeches: list[Message]) -> list[Message]:
    written = responses.write_request(ModelRequest("m", speeches), OPEN)
    assert not written.unsupported
    return responses.read_request(sent(written.body)).messages


@settings(max_examples=some(50))
@given(conversations(thoughts | signed))
def test_chat_messages_keep_their_meaning(speeches: list[Message]) -> None:
    assert meaning_of(by_chat(speeches)) == meaning_of(speeches)


@settings(max_examples=some(50))
@given(conversations(thoughts | summaries))
def test_responses_items_keep_their_meaning(speeches: list[Message]) -> None:
    assert meaning_of(by_responses(speeches)) == meaning_of(speeches)


@settings(max_examples=some(50))
@given(conversations(thoughts))
def test_translation_there_and_back_keeps_the_meaning(speeches: list[Message]) -> None:
    assert meaning_of(by_chat(by_responses(speeches))) == meaning_of(speeches)
    assert meaning_of(by_responses(by_chat(speeches))) == meaning_of(speeches)


@settings(max_examples=some(50))
@given(conversations(thoughts))
def test_opaque_state_is_the_same_byte_for_byte(speeches: list[Message]) -> None:
    def sealed(speeches: list[Message]) -> list[str]:
        parts = [part for message in speeches for part in message.parts]
        return [part.state for part in parts if isinstance(part, ReasoningPart) and part.state]

    assert sealed(by_chat(by_responses(speeches))) == sealed(meaning_of(speeches))


TAKING_ALL_THINKING = UpstreamOptions(PROFILES["deepseek"])
"""A Messages upstream that refuses no thinking for want of a signature."""

media = st.sampled_from(
    [
        ImagePart("https://example.com/a.png"),
        ImagePart("data:image/png;base64,AA=="),
        ImagePart(file_id="file_1"),
        FilePart("data:application/pdf;base64,AA==", name="a.pdf"),
        FilePart(url="https://example.com/a.pdf", name="a.pdf"),
        FilePart(file_id="file_2"),
    ]
)


@st.composite
def anthropic_turns(draw: st.DrawFn) -> list[Message]:
    """Draw a question, an answer, and the results of the answer's calls."""
    thinking = st.builds(ReasoningPart, nonblank) | st.builds(ReasoningPart, state=nonblank)
    said = st.lists(thinking | signed | st.builds(TextPart, nonblank), max_size=4)
    ids = draw(st.lists(st.uuids().map(str), max_size=3, unique=True))
    output = st.lists(st.builds(TextPart, nonblank) | media, max_size=3).map(tuple)
    question = st.lists(st.builds(TextPart, nonblank) | media, min_size=1, max_size=3)
    calls = [ToolCallPart(id_, "look", '{"at":1}') for id_ in ids]
    turn = [
        Message("user", list(draw(question))),
        Message("assistant", [*draw(said), *calls, TextPart(draw(nonblank))]),
    ]
    outputs: list[MessagePart] = [
        ToolOutputPart(id_, draw(output), failed=draw(st.booleans())) for id_ in ids
    ]
    return [*turn, Message("tool", outputs)] if outputs else turn


def spoken(messages: list[Message]) -> list[tuple[str, MessagePart]]:
    """Return who speaks each part: messages of one side may be one."""
    return [
        (message.role, part)
        for message in normalized(messages)
        for part in joined_text(message.parts)
    ]


@settings(max_examples=some(100))
@given(
    st.lists(anthropic_turns(), min_size=1, max_size=3),
    st.lists(st.builds(TextPart, nonblank), max_size=2),
)
def test_anthropics_messages_keep_their_meaning(
    turns: list[list[Message]], instructions: list[TextPart]
) -> None:
    conversation = [message for turn in turns for message in turn]
    request = ModelRequest("m", [Message("system", [*instructions]), *conversation])
    written = messages.write_request(request, TAKING_ALL_THINKING)
    assert not written.unsupported
    returned = messages.read_request(sent(written.body)).messages
    system = [message for message in returned if message.role == "system"]
    prompt = "\n\n".join(part.text for part in instructions)
    assert [part for message in system for part in message.parts] == (
        [TextPart(prompt)] if prompt else []
    )
    assert spoken(returned[len(system) :]) == spoken(conversation)
