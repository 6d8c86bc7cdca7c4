"""The newest title of a summary, however its text is cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from abridge.core.events import ContentDelta, Event, SummaryTextDelta
from abridge.core.status import MAX_TITLE_CHARS, SummaryStatus

PART = "**Comparing the two routes**\n\nI compare **both** of them."


def delta(text: str, index: int = 0, item: int = 0) -> SummaryTextDelta:
    return SummaryTextDelta(None, 0, item, index, text)


def titles(*events: Event) -> list[str]:
    status = SummaryStatus()
    return [title for event in events if (title := status.take(event))]


@given(cuts=st.sets(st.integers(1, len(PART) - 1)))
def test_a_title_is_told_once_wherever_the_text_is_cut(cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(PART)]
    pieces = [PART[a:b] for a, b in pairwise(edges)]
    assert titles(*map(delta, pieces)) == ["Comparing the two routes"]


def test_each_part_has_its_own_title() -> None:
    told = titles(delta("**One**"), delta("**Two**", 1), delta("**Three**", 0, 1))
    assert told == ["One", "Two", "Three"]


def test_bold_words_within_a_text_and_the_answer_are_no_titles() -> None:
    answer = ContentDelta(None, 0, "**Paris**")
    assert titles(answer, delta("I weigh "), delta("**both** of them.")) == []


def test_a_beginning_without_an_end_is_not_kept() -> None:
    assert titles(delta("**" + "x" * MAX_TITLE_CHARS), delta("**")) == []
