"""Cut what a sentence says to a phrase or a clause that is whole and fits into a title.

A phrase ends where the clause does, and may be cut before a preposition or a conjunction. It never
ends with a word that wants another, and never holds a pronoun, of which a title does not show what
it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.titles.questions import turn_questions

MAX_READ_CHARS = 160  # characters of a sentence that are read

_CLAUSE_END = lazy_compile(
    r"[;!?¿¡\n\"“”„«»=<>≤≥≈{}\\$*|–—…\[\]^+\x00]|:(?!\d)|\.(?=\s|$)|(?<!\w)[(/]|\((?!\))|--| - |@"
    r"|,(?!\d)| (?=such as )"
)

_FORMULA_CHARS = "=<>≤≥≈{}\\$*^+/|[]"
_PAIR = r",\s(?!but\b|\w+ing\b)(?:[\w'’-]+\s){0,3}?[\w'’-]+,?\s(?:and|or|und|oder|et|ou|y|o|e)\s"
_LIST_END = lazy_compile(_PAIR)
_LIST = lazy_compile(rf",\s[\w'’-]+(?: [\w'’-]+)?,|{_PAIR}")
_QUOTED = lazy_compile(r"[\"“]([\w'’-]+(?: [\w'’-]+){0,3})[.,]?[\"”]")
_PARENTHESIS = lazy_compile(r" \([^()]{0,99}\)|（[^（）]{0,99}）")
_OPTION = lazy_compile(r"\b([A-E])\)")
_ASKED_IF = lazy_compile(
    r"\b(asks?|asked|asking|know|wondering|unsure|check|verify|confirm|see) if\b"
)
_WHAT_TO_DO = lazy_compile(
    r"\b(whether|how|what|which|when|where)((?: (?!they |he |she )\w+){0,4})"
    r" (?:they|he|she|I|we|you) (?:should|can|could|must|may|need to|ha(?:s|ve) to|ought to)"
    r" (?=[a-z]+(?! (?:it|them)\b))"
)
_ROUGHLY = lazy_compile(r" (?:about|around|roughly|nearly|almost|some) (?=\d|once\b|twice\b)")
_SINGLE = lazy_compile(r"[^\W\d_]")


def plain(text: str) -> str:
    """Return the beginning of a text without parentheses, backticks and quotation marks around few
    words; "asks if they can pay" becomes "asks whether to pay"."""
    text = _PARENTHESIS.sub("", text) if "(" in text or "（" in text else text
    if len(text) > MAX_READ_CHARS:
        text = text[:MAX_READ_CHARS].rpartition(" ")[0]
    text = _QUOTED.sub(r"\1", text.replace("`", ""))
    text = _OPTION.sub(r"\1", text) if ")" in text else text
    text = _ROUGHLY.sub(" ", turn_questions(text) if "?" in text else text)
    text = _ASKED_IF.sub(r"\1 whether", text) if " if" in text else text
    return _WHAT_TO_DO.sub(r"\1\2 to ", text)


_NONE: frozenset[str] = frozenset()
_LATE = ("ly", "ed", "ble", "ous", "ive", "ful", "less", "ic", "que", "ing")
"""Ends of words that begin no result."""


def _all_of(*kinds: str) -> cached_property[frozenset[str]]:
    """Return the words of several kinds, which are united once."""
    return cached_property(lambda self: frozenset().union(*(getattr(self, one) for one in kinds)))


@dataclass(frozen=True, eq=False)
class Grammar:
    """Words of a language by what they do to a phrase."""

    links: frozenset[str]  # a phrase may be cut before them, and does not end with them
    weak: frozenset[str]  # a phrase does not end with them
    ends: frozenset[str]  # finite verbs, with which another clause begins
    pronouns: frozenset[str]  # what they stand for is not shown
    vague: frozenset[str]  # name nothing alone
    persons: frozenset[str] = _NONE  # pronouns that a question may hold
    fillers: frozenset[str] = _NONE  # left out
    clauses: frozenset[str] = _NONE  # begin a clause that is kept if it is short
    breaks: frozenset[str] = _NONE  # end a clause
    verbs: frozenset[str] = _NONE  # begin another clause after "and"
    finite: frozenset[str] = _NONE  # verbs that can follow a subject
    plural: frozenset[str] = _NONE  # verbs that can follow one in the plural
    plurals: frozenset[str] = _NONE  # nouns in the plural that do not look it
    adverbs: frozenset[str] = _NONE  # stand between a subject and its verb
    articles: frozenset[str] = _NONE
    pointers: frozenset[str] = _NONE  # point at what is not shown; "the" takes their place
    adjectives: frozenset[str] = _NONE  # no result
    capitals: bool = False  # nouns begin with one
    measures: str = ""  # a pattern of what a title leaves out, such as "after seven months"

    _no_nouns = _all_of("links", "weak", "ends", "finite", "pronouns", "adverbs")
    _not_plain = _all_of("_no_nouns", "plural", "breaks")
    _stops = _all_of("clauses", "breaks")
    _another = _all_of("ends", "pronouns")  # what another clause begins with
    _cuts = _all_of("links", "_another", "adverbs")  # what a phrase may be cut before
    _nameless = _all_of("vague", "links", "weak", "adjectives")

    def phrase(self, text: str, room: int) -> str:
        """Return the phrase that a text begins with, of at most `room` words; empty if none."""
        stop = _CLAUSE_END.search(text)
        words, lowered = self._words(text[: stop.start()] if stop else text)
        if not words or lowered[0] in self.breaks - self.clauses:
            return ""
        if stop and _LIST_END.match(text, stop.start()):  # half a list says something else
            room = min(room, self._last(lowered, self.links))
        if lowered[0] in self.clauses and lowered[1:2] != ["to"]:
            is_formula = stop is not None and stop[0] in _FORMULA_CHARS
            return "" if is_formula else self._cut_clause(words, lowered, room)
        end = self._end_of_clause(lowered, room)
        after = "=" if stop and stop[0] in _FORMULA_CHARS else ""
        while end > 0 and not self._may_end([*lowered, after], end, room):
            end -= 1
        return " ".join(words[:end]).rstrip(".") if self._names(lowered[:end]) else ""

    def value(self, text: str, room: int) -> str:
        """Return a result, which goes to the clause's end or to a preposition; else empty."""
        words, lowered = self._whole(text.partition(" but ")[0])
        while len(words) > room:
            cut = self._last(lowered, self.breaks | self.links)
            words, lowered = words[:cut], lowered[:cut]
        first = lowered[0] if words else "so"
        counted = self.articles | self.plurals | {"one"}
        is_order = first in self.verbs and not counted.isdisjoint(lowered[1:2])
        is_result = not (
            is_order
            or first in self.links | self.adverbs | self.adjectives
            or first.endswith(_LATE)
            or not self._another.isdisjoint(lowered)
        )
        return " ".join(words) if words and is_result and self._is_strong(words[-1]) else ""

    def clause(self, text: str, room: int) -> str:
        """Return the clause that a text begins with, if it is whole, fits and needs no other."""
        words, lowered = self._whole(text)
        verb = self._find_verb(lowered)
        is_whole = 0 < verb < len(words) <= room and lowered[0] not in self.links | self.ends
        if not is_whole or not self._is_strong(words[-1]) or not self._names(lowered[:verb]):
            return ""
        return " ".join(words) if self.pronouns.isdisjoint(lowered) else ""

    def _is_plain(self, word: str) -> bool:
        """Return true for a word that is most likely a noun or an adjective."""
        lower = word.lower()
        return (
            len(word) > 2
            and lower not in self._not_plain
            and not lower.endswith(("ly", "ed"))
            and word.replace("-", "").isalpha()
        )

    def _words(self, clause: str) -> tuple[list[str], list[str]]:
        """Return the words of a clause, and the same in small letters."""
        words = [word for word in clause.split() if word.lower() not in self.fillers]
        lowered = [word.lower().replace("’", "'") for word in words]
        for at, (word, after) in enumerate(pairwise(lowered)):
            if word in self.pointers and self._may_be_noun(after):
                words[at] = lowered[at] = "the"
        return words, lowered

    def _may_be_noun(self, word: str) -> bool:
        return self._is_strong(word) and word not in self._no_nouns

    def _whole(self, text: str) -> tuple[list[str], list[str]]:
        """Return the words of a clause; none if it ends with a formula or a list."""
        end = _CLAUSE_END.search(text)
        if end is not None and (end[0] not in ".,;:!?—–" or _LIST.match(text, end.start())):
            return [], []
        words, lowered = self._words(text[: end.start()] if end else text)
        stop = self._first(lowered, self.breaks)
        return words[:stop], lowered[:stop]

    @staticmethod
    def _first(lowered: list[str], kind: frozenset[str], start: int = 0) -> int:
        places = (at for at in range(start, len(lowered)) if lowered[at] in kind)
        return next(places, len(lowered))

    @staticmethod
    def _last(lowered: list[str], kind: frozenset[str], start: int = 1) -> int:
        return next((at for at in range(len(lowered) - 1, start - 1, -1) if lowered[at] in kind), 0)

    def _find_verb(self, lowered: list[str]) -> int:
        """Return where the finite verb of a clause stands; 0 if none is seen."""
        stop = min(12, self._first(lowered, self._stops, 1))
        for at in range(1, stop):
            before, word = lowered[at - 1 : at + 1]
            if (before in self.weak and before not in self.adverbs) or before in self.links:
                continue
            is_plural = before in self.plurals or (
                before[-1:] == "s" and before[-2:] not in ("'s", "ss")
            )
            is_third = word in self.finite and not (
                is_plural and word[-1] == "s" and word not in self.ends
            )
            is_unknown = (
                lowered[max(0, at - 2)] in self.articles
                and not (is_plural or before in self.weak)
                and word[-1:] == "s"
                and self.ends.isdisjoint(lowered[at + 1 : at + 2])
            )
            if is_third or is_unknown or (word in self.plural and is_plural):
                return at
        return 0

    def _end_of_clause(self, lowered: list[str], room: int) -> int:
        """Return where another clause begins. One of `clauses` is kept if it fits as a whole."""
        end = self._first(lowered, self._another)
        for at, (before, word) in enumerate(pairwise(lowered[:end])):
            if before == "and" and word in self.verbs:
                end = at + 1
                break
        if end < len(lowered) and lowered[end] == "that":
            rest = self._first(lowered, self.breaks, end)
            while rest > room:
                rest = self._last(lowered[:rest], self.links - {"to", "and", "or"}, end)
            inner = lowered[end + 1 : rest]
            has_verb = inner[1:] and (
                inner[0][-1] in "sd" or inner[0] in self.finite or self._find_verb(inner)
            )
            if has_verb and (self.pronouns - self.persons).isdisjoint(inner):
                return rest
        if room >= end == len(lowered):
            return end
        for at in range(1, end):
            if lowered[at] in self.clauses and lowered[at + 1 : at + 2] != ["to"]:
                rest = self._first(lowered, self.breaks | self.pronouns, at)
                return rest if lowered[at] == "whose" and rest <= room else at
        return end

    def _may_end(self, lowered: list[str], end: int, room: int) -> bool:
        following = lowered[end]
        cuttable = not following.isalnum() or following in self._cuts
        before, last = ["", *lowered][end - 1 : end + 1]
        is_verb = before in self.links and (last.endswith("ing") or last in self.verbs)
        is_loose = bool(following) and is_verb
        is_bare = last.isdigit() and (
            before.endswith("ing") or before in self.verbs | self.links - {"to", "and", "or"}
        )
        is_half = last.isdigit() and lowered[end + 1 : end + 2] != [] and lowered[end + 1].isdigit()
        is_open = is_loose or is_half or is_bare
        is_symbol = before == "of" and len(last) == 1 and not following
        is_end = cuttable and not is_open and (is_symbol or self._is_strong(last))
        return end <= room and is_end

    def _cut_clause(self, words: list[str], lowered: list[str], room: int) -> str:
        """Return the clause "why the tomatoes split"; empty if it is long or points elsewhere."""
        end = self._first(lowered, self.breaks, 1)
        links = self.links - {"and", "or", "than", "of", "up", "out"}  # what they join may be one
        points = self.pronouns - self.persons
        while end > 3 and (
            end > room or not self._may_close(lowered[:end]) or not points.isdisjoint(lowered[:end])
        ):
            end = self._last(lowered[:end], links, 4)
            end -= lowered[end - 1] in ("and", "or", "but")
        kept = lowered[:end]
        if (
            end < 3
            or not points.isdisjoint(kept)
            or not self._may_close(kept)
            or (end == 3 and not self._names(kept[1:]))
        ):
            return ""
        is_cut = end < len(words) and lowered[end] in self.links - {"and", "but", "or", "so"}
        has_verb = (
            kept[1] in self.ends | self.finite or self._find_verb(kept[1:]) or "to" in kept[2:]
        )
        names = not self.capitals or any(word[0].isupper() for word in words[1:end])
        ends = not self.capitals or kept[-1][-1] in "tn" or kept[-1] in self.finite
        is_half = is_cut and (kept[-1] in self.plural or not has_verb)
        return " ".join(words[:end]) if names and ends and not is_half else ""

    def _may_close(self, lowered: list[str]) -> bool:
        """Return true if a clause may end so: "what the fourth one is" may."""
        ends = ("is", "are", "was", "be", "next")
        copula = lowered[0] in ("what", "who", "where") and lowered[-1] in ends
        return copula or lowered[-1] == "where" or self._is_strong(lowered[-1])

    def may_be_verb(self, word: str) -> bool:
        """Return true for a word that may be a verb after "I need to"."""
        return self._is_plain(word) and word not in self.vague | self.adjectives

    def _is_strong(self, word: str) -> bool:
        if len(word) == 1:
            return not word.islower()
        return word not in self.links and word not in self.weak

    def _names(self, lowered: list[str]) -> bool:
        """Return true if one of the words names something."""
        return any(
            len(word) > 2 and word not in self._nameless and _SINGLE.search(word)
            for word in lowered
        )


