"""Test where the segmenter cuts reasoning into parts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.core.segmenter import (
    MAX_CONTEXT,
    MAX_CONTEXT_RATIO,
    WIDE_CHAR_SIZE,
    Cut,
    Segmenter,
    text_size,
)


def segmenter(**settings: object) -> Segmenter:
    chosen = {
        "part_chars": 40,
        "max_parts": 3,
        "tail_chars": 10,
        "min_chars": 1,
        "max_chars": 10_000,
        "live": True,
    }
    return Segmenter(**{**chosen, **settings})  # type: ignore[arg-type]


def cuts(text: str, **settings: object) -> list[str]:
    made = segmenter(**settings)
    found = made.feed(text)
    last = made.end_stretch()
    return [cut.text for cut in (*found, *([last] if last else []))]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param("a" * 38 + ".\n\nThe rest follows here", "a" * 38 + ".\n\n", id="paragraph"),
        pytest.param(
            "First one. Then a second sentence.\n\nAnd so on without any end " * 2,
            "First one. Then a second sentence.\n\n",
            id="a paragraph before the mark, where none follows soon",
        ),
        pytest.param(
            "One sentence is here. Another one is there and goes on and on " * 2,
            "One sentence is here. ",
            id="sentence",
        ),
        pytest.param(
            "no stop at all but words and more words and more words and ever more",
            "no stop at all but words and more words and more ",
            id="word",
        ),
        pytest.param("x" * 200, "x" * 50, id="one endless word"),
        pytest.param("我" * 18 + "。" + "他" * 80, "我" * 18 + "。", id="Chinese"),
        pytest.param("- item\n" * 20, "- item\n" * 7, id="list"),
        pytest.param(
            "pi is 3.14159 and e is 2.71828 and so it goes on and on", None, id="decimals"
        ),
    ],
)
def test_cuts_fall_on_natural_boundaries(text: str, first: str | None) -> None:
    found = cuts(text, tail_chars=0)
    assert "".join(found) == text
    if first is not None:
        assert found[0] == first
    assert not any(cut.endswith(("3.", "2.")) for cut in found)


def test_the_first_part_may_be_shorter_than_the_others() -> None:
    found = cuts("x" * 2000, part_chars=100, max_parts=3, tail_chars=0, first_share=0.6)
    assert [len(part) for part in found[:4]] == [75, 125, 125, 250]


def test_parts_are_of_one_size_then_each_twice_as_large() -> None:
    found = cuts("x" * 2000, part_chars=100, max_parts=3, tail_chars=0)
    assert [round(len(cut) / 1.25) for cut in found[:5]] == [100, 100, 100, 200, 400]


def test_however_long_the_reasoning_is_its_parts_are_few() -> None:
    found = cuts("word " * 100_000, part_chars=1500, max_parts=40, tail_chars=0, max_chars=1 << 22)
    assert len(found) < 50


@given(
    st.text(alphabet="我abc 。\n", min_size=200, max_size=600), st.sampled_from([40, 75.5, 100.0])
)
def test_a_part_has_the_same_size_in_any_script(text: str, part_chars: float) -> None:
    for cut in segmenter(part_chars=part_chars, max_parts=100).feed(text):
        assert text_size(cut.text) <= part_chars * 1.25 + WIDE_CHAR_SIZE


def test_a_wide_character_takes_as_much_of_a_part_as_it_has_tokens() -> None:
    latin, wide = cuts("word " * 1000, tail_chars=0), cuts("我们想" * 1000, tail_chars=0)
    assert len(latin[0]) == pytest.approx(len(wide[0]) * WIDE_CHAR_SIZE, rel=0.1)


def test_a_short_rest_after_a_cut_is_kept_back() -> None:
    assert cuts("a" * 38 + ".\n\n" + "tail") == ["a" * 38 + ".\n\n"]


def test_a_cut_waits_for_the_rest_that_is_to_follow_it_but_the_first_does_not() -> None:
    text = "A sentence. " * 8
    short, long = f"{text}{'B. ' * 6}", f"{text}{'B. ' * 10}"
    assert [len(cut) for cut in cuts(short)] == [48, 48, 18]
    assert [len(cut) for cut in cuts(short, rest_chars=20)] == [48, 66]
    assert [len(cut) for cut in cuts(long, rest_chars=20)] == [48, 48, 30]


def test_a_cut_does_not_wait_while_blanks_alone_follow_it() -> None:
    assert len(segmenter(rest_chars=20).feed("A sentence. " * 8 + " " * 40)) == 2


def test_a_short_text_is_still_one_part() -> None:
    assert cuts("tail") == ["tail"]


@pytest.mark.parametrize("text", ["", "   \n\n\t "])
def test_whitespace_alone_is_never_cut(text: str) -> None:
    assert cuts(text) == []


@pytest.mark.parametrize("blank", ["\n", " ", "\n \t", "\u3000"])
@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_a_stretch_of_blanks_makes_no_part_of_its_own(blank: str, size: int) -> None:
    text = f"{blank * 900}I think.{blank * 900}So it is."
    made = segmenter(tail_chars=0)
    pieces = (text[start : start + size] for start in range(0, len(text), size))
    found = [cut for piece in pieces for cut in made.feed(piece)]
    last = made.end_stretch()
    assert last is not None
    assert [cut.text.strip() for cut in (*found, last)] == ["I think.", "So it is."]
    assert found[0].text.startswith("I think.")


def test_blanks_are_not_gathered_where_nothing_follows_them() -> None:
    made = segmenter()
    for _ in range(100):
        assert made.feed("\n" * 1000) == []
    assert (made.room, made._pieces) == (segmenter().room, [])
    assert made.end_stretch() is None


def test_less_than_the_minimum_is_no_part_and_whitespace_never_counts() -> None:
    assert cuts("a b c d", min_chars=5) == []
    assert cuts("a b c d e", min_chars=5) == ["a b c d e"]


def test_a_cut_has_the_text_before_it() -> None:
    made = segmenter(tail_chars=0)
    first, second = made.feed("a" * 39 + "\n\n" + "b" * 48 + "\n\n")[:2]
    assert first.before == ""
    assert second == Cut("b" * 48 + "\n\n", first.text[-5:])


@given(st.lists(st.text(alphabet="ab.\n 。", max_size=3000), max_size=6))
@example(["One.", "Two.", "b" * 190])
def test_context_is_the_end_of_what_came_before_and_stays_in_proportion(
    stretches: list[str],
) -> None:
    made = segmenter(part_chars=200, tail_chars=0)
    told, sent, reasoning_text = "", 0, 0
    for stretch in stretches:
        last = [*made.feed(stretch), made.end_stretch()]
        for cut in filter(None, last):
            share = min(MAX_CONTEXT, int(MAX_CONTEXT_RATIO * len(cut.text)))
            assert cut.before == told[max(len(told) - share, 0) :]
            told += cut.text
            sent += len(cut.text) + len(cut.before)
        reasoning_text += len(stretch) + 2
        made.begin_stretch()
    assert sent <= (1 + MAX_CONTEXT_RATIO) * reasoning_text


def test_a_rest_is_taken_along_by_the_next_stretch() -> None:
    made = segmenter()
    made.feed("a" * 38 + ".\n\nrest")
    assert made.end_stretch() is None
    made.begin_stretch()
    made.feed("and a second stretch")
    cut = made.end_stretch()
    assert cut is not None
    assert cut.text == "rest\n\nand a second stretch"


def test_over_the_limit_head_and_tail_remain() -> None:
    made = segmenter(live=False, max_chars=1000)
    for number in range(10_000):
        made.feed(f"{number} ")
    cut = made.end_stretch()
    assert cut is not None
    assert len(cut.text) <= 1000
    assert cut.text.startswith("0 1 2")
    assert cut.text.endswith("9998 9999 ")


@given(
    st.text(alphabet="ab.\n 。!", max_size=400),
    st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
def test_any_split_of_the_text_gives_the_same_cuts(text: str, places: list[int]) -> None:
    whole, split = segmenter(), segmenter()
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    found = [cut for start, end in pairwise(edges) for cut in split.feed(text[start:end])]
    assert found == whole.feed(text)
    assert split.end_stretch() == whole.end_stretch()


@given(st.lists(st.text("a我 .\n", max_size=30), max_size=30), st.sampled_from([60, 10_000]))
def test_nothing_is_done_about_a_text_for_which_there_is_room(
    pieces: list[str], max_chars: int
) -> None:
    made, gathered = segmenter(max_chars=max_chars), list[str]()
    for piece in pieces:
        fits, has_begun = text_size(piece) < made.room, made._length > 0
        found = made.feed(piece)
        kept = piece if has_begun else piece.lstrip()
        gathered += [kept] if kept else []
        start = len(made._pieces) - len(gathered)
        assert not fits or (found == [] and made._pieces[start:] == gathered)
        gathered = gathered if fits else []


@given(st.text(max_size=500))
def test_nothing_is_lost_but_a_short_rest(text: str) -> None:
    found, said = "".join(cuts(text)), text.lstrip()
    assert said.startswith(found)
    assert len(said[len(found) :].strip()) < 10
