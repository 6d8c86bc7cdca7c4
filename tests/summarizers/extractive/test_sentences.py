"""Test splitting reasoning into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.sentences import MAX_SENTENCE_CHARS, split_sentences


def sentence_texts(text: str) -> list[str]:
    return [one.text for one in split_sentences(text) if not one.is_heading]


def headings(text: str) -> list[str]:
    return [one.text for one in split_sentences(text) if one.is_heading]


CASES = [
    pytest.param("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"], id="prose"),
    pytest.param(
        'He said "stop." Then "go!" and left.',
        ['He said "stop."', 'Then "go!" and left.'],
        id="quotes",
    ),
    pytest.param(
        "Use it, e.g. here. Knicks vs. Celtics is 3.14.",
        ["Use it, e.g. here.", "Knicks vs. Celtics is 3.14."],
        id="abbreviations and decimals",
    ),
    pytest.param(
        "我们先看题目。答案是三！对吗？", ["我们先看题目。", "答案是三！", "对吗？"], id="Chinese"
    ),
    pytest.param(
        "まず確認する。「はい。」と言う。",
        ["まず確認する。", "「はい。」", "と言う。"],
        id="Japanese",
    ),
    pytest.param(
        "Am 14. März ziehen sie um. Der 3. Mai ist frei.",
        ["Am 14. März ziehen sie um.", "Der 3. Mai ist frei."],
        id="ordinals",
    ),
    pytest.param("So 5! = 120 and n! grows. Good.", ["So 5! = 120 and n! grows.", "Good."], id="!"),
    pytest.param(
        'It says: "I stole a bat. What did I pay?" So it was free.',
        ['It says: "I stole a bat. What did I pay?"', "So it was free."],
        id="a quotation of two sentences",
    ),
    pytest.param(
        "It fails (see the log. It is long) today. Why?",
        ["It fails (see the log. It is long) today.", "Why?"],
        id="a bracket of two sentences",
    ),
    pytest.param("Take plan B. It works.", ["Take plan B.", "It works."], id="a letter"),
    pytest.param("He met J. Smith. Good.", ["He met J. Smith.", "Good."], id="an initial"),
    pytest.param(
        "Rice, beans, etc. are fine. Etc.", ["Rice, beans, etc. are fine.", "Etc."], id="etc"
    ),
    pytest.param("See:\n\\[\nx = 1\n\\]\nEnd.", ["See:", "End."], id="displayed formula"),
    pytest.param("Use COUNT(*) and N*(1/2).", ["Use COUNT(*) and N*(1/2)."], id="asterisks"),
    pytest.param("- **Tinta:** It is short.", ["Tinta: It is short."], id="a term of a list"),
    pytest.param("- first\n* second\n3. third", ["first", "second", "third"], id="lists"),
    pytest.param("A line that was\nwrapped here.", ["A line that was wrapped here."], id="wrapped"),
    pytest.param("Before.\n```py\nx = 1\n```\nAfter.", ["Before.", "After."], id="fenced code"),
    pytest.param(
        "Look.\nfor i in range(3):\n    print(i)\nDone.", ["Look.", "Done."], id="bare code"
    ),
    pytest.param("See:\n| a | b |\n|---|---|\n| 1 | 2 |\nEnd.", ["See:", "End."], id="table"),
    pytest.param("*aside* Mind the **bold** word.", ["Mind the bold word."], id="emphasis"),
    pytest.param("2 * 3 = 6 and a*b is it.", ["2 * 3 = 6 and a*b is it."], id="products"),
    pytest.param("  \n\t\n", [], id="blank"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_it_finds_the_sentences(text: str, expected: list[str]) -> None:
    assert sentence_texts(text) == expected


def test_headings_and_bold_labels_are_no_sentences() -> None:
    text = "## The plan\n1. **Look at the data:** It is small.\n**Result**\nIt works."
    assert headings(text) == ["The plan", "Look at the data", "Result"]
    assert sentence_texts(text) == ["It is small.", "It works."]


def test_items_hang_on_the_line_that_announces_them() -> None:
    text = "The steps are:\n- open it\n- close it\nIt works.\n- a note"
    assert [one.hangs for one in split_sentences(text)] == [False, True, True, False, False]


def test_what_stands_under_an_answer_heading_or_in_a_box_is_an_answer() -> None:
    text = "**Plan**\nCount.\n**Final Answer**\nIt takes an hour.\n## More\nSee \\boxed{5}."
    answers = [one.text for one in split_sentences(text) if one.is_answer and not one.is_heading]
    assert answers == ["It takes an hour.", "See 5."]


def test_an_endless_line_is_cut_at_its_clauses() -> None:
    pieces = sentence_texts("and then we look at the next, " * 100)
    assert len(pieces) > 5
    assert all(len(piece) <= MAX_SENTENCE_CHARS for piece in pieces)
    assert all(piece.endswith("next…") for piece in pieces[:-1])


@given(st.text())
def test_no_sentence_is_longer_than_the_longest(text: str) -> None:
    assert all(len(one) <= MAX_SENTENCE_CHARS for one in sentence_texts(text))
