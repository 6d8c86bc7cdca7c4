"""Tell how well a sentence reads: in plain words, whole, neither code nor half a formula."""

from __future__ import annotations

import re

from abridge.summarizers.extractive.words import letter_share

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


def sign_share(text: str, *, wide: bool) -> float:
    """Return eight times the share of what is no letter, as far as it is more than in plain
    words."""
    plain_share = WIDE_PLAIN_SHARE if wide else PLAIN_SHARE
    return max(0.0, plain_share - letter_share(text)) * 8
