"""Cut what a sentence says to a phrase or a clause that is whole and fits into a title.

A phrase ends where the clause does, and may be cut before a preposition or a conjunction. It never
ends with a word that wants another, and never holds a pronoun, of which a title does not show what
it stands for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

MAX_WORDS = 9  # most words of a phrase; a verb comes before it
MAX_READ_CHARS = 160  # characters of a sentence that are read

_CLAUSE_END = re.compile(
    r"[;:!?¿¡\n\"“”„«»=<>≤≥≈{}\\$*|–—…\[\]^+\x00]|\.(?=\s|$)|(?<!\w)[(/]|\((?!\))|--|@|,(?!\d)"
)

_LIST = re.compile(
    r",\s[\w'’-]+(?: [\w'’-]+)?,|,\s(?:[\w'’-]+\s){0,3}?[\w'’-]+,?\s(?:and|or|und|oder|et|ou|y|o"
    r"|e)\s"
)
_QUOTED = re.compile(r"[\"“]([\w'’-]+(?: [\w'’-]+){0,3})[.,]?[\"”]")
_PARENTHESIS = re.compile(r" \([^()]{0,99}\)|（[^（）]{0,99}）")
_OPTION = re.compile(r"\b([A-E])\)")
_SINGLE = re.compile(r"[^\W\d_]")


def plain(text: str) -> str:
    """Return the beginning of a text without parentheses, backticks and quotation marks around few
    words."""
    text = _PARENTHESIS.sub("", text) if "(" in text or "（" in text else text
    text = text[:MAX_READ_CHARS] if len(text) <= MAX_READ_CHARS else _clip_at_word(text)
    return _OPTION.sub(r"\1", _QUOTED.sub(r"\1", text.replace("`", "")))


def _clip_at_word(text: str) -> str:
    return text[:MAX_READ_CHARS].rpartition(" ")[0]


@dataclass(frozen=True, eq=False)
class Grammar:
    """Words of a language by what they do to a phrase."""

    links: frozenset[str]  # a phrase may be cut before them, and does not end with them
    weak: frozenset[str]  # a phrase does not end with them
    ends: frozenset[str]  # finite verbs, with which another clause begins
    pronouns: frozenset[str]  # what they stand for is not shown
    vague: frozenset[str]  # name nothing alone
    fillers: frozenset[str] = frozenset()  # left out
    clauses: frozenset[str] = frozenset()  # begin a clause that is kept if it is short
    breaks: frozenset[str] = frozenset()  # end a clause
    verbs: frozenset[str] = frozenset()  # begin another clause after "and"
    finite: frozenset[str] = frozenset()  # verbs that can follow a subject
    plural: frozenset[str] = frozenset()  # verbs that can follow one in the plural
    adverbs: frozenset[str] = frozenset()  # stand between a subject and its verb
    pointers: frozenset[str] = (
        frozenset()
    )  # say "this": the article that takes their place comes next
    article: str = ""
    articles: frozenset[str] = frozenset()
    capitals: bool = False  # nouns begin with one
    plurals: frozenset[str] = frozenset()  # nouns in the plural that do not look it
    adjectives: frozenset[str] = frozenset()  # no result

    def phrase(self, text: str, room: int) -> str:
        """Return the phrase that a text begins with, of at most `room` words; empty if none."""
        words, lowered = self._words(_CLAUSE_END.split(text, maxsplit=1)[0])
        if not words:
            return ""
        if lowered[0] in self.clauses and lowered[1:2] != ["to"]:
            return self._cut_clause(words, lowered, room)
        end = self._end_of_clause(lowered, room)
        if lowered[end : end + 1] and lowered[end] in self.ends:
            end = self._before_subject(lowered, end)
        while end > 0 and not self._may_end(lowered, end, room):
            end -= 1
        return self._join(words[:end]) if self._names(lowered[:end]) else ""

    def noun(self, text: str, room: int) -> str:
        """Return the same, empty if a verb is in it."""
        found = self.phrase(text, room)
        return found if self.finite.isdisjoint(found.lower().split()) else ""

    def value(self, text: str, room: int) -> str:
        """Return a phrase or number that goes to the clause's end, or to a preposition; else
        empty."""
        words, lowered = self._whole(text)
        stops = self.breaks | self.links
        while len(words) > room:
            cut = next((at for at in range(len(words) - 1, 0, -1) if lowered[at] in stops), 0)
            words, lowered = words[:cut], lowered[:cut]
        if not words or lowered[0] in self.links | self.adverbs or not self._stands_alone(lowered):
            return ""
        if lowered[0].endswith(("ly", "ed", "able", "ible")) or (
            lowered[0] in self.verbs and lowered[1:2] and lowered[1] in self.articles
        ):
            return ""
        if not self.ends.isdisjoint(lowered) or not self.adjectives.isdisjoint(lowered[:1]):
            return ""
        return " ".join(words) if self._is_strong(words[-1]) else ""

    def clause(self, text: str, room: int) -> str:
        """Return the clause that a text begins with, if it is whole, fits and needs no other."""
        words, lowered = self._whole(text)
        at = self._find_verb(lowered)
        if not at or len(words) > room or lowered[0] in self.links:
            return ""
        if not self._is_strong(words[-1]) or not self._stands_alone(lowered):
            return ""
        return " ".join(words) if self._names(lowered[:at]) else ""

    def subject(self, text: str, room: int) -> str:
        """Return the subject that a text begins with; empty if it is none or names nothing."""
        words, lowered = self._words(_CLAUSE_END.split(text, maxsplit=1)[0])
        end = self._find_verb(lowered)
        while end > 0 and lowered[end - 1] in self.adverbs:
            end -= 1
        kept = lowered[:end]
        if not 0 < end <= room or not self.ends.isdisjoint(kept) or not self._names(kept):
            return ""
        first = self.links | self.breaks
        if kept[0] in first or kept[-1] in self.links or not self._stands_alone(kept):
            return ""
        if self.is_vague(" ".join(kept)) or kept[1:2] in (["more"], ["less"]):
            return ""
        return self._join(words[:end])

    def _whole(self, text: str) -> tuple[list[str], list[str]]:
        """Return the words of a clause; none if it ends with a formula or a list."""
        end = _CLAUSE_END.search(text)
        if end is not None and (end[0] not in ".,;:!?—–" or _LIST.match(text, end.start())):
            return [], []
        words, lowered = self._words(text[: end.start()] if end else text)
        stop = next((at for at, word in enumerate(lowered) if word in self.breaks), len(words))
        return words[:stop], lowered[:stop]

    def _stands_alone(self, lowered: list[str]) -> bool:
        return self.pronouns.isdisjoint(lowered)

    def _find_verb(self, lowered: list[str]) -> int:
        """Return where the finite verb of a clause stands; 0 if none is seen."""
        following = [*lowered[1:], ""]
        for at, word in enumerate(lowered[:12]):
            if at and word in self.clauses | self.breaks:
                return 0
            before = lowered[at - 1] if at else ""
            if (
                not at
                or (before in self.weak and before not in self.adverbs)
                or before in self.links
            ):
                continue
            is_plural = before in self.plurals or (
                before[-1:] == "s" and before[-2:] not in ("'s", "ss")
            )
            is_verb = word in self.finite or (word in self.plural and is_plural)
            if is_verb and (word in self.ends or following[at] not in self.ends):
                return at
            is_singular = at > 1 and lowered[at - 2] in self.articles and not is_plural
            if is_singular and word[-1:] == "s" and self._is_bound(following[at]):
                return at
        return 0

    def _is_bound(self, word: str) -> bool:
        """Return true for a word that no noun follows directly."""
        return (
            not word
            or word in self.weak - self.ends
            or word in self.breaks | self.clauses | self.pronouns
            or word in self.links - {"of"}
        )

    def _words(self, clause: str) -> tuple[list[str], list[str]]:
        words = [word for word in clause.split() if word.lower() not in self.fillers]
        lowered = [word.lower().replace("’", "'") for word in words]
        for at, word in enumerate(lowered[:-1]):
            next_word = lowered[at + 1]
            is_noun = self._is_strong(next_word) and not any(
                next_word in stop for stop in (self.ends, self.finite, self.pronouns, self.adverbs)
            )
            if word in self.pointers and is_noun:
                words[at] = lowered[at] = self.article
        return words, lowered

    def _join(self, words: list[str]) -> str:
        return " ".join(words).rstrip(".")

    def _end_of_clause(self, lowered: list[str], room: int) -> int:
        """Return where another clause begins. One of `clauses` is kept if it fits as a whole."""
        pairs = zip(["", *lowered], lowered, strict=False)
        stops = self.ends | self.pronouns
        end = next(
            (
                at
                for at, (before, word) in enumerate(pairs)
                if word in stops or (before == "and" and word in self.verbs)
            ),
            len(lowered),
        )
        if end < len(lowered) and lowered[end] == "that":
            rest = self._rest_of(lowered, end)
            if rest <= room and self._find_verb(lowered[end + 1 : rest]):
                return rest
        if room >= end == len(lowered):
            return end
        inner = (at for at in range(1, end) if lowered[at] in self.clauses)
        return next((at for at in inner if lowered[at + 1 : at + 2] != ["to"]), end)

    def _has_verb(self, lowered: list[str]) -> bool:
        return not self.ends.isdisjoint(lowered[:1]) or self._find_verb(lowered) > 0

    def _before_subject(self, lowered: list[str], end: int) -> int:
        """Return where the subject of the verb at `end` begins: in "the trips the farmer needs"
        before the second article."""
        for at in range(end - 1, 1, -1):
            if lowered[at] in self.articles:
                return at if self._is_strong(lowered[at - 1]) else end
        return end

    def _rest_of(self, lowered: list[str], start: int) -> int:
        """Return where the clause that begins at `start` ends; far off if it leans on others."""
        end = next(
            (at for at in range(start, len(lowered)) if lowered[at] in self.breaks), len(lowered)
        )
        return end if self._stands_alone(lowered[start + 1 : end]) else 99

    def _may_end(self, lowered: list[str], end: int, room: int) -> bool:
        following = lowered[end] if end < len(lowered) else ""
        stops = (self.links, self.ends, self.pronouns, self.adverbs)
        cuttable = len(following) < 2 or any(following in stop for stop in stops)
        before, last = ["", *lowered][end - 1 : end + 1]
        is_loose = (
            following and before in self.links and (last.endswith("ing") or last in self.verbs)
        )
        return end <= room and cuttable and not is_loose and self._is_strong(last)

    def _cut_clause(self, words: list[str], lowered: list[str], room: int) -> str:
        """Return the clause "why the tomatoes split"; empty if it is long or points elsewhere."""
        end = next(
            (at for at, word in enumerate(lowered) if at and word in self.breaks), len(words)
        )
        while end > 3 and (end > room or not self._is_strong(lowered[end - 1])):
            links = self.links - {
                "and",
                "or",
                "than",
                "of",
            }  # what they join may be what it is about
            end = next((at for at in range(end - 1, 3, -1) if lowered[at] in links), 0)
        is_cut = end < len(words) and lowered[end] in self.links
        if is_cut and (lowered[end - 1] in self.plural or not self._has_verb(lowered[1:end])):
            return ""
        if (
            end < 3
            or not self._stands_alone(lowered[:end])
            or not self._is_strong(lowered[end - 1])
        ):
            return ""
        return " ".join(words[:end])

    def recurring(self, texts: Sequence[str], shown: int) -> str:
        """Return the two words of texts that stand together most often, from two times on; empty
        if there are none. The first `shown` texts must hold them."""
        counts: Counter[str] = Counter()
        spelt: dict[str, str] = {}
        for at, text in enumerate(texts):
            found = {pair.lower(): f"{article}{pair}" for article, pair in self._pairs(text)}
            counts.update(found.keys())
            if at < shown:
                spelt |= found
        best = max(spelt, key=lambda key: (counts[key], len(key)), default="")
        return spelt[best] if counts[best] > 1 else ""

    def _pairs(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield two words that belong together, and the article before them."""
        for clause in _CLAUSE_END.split(text):
            words = clause.split()
            lowered = ["", *(word.lower() for word in words), ""]
            for at, (one, two) in enumerate(pairwise(words)):
                before, after = lowered[at], lowered[at + 3]
                bounded = before in self.weak | self.links | {
                    ""
                } and after in self.links | self.ends | {""}
                if (
                    bounded
                    and self._is_plain(one)
                    and self._is_plain(two)
                    and not self.is_vague(two)
                ):
                    article = (
                        self.article
                        if before in self.pointers
                        else before
                        if before in self.articles
                        else ""
                    )
                    yield f"{article} ".lstrip(), f"{one} {two}"

    def _is_plain(self, word: str) -> bool:
        lower = word.lower()
        stops = (
            *(
                self.links,
                self.weak,
                self.ends,
                self.pronouns,
                self.finite,
                self.plural,
                self.breaks,
            ),
            *(self.clauses, self.adverbs),
        )
        return (
            len(word) > 2
            and word.replace("-", "").isalpha()
            and not lower.endswith(("ly", "ed"))
            and not any(lower in stop for stop in stops)
        )

    def is_vague(self, phrase: str) -> bool:
        """Return true if the noun of a phrase names nothing, and nothing that it belongs to."""
        words = phrase.split()
        return words[-1].lower() in self.vague and self.links.isdisjoint(words)

    def _is_strong(self, word: str) -> bool:
        if len(word) == 1:
            return not word.islower()
        return word not in self.links and word not in self.weak

    def _names(self, lowered: list[str]) -> bool:
        """Return true if one of the words names something."""
        return any(
            len(word) > 2
            and _SINGLE.search(word)
            and word not in self.vague | self.links | self.weak
            for word in lowered
        )


