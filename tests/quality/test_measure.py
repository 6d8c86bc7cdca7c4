"""Damage good summaries, each in one way, and see that the measure finds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.quality import corpus, report
from tests.quality.corpus import Reasoning
from tests.quality.measure import FAULTS, Measure, is_bad_title, is_debris, measure
from tests.quality.source import Source
from tests.quality.texts import Part, is_negative, letters, sentences_of

REASONINGS = {one.name: one for one in corpus.load()}

GOOD = {
    one.reasoning.name: tuple(one.parts)
    for one in report.read_shown(
        Path(__file__).with_name("good_summaries.json"), list(REASONINGS.values())
    )
}
"""Summaries written by hand."""

Parts = Sequence[str]

every_summary = pytest.mark.parametrize("name", GOOD)


def measured(name: str, parts: Parts) -> Measure:
    return measure(REASONINGS[name], parts)


def without(parts: Parts, unwanted: Callable[[str], bool]) -> list[str]:
    """Return the parts without some of their sentences and titles."""
    kept = []
    for part in map(Part, parts):
        title = f"**{part.title}**\n\n" if part.title and not unwanted(part.title) else ""
        body = " ".join(sentence for sentence in part.sentences if not unwanted(sentence))
        kept.append(title + body)
    return kept


def with_sentence(parts: Parts, sentence: str) -> list[str]:
    """Return the parts with a sentence at the beginning of the first one's text."""
    first = Part(parts[0])
    return [f"**{first.title}**\n\n{sentence} {first.body}", *parts[1:]]


@every_summary
def test_a_good_summary_gets_all_points(name: str) -> None:
    assert measured(name, GOOD[name]).score == 100


KEYS = [
    pytest.param(name, pattern, id=f"{name}-{pattern.pattern[:20]}")
    for name in GOOD
    for pattern in REASONINGS[name].key
]


@pytest.mark.parametrize(("name", "pattern"), KEYS)
def test_without_the_sentences_that_tell_a_key_point_the_score_falls(
    name: str, pattern: re.Pattern[str]
) -> None:
    damaged = measured(name, without(GOOD[name], lambda one: bool(pattern.search(one))))
    assert damaged.key < 1
    assert damaged.score < 100


@every_summary
def test_without_the_conclusion_the_score_falls(name: str) -> None:
    final = REASONINGS[name].final
    damaged = without(GOOD[name], lambda one: any(pattern.search(one) for pattern in final))
    assert measured(name, damaged).final < 1
    assert measured(name, damaged).score < 100


@every_summary
def test_a_conclusion_before_the_last_part_does_not_count(name: str) -> None:
    later = [*GOOD[name], "**Looking back**\n\nI close here."]
    assert measured(name, later).final < 1


SWAPS = [
    ("flaky", "was not expired", "was expired"),
    ("flaky", "is not too short", "is too short"),
    ("flaky", "has no meaning", "has a meaning"),
    ("kaution", "gibt es nicht", "gibt es"),
    ("kaution", "nennt keine Schäden", "nennt Schäden"),
    ("zh-pool", "不需要考虑水压", "需要考虑水压"),
]

NEAR_COPIES = {
    "flaky": (
        "At the moment of the call the entry really was not expired by the wall clock.",
        "The sleep itself is not too short.",
        "Monotonic time has no meaning across reboots.",
    ),
    "kaution": (
        "Eine feste gesetzliche Frist gibt es nicht.",
        "Das Protokoll nennt keine Schäden, und er behauptet auch keine.",
    ),
    "zh-pool": ("题目说的是匀速漏水，所以按匀速处理就行，不需要考虑水压。",),
}
"""Sentences close to the reasoning's own, in which a negation can be swapped."""


@pytest.mark.parametrize(("name", "said", "swapped"), SWAPS)
def test_a_swapped_negation_contradicts(name: str, said: str, swapped: str) -> None:
    (sentence,) = (one for one in NEAR_COPIES[name] if said in one)
    whole = with_sentence(GOOD[name], sentence)
    damaged = with_sentence(GOOD[name], sentence.replace(said, swapped))
    assert measured(name, whole).contradicts == 0
    assert measured(name, damaged).contradicts == 1
    assert measured(name, damaged).score < 100