MAX_WIDE_CHARS = 12  # of an object in a script without spaces; a word in Latin letters counts two
MAX_WIDE_CLAUSE_CHARS = 22  # of a clause

_WIDE_POINTS = lazy_compile(r"[它他她您你我这那其]|用户|これ|それ|この|その|ユーザー")

_WIDE_FORMULA = lazy_compile(
    r"^([\u4e00-\u9fff]+) ?[A-Za-z][^\u4e00-\u9fff]*=[^\u4e00-\u9fff]*(?=的[\u4e00-\u9fff]{1,3}$)"
)

_LATIN = lazy_compile(r"[A-Za-z0-9_.()]+")

_WIDE_START = lazy_compile(
    r"(?:[了下出到好]|一下|清楚|如何把|整个|各个|(?:这|那)(?:个|些|道|种)|一个|一种|自己的|用户的?|我的?)+"
)

_WIDE_BREAK = lazy_compile(r"以便|来(?![源週月年店])|然后|并(?!行)|而(?!且)|时$|是否|进行")

_WIDE_VAGUE = lazy_compile(
    r"[它他她您你这那其我吗呢吧]|(?<!还)是|用户|\$|[了后时中前]$|完毕|有|^[的后时为之]|^作为|回答"
    r"|^ユーザー|^(?:问题|答案|结果|情况|内容|输入|结构|代码|步骤|自分|重要|必要|時間|一方|結果|結論|最初"
    r"|最後|今|次|問題|答え|우리|이것|그것|것|문제|질문)$"
)


def cut_wide(text: str) -> str:
    """Return an object in a script without spaces, or its last noun if it is long; empty if it
    names nothing."""
    text = _WIDE_FORMULA.sub(r"\1", text)
    text = _WIDE_BREAK.split(_WIDE_START.sub("", text, count=1))[0].strip(" の・的和与及")
    if _size(text) > MAX_WIDE_CHARS:
        text = _WIDE_START.sub("", text.rpartition("的")[2], count=1)
    return text if 2 <= _size(text) <= MAX_WIDE_CHARS and not _WIDE_VAGUE.search(text) else ""


def clause_wide(text: str) -> str:
    """Return a clause in a script without spaces, empty if it points at what is not shown."""
    text = text.strip("，、 `")
    return (
        text if 1 < _size(text) <= MAX_WIDE_CLAUSE_CHARS and not _WIDE_POINTS.search(text) else ""
    )


def _size(text: str) -> int:
    latin = _LATIN.findall(text)
    return len(text.replace(" ", "")) - sum(map(len, latin)) + 2 * len(latin)
