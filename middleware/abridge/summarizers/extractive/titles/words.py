"""English verbs of which titles are made, and their gerunds."""

from __future__ import annotations

import re

from abridge.summarizers.extractive.titles.drafts import words_of

VERBS = words_of(
    "add address adjust analyse analyze apply approach arrange assess avoid build calculate"
    " change check choose clarify classify clean compare compute configure confirm connect"
    " consider construct convert correct count cover create debug decide define delete deploy"
    " derive describe design determine disable discuss divide double-check draft draw edit"
    " eliminate enable ensure estimate evaluate examine expand explain explore extract figure fill"
    " find fix focus follow format formulate gather generate group handle identify implement"
    " improve include increase inspect install investigate keep limit list load locate look make"
    " map measure merge migrate minimize move multiply note optimize order organize outline parse"
    " pick plan prepare present process propose prove provide read recalculate reduce refactor"
    " remove rename replace report resolve restore review rewrite run schedule search select set"
    " show simplify solve sort specify split start subtract suggest sum summarize switch test"
    " trace track translate treat try understand update use validate verify visit weigh work write"
)
"""Verbs with which a sentence in the imperative begins, or another clause after "and"."""

_NAMELESS = words_of(
    "be have do get go give say see know come take try want need like believe feel remember assume"
    " suppose ask think guess recall admit mean become seem wait stop begin happen both all us not"
)
"""What follows "I need to" and makes no title."""

_DOUBLED = re.compile(
    r"(?:^|re|un)[^aeiou]+[aeiou][bdglmnprt]$|(?:bug|gin|(?<!li)mit|(?<![fo])fer|cur|(?:^|for)get)$"
)
"""Verbs whose last consonant is doubled."""


def gerund_of(verb: str) -> str:
    """Return the gerund of a verb's base form: `tie` gives `tying`."""
    if _DOUBLED.search(verb):
        return f"{verb}{verb[-1]}ing"
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


def title_verb(word: str) -> str:
    """Return what a verb or a gerund makes at the start of a title; nothing for other words."""
    if word in {"use", "using"}:
        return "Considering"
    if word in _NAMELESS or word.endswith("ly") or len(word) < 3:
        return ""
    return (word if len(word) > 5 and word.endswith("ing") else gerund_of(word)).capitalize()


IMPERATIVE = "|".join(sorted(VERBS | {gerund_of(verb) for verb in VERBS}, key=len, reverse=True))
