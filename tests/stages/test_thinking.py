"""Test that thinking in texts becomes reasoning before the message that they are of."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

from abridge.core.answer import Part
from abridge.core.events import (
    ContentDelta,
    Event,
    ImageDelta,
    PartEnded,
    PartStarted,
    ReasoningDelta,
    ReasoningEnded,
    RefusalDelta,
    ToolCallDelta,
    said_text,
)
from abridge.providers.catalog import PROFILES
from abridge.stages.thinking import Thinking


def thinking(*, profile: str = "openai", by_message: bool = False, limit: int = 1000) -> Thinking:
    return Thinking(
        PROFILES[profile],
        limit,
        count(),
        hides_raw=True,
        drops_inline=False,
        hidden=Counter(),
        by_message=by_message,
    )


def told(events: list[Event]) -> list[tuple[str, str]]:
    """Return what deltas say, each with its type."""
    return [(type(event).__name__, said) for event in events if (said := said_text(event))]


@pytest.mark.parametrize("by_message", [False, True])
def test_blanks_before_thinking_do_not_begin_a_text(*, by_message: bool) -> None:
    stage, text = thinking(by_message=by_message), Part("text")
    events = stage.take([PartStarted(0, None, part=text)])
    for said in ("\n", " ", "<think>Hm.</think>", "So."):
        events += stage.take([ContentDelta(0, None, said, part=text)])
    events += stage.take([PartEnded(0, None, part=text)])
    assert told(events) == [("ReasoningDelta", "Hm."), ("ContentDelta", "So.")]


def test_blanks_alone_are_a_text() -> None:
    stage, text = thinking(), Part("text")
    bounds = PartStarted(0, None, part=text), PartEnded(0, None, part=text)
    events = [bounds[0], ContentDelta(0, None, " ", part=text), bounds[1]]
    assert stage.take(events) == events


def test_a_message_starts_with_the_first_word_of_any_of_its_texts() -> None:
    stage, message = thinking(by_message=True), Part("text")
    first, second = Part("text", item=message), Part("text", item=message)
    starts: list[Event] = [PartStarted(0, None, part=part) for part in (message, first, second)]
    assert stage.take(starts) == []
    reasoned = stage.take([ContentDelta(0, None, "<think>Hm.</think>", part=first)])
    assert told(reasoned) == [("ReasoningDelta", "Hm.")]
    ended, *begun, no = stage.take([RefusalDelta(0, None, refusal="No.", part=second)])
    assert isinstance(ended, ReasoningEnded)
    assert begun == starts
    assert (type(no), said_text(no)) == (RefusalDelta, "No.")


def test_each_message_may_begin_with_thinking_and_else_only_the_answer() -> None:
    for by_message, dropped in ((True, 0), (False, 1)):
        stage, raw = thinking(by_message=by_message), ""
        for text in (Part("text"), Part("text")):
            events = stage.take([ContentDelta(0, None, "<think>Hm.</think>So.", part=text)])
            events += stage.take([PartEnded(0, None, part=text)])
            raw += "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        assert raw == ("Hm.Hm." if by_message else "Hm.")
        assert stage.dropped == dropped


def test_what_waits_for_a_first_word_is_bounded() -> None:
    stage, text = thinking(limit=100), Part("text")
    frames = [PartStarted(0, b"x" * 60, part=text) for _ in range(2)]
    assert stage.take(frames) == frames


@pytest.mark.parametrize("follower", ["call", "image"])
def test_a_text_that_is_open_is_told_before_what_follows_it(follower: str) -> None:
    stage, texts = thinking(profile="auto"), (Part("text"), Part("text"))
    next_event: Event = ImageDelta(0, None, data="iVBO", part=texts[1])
    if follower == "call":
        next_event = ToolCallDelta(0, None, name="f", part=Part("call"))
    said: list[Event] = [
        ContentDelta(0, None, word, part=part) for word, part in zip("AB", texts, strict=True)
    ]
    assert told(stage.take(said)) == []  # it may be thinking
    events = stage.take([next_event])
    assert told(events) == [("ContentDelta", "A"), ("ContentDelta", "B")]
    assert events[-1] is next_event
    assert told(stage.take([PartEnded(0, None, part=part) for part in texts])) == []


def test_a_block_that_is_open_stays_hidden_before_a_call() -> None:
    stage, text = thinking(profile="auto"), Part("text")
    events = stage.take([ContentDelta(0, None, "<think>Hm", part=text)])
    events += stage.take([ToolCallDelta(0, None, name="f", part=Part("call"))])
    events += stage.take([ContentDelta(0, None, ".</think>So.", part=text)])
    events += stage.take([PartEnded(0, None, part=text)])
    assert "".join(said for kind, said in told(events) if kind == "ContentDelta") == "So."