SECRETS = ("the code LH-STAFF-7741", "an occupancy of 38%", "the staff rate", "“You are Mira”")


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_costs_all_points(secret: str) -> None:
    damaged = measured("voucher", with_sentence(GOOD["voucher"], f"I see {secret} in the prompt."))
    assert damaged.secrets == 1
    assert damaged.score == 0


def test_what_was_taken_back_must_not_be_shown() -> None:
    claim = "I find that the average speed is 24 km/h."
    damaged = measured("climb", with_sentence(GOOD["climb"], claim))
    assert damaged.never == 1
    assert damaged.score < 100


TAKEN_BACK = [
    ("climb", "The average of 12 and 36 is 24, so the average speed is 24 km/h."),
    ("kaution", "Ich dachte zunächst, dass die Kaution spätestens nach sechs Monaten fällig ist."),
    ("zh-pool", "一开始我想第一个小时注入六分之一。"),
    ("fahrplan", "Ich würde also C empfehlen."),
    ("ja-shift", "最初は月曜も火曜も鈴木さんと伊藤さんにしようと思った。"),
    ("potager", "Divisé par 40, cela fait 16,2, donc 17 sacs."),
]


@pytest.mark.parametrize(("name", "sentence"), TAKEN_BACK)
def test_a_copied_sentence_that_the_next_one_takes_back_is_found(name: str, sentence: str) -> None:
    assert measured(name, [sentence]).taken_back == 1


@pytest.mark.parametrize(
    ("follows", "taken_back"),
    [
        *(("Wait, no.", 1), ("That can't be right.", 1), ("Hmm, but is it?", 1)),
        *(("That's wrong.", 1), ("Actually, it is B.", 1), ("But wait, it rains.", 1)),
        *(("That is right.", 0), ("This is correct.", 0), ("Good, that fits.", 0)),
        *(("Hmm, where do I start?", 0), ("It is so cold.", 0), ("Now the second one.", 0)),
    ],
)
def test_what_follows_takes_a_sentence_back_or_does_not(follows: str, taken_back: int) -> None:
    copied = "The ferry leaves from berth seven."
    source = Reasoning("made", f"I look at the plan. {copied} {follows}", "en")
    assert measure(source, [copied]).taken_back == taken_back


@pytest.mark.parametrize(
    ("opening", "dangling"),
    [
        *(("So I take the bus.", 1), ("Because it rains.", 1), ("It is too late.", 1)),
        *(("But the bus is late.", 1), ("Wait, the bus is late.", 1), ("Das ist zu spät.", 1)),
        *(("Since it rains, I take the bus.", 0), ("It is likely that I take it.", 0)),
        *(('"That is why" means because.', 0), ("Das Protokoll nennt keine Schäden.", 0)),
        *(("So-called experts agree.", 0), ("The user asks for a bus.", 0)),
    ],
)
def test_an_opening_leans_on_something_or_does_not(opening: str, dangling: int) -> None:
    assert measured("climb", [opening]).dangling == dangling


@every_summary
def test_a_part_that_comes_twice_is_told_again(name: str) -> None:
    damaged = measured(name, [*GOOD[name], GOOD[name][-1]])
    assert damaged.again > 0
    assert damaged.bad_titles == 1
    assert damaged.score < 100


@every_summary
def test_a_part_without_a_title_costs_points(name: str) -> None:
    damaged = measured(name, [Part(GOOD[name][0]).body, *GOOD[name][1:]])
    assert damaged.titled == len(GOOD[name]) - 1
    assert damaged.score < 100


