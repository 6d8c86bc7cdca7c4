"""Turn a third person who thinks back into the first: `The assistant considers` says `I consider`.

Only at the beginning of a sentence, and only by the tables below. A model or an AI may be what the
reasoning is about (`The model predicts rain`), so for these only verbs of thinking count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from abridge.summarizers.constructs import beginnings, construct

_THINKING = (
    "consider think wonder decide conclude realize realise reason reflect plan suspect believe "
    "recall remember intend ponder doubt"
)

_WORKING = (
    "check note notice examine explore evaluate analyze analyse calculate compute compare "
    "determine explain describe state mention show work look want need start begin confirm weigh "
    "review recognize find figure ask assume outline aim choose highlight rule turn move settle "
    "propose suggest discuss focus address assess guess verify try identify clarify acknowledge"
)

_GERUNDS = "considering thinking wondering deciding reasoning reflecting planning pondering"

_MODALS = "should will must can could might may would"


def _third_person(verb: str) -> str:
    if verb.endswith("y"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith("s") else f"{verb}s"


def _conjugated(verbs: str) -> dict[str, str]:
    return {_third_person(verb): verb for verb in verbs.split()}


_THINKS = {**_conjugated(_THINKING), **{f"is {verb}": f"am {verb}" for verb in _GERUNDS.split()}}

_WORKS = {**_THINKS, **_conjugated(_WORKING)}

_ACTS = {
    **_WORKS,
    "is": "am",
    "was": "was",
    "has": "have",
    **{verb: verb for verb in _MODALS.split()},
}

_DENKT = {
    "überlegt": "überlege",
    "prüft": "prüfe",
    "überprüft": "überprüfe",
    "erwägt": "erwäge",
    "denkt": "denke",
    "glaubt": "glaube",
    "vermutet": "vermute",
    "bezweifelt": "bezweifle",
    "entscheidet": "entscheide",
    "plant": "plane",
}

_SUBJECTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "the assistant": ("I", _ACTS),
    "the ai assistant": ("I", _ACTS),
    "the reasoning": ("I", _WORKS),
    "the reasoning process": ("I", _WORKS),
    "the thought process": ("I", _WORKS),
    "the model": ("I", _THINKS),
    "the language model": ("I", _THINKS),
    "the ai": ("I", _THINKS),
    "der assistent": ("Ich", _DENKT),
    "das modell": ("Ich", _DENKT),
    "die ki": ("Ich", _DENKT),
}
"""The pronoun and the verbs, in the third person and the first, for each subject."""

_WIDE_SUBJECTS = ("模型", "助手", "该助手", "AI助手")

_WIDE_VERBS = (
    "认为",
    "考虑",
    "正在考虑",
    "正在思考",
    "思考",
    "检查",
    "决定",
    "意识到",
    "注意到",
    "怀疑",
)

_OWN = {" its": " my", " itself": " myself", " sich": " mir"}

_START = r"(?:(?<=\n)|(?<=[.!?…][ ])|(?<=[.!?…][\"”’)][ ]))"

_WIDE_START = r"(?<=[\n。！？])"

_ADVERB = r"(?:also|then|now|next|first|finally) "


def _to_first_person(match: re.Match[str]) -> str:
    pronoun, verbs = _SUBJECTS[match["subject"].lower()]
    head, _, rest = match["verb"].lower().partition(" ")
    verb = verbs.get(match["verb"].lower())
    if verb is None and head in verbs:
        verb = f"{verbs[head]} {rest}".strip()
    if verb is None:
        return match[0]
    own = _OWN[match["own"].lower()] if match["own"] else ""
    return f"{pronoun} {match['adverb'] or ''}{verb}{own}"


FIRST_PERSON = (
    construct(
        r"[td](?<![^\n ].)(?<![^.!?…\"”’)] .)",
        rf"{_START}(?P<subject>{'|'.join(_SUBJECTS)}) (?P<adverb>{_ADVERB})?"
        rf"(?P<verb>(?:is )?[a-zäöü]{{1,15}})(?P<own>{'|'.join(_OWN)})?(?!\w)",
        rf"{_START}(?:{beginnings(_SUBJECTS)}"
        rf"|(?:{'|'.join(_SUBJECTS)})(?: [a-zäöü]{{0,15}}){{1,4}})",
        _to_first_person,
    ),
    construct(
        r"[模助该A](?<![^\n。！？].)",
        rf"{_WIDE_START}(?:{'|'.join(_WIDE_SUBJECTS)})(?={'|'.join(_WIDE_VERBS)})",
        rf"{_WIDE_START}(?:{beginnings(_WIDE_SUBJECTS)}"
        rf"|(?:{'|'.join(_WIDE_SUBJECTS)})(?:{beginnings(_WIDE_VERBS)}))",
        "我",
    ),
)
"""Beginnings of sentences to put into the first person."""
