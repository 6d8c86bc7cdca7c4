"""Tell how well a sentence reads: in plain words, whole, neither code nor half a formula."""

from __future__ import annotations

import re

from abridge.summarizers.extractive.sentences import Sentence
from abridge.summarizers.extractive.words import letter_share, word_count

_SUSPECT = re.compile(r"[\\`{}|;&=<>+*/\[\](\"“”]")
"""What every illegible sentence holds, except those that start loosely: most hold nothing of it."""

_DEBRIS = re.compile(
    r"\\[A-Za-z(\[\])]|`{3}|\$\$|[{}]|[;|]\s*$|[=!]==?|:=|[=-]>|&&|\|\||\)\.\w+\(|\+=|\w\(\);?\s*$"
    r"|^\W*[=<>+*/]|[=<>] ?[?？]$"
)
"""Code, LaTeX, and other things that are no sentence."""

_LINK_OR_TAG = re.compile(r"://|\]\(|<[/!?A-Za-z]|www\.(?<!\wwww\.)")
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_LOOSE_START = re.compile(r"[a-zäöüß]{2,}|[)\]}.,;–—-]")

_LOOSE_END = re.compile(
    r"[:：,，]$|\b(?:gives?|yields?|obtain|becomes?|equals|is|are|get|have|as|the|an?|of|to|and|or"
    r"|that|where|with|for|by|namely|ist|sind|und|oder|der|die|das|est|et|es|y)$"
)
"""The end of a sentence that a formula or a list completes."""

_NUMBER = re.compile(r"\d[\d.,/:]*")

_ARITHMETIC = re.compile(  # fast to find: starts with a character
    r"[=*/×÷](?:(?<=[\w)\]].)|(?<=[\w)\]]\s.))(?!(?<=/)\d)(?=\s?[\w(√-])"
)
_SENTENCE_STOPS = (".", "!", "。")

PLAIN_SHARE = 0.75  # of letters, from which a text is plain words
WIDE_PLAIN_SHARE = 0.6  # the same in Chinese and the like


def is_legible(text: str) -> bool:
    """Return false for code, links, half a formula, and half a sentence."""
    if _LOOSE_START.match(text) or (
        not text.endswith(_SENTENCE_STOPS) and _LOOSE_END.search(text, max(0, len(text) - 9))
    ):
        return False
    if not _SUSPECT.search(text):
        return True
    if _LINK_OR_TAG.search(text):
        return False
    if "`" in text:
        text = _CODE_SPAN.sub("`_`", text)
    return (
        not _DEBRIS.search(text)
        and all(text.count(pair[0]) == text.count(pair[1]) for pair in ("()", "[]", "“”"))
        and all(text.count(mark) % 2 == 0 for mark in '"`')
    )


def score_form(text: str, sentence: Sentence, *, wide: bool) -> float:
    """Score 0.5 for a sentence in plain words, less for a fragment or for much that is no letter,
    a little more for one with a number."""
    count = word_count(text, wide=wide)
    score = -2.0 if count < 4 else -0.5 if count < 7 else 0.0
    score -= 0.5 * (count > 45)
    score -= 1.5 * text.endswith("…")
    is_whole = text.endswith(_SENTENCE_STOPS)
    score -= 1.0 * (sentence.hangs or (sentence.is_item and not is_whole))
    score += 0.5 * is_whole
    if numbers := len(_NUMBER.findall(text)):
        score += 0.4 - 0.8 * min(3, len(_ARITHMETIC.findall(text)))
        score -= 1.5 * (not wide and numbers > 1 and 3 * numbers >= count)
    plain_share = WIDE_PLAIN_SHARE if wide else PLAIN_SHARE
    return score - max(0.0, plain_share - letter_share(text)) * 8
