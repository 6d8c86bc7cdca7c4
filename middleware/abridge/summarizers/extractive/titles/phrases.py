"""Phrases of English: the class of each word, and how a phrase is shortened to fit a title.

Each word gets a class by a small dictionary and its neighbours, a letter each (see `CLASS_OF`), so
that patterns can be looked for in the string of letters. `N` is what is not known to be anything
else: nouns and adjectives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from abridge.summarizers.extractive.titles.drafts import MAX_TITLE_CHARS, hides_secret, words_of
from abridge.summarizers.extractive.titles.words import (
    CLASS_OF,
    GERUNDS,
    INTRANSITIVE,
    LOOSE_ENDS,
    OPEN_NOUNS,
    PAIRING_VERBS,
    UNITS,
    VAGUE_WORDS,
)

MAX_WORDS = 7

MAX_READ_CHARS = 160
"""Characters of a sentence that are read."""

MAX_READ_WORDS = 20
"""Words that are read of what follows a verb, or of a sentence's beginning."""

_FORMULA = re.compile(
    r"\\\(.*?\\\)|\\\[.*?\\\]|\$(?!\d)[^$]{1,80}\$|\\[a-zA-Z]+|[^\s=<>≤≥≈^√±∑∫]*[=<>≤≥≈^√±∑∫]\S*"
)

_FORMULA_SIGN = re.compile(r"[\\$=<>≤≥≈^√±∑∫]")

_TOKEN = re.compile(
    r"[^\W\d]\w*(?:[-'’./]\w+)*(?:\(\))?|[$€£]?\d\w*(?:[.,:/-]\w+)*(?:%|°\w?)?"
    r"|`[^`\s]{1,48}`|\"[^\"]{1,32}\"|“[^”]{1,32}”|['’]s\b|\S"
)

_ADJECTIVE = re.compile(r"(?:ful|ous|ive|ible|less|ical|able)$")
"""Endings of words that often need a noun after them."""

_SETTLED = frozenset("POTACWRXLN")
"""Classes of known words that do not depend on what stands beside them."""

_OWNER = words_of("this these those that my our your their its his her such")
"""Determiners that point to what a title does not show."""


class Phrase(NamedTuple):
    """Words, and the class of each."""

    words: list[str]
    classes: str

    def cut(self, start: int, end: int) -> Phrase:
        return Phrase(self.words[start:end], self.classes[start:end])


def parse(text: str) -> Phrase:
    """Split a text into its first words, and find the class of each."""
    text = text[:MAX_READ_CHARS].replace("’", "'")
    if _FORMULA_SIGN.search(text):
        text = _FORMULA.sub(" \x00 ", text)
    words = _TOKEN.findall(text)[:MAX_READ_WORDS]
    lowered = [*(word.lower() for word in words), ""]
    classes = ""
    for position, lower in enumerate(lowered[:-1]):
        known = CLASS_OF.get(lower, "")
        if known == "D" and position and words[position] == "A":  # a name, as in "car A"
            known = "N"
        elif known not in _SETTLED:
            before, following = classes[-1:], lowered[position + 1]
            known = _classify(words[position], lower, known, before, following)
        classes += known
    return Phrase(words, classes)


def _classify(word: str, lower: str, known: str, before: str, following: str) -> str:
    """Classify a word whose neighbours, or whose form, matter."""
    if not word.isalpha() and (letter := _classify_sign(word)):
        return letter
    if known == "D" and (lower in _OWNER or lower == "one") and _ends_noun_phrase(following):
        return "R"
    if known == "E" and before == "D" and following in ("", ".", ","):
        return "N"
    if known in ("V", "B"):
        return _classify_verb(known, before, following)
    return known or _classify_by_ending(lower, before, following)


def _ends_noun_phrase(word: str) -> bool:
    return not word[:1].isalnum() or CLASS_OF.get(word, "N") in "XPCORWT"


