"""Inline tags."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.wire.profiles import TAGS
from abridge.wire.think import Splitter


def split(text: str, cuts: list[int] | None = None, *, prefilled: bool = False) -> tuple[str, str]:
    splitter = Splitter(TAGS[:1] if prefilled else TAGS, prefilled=prefilled)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts or ()), len(text)]
    pieces = [piece for start, end in pairwise(edges) for piece in splitter.feed(text[start:end])]
    pieces += splitter.end()
    raw = "".join(piece.text for piece in pieces if piece.kind == "raw")
    return raw, "".join(piece.text for piece in pieces if piece.kind == "text")


CASES = [
    pytest.param("<think>why</think>so", ("why", "so"), id="plain"),
    pytest.param("\n <think>\nwhy\n</think>\n\nso", ("why\n", "so"), id="with line breaks"),
    pytest.param("<thinking>why</thinking>so", ("why", "so"), id="a longer name"),
    pytest.param("<thought>why</thought>so", ("why", "so"), id="thought"),
    pytest.param("◁think▷why◁/think▷so", ("why", "so"), id="Kimi-VL"),
    pytest.param("<|START_THINKING|>why<|END_THINKING|>so", ("why", "so"), id="Command R"),
    pytest.param("<think>\n\n</think>\n\nso", ("", "so"), id="empty block"),
    pytest.param("<think>a</think><think>b</think>c", ("a\nb", "c"), id="two blocks"),
    pytest.param(
        "<reasoning>a</reasoning><reasoning>b</reasoning>c", ("ab", "c"), id="Bedrock's fragments"
    ),
    pytest.param("<think>cut sho", ("cut sho", ""), id="never closed"),
    pytest.param("just text", ("", "just text"), id="no tag"),
    pytest.param("<thin", ("", "<thin"), id="almost a tag"),
    pytest.param("<b>bold</b>", ("", "<b>bold</b>"), id="another tag"),
    pytest.param("  ", ("", "  "), id="whitespace"),
    pytest.param(
        "Use `<think>` like so: <think>x</think>",
        ("", "Use `<think>` like so: <think>x</think>"),
        id="quoted in the answer",
    ),
    pytest.param(
        "```\n<think>x</think>\n```", ("", "```\n<think>x</think>\n```"), id="in a code fence"
    ),
    pytest.param(
        "<think>why</think>so <think>not</think>",
        ("why", "so <think>not</think>"),
        id="a second block in the answer",
    ),
    pytest.param("<think>a < b</think>c", ("a < b", "c"), id="a sign that opens no tag"),
    pytest.param("<think>x</think>\n    code", ("x", "    code"), id="indentation stays"),
]


@pytest.mark.parametrize(("text", "said"), CASES)
def test_reasoning_and_answer_are_told_apart(text: str, said: tuple[str, str]) -> None:
    assert split(text) == said
    assert split(text, list(range(len(text)))) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("why</think>so", ("why", "so")),
        ("<think>why</think>so", ("why", "so")),
        ("\nwhy </think>\n\nso", ("why ", "so")),
        ("<thick plot</think>so", ("<thick plot", "so")),
        ("never closed", ("never closed", "")),
    ],
)
def test_the_opening_tag_may_be_missing_where_the_profile_says_so(
    text: str, said: tuple[str, str]
) -> None:
    assert split(text, prefilled=True) == said
    assert split(text, list(range(len(text))), prefilled=True) == said


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "a", "\n", "</", "think>"]), max_size=12),
    st.lists(st.integers(0, 60), max_size=10),
)
def test_any_split_gives_the_same(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert split(text, cuts) == split(text)


def test_once_it_answers_text_goes_through_as_it_is() -> None:
    splitter = Splitter(TAGS)
    splitter.feed("answer")
    assert splitter.answering
    assert splitter.feed("<think>").pop().text == "<think>"
