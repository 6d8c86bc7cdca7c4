"""Test what is stripped from the start of a sentence, and what leans on the one before."""

from __future__ import annotations

import pytest

from abridge.summarizers.extractive.openings import leans, strip_connectives, strip_fillers


def stripped(text: str) -> str:
    return strip_connectives(strip_fillers(text))


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
        "On the road, it melts ice.",
        "If it rains, the path is closed.",
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
        "This function returns early.",
        "The user asks for a poem.",
        "It is important to lock first.",
        "Das Ergebnis ist fünf.",
        "If the disk is full, writes fail.",
        "这个函数返回三。",
        "他の方法はない。",
    ],
)
def test_a_sentence_that_names_its_subject_does_not_lean(text: str) -> None:
    assert not leans(text)
