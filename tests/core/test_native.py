"""Summaries of upstream's own are split at their titles, however they stream."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.core.native import MAX_HELD, MAX_TITLE, TitleSplitter, is_one_part
from abridge.core.parts import ReasoningItem
from abridge.core.plan import SummaryPlan

TITLED = "**One**\n\nFirst text.\n\n\n**Two**\n\nSecond text."


def split(*pieces: str, max_parts: int = 40, max_chars: int = 1 << 20) -> list[str]:
    """Return the parts of a text that streams in these pieces."""
    splitter = TitleSplitter(max_parts, max_chars)
    parts: list[str] = []
    for piece in [piece for text in pieces for piece in splitter.feed(text)] + splitter.end():
        if piece.begins:
            parts.append("")
        parts[-1] += piece.text
    return parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n\n ", []),
        ("No title at all.\n\nNor here.", ["No title at all.\n\nNor here."]),
        ("  \nText.\n\n", ["Text."]),
        (TITLED, ["**One**\n\nFirst text.", "**Two**\n\nSecond text."]),
        (
            TITLED.replace("\n", "\r\n"),
            ["**One**\r\n\r\nFirst text.", "**Two**\r\n\r\nSecond text."],
        ),
        ("Before.\n**Two**\nText.", ["Before.", "**Two**\nText."]),
        ("**One**\n**Two**\nText.", ["**One**", "**Two**\nText."]),
        ("**One**\n\nText.\n\n**Two**", ["**One**\n\nText.", "**Two**"]),
        ("**One**\n\nText.\n\n  **Two**  \nText.", ["**One**\n\nText.", "**Two**  \nText."]),
        ("Text.\n**Bold** in a sentence.\n", ["Text.\n**Bold** in a sentence."]),
        ("Text.\n- **item**\n**", ["Text.\n- **item**\n**"]),
        ("Text.\n\n** no title **\nText.", ["Text.\n\n** no title **\nText."]),
        ("Text.\n\n***\n\nText.", ["Text.\n\n***\n\nText."]),
        ("A ** b.\n\n**cut of", ["A ** b.\n\n**cut of"]),
        (f"Text.\n\n**{'x' * MAX_TITLE}**\nText.", ["Text.", f"**{'x' * MAX_TITLE}**\nText."]),
        (f"Text.\n**{'x' * (MAX_TITLE + 1)}**\n.", [f"Text.\n**{'x' * (MAX_TITLE + 1)}**\n."]),
    ],
)
def test_a_bold_line_begins_a_part(text: str, parts: list[str]) -> None:
    assert [part.strip(" ") for part in split(text)] == parts
    assert [part.strip(" ") for part in split(*text)] == parts


SNIPPETS = st.sampled_from(
    [
        "**",
        "*",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "Title",
        "**Title**\n",
        "\n\n**Title**\n\n",
        "text. ",
        "\t",
    ]
)


@given(snippets=st.lists(SNIPPETS, max_size=25), cuts=st.lists(st.integers(0, 200), max_size=12))
def test_any_split_of_the_deltas_makes_the_same_parts(snippets: list[str], cuts: list[int]) -> None:
    text = "".join(snippets)
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert split(*(text[start:end] for start, end in pairwise(at))) == split(text)


@given(text=st.text(alphabet="*\n ab\r\t", max_size=80), max_parts=st.integers(1, 4))
def test_nothing_but_blanks_between_parts_is_left_out(text: str, max_parts: int) -> None:
    parts = split(text, max_parts=max_parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert len(parts) <= max_parts
    assert all(part.strip() for part in parts)


def test_only_what_may_be_a_title_is_held_back() -> None:
    splitter = TitleSplitter(40, 1 << 20)
    shown = ["".join(piece.text for piece in splitter.feed(char)) for char in "**A**\nb c\n**no, "]
    assert shown == [*"**A**", "", "\nb", "", " c", *([""] * 7)]
    assert "".join(piece.text for piece in splitter.feed("x" * MAX_TITLE)) == (
        "\n**no, " + "x" * MAX_TITLE
    )


def test_a_gap_without_end_is_let_go() -> None:
    splitter = TitleSplitter(40, 1 << 20)
    splitter.feed("text")
    shown = sum(len(piece.text) for _ in range(10_000) for piece in splitter.feed(" "))
    assert shown >= 10_000 - MAX_HELD


def test_after_the_last_part_nothing_is_split() -> None:
    assert split(TITLED, "\n\n**Three**\n\nThird.", max_parts=2) == [
        "**One**\n\nFirst text.",
        "**Two**\n\nSecond text.\n\n**Three**\n\nThird.",
    ]


def test_the_next_text_begins_another_part_whatever_the_number() -> None:
    splitter = TitleSplitter(1, 1 << 20)
    assert [piece.begins for piece in (*splitter.feed("one"), *splitter.end())] == [True]
    assert [piece.begins for piece in (*splitter.feed("two"), *splitter.end())] == [True]


def test_text_over_the_limit_is_left_out() -> None:
    splitter = TitleSplitter(40, 10)
    assert [
        piece.text for text in ("123456", "7890", "x", "y") for piece in splitter.feed(text)
    ] == [
        "123456",
        "7890",
    ]
    assert splitter.is_full


def test_parts_to_translate_that_are_put_together_stay_paragraphs() -> None:
    """The second of them where no summarizer may be called for the first."""
    item = ReasoningItem.for_plan((0, 0), SummaryPlan(native="translated", tail_chars=0))
    item.is_arriving = True
    texts = "".join(f"**Step {number}**\n\nI look.\n\n" for number in range(3))
    parts = [item.plan_part(number, cut) for number, cut in enumerate(item.take_text(texts))]
    last = item.end_text()
    assert last is not None
    assert parts == [item.parts[0]] * 2
    item.plan_part(2, last)
    assert item.parts[0].reasoning.strip() == texts.strip()


@pytest.mark.parametrize("text", ["I add.\n\n**So** it is.", "**Adding**\n\nI add.", "é"])
def test_a_text_that_is_one_part_is_whole(text: str) -> None:
    assert is_one_part(text)
    assert not is_one_part(f"{text}\n")
    assert not is_one_part(f"{text}\n\n**Going on**\n\nI go on.")
