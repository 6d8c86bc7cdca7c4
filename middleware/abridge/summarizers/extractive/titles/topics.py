"""Title a stretch that names little itself, by what an earlier title names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from abridge.summarizers.extractive.titles.drafts import MAX_TITLE_CHARS
from abridge.summarizers.extractive.titles.words import GERUNDS
from abridge.summarizers.extractive.words import words_of

_DEEDS = ("Working through", "Checking", "Weighing", "Confirming", "Going over", "Thinking through")
_ASKED = ("how", "why", "what", "whether", "which", "who", "when", "where")

_ASKED_AGAIN = {
    "Klären": "Prüfen", "Déterminer": "Préciser", "Averiguar": "Concretar",
    "Descobrir": "Esclarecer", "Capire": "Chiarire", "弄清": "回答",
}  # fmt: skip
"""Verbs of questions in other languages, and what is done with a question next."""

_PARTICLE = r"(?:out|into|through|at|for|on|up|with|about)\b"
_TOPIC = re.compile(
    rf"(?P<verb>[A-Z][a-z-]+ing)(?P<particle>(?: {_PARTICLE})*)"
    rf" (?!{_PARTICLE}|that\b|it\b|other |another |(?:the|an?) \w+$)"
    r"(?P<topic>[\w'’-]+(?: [\w'’.-]+)+?)"
    r"(?: as the .*)?"
)
MAX_TOPIC_CHARS = MAX_TITLE_CHARS - max(map(len, _DEEDS)) - 1
_TAIL = re.compile(r"(.{12,}) (?:from|in|on|for|with|at|by|after|before|since) .*")

_STUDIES = words_of(
    "Analyzing Answering Checking Comparing Computing Concluding Considering Determining Examining"
    " Explaining Exploring Figuring Finding Identifying Inspecting Looking Reviewing Settling"
    " Solving Tracing Understanding Verifying Weighing Working"
)
"""Verbs of which a topic needs no more than the object."""


def take_up(earlier: Sequence[str], goes_on: str) -> Iterator[str]:
    """Yield titles of what the first earlier title that names a topic is about; `goes_on` says in a
    language other than English that a stretch goes on with it."""
    topic = next(filter(None, map(_topic_of, earlier)), "")
    if not topic:
        yield from _go_on(earlier[0], goes_on) if earlier and goes_on else ()
        return
    is_asked = topic.startswith(_ASKED)
    others = {"Working through": "Working out"} if is_asked else {}
    is_whole = is_asked and not topic.startswith("how to")  # ends with what cannot be left out
    while len(topic) > MAX_TOPIC_CHARS and not is_whole and (found := _TAIL.fullmatch(topic)):
        topic = found[1]
    if topic.startswith("why"):
        others["Weighing"] = "Explaining"
    yield from (f"{others.get(deed, deed)} {topic}" for deed in _DEEDS)


def _go_on(title: str, goes_on: str) -> Iterator[str]:
    if ":" in title:  # it says no more than a noun
        return
    for asks, again in _ASKED_AGAIN.items():
        if title.startswith(asks):
            yield again + title.removeprefix(asks)
    yield goes_on.format(title)


def _topic_of(title: str) -> str:
    found = _TOPIC.fullmatch(title)
    if found is None:
        return ""
    base = GERUNDS.get(found["verb"].lower())
    if found["verb"] in _STUDIES or base is None:
        return found["topic"]
    return f"how to {base}{found['particle']} {found['topic']}"
