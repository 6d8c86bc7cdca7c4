"""Test that a third person who thinks becomes the first, and nobody else does."""

from __future__ import annotations

import pytest

from abridge.summarizers.cleaning import Cleaner

REWRITTEN = [
    ("The model considers its options.", "I consider my options."),
    ("The model is considering both.", "I am considering both."),
    ("It holds. The assistant then checks it.", "It holds. I then check it."),
    ("The assistant is checking it.", "I am checking it."),
    ("The AI assistant has found it.", "I have found it."),
    ("The assistant should verify it.", "I should verify it."),
    ("The assistant tries both.", "I try both."),
    ("The reasoning discusses both.", "I discuss both."),
    ("“So it is.” The reasoning concludes that.", "“So it is.” I conclude that."),
    ("One.\nThe AI decides.", "One.\nI decide."),
    ("Das Modell überlegt sich etwas.", "Ich überlege mir etwas."),
    ("Der Assistent prüft es.", "Ich prüfe es."),
    ("模型认为可以。助手正在考虑。", "我认为可以。我正在考虑。"),
]

UNCHANGED = [
    "The model predicts rain.",
    "The model assumes normality.",
    "The model is linear.",
    "The reasoning is sound.",
    "The user considers it.",
    "The assistants consider it.",
    "The model considered it.",
    "I see that the model considers it.",
    "As The model considers it.",
    "Das Modell rechnet.",
    "模型预测下雨。",
    "我看到模型认为可以。",
]


@pytest.mark.parametrize(("text", "expected"), REWRITTEN)
def test_sentences_begin_with_the_first_person(text: str, expected: str) -> None:
    assert Cleaner("detailed").feed(text, last=True) == expected
    cleaner = Cleaner("detailed")
    assert "".join(map(cleaner.feed, text)) + cleaner.feed("", last=True) == expected


@pytest.mark.parametrize("text", UNCHANGED)
def test_what_the_reasoning_is_about_stays(text: str) -> None:
    assert Cleaner("detailed").feed(text, last=True) == text
