"""Test splitting inline reasoning between tags."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.providers.profile import TAGS
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, may_have_tags


def split(text: str, cuts: list[int] | None = None, *, prefilled: bool = False) -> tuple[str, str]:
    splitter = TagSplitter(TAGS[:1] if prefilled else TAGS, prefilled=prefilled)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts or ()), len(text)]
    pieces = [piece for start, end in pairwise(edges) for piece in splitter.feed(text[start:end])]
    pieces += splitter.end()
    raw = "".join(piece.text for piece in pieces if piece.kind == "raw")
    return raw, "".join(piece.text for piece in pieces if piece.kind == "text")


def test_blocks_that_follow_each_other_are_one_piece() -> None:
    pieces = TagSplitter(TAGS).feed("<think>a</think><think>b</think>so")
    assert pieces == [TagPiece("raw", "a\nb"), TagPiece("text", "so")]


CASES = [
    pytest.param("<think>why</think>so", ("why", "so"), id="plain"),
    pytest.param("\n <think>\nwhy\n</think>\n\nso", ("why\n", "so"), id="with line breaks"),
    pytest.param("<thinking>why</thinking>so", ("why", "so"), id="a longer name"),
    pytest.param("<thought>why</thought>so", ("why", "so"), id="thought"),
    pytest.param("◁think▷why◁/think▷so", ("why", "so"), id="Kimi-VL"),
    pytest.param("<|START_THINKING|>why<|END_THINKING|>so", ("why", "so"), id="Command R"),
    pytest.param("<budget:thinking>why</budget:thinking>so", ("why", "so"), id="LiteLLM"),
    pytest.param(
        "<|channel|>analysis<|message|>why<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>again<|end|>"
        "<|start|>assistant<|channel|>final<|message|>so",
        ("why\nagain", "<|start|>assistant<|channel|>final<|message|>so"),
        id="harmony, whose other channels are the answer",
    ),
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


@pytest.mark.parametrize(("text", "pieces"), CASES)
def test_reasoning_and_answer_are_separated(text: str, pieces: tuple[str, str]) -> None:
    assert split(text) == pieces
    assert split(text, list(range(len(text)))) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("why</think>so", ("why", "so")),
        ("<think>why</think>so", ("why", "so")),
        ("\nwhy </think>\n\nso", ("why ", "so")),
        ("<thick plot</think>so", ("<thick plot", "so")),
        ("never closed", ("never closed", "")),
    ],
)
def test_the_opening_tag_may_be_missing_where_the_profile_allows_it(
    text: str, pieces: tuple[str, str]
) -> None:
    assert split(text, prefilled=True) == pieces
    assert split(text, list(range(len(text))), prefilled=True) == pieces


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "a", "\n", "</", "think>"]), max_size=12),
    st.lists(st.integers(0, 60), max_size=10),
)
def test_any_split_gives_the_same(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert split(text, cuts) == split(text)


@pytest.mark.parametrize(
    ("blanks", "pieces"),
    [
        (MAX_LEADING_BLANKS, ("why", "so")),
        (MAX_LEADING_BLANKS + 1, ("", "{blanks}<think>why</think>so")),
        (MAX_LEADING_BLANKS * 3, ("", "{blanks}<think>why</think>so")),
    ],
)
def test_a_block_may_begin_after_a_few_blanks(blanks: int, pieces: tuple[str, str]) -> None:
    text = " " * blanks + "<think>why</think>so"
    expected = pieces[0], pieces[1].format(blanks=" " * blanks)
    assert split(text) == expected
    assert split(text, list(range(len(text)))) == expected


def test_a_limited_number_of_blanks_is_held_back() -> None:
    splitter = TagSplitter(TAGS)
    given = [bool(splitter.feed(" ")) for _ in range(MAX_LEADING_BLANKS * 2)]
    assert given == [False] * MAX_LEADING_BLANKS + [True] * MAX_LEADING_BLANKS


@pytest.mark.parametrize(
    ("before", "held", "after"),
    [
        ("<", ("", "<"), ("", "<think>x</think>y")),
        ("\n", ("", "\n"), ("x", "y")),
        ("<think>a</think>\n", ("", ""), ("\nx", "y")),
        ("<think>a", ("", ""), ("<think>x", "y")),
    ],
)
def test_an_interruption_releases_what_might_become_a_block(
    before: str, held: tuple[str, str], after: tuple[str, str]
) -> None:
    def joined(pieces: list[TagPiece]) -> tuple[str, str]:
        raw, text = (
            "".join(piece.text for piece in pieces if piece.kind == kind)
            for kind in ("raw", "text")
        )
        return raw, text

    splitter = TagSplitter(TAGS)
    splitter.feed(before)
    assert joined(splitter.interrupt()) == held
    assert joined(splitter.feed("<think>x</think>y")) == after


def test_ignoring_tags_keeps_held_text_and_ends_the_open_block() -> None:
    splitter = TagSplitter(TAGS)
    splitter.feed("<thi")
    splitter.ignore_tags()
    assert splitter.feed("nk>x") == [("text", "<think>x")]
    splitter = TagSplitter(TAGS)
    splitter.feed("<think>a")
    splitter.ignore_tags()
    assert splitter.feed("b</think>c") == [("raw", "b"), ("text", "c")]


def test_after_the_answer_begins_text_passes_unchanged() -> None:
    splitter = TagSplitter(TAGS)
    splitter.feed("answer")
    assert splitter.is_answering
    assert splitter.feed("<think>").pop().text == "<think>"


def test_every_tag_begins_with_what_a_text_is_searched_for() -> None:
    assert all(may_have_tags(tag.opening[:1]) for tag in TAGS)
