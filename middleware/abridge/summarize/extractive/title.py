"""Copy a title for a part from its own sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from abridge.summarize.extractive.cues import JOINT, OPENING

WORDS = 8
LETTERS = 60
WIDE_LETTERS = 24

_END = re.compile(
    r"[;!?…(（，。；：！？、—–]|[.,:](?=\s|$)|\s-\s|\s(?:because|so that|and then|which)\s"
)
_SIGNS = re.compile(r"(?<!\w)_|_(?!\w)|[*`\[\]#<>|~\\\"“”«»「」『』]")
_WEAK = re.compile(
    r"(?:that|there|it|this|these|the user|be|for|some|they|he|she)\b", re.IGNORECASE
)
_EDGES = " \t'‘’.,:;-–—"
_LETTER = re.compile(r"[^\W\d_]")
_WIDE = re.compile(r"[\u2e80-\ua4cf\uac00-\ud7af]")


def title(texts: Iterable[str], taken: Sequence[str]) -> str | None:
    """Return the first short clause in `texts` that is not among the titles `taken`.

    A clause of one or two words, or one that starts with a pronoun or the like, is used only if
    there is none better.
    """
    known = {_bare(one) for one in taken}
    clauses = [clause for text in texts if (clause := _clause(text)) and _bare(clause) not in known]
    strong = [one for one in clauses if one.count(" ") > 1 or _WIDE.search(one)]
    strong = [one for one in strong if not _WEAK.match(one)]
    return next(iter(strong + clauses), None)


def _clause(text: str) -> str | None:
    """Return the text before the first stop, without its lead-in; None if it is no title."""
    plain = _SIGNS.sub("", text[: 4 * LETTERS]).strip(_EDGES)
    opening = OPENING.match(plain)
    start = opening.end() if opening else 0
    end = _END.search(plain, start + 1)
    clause = _short(plain[start : end.start() if end else None]).strip(_EDGES)
    letters = len(_LETTER.findall(clause))
    if letters < 4 or letters < len(clause.replace(" ", "")) * 2 // 3:
        return None
    return clause[0].upper() + clause[1:]


def _short(clause: str) -> str:
    """Cut a clause to a title's length, before a word that would need another after it."""
    if _WIDE.search(clause):
        return clause[:WIDE_LETTERS]
    words = clause.split()
    if len(words) <= WORDS and len(clause) <= LETTERS:
        return clause
    kept = " ".join(words[: WORDS + 1])[: LETTERS + 1] + " "
    joints = [joint.start() for joint in JOINT.finditer(kept) if joint.start() >= LETTERS // 4]
    return kept[: joints[-1]] if joints else kept[:LETTERS].rpartition(" ")[0]


def _bare(one: str) -> str:
    return "".join(filter(str.isalnum, one.casefold()))
