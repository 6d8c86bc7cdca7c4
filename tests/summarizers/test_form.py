"""Test that a part gets the form of its style, however the text is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.core.styles import STYLES, SummaryStyle, title_of
from abridge.summarizers.cleaning import Cleaner
from abridge.summarizers.form import OPENING_CHARS
from tests.summarizers.test_cleaning import buffered_chars

PART = "**Comparing routes**\n\nI compare."

TITLED = [
    pytest.param(PART, PART, id="as it should be"),
    pytest.param(f"Here is a summary:\n\n{PART}", PART, id="preamble"),
    pytest.param(f"Sure! Here's the summary of the reasoning: {PART}", PART, id="on one line"),
    pytest.param(f"Certainly.\nHere is what I think:\n\n{PART}", PART, id="two preambles"),
    pytest.param(f"**Summary:**\n{PART}", PART, id="bold label"),
    pytest.param(f"Summary: {PART}", PART, id="label"),
    pytest.param(
        "好的，以下是摘要：\n\n**计算**\n\n我算。", "**计算**\n\n我算。", id="Chinese preamble"
    ),
    pytest.param(f"Hier ist die Zusammenfassung:\n{PART}", PART, id="German preamble"),
    pytest.param("# Comparing routes\nI compare.", PART, id="heading"),
    pytest.param("### **Comparing routes** ###\n\nI compare.", PART, id="bold heading"),
    pytest.param("Title: Comparing routes\n\nI compare.", PART, id="title label"),
    pytest.param("**Title: Comparing routes**\nI compare.", PART, id="label in bold"),
    pytest.param("**Title:** Comparing routes\n\nI compare.", PART, id="bold title label"),
    pytest.param("**Title:**\n\nComparing routes\n\nI compare.", PART, id="label of its own"),
    pytest.param("**Title**\n\nI compare.", "**Title**\n\nI compare.", id="a title like a label"),
    pytest.param("Comparing routes\n\nI compare.", PART, id="plain title"),
    pytest.param("Comparing routes\nI compare.", PART, id="plain title without a blank line"),
    pytest.param("计算费用\n我算。", "**计算费用**\n\n我算。", id="plain Chinese title"),
    pytest.param("**Comparing routes** I compare.", PART, id="title on the same line"),
    pytest.param("**Comparing routes:** I compare.", PART, id="title with a colon"),
    pytest.param("** Comparing routes **\nI compare.", PART, id="blanks in the marks"),
    pytest.param(f"```markdown\n{PART}\n```", f"{PART}\n", id="fence around it"),
    pytest.param("**Comparing the", "**Comparing the**", id="title cut off"),
    pytest.param("**Paris** is it.", "**Paris** is it.", id="bold word in a sentence"),
    pytest.param("I compare.\nI go.", "I compare.\nI go.", id="no title"),
    pytest.param("Comparing is hard. I go.\n", "Comparing is hard. I go.\n", id="sentence"),
    pytest.param("Here the bound holds: yes.", "Here the bound holds: yes.", id="no preamble"),
    pytest.param("Okay, I compare.", "Okay, I compare.", id="a filler is no preamble"),
    pytest.param(
        "**A b**\n\n- one\n• two\n1. three", "**A b**\n\none\ntwo\n1. three", id="bullets"
    ),
    pytest.param("**A b**\n\n- 5 degrees", "**A b**\n\n- 5 degrees", id="minus"),
]

UNTITLED = [
    pytest.param(PART, "I compare.", id="title"),
    pytest.param("# Comparing routes\n\nI compare.", "I compare.", id="heading"),
    pytest.param("Here is a summary: I compare.", "I compare.", id="preamble"),
    pytest.param("Sure! I compare.", "I compare.", id="agreement"),
    pytest.param("**Paris** is it.", "**Paris** is it.", id="bold word"),
    pytest.param("Comparing routes\nI go.", "Comparing routes\nI go.", id="plain line"),
    pytest.param("**Nothing else**", "**Nothing else**", id="nothing but a title"),
]

TITLE_ALONE = [
    pytest.param(PART, "**Comparing routes**", id="with text"),
    pytest.param("Comparing routes", "**Comparing routes**", id="plain"),
    pytest.param("Comparing routes.\n", "**Comparing routes**", id="with a stop"),
    pytest.param("Title: Comparing routes", "**Comparing routes**", id="label"),
    pytest.param("Here is the title: **Comparing routes**", "**Comparing routes**", id="preamble"),
    pytest.param("I compare both. Then I go.", "**I compare both**", id="sentences"),
    pytest.param("word " * 60, f"**{('word ' * 16).strip()}**", id="no end in sight"),
]


def in_pieces(text: str, sizes: list[int], style: SummaryStyle | None) -> str:
    cleaner, cleaned, start = Cleaner(style), "", 0
    for size in sizes:
        cleaned += cleaner.feed(text[start : start + size])
        start += size
    return cleaned + cleaner.feed(text[start:]) + cleaner.feed("", last=True)


@pytest.mark.parametrize("style", ["auto", "detailed"])
@pytest.mark.parametrize(("text", "expected"), TITLED)
def test_a_part_begins_with_a_bold_title(style: SummaryStyle, text: str, expected: str) -> None:
    assert in_pieces(text, [], style) == expected
    assert in_pieces(text, [1] * len(text), style) == expected


@pytest.mark.parametrize(("text", "expected"), UNTITLED)
def test_a_concise_summary_has_no_title(text: str, expected: str) -> None:
    assert in_pieces(text, [], "concise") == expected
    assert in_pieces(text, [1] * len(text), "concise") == expected


@pytest.mark.parametrize(("text", "expected"), TITLE_ALONE)
def test_of_a_title_nothing_follows(text: str, expected: str) -> None:
    assert in_pieces(text, [], "title") == expected
    assert in_pieces(text, [1] * len(text), "title") == expected


def test_without_a_style_nothing_but_unsafe_constructs_changes() -> None:
    text = "Here is a summary:\n\n# Comparing\n- The model considers it."
    assert in_pieces(text, [], None) == text


FRAGMENTS = (
    "** * **Comparing~routes** **Summary:** # ## Title: Comparing Sure! Here~is~a~summary: I The~m"
    " The~model considers~ its is~considering . ! 。 ¶ ¶¶ ~ - • ``` 计算 模型 认为 助手正在"
    " Das~Modell prüft~ sich word [a](http://b) <b> \u200d \u202e \x1b[31m \x1b ] \x07 :"
)
texts = st.lists(
    st.sampled_from([one.replace("~", " ").replace("¶", "\n") for one in FRAGMENTS.split(" ")]),
    max_size=30,
).map("".join)
styles = st.sampled_from(sorted(STYLES))


@given(texts | st.text(), st.lists(st.integers(0, 9)), styles)
def test_any_split_gives_the_same_part(text: str, sizes: list[int], style: SummaryStyle) -> None:
    assert in_pieces(text, sizes, style) == in_pieces(text, [], style)


@given(texts)
def test_of_any_text_a_title_alone_is_a_title_or_nothing(text: str) -> None:
    title = in_pieces(text, [], "title")
    assert not title.strip() or title_of(title) is not None
    assert "\n" not in title


@given(texts, styles)
def test_little_waits_for_the_opening(text: str, style: SummaryStyle) -> None:
    cleaner = Cleaner(style)
    for char in text:
        cleaner.feed(char)
        assert len(cleaner._stages[-1].buffer) <= OPENING_CHARS


@pytest.mark.parametrize("style", ["auto", "detailed", "concise"])
@pytest.mark.parametrize(
    "unit", ["Sure! ", "Comparing ", "Here is ", "**", "**a", "# ", "\n", "- "]
)
def test_an_opening_that_goes_on_is_released(style: SummaryStyle, unit: str) -> None:
    cleaner = Cleaner(style)
    for _ in range(2000):
        cleaner.feed(unit)
    assert buffered_chars(cleaner) <= 2 * OPENING_CHARS + len(unit)


@pytest.mark.parametrize("blank", [" ", "\n", " \n"])
def test_blanks_after_bold_text_are_held_no_longer_than_an_opening(blank: str) -> None:
    cleaner = Cleaner("concise")
    cleaner.feed("**Comparing routes**" + blank * OPENING_CHARS)
    assert buffered_chars(cleaner) < OPENING_CHARS


def test_plain_words_are_not_held_up() -> None:
    cleaner = Cleaner("auto")
    pieces = ["So ", "it", " is.", " And", " so", " on"]
    assert [cleaner.feed(piece) for piece in pieces] == pieces


def test_a_title_comes_as_soon_as_it_is_complete() -> None:
    cleaner = Cleaner("auto")
    pieces = ["**Comparing ", "routes*", "*", "\n\n", "I ", "compare"]
    shown = ["", "", "**Comparing routes**", "", "\n\nI ", "compare"]
    assert [cleaner.feed(piece) for piece in pieces] == shown
