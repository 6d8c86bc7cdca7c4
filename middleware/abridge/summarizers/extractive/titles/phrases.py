"""Cut what follows a verb to a phrase that is whole and fits into a title.

A phrase ends where the clause does, and may be cut before a preposition or a conjunction. It never
ends with a word that wants another, and never holds a pronoun, of which a title does not show what
it stands for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_WORDS = 6  # most words of a phrase; a verb comes before it
MAX_READ_CHARS = 160  # characters of a sentence that are read

_CLAUSE_END = re.compile(
    r"[,;:!?\n\"“”„«»=<>≤≥≈{}\\$*|–—…\[\]^+\x00]|\.(?=\s|$)|(?<!\w)[(/]|\((?!\))|--|@"
)

_QUOTED_WORD = re.compile(r"[\"“](\w+)[.,]?[\"”]")
_SINGLE = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Grammar:
    """Words of a language by what they do to a phrase."""

    links: frozenset[str]  # a phrase may be cut before them, and does not end with them
    weak: frozenset[str]  # a phrase does not end with them
    ends: frozenset[str]  # pronouns and finite verbs, with which another clause begins
    vague: frozenset[str]  # name nothing alone
    fillers: frozenset[str] = frozenset()  # left out
    clauses: frozenset[str] = frozenset()  # begin a clause that is kept if it is short
    breaks: frozenset[str] = frozenset()  # end such a clause
    verbs: frozenset[str] = frozenset()  # begin another clause after "and"

    def cut(self, text: str, room: int) -> str:
        """Return the phrase that a text begins with, of at most `room` words; empty if none."""
        plain = _QUOTED_WORD.sub(r"\1", text[:MAX_READ_CHARS].replace("`", ""))
        clause = _CLAUSE_END.split(plain, maxsplit=1)[0]
        words = [word for word in clause.split() if word.lower() not in self.fillers]
        if not words:
            return ""
        lowered = [word.lower().replace("’", "'") for word in words]
        if lowered[0] in self.clauses and lowered[1:2] != ["to"]:
            return self._cut_clause(words, lowered, room)
        end = self._end_of_clause(lowered, room)
        while end > 0 and not self._may_end(lowered, end, room):
            end -= 1
        if not self._names(lowered[:end]):
            return ""
        first = lowered[0] if lowered[0] in self.weak else words[0]
        return " ".join([first, *words[1:end]]).rstrip(".")

    def _end_of_clause(self, lowered: list[str], room: int) -> int:
        """Return where another clause begins. One of `clauses` is kept if it fits as a whole."""
        pairs = zip(["", *lowered], lowered, strict=False)
        end = next(
            (
                at
                for at, (before, word) in enumerate(pairs)
                if word in self.ends or (before == "and" and word in self.verbs)
            ),
            len(lowered),
        )
        if room >= end == len(lowered):
            return end
        inner = (at for at in range(1, end) if lowered[at] in self.clauses)
        return next((at for at in inner if lowered[at + 1 : at + 2] != ["to"]), end)

    def _may_end(self, lowered: list[str], end: int, room: int) -> bool:
        following = lowered[end] if end < len(lowered) else ""
        cuttable = not following or following in self.links or following in self.ends
        before, last = ["", *lowered][end - 1 : end + 1]
        is_loose = following and last.endswith("ing") and before in self.links
        return end <= room and cuttable and not is_loose and self._is_strong(last)

    def _cut_clause(self, words: list[str], lowered: list[str], room: int) -> str:
        """Return the clause "why the tomatoes split"; empty if it is long or points elsewhere."""
        end = next((at for at, word in enumerate(lowered) if word in self.breaks), len(words))
        while end > 3 and (end > room or not self._is_strong(lowered[end - 1])):
            links = self.links - {"and", "or"}  # what they join may be what the clause is about
            end = next((at for at in range(end - 1, 3, -1) if lowered[at] in links), 0)
        points = any(word in self.ends and word not in self.weak for word in lowered[:end])
        if points or end < 3 or not self._is_strong(lowered[end - 1]):
            return ""
        return " ".join(words[:end])

    def is_vague(self, phrase: str) -> bool:
        """Return true if the noun of a phrase names nothing, and nothing that it belongs to."""
        words = phrase.split()
        return words[-1] in self.vague and self.links.isdisjoint(words)

    def _is_strong(self, word: str) -> bool:
        return word not in self.links and word not in self.weak and len(word) > 1

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


def _size(text: str) -> int:
    latin = _LATIN.findall(text)
    return len(text.replace(" ", "")) - sum(map(len, latin)) + 2 * len(latin)