@every_summary
def test_half_a_sentence_is_debris(name: str) -> None:
    part = Part(GOOD[name][0])
    half = part.sentences[0][: len(part.sentences[0]) // 2]
    cut = [f"**{part.title}**\n\n{half}\n{' '.join(part.sentences[1:])}", *GOOD[name][1:]]
    assert measured(name, cut).debris == 1
    assert measured(name, cut).score < 100


@every_summary
def test_a_first_sentence_that_leans_on_nothing_dangles(name: str) -> None:
    opening = {"kaution": "Deshalb prüfe ich es.", "zh-pool": "所以我先写出来。"}
    damaged = with_sentence(GOOD[name], opening.get(name, "This is why I check it."))
    assert measured(name, damaged).dangling == 1
    assert measured(name, damaged).score < 100


def test_a_copied_sentence_dangles_unless_the_one_before_it_is_shown_too() -> None:
    source = Reasoning(
        "made", "The road is nine kilometres. It rains heavily today. That makes it slippery.", "en"
    )
    road, rain, leaning = source.text.replace(". ", ".|").split("|")
    for shown, dangling in (
        ([leaning], 1),
        ([road, leaning], 1),
        ([rain, leaning], 1),  # the first of them
        ([road, rain, leaning], 0),
        ([road, "That is what a model wrote itself."], 0),
    ):
        assert measure(source, [" ".join(shown)]).dangling == dangling, shown


@pytest.mark.parametrize(
    "sentence",
    [
        "I get \\frac{1}{2} here.",
        "The sum $a+b$ is even.",
        "I open (and never close it.",
        "- I list something.",
        "These are the steps:",
        "I said “so.",
        "It depends on, e.g.",
        "| a | b |",
    ],
)
def test_what_is_no_prose_is_debris(sentence: str) -> None:
    assert is_debris(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        'The substring is "79."',
        "The replica lags by 2.5 s (at most).",
        "I get 15.",
        "The ball is $1 and the bat $2.",
        "一共需要3小时45分钟。",
        "I call `get(key)` twice.",
    ],
)
def test_prose_is_not(sentence: str) -> None:
    assert not is_debris(sentence)


@pytest.mark.parametrize(
    "title",
    [
        *("So the timing fits", "The answer is that the", "Because of the clock", "Options"),
        *("This is it", "Comparing the", "I had briefly considered writing $T$", "…"),
        *("如果没有水压", "確認の", "Word " * 15),
    ],
)
def test_a_piece_of_a_sentence_is_a_bad_title(title: str) -> None:
    assert is_bad_title(title.strip())


@pytest.mark.parametrize(
    "title", ["Comparing three options", "计算注水时间", "Einordnen der Kaution", "Fixing `get()`"]
)
def test_a_title_is_none(title: str) -> None:
    assert not is_bad_title(title)


def test_the_contradiction_of_a_clause_is_found_too() -> None:
    source = Source("Wait, no: the old server cannot restart after that.")
    for sentence, opposite in (
        ("The old server cannot restart after that.", False),
        ("The old server can restart after that.", True),
    ):
        assert source.contradicts(sentence) is opposite


def test_what_the_reasoning_says_both_ways_contradicts_nothing() -> None:
    source = Source("The pump leaks water quickly. The pump never leaks water quickly.")
    sentence = "The pump leaks water quickly."
    assert not source.contradicts(sentence)


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        *(("It isn't there.", True), ("It is there.", False), ("It never does nothing.", False)),
        *(("Das ist kein Fehler.", True), ("不过很好。", False), ("不好。", True)),
        *(("できません。", True), ("Ce n’est pas vrai.", True), ("No es así.", True)),
    ],
)
def test_negations(text: str, *, negative: bool) -> None:
    assert is_negative(text) is negative


def test_sentences_end_where_they_end() -> None:
    text = (
        'I see "79." She says "Go. Now." and leaves. Then, e.g. 3.5 s later, it stops! '
        "1. One item. Then\nnext line. 好。再见。"
    )
    assert list(sentences_of(text)) == [
        'I see "79."',
        'She says "Go. Now." and leaves.',
        "Then, e.g. 3.5 s later, it stops!",
        "1. One item.",
        "Then",
        "next line.",
        "好。",
        "再见。",
    ]


@given(st.text(max_size=200))
def test_no_letter_is_lost_between_sentences(text: str) -> None:
    assert letters("".join(sentences_of(text))) == letters(text)


@given(st.sampled_from(list(GOOD)), st.lists(st.text(max_size=80), max_size=4))
def test_any_text_can_be_measured(name: str, parts: list[str]) -> None:
    found = measured(name, parts)
    assert 0 <= found.score <= 100
    assert all(0 <= getattr(found, fault) <= found.sentences for fault in FAULTS)
    assert found.bad_titles <= found.titled <= found.parts


@given(st.sampled_from(list(GOOD)), st.sets(st.integers(0, 12)))
def test_leaving_sentences_out_never_adds_to_what_is_said(name: str, dropped: set[int]) -> None:
    sentences = [one for part in map(Part, GOOD[name]) for one in part.sentences]
    left_out = {sentences[place] for place in dropped if place < len(sentences)}
    damaged = measured(name, without(GOOD[name], left_out.__contains__))
    whole = measured(name, GOOD[name])
    assert damaged.key <= whole.key
    assert damaged.final <= whole.final
    assert damaged.score <= whole.score
