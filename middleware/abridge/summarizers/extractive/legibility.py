"""Tell whether a sentence can be read: whole, neither code nor half a formula."""

from __future__ import annotations

import re

_SUSPECT = re.compile(r"[\\`{}|;&=<>+*/\[\](\"]")
"""What every illegible sentence holds, except those that start loosely, or a curly quotation mark:
most hold nothing of it."""

_DEBRIS = re.compile(  # fast to find: each alternative starts with a character
    r"\\[A-Za-z(\[\])]|```|\$\$|{|}|=(?:(?<=[=!:+]=)| ?[?？]$)|>(?:(?<=[=-]>)| ?[?？]$)|< ?[?？]$"
    r"|&&|\|(?:\||\s*$)|;\s*$|\)\.\w+\(|\((?<=\w\()\);?\s*$"
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


def is_legible(text: str) -> bool:
    """Return false for code, links, half a formula, and half a sentence."""
    if _LOOSE_START.match(text) or (
        not text.endswith(_SENTENCE_STOPS) and _LOOSE_END.search(text, max(0, len(text) - 9))
    ):
        return False
    if not ("“" in text or "”" in text or _SUSPECT.search(text)):
        return True
    if _LINK_OR_TAG.search(text):
        return False
    if "`" in text:
        text = _CODE_SPAN.sub("`_`", text)
    marks = text.count('"') % 2, text.count("`") % 2
    opened = *marks, text.count("("), text.count("["), text.count("“")
    closed = 0, 0, text.count(")"), text.count("]"), text.count("”")
    return opened == closed and not _DEBRIS.search(text)
