"""Rules that hold for every answer written from translated events, however it was split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.protocols import RequestEcho, Writer
from abridge.apis.responses.api import RESPONSES
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
    ResponseEnded,
    ResponseStarted,
    SummaryTextDelta,
    ToolCallDelta,
)
from abridge.core.model_request import ReasoningPart
from abridge.core.usage import Tokens
from abridge.providers.catalog import PROFILES
from tests.core.test_sequencer_laws import sequenced
from tests.support.checker import check_chat, check_responses
from tests.support.matrix import some
from tests.support.pipeline import LIMIT, TRANSLATING_WRITERS, Minting
from tests.support.translated import Answer, TranslatedTurn, read_turn, turn_of

USAGE = Tokens(11, 70, 81, 50, 3, 0)
REQUEST = RequestEcho({"stream_options": {"include_usage": True}}, now=lambda: 1_800_000_000.5)
PIECE = st.text('ab {}"\n\\é💡', min_size=1, max_size=8)
WORDS = st.builds("w{}".format, PIECE)
CHECKS = {"chat": check_chat, "responses": check_responses}


@st.composite
def stretches(draw: st.DrawFn, item: int, *, native: bool) -> list[Event]:
    """Reasoning of the model's own, or a summary that upstream made; and opaque state."""
    events: list[Event] = [ReasoningStarted(0, None, item)]
    for part in range(draw(st.integers(0, 2))):
        if native:
            events.append(NativeSummary(0, None, item, part, "added"))
            events += [NativeSummary(0, None, item, part, "delta", text) for text in draw(pieces())]
            events.append(NativeSummary(0, None, item, part, "done"))
        else:
            events += [ReasoningDelta(0, None, item, text) for text in draw(pieces())]
    for _ in range(draw(st.integers(0, 2))):
        signs = not native and draw(st.booleans())
        events.append(ProviderState(0, None, item, draw(st.text("xyz=", min_size=1)), signs))
    return [*events, ReasoningEnded(0, None, item)]


def pieces() -> st.SearchStrategy[list[str]]:
    return st.builds(lambda head, rest: [head, *rest], WORDS, st.lists(PIECE, max_size=3))


@st.composite
def calls(draw: st.DrawFn, first: int) -> list[Event]:
    """Calls side by side, each in its own order."""
    said: list[list[Event]] = []
    for number in range(first, first + draw(st.integers(1, 3))):
        custom = draw(st.booleans())
        text = draw(PIECE) if custom else json.dumps(draw(st.dictionaries(PIECE, PIECE)))
        cut = draw(st.integers(0, len(text)))
        head = ToolCallDelta(
            0, None, call_index=number, id=f"call_{number}", name="f", arguments="", custom=custom
        )
        said.append([head])
        for piece in filter(None, (text[:cut], text[cut:])):
            said[-1].append(
                ToolCallDelta(0, None, call_index=number, arguments=piece, custom=custom)
            )
    events = [fragments.pop(0) for fragments in said]
    while left := [fragments for fragments in said if fragments]:
        events.append(draw(st.sampled_from(left)).pop(0))
    return events


@st.composite
def turns(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = [ResponseStarted(0, None, "up_1", "thinker", 1_700_000_000)]
    called, native = 0, draw(st.booleans())
    for number in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from(["think", "say", "refuse", "call"])):
            case "think":
                events += draw(stretches(number, native=native))
            case "say":
                events += [ContentDelta(0, None, text) for text in draw(pieces())]
            case "refuse":
                events += [RefusalDelta(0, None, refusal=text) for text in draw(pieces())]
            case "call":
                more = draw(calls(called))
                called += sum(isinstance(event, ToolCallDelta) and bool(event.id) for event in more)
                events += more
    plain = "tool_calls" if called else "stop"
    reason = draw(st.sampled_from([plain, plain, "length", "content_filter"]))
    return [*events, Finished(0, None, reason), ResponseEnded(None, None, ok=True, usage=USAGE)]


def make_writer(api: str, *, raw: bool = True, summary: bool = True) -> Writer:
    style = "auto" if summary else None
    display = Display(show_raw=raw, show_summary=summary, style=style)
    return TRANSLATING_WRITERS[api](PROFILES["auto"], display, REQUEST, LIMIT, Minting())


def streamed_and_whole(api: str, events: list[Event]) -> Iterator[TranslatedTurn]:
    """Composed as a stream and as a body, and read back."""
    writer = make_writer(api)
    stream = b"".join(map(writer.write, events))
    CHECKS[api](stream)
    yield read_turn(api, stream)
    writer = make_writer(api)
    for event in events[:-1]:
        writer.note(event)
    assert isinstance(events[-1], ResponseEnded)
    yield read_turn(api, writer.write_whole(events[-1]), streamed=False)


def answer_of(turn: TranslatedTurn) -> tuple[object, ...]:
    answer = turn.answer
    return answer.text, answer.refusal, answer.calls, answer.stop, turn.ok, turn.usage


