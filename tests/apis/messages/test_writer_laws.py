"""Rules that hold for every message written from translated events, however it was split."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.display import Display
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.messages.writer import MessagesSealing
from abridge.apis.protocols import Writer
from abridge.core.envelope import Envelope
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ToolCallDelta,
)
from abridge.providers.catalog import PROFILES
from tests.apis.test_translating_writers_laws import REQUEST, shown_parts, turns
from tests.core.test_sequencer_laws import sequenced
from tests.support.matrix import some
from tests.support.messages_checker import MessagesStream, check_message, check_messages
from tests.support.pipeline import LIMIT, TRANSLATING_WRITERS, Minting
from tests.support.sealers import USER, sealer, unseal
from tests.support.translated import turn_of

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def make_writer(
    *,
    raw: bool = True,
    summary: bool = True,
    seal: Callable[[Envelope], str] | None = None,
    drops: bool = False,
) -> Writer:
    display = Display(
        show_raw=raw,
        show_summary=summary,
        style="auto" if summary else None,
        seal=seal,
        drops_reasoning=drops,
    )
    return TRANSLATING_WRITERS["messages"](PROFILES["auto"], display, REQUEST, LIMIT, Minting())


def written(events: Iterable[Event], writer: Writer) -> MessagesStream:
    return check_messages(b"".join(map(writer.write, events)))


def said(events: list[Event]) -> str:
    """The answer's text: a refusal is text on Messages."""
    texts = (
        event.refusal if isinstance(event, RefusalDelta) else event.text
        for event in events
        if isinstance(event, ContentDelta)
    )
    return "".join(texts)


def called(events: list[Event]) -> list[tuple[str, str, Any]]:
    """The calls; the free text of a custom tool is the input of a function."""
    return [
        (
            call.id,
            call.name,
            free_text(call.arguments) if call.custom else json.loads(call.arguments),
        )
        for call in turn_of(events).answer.calls
    ]


def free_text(text: str) -> dict[str, str]:
    return {"input": text} if text else {}


def stop_reason(events: list[Event]) -> str:
    (finished,) = (event for event in events if isinstance(event, Finished))
    refused = any(isinstance(event, RefusalDelta) for event in events)
    if finished.reason == "content_filter" or (finished.reason == "stop" and refused):
        return "refusal"
    return STOP_REASONS[finished.reason]


@settings(max_examples=some(150))
@given(turns(), st.booleans(), st.booleans(), st.booleans(), st.data())
def test_every_interleaving_is_composed_into_a_legal_stream(
    events: list[Event],
    raw: bool,  # noqa: FBT001 -- drawn
    summary: bool,  # noqa: FBT001 -- drawn
    seals: bool,  # noqa: FBT001 -- drawn
    data: st.DataObject,
) -> None:
    emitted = sequenced(events, data, summary=summary)
    seal = (lambda envelope: f"abr1.{len(envelope.reasoning)}") if seals else None
    seen = written(emitted, make_writer(raw=raw, summary=summary, seal=seal))
    assert seen.text == said(events)
    calls = [(call["id"], call["name"], call["input"]) for call in seen.calls]
    assert calls == called(events)
    assert seen.stop_reason == stop_reason(events)
    meant = turn_of(events).answer
    texts = [shown for shown in (meant.raw if raw else "", *parts(emitted, summary)) if shown]
    shown = "".join(seen.thinking)
    assert sorted(shown.replace("\n\n", "")) == sorted("".join(texts).replace("\n\n", ""))
    errors = [event.summary.error for event in emitted if isinstance(event, ReasoningEnded)]
    assert any(errors) == any("summary_error" in block for block in seen.blocks)


def parts(emitted: list[Event], summary: bool) -> list[str]:  # noqa: FBT001 -- as drawn
    return shown_parts(emitted) if summary else []


@settings(max_examples=some(150))
@given(turns(), st.booleans(), st.booleans())
def test_a_whole_message_is_the_sum_of_the_stream(
    events: list[Event],
    raw: bool,  # noqa: FBT001 -- drawn
    drops: bool,  # noqa: FBT001 -- drawn
) -> None:
    seen = written(events, make_writer(raw=raw, drops=drops))
    writer = make_writer(raw=raw, drops=drops)
    for event in events[:-1]:
        writer.note(event)
    assert isinstance(events[-1], ResponseEnded)
    assert check_message(json.loads(writer.write_whole(events[-1]))) == seen.message
    if drops:
        assert not {block["type"] for block in seen.blocks} & {"thinking", "redacted_thinking"}


@given(turns(), st.data())
def test_a_turn_that_breaks_off_anywhere_ends_in_an_error(
    events: list[Event], data: st.DataObject
) -> None:
    """And no call that may lack something is stopped, since clients run what is."""
    kept = events[: data.draw(st.integers(0, len(events) - 2))]
    seen = written([*kept, ResponseEnded(None, None, ok=False)], make_writer())
    assert seen.error is not None
    assert seen.error["type"] == "api_error"
    assert said(kept).startswith(seen.text)
    last = max((e.call_index for e in kept if isinstance(e, ToolCallDelta)), default=None)
    if kept and isinstance(kept[-1], ToolCallDelta) and len(seen.calls) == last:
        assert isinstance(seen.calls[-1]["input"], str)


@given(turns())
def test_what_clients_return_restores_the_reasoning_on_another_replica(
    events: list[Event],
) -> None:
    """Whatever stood in its place, and however many stretches and calls there were."""
    pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")
    place = MessagesHistory({"messages": [USER]}).next_place()
    seen = written(events, make_writer(raw=False, seal=sealer(api="messages", place=place).seal))
    answer = {"role": "assistant", "content": seen.blocks}
    returned = unseal(MessagesHistory({"messages": [USER, answer]}), sealer(api="messages"))
    content = [block for message in returned["messages"][1:] for block in message["content"]]
    kept = [block for block in content if block["type"] in ("thinking", "redacted_thinking")]
    told = ("data", "thinking", "signature")
    assert [block for block in kept if any(map(block.get, told))] == sent(events)
    assert [block for block in content if block["type"] == "tool_use"] == seen.calls


def sent(events: list[Event]) -> list[Any]:
    """The blocks that Anthropic would have sent of the reasoning."""
    blocks: list[Any] = []
    sealing = MessagesSealing(lambda _: "", LIMIT)
    for event in events:
        if isinstance(event, ReasoningStarted):
            sealing.begin()
        elif isinstance(event, ReasoningEnded):
            blocks += sealing.collected() or []
        elif isinstance(event, ReasoningDelta | ProviderState):
            sealing.add(event)
    return blocks
