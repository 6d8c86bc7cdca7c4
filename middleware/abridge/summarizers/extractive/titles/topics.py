"""Title a stretch that names little itself, by what an earlier title names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from abridge.summarizers.extractive.titles.words import GERUNDS
from abridge.summarizers.extractive.words import words_of

_DEEDS = ("Checking", "Weighing", "Confirming", "Going over", "Thinking through")
_ASKED = ("how", "why", "what", "whether", "which", "who", "when", "where")

_ASKED_AGAIN = {
    "Klären": "Prüfen", "Déterminer": "Préciser", "Averiguar": "Concretar",
    "Descobrir": "Esclarecer", "Capire": "Chiarire",
}  # fmt: skip
"""Verbs of questions in other languages, and what is done with a question next."""

_PARTICLE = r"(?:out|into|through|at|for|on|up|with|about)\b"
_TOPIC = re.compile(
    rf"(?P<verb>[A-Z][a-z-]+ing)(?P<particle>(?: {_PARTICLE})*)"
    rf" (?!{_PARTICLE}|that\b|it\b|other |another |(?:the|an?) \w+$)"
    r"(?P<topic>[\w'’-]+(?: [\w'’.-]+)+)"
)

_STUDIES = words_of(
    "Analyzing Answering Checking Comparing Computing Concluding Considering Determining Examining"
    " Explaining Exploring Figuring Finding Identifying Inspecting Looking Reviewing Settling"
    " Solving Tracing Understanding Verifying Weighing Working"
)
"""Verbs of which a topic needs no more than the object."""


def take_up(earlier: Sequence[str], goes_on: str) -> Iterator[str]:
    """Yield titles of what the first earlier title that names a topic is about; `goes_on` says in a
    language other than English that a stretch goes on with it."""
    if goes_on and earlier and ":" not in earlier[0]:
        for asks, again in _ASKED_AGAIN.items():
            if earlier[0].startswith(asks):
                yield earlier[0].replace(asks, again, 1)
        yield goes_on.format(earlier[0])
    elif topic := next(filter(None, map(_topic_of, earlier)), ""):
        yield "Working " + ("out " if topic.startswith(_ASKED) else "through ") + topic
        yield from (f"{deed} {topic}" for deed in _DEEDS)


def _topic_of(title: str) -> str:
    found = _TOPIC.fullmatch(title)
    if found is None:
        return ""
    base = GERUNDS.get(found["verb"].lower())
    if found["verb"] in _STUDIES or base is None:
        return found["topic"]
    return f"how to {base}{found['particle']} {found['topic']}"
