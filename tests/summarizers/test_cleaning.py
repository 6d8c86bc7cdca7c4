"""Test that links, images and HTML are removed, however the text is split."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.cleaning import CONSTRUCTS, LOOKBACK_CHARS, Cleaner, clean

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
]


def in_pieces(text: str, sizes: list[int]) -> str:
    cleaner, cleaned, start = Cleaner(), "", 0
    for size in sizes:
        cleaned += cleaner.feed(text[start : start + size])
        start += size
    return cleaned + cleaner.feed(text[start:]) + cleaner.end()


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
    '![a](b) http https :// / // : www. a x.y . # \n ** * " = h tt p 漢 javascript: _ \\ -'
).replace("\n", "¶")
fragments = st.lists(
    st.sampled_from([one.replace("#", " ").replace("¶", "\n") for one in FRAGMENTS.split(" ")]),
    max_size=40,
).map("".join)


@given(fragments | st.text(), st.lists(st.integers(0, 9)))
def test_any_split_gives_the_same_text(text: str, sizes: list[int]) -> None:
    assert in_pieces(text, sizes) == clean(text)


@given(fragments)
def test_no_link_image_or_html_is_left(text: str) -> None:
    cleaned = clean(text).lower()
    assert not re.search(r"https?://|\]\(|<script|<img|<a\b|<!|\]:", cleaned)


@given(fragments, st.integers(1, 5))
def test_held_back_text_is_bounded(text: str, size: int) -> None:
    cleaner = Cleaner()
    for start in range(0, len(text), size):
        cleaner.feed(text[start : start + size])
        assert cleaner.buffered_chars <= LOOKBACK_CHARS * len(CONSTRUCTS)


@pytest.mark.parametrize(
    "opening",
    ["**", "<img ", "<!--", "[", "![", "[a](", "[a](b(", "https://e.example/", "`<div "],
)
def test_an_unclosed_construct_is_released(opening: str) -> None:
    cleaner = Cleaner()
    cleaner.feed(opening)
    most = 0
    for _ in range(1000):
        cleaner.feed("xyz")
        most = max(most, cleaner.buffered_chars)
    assert 3 < most <= LOOKBACK_CHARS
    assert cleaner.buffered_chars <= LOOKBACK_CHARS
    assert cleaner.feed(" and then. ") or cleaner.buffered_chars < LOOKBACK_CHARS


def test_a_bold_title_is_emitted_whole() -> None:
    cleaner = Cleaner()
    pieces = ("**Adding ", "the ", "numbers*", "*", "\n\nI ", "add")
    cleaned = [cleaner.feed(piece) for piece in pieces]
    assert cleaned == ["", "", "", "**Adding the numbers**", "\n\nI ", "add"]


def test_a_title_that_is_cut_off_is_not_lost() -> None:
    cleaner = Cleaner()
    assert cleaner.feed("**Adding the") == ""
    assert cleaner.end() == "**Adding the"


def test_plain_words_are_not_held_back() -> None:
    cleaner = Cleaner()
    pieces = ["Adding", " the", " numbers."]
    assert [cleaner.feed(piece) for piece in pieces] == pieces


@pytest.mark.parametrize("text", ["<", "<a ", "[", "[a](", "**a", "<!--", "http://a", "`<", "!["])
def test_odd_text_is_cleaned_in_bounded_time(text: str) -> None:
    assert len(clean(text * 20_000)) <= 2 * len(text) * 20_000
