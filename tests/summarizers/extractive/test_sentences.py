"""Test splitting reasoning into sentences, and what is made of each before it is judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.notation import plain_math
from abridge.summarizers.extractive.openings import (
    CONNECTIVES,
    FILLERS,
    leans,
    strip,
)
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
    pytest.param("He met J. Smith. Good.", ["He met J. Smith.", "Good."], id="an initial"),
    pytest.param(
        "Rice, beans, etc. are fine. Etc.", ["Rice, beans, etc. are fine.", "Etc."], id="etc"
    ),
    pytest.param(
        "It holds max. two keys. Then it fails.",
        ["It holds max. two keys.", "Then it fails."],
        id="a small letter after a stop",
    ),
    pytest.param("See:\n\\[\nx = 1\n\\]\nEnd.", ["See: x = 1", "End."], id="displayed formula"),
    pytest.param("See.\n\\[\nx = 1\n\\]\nEnd.", ["See.", "End."], id="formula on its own"),
    pytest.param(
        "So\n\n$$ x = \\frac{1}{2} $$\nwhere x\n\\[y\\]\n\\[z\\]\nholds.",
        ["So x = 1/2 where x y.", "holds."],
        id="a formula after another",
    ),
    pytest.param("**See**\n\\[x\\]\nEnd.", ["End."], id="a formula after a label"),
    pytest.param("# See\n\\[x\\]\nEnd.", ["End."], id="a formula after a heading"),
    pytest.param('He says "See."\n\\[x\\]\nEnd.', ['He says "See."', "End."], id="a quotation"),
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


def test_a_heading_glued_to_a_sentence_is_a_heading() -> None:
    text = "It has two moons.**Describing the Air**\n\nThe air is **thin.**\nIt is cold."
    assert headings(text) == ["Describing the Air"]
    assert sentence_texts(text) == ["It has two moons.", "The air is thin.", "It is cold."]


def test_fields_of_search_results_are_no_sentences() -> None:
    record = "Title: Rain in May\nURL: https://rain.example/may\nContent: There was rain.\nScore: 1"
    assert sentence_texts(f"Look it up.\n\n{record}\n\nIt rains.") == ["Look it up.", "It rains."]
    assert sentence_texts("Answer: three.\nNote: it rains.") == [
        "Answer: three.",
        "Note: it rains.",
    ]


def test_what_a_formula_completes_ends_as_if_it_announced_it() -> None:
    assert sentence_texts("Count. Define\n\\[\nx = 1\\\\\ny = 2\n\\]\nEnd.") == [
        "Count.",
        "Define:",
        "End.",
    ]


def test_an_endless_line_is_cut_at_its_clauses() -> None:
    pieces = sentence_texts("and then we look at the next, " * 100)
    assert len(pieces) > 5
    assert all(len(piece) <= MAX_SENTENCE_CHARS for piece in pieces)
    assert all(piece.endswith("next…") for piece in pieces[:-1])


@given(st.text())
def test_no_sentence_is_longer_than_the_longest(text: str) -> None:
    assert all(len(one) <= MAX_SENTENCE_CHARS for one in sentence_texts(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"Let \( n \) be even.", "Let n be even."),
        (r"So $L^2=2$ and $L=\sqrt{2}$.", "So L²=2 and L=√2."),
        (r"Then \(a_n \ge \sqrt 2\) holds.", "Then a_n ≥ √2 holds."),
        (r"It is \(\frac{1}{2}\) or \(\frac12\).", "It is 1/2 or 1/2."),
        (r"It is \(\frac{a+b}{2}\).", "It is (a+b)/2."),
        (r"The rate is \(5 \times 3\).", "The rate is 5 × 3."),
        (r"It is \(e^{2x}\) or \(x^{2.5}\).", "It is e^(2x) or x^2.5."),
        (r"It is \(\frac{1}{2x}\) or \(\frac{\pi}{2}\).", "It is 1/(2x) or π/2."),
        (r"It needs \(2\frac{1}{2}\) cups.", r"It needs \(2\frac{1}{2}\) cups."),
        (r"The time is \boxed{50} minutes.", "The time is 50 minutes."),
        (r"It takes \(3 \text{ hours}\).", "It takes 3 hours."),
    ],
)
def test_simple_formulas_are_rewritten(text: str, expected: str) -> None:
    assert plain_math(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The bat costs $1.10. The ball costs $1 less.",
        "It is $5-$10 a day.",
        "Prices in US$ rose.",
        r"It is \(\sum_{i=1}^{n} i\).",
        r"A path such as C:\temp stays.",
        "No formula at all.",
    ],
)
def test_money_paths_and_harder_formulas_stay(text: str) -> None:
    assert plain_math(text) == text


@given(st.text(alphabet="\\($){}^_2 abfrcsqtx", max_size=80))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(plain_math(text), str)


def stripped(text: str) -> str:
    text = strip(text, FILLERS.match(text.lower()))
    return strip(text, CONNECTIVES.match(text.lower()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Okay, so the build fails.", "The build fails."),
        ("Hmm, wait, no, the cache is cold.", "The cache is cold."),
        ("So, the answer is 42.", "The answer is 42."),
        ("But then the lock is held twice.", "The lock is held twice."),
        ("Therefore, `parse` returns early.", "`parse` returns early."),
        ("So parse_args is never called.", "parse_args is never called."),
        ("So x is 5.", "x is 5."),
        ("So a lock is missing.", "A lock is missing."),
        ("Aber das Budget reicht nicht.", "Das Budget reicht nicht."),
        ("Also, der Zug fährt um zehn.", "Der Zug fährt um zehn."),
        ("Donc, il faut attendre.", "Il faut attendre."),
        ("Y el total son 12 euros.", "El total son 12 euros."),
        ("Но кэш пуст.", "Кэш пуст."),
        ("嗯，所以答案是三。", "答案是三。"),
        ("したがって、答えは三です。", "答えは三です。"),
    ],
)
def test_fillers_and_connectives_are_stripped(text: str, expected: str) -> None:
    assert stripped(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "So far nothing was found.",
        "So that works.",
        "If it rains, we stay.",
        "Unless the disk is full, it works.",
        "Because the disk is full, it fails.",
        "Now that the cache is warm, it is fast.",
        "Also ist das Ergebnis fünf.",
        "Y is the number of rows.",
        "E is the energy.",
        "Then again, it may fail.",
        "Thus freezing the cream.",
        "Okay.",
        "So.",
    ],
)
def test_what_would_change_the_meaning_stays(text: str) -> None:
    assert stripped(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "This is the cause.",
        "It fails.",
        "They share a lock.",
        "Because of the lock.",
        "Otherwise the queue grows.",
        "The first, from the customer, asks why.",
        "Das passt ins Budget.",
        "Also ist das Ergebnis fünf.",
        "C'est la cause.",
        "这说明缓存为空。",
        "それが原因だ。",
        "(See the log.)",
    ],
)
def test_a_reference_to_what_was_said_leans(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize(
    "text",
    [
        "The lock is held twice.",
        "The user asks for a poem.",
        "The first law says so.",
        "Das Ergebnis ist fünf.",
        "If the disk is full, writes fail.",
        "The lease ends in May, so the deposit is due.",
        "他の方法はない。",
    ],
)
def test_a_sentence_that_names_its_subject_does_not_lean(text: str) -> None:
    assert not leans(text)