def _classify_sign(word: str) -> str:
    """Classify what is no plain word; empty if it may count as one."""
    first = word[0]
    if (len(word) > 2 and hides_secret(word)) or first in "\x00+-*/×÷\\{}[]|@#&~%" or word == "$":
        return "Z"
    if first in '`"“':
        return "N"
    if first.isdigit() or first in "$€£":
        return "#"
    return "" if first.isalpha() or first == "_" else "."


def _classify_by_ending(lower: str, before: str, following: str) -> str:
    if lower.endswith(("'s", "s'")):
        return "S"
    if len(lower) > 4 and lower.endswith("ing"):
        within_name = before in ("D", "S") and CLASS_OF.get(following, "N") not in "DNPT"
        return "N" if within_name else "G"
    if len(lower) > 4 and lower.endswith("ed"):
        return "E"
    if len(lower) > 4 and lower.endswith("ly"):
        return "L"
    is_verb = before == "N" and lower.endswith("s") and CLASS_OF.get(following) == "D"
    return "V" if is_verb and not lower.endswith("ss") else "N"


def _classify_verb(known: str, before: str, following: str) -> str:
    """Classify a word that is a verb (V), or a verb or a noun (B), by its neighbours."""
    if before and before in "DSOP#":
        return "N"
    if known == "V" or not before or before in "TXRL":
        return "V"
    takes_object = CLASS_OF.get(following, "N") in "DRWL" or following[:1].isdigit()
    return "V" if before in ("N", "A", "W") and takes_object else "N"


def names_something(phrase: Phrase) -> bool:
    """Return true if a noun phrase has a word that names a topic, and is no bare quantity."""
    nouns = [
        word.lower()
        for word, letter in zip(phrase.words, phrase.classes, strict=True)
        if letter in "NS" and (len(word) > 2 or word.isupper()) and word[0] not in '"“'
    ]
    if not phrase.words:
        return False
    last = phrase.words[-1].lower()
    if last in LOOSE_ENDS or (CLASS_OF.get(last) == "V" and len(phrase.words) == 2):
        return False
    if phrase.classes[0] == "#" and (len(nouns) < 1 or nouns[0] in UNITS):
        return False
    return any(word not in VAGUE_WORDS and word not in UNITS for word in nouns)


_ACTORS = words_of("user person author customer client reader model")
"""Who does something, so that what follows is a verb rather than part of a name."""


def cut_verb(phrase: Phrase) -> Phrase:
    """Leave out what follows the subject in "scan_files() returns rows", if taken for its name."""
    for end in range(1, len(phrase.words)):
        word = phrase.words[end].lower()
        is_last = end == len(phrase.words) - 1
        may_be_verb = (
            word.endswith("s") and CLASS_OF.get(word) == "B" and phrase.classes[end] == "N"
        )
        before = phrase.words[end - 1].lower()
        if may_be_verb and not (is_last and before.isalpha() and before not in _ACTORS):
            return phrase.cut(0, end)
    return phrase


def shorten(phrase: Phrase, head: Sequence[str]) -> str:
    """Return the beginning of a phrase that may follow `head` in a title; empty if none may."""
    clause = phrase.classes.startswith("W")
    kept = _drop_fillers(phrase.cut(0, _phrase_end(phrase, clause=clause)))
    pairing = head[0] in PAIRING_VERBS and "A" in kept.classes
    for end in range(min(len(kept.words), MAX_WORDS - len(head)), 0, -1):
        if end < len(kept.words) and not _may_cut(kept, end, pairing=pairing):
            continue
        part = kept.cut(0, end)
        text = render(part) if _is_complete(part, clause=clause) else ""
        if text and len(" ".join(head)) + 1 + len(text) <= MAX_TITLE_CHARS:
            return text
    return ""


def _phrase_end(phrase: Phrase, *, clause: bool) -> int:
    """Return how many words belong to a phrase: up to what begins another, or cannot be shown."""
    for position, letter in enumerate(phrase.classes):
        before = phrase.classes[position - 1 : position]
        if letter == "V" and before == "A" and not clause:  # "and" joins two things to be done
            return position - 1
        if letter in ".CR" or (letter == "W" and position):
            return position
        if letter == "Z":
            return _before_formula(phrase, position)
        if not clause and letter in "XV" and before != "T":
            return position
    return len(phrase.words)


