"""Cut a title from a heading or a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LEAD_IN = re.compile(
    r"(?:(?:first|firstly|next|then|finally|now|so|also|therefore|thus|overall|but|and)\b,?\s*"
    r"|(?:i|we)(?:['’]ll(?: have to)?|['’]m going to|['’]d like to|['’]m| will| can| could| must"
    r"| am| (?:also )?(?:need|have|want|plan|am going|are asked) to| (?:also |probably )?should)"
    r"(?!['’]| not\b)\b\s*"
    r"|(?:also|probably|just|simply|first|now)\s+|let me\s+|let['’]s\s+|we are asked:?\s*"
    r"|the user (?:(?:wants|asked|needs|requested|is asking|would like)(?: me)? (?:to|about|for)"
    r"|asks (?:about|for|me to|to)|is asking|asks|asked|wants|requested)\s+"
    r"|i (?:think|know|see|found|remember|notice)(?: that)?\s+"
    r"|make sure (?:to|that)\s+|(?:try|start) (?:to|by)\s+"
    r"|it['’]?s? (?:is )?(?:important|crucial|essential|best) (?:to|that)\s+"
    r"|(?:ich werde|wir müssen|der nutzer möchte|je vais|il faut|voy a|debemos|нужно)\s+"
    r"|(?:daher|deshalb|somit|donc|ainsi)\s+"
    r"|(?:首先|其次|另外|最后|所以|因此|总之|综上|したがって|つまり|よって|まず|次に)[，,、]?"
    r"|用户(?:想要?|希望|要求|需要)?我?|我们?(?:需要|应该|可以|要|会|先)+|让我)+",
    re.IGNORECASE,
)
"""Lead-ins that are removed from the start of a title."""

CLAUSE_BREAK = re.compile(
    r"\s+(?:to|for|with|in|on|by|as|that|of|from|at|before|after|while|using|when|if|and|or|so|but"
    r"|because|which|since|where|is|are|was|und|oder|et|ou|pour|y|o|para|и|или|для)\s+",
    re.IGNORECASE,
)
"""Words before which a clause may be cut."""

MAX_TITLE_WORDS = 8

MAX_TITLE_CHARS = 60

MAX_WIDE_TITLE_CHARS = 24

_TITLE_END = re.compile(
    r"[;!?…(（，。；：！？、—–]|[.,:](?=\s|$)|\s-\s|\s(?:because|so that|and then|which)\s"
)

_TITLE_MARKUP = re.compile(r"(?<!\w)_|_(?!\w)|[*`\[\]#<>|~\\\"“”«»「」『』]")

_WEAK_START = re.compile(
    r"(?:that|there|it|this|these|the user|be|for|some|they|he|she)\b", re.IGNORECASE
)

_TITLE_EDGE_CHARS = " \t'‘’.,:;-–—"

_LETTER = re.compile(r"[^\W\d_]")

_WIDE_LETTER = re.compile(r"[\u2e80-\ua4cf\uac00-\ud7af]")


def choose_title(texts: Iterable[str], taken: Sequence[str]) -> str | None:
    """Return the first short clause in `texts` that is not among the titles `taken`.

    A clause of one or two words, or one that starts with a pronoun or the like, is used only if
    there is none better.
    """
    known = {_comparison_key(candidate) for candidate in taken}
    clauses = [
        clause
        for text in texts
        if (clause := _extract_clause(text)) and _comparison_key(clause) not in known
    ]
    strong = [
        candidate
        for candidate in clauses
        if candidate.count(" ") > 1 or _WIDE_LETTER.search(candidate)
    ]
    strong = [candidate for candidate in strong if not _WEAK_START.match(candidate)]
    return next(iter(strong + clauses), None)


def _extract_clause(text: str) -> str | None:
    """Return the text before the first stop, without its lead-in; None if it is no title."""
    plain = _TITLE_MARKUP.sub("", text[: 4 * MAX_TITLE_CHARS]).strip(_TITLE_EDGE_CHARS)
    lead_in = LEAD_IN.match(plain)
    start = lead_in.end() if lead_in else 0
    end = _TITLE_END.search(plain, start + 1)
    clause = _shorten_clause(plain[start : end.start() if end else None]).strip(_TITLE_EDGE_CHARS)
    letters = len(_LETTER.findall(clause))
    if letters < 4 or letters < len(clause.replace(" ", "")) * 2 // 3:
        return None
    return clause[0].upper() + clause[1:]


def _shorten_clause(clause: str) -> str:
    """Cut a clause to a title's length, before a word that would need another after it."""
    if _WIDE_LETTER.search(clause):
        return clause[:MAX_WIDE_TITLE_CHARS]
    words = clause.split()
    if len(words) <= MAX_TITLE_WORDS and len(clause) <= MAX_TITLE_CHARS:
        return clause
    head = " ".join(words[: MAX_TITLE_WORDS + 1])[: MAX_TITLE_CHARS + 1] + " "
    breaks = [
        match.start()
        for match in CLAUSE_BREAK.finditer(head)
        if match.start() >= MAX_TITLE_CHARS // 4
    ]
    return head[: breaks[-1]] if breaks else head[:MAX_TITLE_CHARS].rpartition(" ")[0]


def _comparison_key(clause: str) -> str:
    return "".join(filter(str.isalnum, clause.casefold()))