MAX_WIDE_CHARS = 12
"""Most characters of an object in a script without spaces; a word in Latin letters counts two."""

MAX_WIDE_CLAUSE_CHARS = 22
"""The same of a clause."""

_WIDE_POINTS = re.compile(r"[它他她您你我这那其]|用户|これ|それ|この|その|ユーザー")

_LATIN = re.compile(r"[A-Za-z0-9_.()]+")

_WIDE_START = re.compile(
    r"(?:[了下出到好]|一下|清楚|如何把|整个|各个|(?:这|那)(?:个|些|道|种)|一个|一种|自己的|用户的?|我的?)+"
)

_WIDE_BREAK = re.compile(r"以便|来(?=[^源])|然后|并(?!行)|而(?!且)|时$|是否|进行")

_WIDE_VAGUE = re.compile(
    r"[它他她您你这那其我吗呢吧]|(?<!还)是|用户|\$|[了后时中前]$|完毕|有|^[的后时为之]|^作为|回答"
    r"|^ユーザー|^(?:问题|答案|结果|情况|内容|输入|结构|代码|步骤|自分|重要|必要|時間|一方|結果|結論|最初"
    r"|最後|今|次|問題|答え|우리|이것|그것|것|문제|질문)$"
)


def cut_wide(text: str) -> str:
    """Return an object in a script without spaces, or its last noun if it is long; empty if it
    names nothing."""
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
