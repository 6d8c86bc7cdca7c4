"""Test thinking that upstream writes into its texts: it becomes a block of its own."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.display import Exposure
from abridge.core.plan import SummaryPlan
from abridge.providers.catalog import PROFILES
from tests.apis.messages.scripts import (
    Block,
    begin,
    delta,
    event,
    finish_at_once,
    message,
    start,
    stop,
    stream,
    text,
    thinking,
    tool_use,
)
from tests.support.checker import frames as frames_of
from tests.support.matrix import some
from tests.support.messages_checker import MessagesStream, check_messages
from tests.support.pipeline import Pipeline, messages

THOUGHT = "I add the numbers one by one, which takes some time."
PLAN = SummaryPlan(style="auto", part_chars=30, tail_chars=5, min_chars=0)
INLINE = f"<think>{THOUGHT}</think>\n\nSo it is."
REPLACING: tuple[Exposure, ...] = ("auto", "both", "summary", "none")


def pipeline(**given: Any) -> Pipeline:
    return messages(plan=PLAN, **given)


def streamed(content: list[Block], **given: Any) -> MessagesStream:
    frames = stream(content)
    return check_messages(pipeline(**given).stream(b"".join(frames)))


def whole(content: list[Block], **given: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        pipeline(**given).whole(json.dumps(message(content)).encode())
    )
    return answer


@pytest.mark.parametrize("expose", REPLACING)
def test_thinking_at_the_beginning_becomes_a_block_with_a_summary(expose: Exposure) -> None:
    answer = streamed([text(INLINE), tool_use(0)], expose=expose)
    assert answer.text == "So it is."
    kinds = [block["type"] for block in answer.blocks]
    assert kinds == ["thinking"] * (1 + (expose == "both")) + ["text", "tool_use"]
    assert (THOUGHT in answer.thinking) == (expose == "both")
    assert any("Said of" in shown for shown in answer.thinking) == (expose != "none")
    assert whole([text(INLINE), tool_use(0)], expose=expose)["content"] == answer.blocks


def test_it_is_remembered_as_reasoning() -> None:
    read = pipeline()
    read.stream(b"".join(stream([text(INLINE)])))
    (turn,) = read.recorded_turns()
    assert turn.original == [thinking(THOUGHT, "")]
    assert turn.turn.text == "So it is."


@pytest.mark.parametrize(
    ("content", "given"),
    [
        ([text(INLINE)], {"expose": "raw"}),
        ([text(INLINE)], {"profile": PROFILES["anthropic"]}),
        ([text(f"The tag {INLINE}")], {}),
        ([text("Yes."), text(INLINE)], {}),
        ([thinking(""), text(INLINE)], {}),
        ([tool_use(0), text("Yes.")], {}),
    ],
    ids=["nothing due", "no tags", "quoted", "in a later text", "thought already", "no thinking"],
)
def test_any_other_text_passes_byte_for_byte(content: list[Block], given: dict[str, Any]) -> None:
    data = b"".join(stream(content))
    assert pipeline(**given).stream(data) == data
    assert whole(content, **given) == message(content)


def test_what_is_never_closed_is_thinking() -> None:
    assert [block["type"] for block in streamed([text(f"<think>{THOUGHT}")]).blocks] == ["thinking"]


def test_a_text_without_a_start_is_looked_through() -> None:
    frames = [begin(), delta(0, "text", text=INLINE), *finish_at_once()]
    for expose in REPLACING:
        assert check_messages(pipeline(expose=expose).stream(b"".join(frames))).text == "So it is."


def planted(data: bytes) -> list[Any]:
    """Return what events say under `x`, themselves or in their deltas, in order."""
    events = [json.loads(one) for _, one in frames_of(data)]
    return [x for event in events for x in (event.get("x"), event.get("delta", {}).get("x")) if x]


class TestBesideThinking:
    """What deltas say beside a text that was split, and what comes between them."""

    @settings(max_examples=some(50))
    @given(cuts=st.lists(st.integers(0, len(INLINE)), max_size=8))
    @pytest.mark.parametrize("expose", ["auto", "both", "raw"])
    @pytest.mark.parametrize("unstarted", [True, False])
    def test_all_of_it_passes_in_its_order(
        self, expose: Exposure, cuts: list[int], *, unstarted: bool
    ) -> None:
        edges = [0, *sorted(cuts), len(INLINE)]
        deltas = [
            event(
                "content_block_delta",
                index=0,
                delta={"type": "text_delta", "text": INLINE[start:end], "x": end or "first"},
                **({"x": -1} if end % 2 else {}),
            )
            for start, end in pairwise(edges)
        ]
        begun = [] if unstarted else [start(0, text("")), event("odd", x="before the first word")]
        data = b"".join([begin(), *begun, *deltas, stop(0), *finish_at_once()])
        out = pipeline(expose=expose).stream(data)
        assert planted(out) == planted(data)
        assert check_messages(out).text in ("So it is.", INLINE)

    @pytest.mark.parametrize("ending", [[], [stop(0)]], ids=["cut", "stopped"])
    @pytest.mark.parametrize("ended", [[], finish_at_once()], ids=["cut", "finished"])
    @pytest.mark.parametrize("words", [[], [delta(0, "text", text=f"<think>{THOUGHT}")]])
    def test_it_passes_without_a_word_of_an_answer(
        self, ending: list[bytes], ended: list[bytes], words: list[bytes]
    ) -> None:
        frames = [begin(), start(0, text("")), event("odd", x=1), *words, *ending, *ended]
        assert planted(pipeline().stream(b"".join(frames))) == [1]

    def test_only_so_many_events_wait_for_a_first_word(self) -> None:
        odd = [event("odd", x=number) for number in range(1, 1000)]
        ending = [delta(0, "text", text="Yes."), stop(0), *finish_at_once()]
        pipe = pipeline()
        for one in [begin(), start(0, text("")), *odd]:
            pipe.frame(one)
        assert planted(bytes(pipe.out)) == [*range(1, 1000)]
        for one in ending:
            pipe.frame(one)
        assert check_messages(bytes(pipe.out)).text == "Yes."

    def test_a_ping_does_not_wait(self) -> None:
        pipe = pipeline()
        for one in (begin(), start(0, text("")), event("ping")):
            pipe.frame(one)
        assert b"ping" in pipe.out


class TestHidden:
    def test_thinking_beside_other_thinking_is_left_out(self) -> None:
        answer = streamed([thinking(THOUGHT), text(INLINE)], expose="summary")
        assert answer.text == "So it is."
        assert len(answer.thinking) == 1
