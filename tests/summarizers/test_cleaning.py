"""Test that links, images and HTML are removed, however the text is split."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.summarizers.cleaning import CONSTRUCTS, Cleaner, clean
from abridge.summarizers.constructs import LOOKBACK_CHARS, Construct
from abridge.summarizers.form import BULLET, FENCE, HEADING, MARK
from abridge.summarizers.voice import FIRST_PERSON

CASES = [
    pytest.param("see [the docs](https://a.example/b) now", "see the docs now", id="link"),
    pytest.param('[a](http://x.example/y_(z)?q=1 "title").', "a.", id="link with all in it"),
    pytest.param("[a](javascript:alert(1))", "a", id="script link"),
    pytest.param("![a cat](https://e.example/p.png?d=secret) sits", "a cat sits", id="image"),
    pytest.param("![](//e.example/p.png)", "", id="image without description"),
    pytest.param("[![alt](a.png)](https://e.example)", "alt", id="image in a link"),
    pytest.param("go to https://e.example/a?b=c. Then", "go to . Then", id="bare address"),
    pytest.param("or <https://e.example/a> and www.e.example", "or  and ", id="other addresses"),
    pytest.param("看https://e.example/a。然后", "看。然后", id="address in Chinese"),
    pytest.param("<b>bold</b> and <br/> and </div>", "bold and  and ", id="tags"),
    pytest.param('<img src="x" onerror=alert(1)>!', "!", id="tag with attributes"),
    pytest.param("a <!-- c > d --> e <!DOCTYPE x> f", "a  e  f", id="comment and declaration"),
    pytest.param("<SCRIPT>x</ScRiPt>", "x", id="upper case"),
    pytest.param("wrap it in `<div class='a'>`", "wrap it in `div`", id="tag quoted as code"),
    pytest.param("\x1b[1;31mred\x1b[0m \x9b2Jgone", "red gone", id="colours of a terminal"),
    pytest.param("a\x1b]8;;http://e.example\x1b\\b\x1b]0;c\x07d", "abd", id="terminal commands"),
    pytest.param("a\x1b b\x1bcd", "ad", id="short terminal commands"),
    pytest.param("a\x00b\x08\x7f\x85c\td\r\ne", "abc\td\ne", id="control characters"),
    pytest.param("a\u202eb\u2066c\u200fd\u061c", "abcd", id="direction of text"),
    pytest.param("a\u200bb\ufeffc\u2060d\xade", "abcde", id="no width"),
    pytest.param("ok\U000e0041\U000e0042\U000e0100!", "ok!", id="tags and selectors"),
    pytest.param("x\u200c\u200d\u200c\u200dy", "x\u200dy", id="joiners that carry data"),
    pytest.param("<scr\u200bipt>x<\x00b>", "x", id="a tag with something invisible in it"),
    pytest.param("wwww.e.example/a?b=c now", "w now", id="an address after its letter"),
    pytest.param("htt\u2060ps://e.example/a", "", id="an address with something invisible in it"),
]

UNCHANGED = [
    "a < b and c > d, a <= b",
    "2 * 3 = 6, 2 ** 3 and x**2",
    "snake_case and __init__ and `code`",
    "`List<int>` and Vec<T>",
    "a[0], [x] (y), - [ ] todo, f(x)[1]",
    r"\[ \int f(x) \] and \(a\) and $a_1 < b_2$",
    "**Bold title**\n\n- item *one*\n1. two\n> quote\n# heading",
    "ratio 1:2 at 10:30, C: and a://b is not one, wow! awww...",
    "结论是三。",
    "👩\u200d💻 and ❤\ufe0f, می\u200cشود, क\u094d\u200dष",
    "a\tb\n\nc",
]


def buffered_chars(cleaner: Cleaner) -> int:
    return sum(len(stage.buffer) for stage in cleaner._stages)


def in_pieces(text: str, sizes: list[int]) -> str:
    cleaner, cleaned, start = Cleaner(), "", 0
    for size in sizes:
        cleaned += cleaner.feed(text[start : start + size])
        start += size
    return cleaned + cleaner.feed(text[start:]) + cleaner.feed("", last=True)


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_links_images_and_html_are_removed(text: str, expected: str) -> None:
    assert clean(text) == expected
    assert in_pieces(text, [1] * len(text)) == expected


@pytest.mark.parametrize("text", UNCHANGED)
def test_ordinary_text_stays(text: str) -> None:
    assert clean(text).replace(": //", "://") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<scr<b>ipt>", "< script>", id="a tag in a tag"),
        pytest.param("http<ws://x>://e.example", "http: //e.example", id="an address in halves"),
        pytest.param("]<b>(http://e.example)", "] ()", id="a link in halves"),
        pytest.param("<[script](u)>", "< script>", id="a tag around a link"),
        pytest.param("![x][r]\n\n[r]: //e.example", "![x][r]\n\n[r] : //e.example", id="reference"),
        pytest.param("<img alt='<' onerror=x>", "< img alt='<' onerror=x>", id="a broken tag"),
        pytest.param("<javascript:alert(1)>", "< javascript:alert(1)>", id="another scheme"),
    ],
)
def test_text_that_removal_would_join_into_a_link_stays_apart(text: str, expected: str) -> None:
    assert clean(text) == expected


FRAGMENTS = (
    "< > b <b> </b> <script script <!-- --> <img#src=x <a#href= `<div>` ` [ ] ( ) ! [a](http://b) "
    "\u200d \u200c \u202e \x1b \x1b[ \x1b]0; \x07 \x9b \x00 "
    '![a](b) http https :// / // : www. w a x.y . # \n ** * " = h tt p 漢 javascript: _ \\ -'
).replace("\n", "¶")
OPENINGS = (
    *(
        "\n",
        ". ",
        "\n```\n",
        "\n- a",
        "\n# A",
        "\nThe user wants",
        "The model thinks. ",
        "该模型认为",
    ),
    *("ftp://a.b", "WWW.a", "file://x", "wss://y", "ſ", "\u212a"),
)
"""Beginnings of lines and sentences, and addresses in other spellings."""
fragments = st.lists(
    st.sampled_from([one.replace("#", " ").replace("¶", "\n") for one in FRAGMENTS.split(" ")]),
    max_size=40,
).map("".join)


@given(fragments | st.text(), st.lists(st.integers(0, 9)))
@example("wwww.e.example/a now or later", [20])  # where a piece ends, an address could begin
def test_any_split_gives_the_same_text(text: str, sizes: list[int]) -> None:
    assert in_pieces(text, sizes) == clean(text)


@given(st.lists(fragments | st.sampled_from(OPENINGS), max_size=3).map("".join))
@example(f"{' '.join(OPENINGS)}.\nThe user wants **A** <b> [a](b) ![a](b) \x00 \x1b[0m a: //")
def test_no_construct_begins_but_with_its_first_character(text: str) -> None:
    """What else `first` took would be passed over in the search for the next."""
    for row in (*CONSTRUCTS, FENCE, MARK, BULLET, HEADING, *FIRST_PERSON):
        for found in row.complete.finditer(text):
            first = row.first.match(text, found.start())
            assert first is not None
            assert len(first[0]) == 1


@given(fragments)
def test_no_link_image_or_html_is_left(text: str) -> None:
    cleaned = clean(text).lower()
    assert not re.search(r"https?://|\]\(|<script|<img|<a\b|<!|\]:", cleaned)


@given(fragments, st.integers(1, 5))
def test_held_back_text_is_bounded(text: str, size: int) -> None:
    cleaner = Cleaner()
    for start in range(0, len(text), size):
        cleaner.feed(text[start : start + size])
        assert buffered_chars(cleaner) <= LOOKBACK_CHARS * len(CONSTRUCTS)


@pytest.mark.parametrize(
    "opening",
    ["**", "<img ", "<!--", "[", "![", "[a](", "[a](b(", "https://e.example/", "`<div ", "\x1b]"],
)
def test_an_unclosed_construct_is_released(opening: str) -> None:
    cleaner = Cleaner()
    cleaner.feed(opening)
    most = 0
    for _ in range(1000):
        cleaner.feed("xyz")
        most = max(most, buffered_chars(cleaner))
    assert 3 < most <= LOOKBACK_CHARS
    assert buffered_chars(cleaner) <= LOOKBACK_CHARS
    assert cleaner.feed(" and then. ") or buffered_chars(cleaner) < LOOKBACK_CHARS


def test_a_bold_title_is_emitted_whole() -> None:
    cleaner = Cleaner()
    pieces = ("**Adding ", "the ", "numbers*", "*", "\n\nI ", "add")
    cleaned = [cleaner.feed(piece) for piece in pieces]
    assert cleaned == ["", "", "", "**Adding the numbers**", "\n\nI ", "add"]


def test_a_title_that_is_cut_off_is_not_lost() -> None:
    cleaner = Cleaner()
    assert cleaner.feed("**Adding the") == ""
    assert cleaner.feed("", last=True) == "**Adding the"


def test_plain_words_are_not_held_back() -> None:
    cleaner = Cleaner()
    pieces = ["Adding", " the", " numbers."]
    assert [cleaner.feed(piece) for piece in pieces] == pieces


@pytest.mark.parametrize(
    "text", ["<", "<a ", "[", "[a](", "**a", "<!--", "http://a", "`<", "![", "\x1b[", "\x1b]0;"]
)
def test_odd_text_is_cleaned_in_bounded_time(text: str) -> None:
    assert len(clean(text * 20_000)) <= 2 * len(text) * 20_000


class SearchingStage:
    """A stage that looks for its construct in all of the text that it has, with each piece."""

    def __init__(self, construct: Construct) -> None:
        self._construct = construct
        self._buffer = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        text, cleaned, position = self._buffer + text, "", 0
        partial = None if last else self._find_partial(text, 0)
        while match := self._construct.complete.search(text, position):
            if partial is not None and match.start() >= partial.start():
                break
            cleaned += text[position : match.start()] + self._construct.replace(match)
            position = match.end()
            if partial is not None and position > partial.start():
                partial = self._find_partial(text, position)
        end = len(text) if partial is None else partial.start()
        self._buffer = text[end:]
        return cleaned + text[position:end]

    def _find_partial(self, text: str, position: int) -> re.Match[str] | None:
        return self._construct.partial.search(text, max(position, len(text) - LOOKBACK_CHARS))


def searching_cleaner() -> Cleaner:
    cleaner, stages = Cleaner(), [SearchingStage(construct) for construct in CONSTRUCTS]
    cleaner._stages[:] = stages  # type: ignore[assignment]  # a stand-in with the same methods
    return cleaner


long_fragments = st.lists(fragments.flatmap(lambda one: st.integers(1, 60).map(one[:9].__mul__)))


@given(long_fragments.map("".join), st.lists(st.integers(0, 300)))
def test_what_was_looked_at_before_need_not_be_looked_at_again(text: str, sizes: list[int]) -> None:
    cleaner, searching, start = Cleaner(), searching_cleaner(), 0
    for size in [*sizes, len(text)]:
        piece = text[start : start + size]
        assert cleaner.feed(piece) == searching.feed(piece)
        start += size
    assert cleaner.feed("", last=True) == searching.feed("", last=True)


class CountingPattern:
    """Counts the places at which a pattern is tried."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.count = 0

    def match(self, text: str, position: int) -> re.Match[str] | None:
        self.count += 1
        return self._pattern.match(text, position)

    def search(self, text: str, position: int) -> re.Match[str] | None:
        self.count += len(text) - position
        return self._pattern.search(text, position)


@pytest.mark.parametrize("unit", ["<!--", "<!--<>", "<!-- a ", "[a](", "**a", "<a ", "`<div "])
def test_each_place_is_tried_once_however_small_the_pieces(unit: str) -> None:
    patterns = [CountingPattern(construct.complete) for construct in CONSTRUCTS]
    constructs: Any = [
        replace(construct, complete=pattern)
        for construct, pattern in zip(CONSTRUCTS, patterns, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.summarizers.cleaning.CONSTRUCTS", constructs)
        cleaner = Cleaner()
        for _ in range(1000):
            cleaner.feed(unit)
    assert max(pattern.count for pattern in patterns) <= 2 * 1000 * len(unit)
