"""Turn a question around: "why does salt melt ice?" becomes "why salt melts ice?".

What is asked can then stand in a title, after "Working out". A question whose subject is not seen
stays as it is.
"""

from __future__ import annotations

import re

from abridge.summarizers.extractive.titles.words import BASES, gerund_of, third_person_of
from abridge.summarizers.extractive.words import words_of

_QUESTION = re.compile(
    r"(?:\b(?P<asked>[Ww]h(?:y|en|ere|at|ich \w+)|[Hh]ow(?: \w+){0,3}?) "
    r"|(?:^|(?<=[:,] ))(?!\w+ (?:I|i|we)\b))"
    r"(?P<verb>[Dd](?:o|oes|id)|[Cc](?:an|ould)|[Ww](?:ill|ould)|[Ss]hould|[Mm]ust)"
    r" (?P<rest>[^?.,;:!\n]{3,90})(?=[?,])"
)

PAST = dict(
    pair.split("-")
    for pair in words_of(
        "become-became begin-began break-broke choose-chose come-came cost-cost find-found"
        " fall-fell get-got give-gave go-went grow-grew have-had hold-held keep-kept know-knew"
        " leave-left lose-lost make-made meet-met pay-paid rise-rose run-ran see-saw send-sent"
        " take-took win-won write-wrote"
    )
)

_PERSONS = words_of("i we you they")
_NO_VERBS_AFTER = words_of("the a an this that these those my your our their his her its of in")
MAX_SHORT = 4  # words of a question whose last is its verb if none is known


def turn_questions(text: str) -> str:
    """Return the text with its questions turned around."""
    return _QUESTION.sub(_turn, text)


def _turn(found: re.Match[str]) -> str:
    asked, auxiliary = found["asked"] or "whether", found["verb"].lower()
    words = found["rest"].split()
    is_person = words[0].lower() in _PERSONS
    if is_person and auxiliary != "did" and asked.lower() != "why":
        return " ".join([asked, "to", *words[1:]])
    at = 1 if is_person else words.index("be") if "be" in words[:4] else _find_verb(words)
    if not 0 < at < len(words) or words[0] in BASES:
        return found[0]
    return " ".join([asked, *words[:at], _inflect(auxiliary, words[at]), *words[at + 1 :]])


def _find_verb(words: list[str]) -> int:
    """Return where the verb of a question stands; 0 if that is not seen."""
    for at in range(1, len(words)):
        if words[at] in BASES and words[at - 1].lower() not in _NO_VERBS_AFTER:
            return at
    return len(words) - 1 if len(words) <= MAX_SHORT else 0


def _inflect(auxiliary: str, verb: str) -> str:
    third = "has" if verb == "have" else third_person_of(verb)
    if auxiliary == "does":
        return third
    if auxiliary == "did":
        regular = third[:-1] if third.endswith("es") else gerund_of(verb).removesuffix("ing") + "e"
        return PAST.get(verb, f"{regular}d")
    return verb if auxiliary == "do" else f"{auxiliary} {verb}"