def _before_formula(phrase: Phrase, position: int) -> int:
    """Return where a formula begins whose first sign is at `position`."""
    while position and (
        phrase.classes[position - 1] == "#" or len(phrase.words[position - 1]) == 1
    ):
        position -= 1
    return position


def _drop_fillers(phrase: Phrase) -> Phrase:
    """Leave out adverbs like `also`, and `any`."""
    if "L" not in phrase.classes and "D" not in phrase.classes:
        return phrase
    kept = [
        (word, letter)
        for word, letter in zip(phrase.words, phrase.classes, strict=True)
        if (letter != "L" or CLASS_OF.get(word.lower()) != "L")
        and not (letter == "D" and word.lower() in ("any", "some"))
    ]
    return Phrase([word for word, _ in kept], "".join(letter for _, letter in kept))


def _may_cut(phrase: Phrase, end: int, *, pairing: bool) -> bool:
    """Return true if a phrase may end before the word at `end`, which belongs to it."""
    following = phrase.classes[end]
    word, before = phrase.words[end].lower(), phrase.words[end - 1].lower()
    if (phrase.classes[end - 1] == "V" and before not in INTRANSITIVE) or (
        pairing and set("OP") & set(phrase.classes[:end])
    ):
        return False
    if following == "O":
        return before not in OPEN_NOUNS and before not in VAGUE_WORDS
    if following == "A":
        return not {"between", "both", "either"} & set(
            phrase.words[:end]
        ) and not _ADJECTIVE.search(before)
    return following in "PTGEX" and word not in ("per", "between", "than")


def _is_complete(phrase: Phrase, *, clause: bool) -> bool:
    """Return true if nothing is missing at the end of a phrase."""
    classes = phrase.classes
    if not set("N#") & set(classes) or "not" in phrase.words:
        return False
    if clause:
        return _is_complete_clause(phrase)
    has_object = "V" not in classes or bool(re.search(r"V[^V]*N", classes))
    if phrase.words[-1].lower() in LOOSE_ENDS and len(classes) > 2:
        return False
    last = phrase.words[-1].lower()
    if last in VAGUE_WORDS and re.search(r"PD?N$", classes):  # as in "the town in the question"
        return False
    if classes.endswith("P#"):
        return False
    ended = classes[-1] in "N#" or (last not in GERUNDS and bool(re.search(r"[NDSE]G$", classes)))
    return has_object and ended and _names_more_than_vaguely(phrase)


def _names_more_than_vaguely(phrase: Phrase) -> bool:
    return any(
        letter == "#" or word.lower() not in VAGUE_WORDS
        for word, letter in zip(phrase.words, phrase.classes, strict=True)
        if letter in "NS#EG"
    )


def _is_complete_clause(phrase: Phrase) -> bool:
    """Return true if a question such as "how the trip is paid" has its verb, and its end."""
    classes = phrase.classes
    if re.search(r"[NS#].*[XVE]|T[VN].*N|^W[XV].*N", classes):
        if classes[-2:] in ("XV", "TV"):
            return phrase.words[-1].lower() in INTRANSITIVE
        return classes[-1] in "NVGE#" and classes[-2:] not in ("OE", "PE")
    return CLASS_OF.get(phrase.words[-1].lower()) in ("B", "V") and len(classes) > 2


def render(phrase: Phrase) -> str:
    """Join the words, without marks of code, and with `the` for what points elsewhere."""
    words = []
    for position, (word, letter) in enumerate(zip(phrase.words, phrase.classes, strict=True)):
        if letter == "D" and word.lower() in _OWNER:
            words.append("the")
        elif letter == "D" and not position:
            words.append(word.lower())
        else:
            words.append(word.strip("`"))
    return " ".join(words).replace('."', '"')