def reasoned(answer: Answer) -> list[tuple[str, list[str]]]:
    """What each stretch says; those that hold opaque state alone say nothing."""
    said = ((stretch.raw, stretch.native) for stretch in answer.stretches)
    return [(raw, native) for raw, native in said if raw or native]


@settings(max_examples=some(150))
@given(turns())
def test_the_responses_reader_reads_what_the_responses_writer_writes(events: list[Event]) -> None:
    meant = turn_of(events)
    for turn in streamed_and_whole("responses", events):
        assert answer_of(turn) == answer_of(meant)
        assert reasoned(turn.answer) == reasoned(meant.answer)
        seals = [data.removeprefix("sig1.") for data, _ in turn.answer.sealed]
        assert seals == [data for data, _ in meant.answer.sealed]


@settings(max_examples=some(150))
@given(turns())
def test_the_chat_reader_reads_what_the_chat_writer_writes(events: list[Event]) -> None:
    """Chat Completions has one place for reasoning and a summary of it, and one for all items."""
    meant = turn_of(events)
    said = [raw or "\n\n".join(native) for raw, native in reasoned(meant.answer)]
    for turn in streamed_and_whole("chat", events):
        assert answer_of(turn) == answer_of(meant)
        assert turn.answer.raw == "\n\n".join(said)
        assert [data for data, _ in turn.answer.sealed] == [data for data, _ in meant.answer.sealed]


@settings(max_examples=some(150))
@given(turns(), st.sampled_from(["chat", "responses"]), st.booleans(), st.booleans(), st.data())
def test_every_interleaving_is_composed_into_a_legal_stream(
    events: list[Event],
    api: str,
    raw: bool,  # noqa: FBT001 -- drawn
    summary: bool,  # noqa: FBT001 -- drawn
    data: st.DataObject,
) -> None:
    emitted = sequenced(events, data, summary=summary)
    writer = make_writer(api, raw=raw, summary=summary)
    stream = b"".join(map(writer.write, emitted))
    seen = CHECKS[api](stream)
    turn, meant = read_turn(api, stream), turn_of(events)
    assert answer_of(turn)[:-1] == answer_of(meant)[:-1]
    parts = shown_parts(emitted) if summary else []
    if api == "responses":
        assert seen.summary == parts
        assert turn.answer.raw == (meant.answer.raw if raw else "")
    elif not raw:
        assert turn.answer.raw == "\n\n".join(parts)


def shown_parts(emitted: list[Event]) -> list[str]:
    """The parts of every item's summary, ours and upstream's, as they were said."""
    parts: dict[tuple[int, int], str] = {}
    for event in emitted:
        if isinstance(event, SummaryTextDelta) or (isinstance(event, NativeSummary) and event.text):
            place = event.item, event.index
        else:
            continue
        parts[place] = parts.get(place, "") + event.text
    return list(parts.values())


@given(turns(), st.sampled_from(["chat", "responses"]), st.data())
def test_a_turn_that_breaks_off_anywhere_ends_failed(
    events: list[Event], api: str, data: st.DataObject
) -> None:
    kept = events[: data.draw(st.integers(0, len(events) - 2))]
    writer = make_writer(api)
    stream = b"".join(map(writer.write, [*kept, ResponseEnded(None, None, ok=False)]))
    seen = CHECKS[api](stream)
    if api == "responses":
        assert seen.response["status"] == "failed"
        assert [item["type"] for item in seen.response["output"]] == [
            item.type for item in seen.items.values()
        ]
        assert seen.text == turn_of(kept).answer.text
    else:
        assert seen.error
        assert not seen.done


@given(turns())
def test_opaque_state_returns_byte_for_byte(
    events: list[Event],
) -> None:
    meant = turn_of(events).answer.sealed
    assert isinstance(events[-1], ResponseEnded)
    for api in ("chat", "responses"):
        writer = make_writer(api)
        for event in events[:-1]:
            writer.note(event)
        said = json.loads(writer.write_whole(events[-1]))
        if api == "chat":
            question = CHAT.read_request({"messages": [said["choices"][0]["message"]]})
        else:
            question = RESPONSES.read_request({"input": said["output"]})
        parts = [part for speech in question.messages for part in speech.parts]
        thoughts = [part for part in parts if isinstance(part, ReasoningPart) and part.state]
        assert [(thought.state, thought.is_signature) for thought in thoughts] == meant


@given(turns())
def test_items_keep_the_order_of_the_events(events: list[Event]) -> None:
    """Reasoning stands before what it led to, on both APIs."""
    meant = [kind for kind, _ in groupby(kind.split()[0] for kind in turn_of(events).answer.order)]
    for turn in streamed_and_whole("responses", events):
        found = (kind.split()[0] for kind in turn.answer.order)
        assert [kind for kind, _ in groupby(found)] == meant
