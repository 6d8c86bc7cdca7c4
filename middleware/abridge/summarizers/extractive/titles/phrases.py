"""Find what of a sentence can stand in a title: phrases, questions and clauses that are whole.

Each ends where its clause does; a phrase may be cut before a word that brings something more. None
ends with a word that wants another, and none of them holds half a formula.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.openings import capitalize
from abridge.summarizers.extractive.titles import lexicon as does
from abridge.summarizers.extractive.titles.lexicon import Lexicon
from abridge.summarizers.extractive.titles.questions import turn_questions
from abridge.summarizers.extractive.words import words_of

MAX_READ_CHARS = 200  # characters of a sentence that are read
ROOM = 12  # words of a title at most
MAX_LIST_WORDS = 5  # of the last item but one of a list

_OPENING, _CLOSING = '"“„«([', '.,;:?!…"”»)]'
_QUOTED = lazy_compile(r"[\"“]([\w'’-]+(?: [\w'’-]+){0,3})[.,]?[\"”]")
_PARENTHESIS = lazy_compile(r" \([^()]{0,99}\)|（[^（）]{0,99}）")
_WORD_STARTS = "'’$€£π√-+~"  # what is no letter and no digit, and begins a word
_LISTING = words_of("and or und oder et ou y o e")
_RELATIVE = words_of("whose that who which")

_ANY_VERB = does.VERB | does.BASE | does.FINITE | does.GERUND

_AFTER_PHRASE = (
    does.LINK | does.AUXILIARY | does.PRONOUN | does.ADVERB | does.BREAK | does.ASKING | does.FINITE
)
"""What may follow the end of a phrase."""

_NO_SUBJECT = does.LINK | does.SYMBOL | does.AUXILIARY | does.ASKING | does.SINCE | does.PRONOUN
"""What begins no clause."""

_NAMELESS = does.VAGUE | does.LINK | does.WEAK | does.AUXILIARY | does.PRONOUN

FINDINGS = frozenset({"concluded", "stated"})
CLAUSES = FINDINGS | {"supposed"}


def plain(text: str) -> str:
    """Return the beginning of a text without parentheses, backticks and quotation marks around few
    words, its questions turned around."""
    text = _PARENTHESIS.sub("", text) if "(" in text or "（" in text else text
    if len(text) > MAX_READ_CHARS:
        text = text[:MAX_READ_CHARS]
        text = (text.rpartition(" ")[0] or text) + " …"
    text = text.replace("`", "")
    text = _QUOTED.sub(r"\1", text) if '"' in text or "“" in text else text
    return turn_questions(text) if "?" in text else text


class Draft(NamedTuple):
    """A title that might be used: a form, and what is put into it."""

    kind: str  # see `rating.KINDS`
    form: str
    thing: str
    points: bool = False  # a pronoun is among its words, other than one that ties a clause to it

    @property
    def title(self) -> str:
        return capitalize(self.form.format(self.thing))


class Words:
    """The words of a sentence without fillers, with what each does, and the marks after it.

    `names` holds the first word if that is a name; of others a capital tells.
    """

    def __init__(self, text: str, lexicon: Lexicon, names: Container[str]) -> None:
        self.lexicon, self._names = lexicon, names
        self.words: list[str] = []
        self.lowered: list[str] = []
        self.kinds: list[int] = []
        self.marks: list[str] = []
        known = lexicon.kinds.get
        for written in text.replace("’", "'").split():
            word = lowered = written
            marks, kind = "", known(written, 0)
            if not kind:
                if not written.isalnum():
                    word = written.lstrip(_OPENING)
                    if len(word) < len(written) and self.marks:
                        self.marks[-1] = self.marks[-1] or '"'
                    if not word:
                        continue
                    bare = word.rstrip(_CLOSING)
                    if bare.count("(") > bare.count(")"):  # parse()
                        bare = word[: word.rfind(")") + 1] or bare
                    word, marks = bare or word, word[len(bare) :] if bare else ""
                lowered = word.lower()
                kind = known(lowered, 0)
                if not (kind or word[0].isalnum() or (word[0] in _WORD_STARTS and word[1:])):
                    kind = does.SYMBOL
                if len(word) == 1 and not word.isdigit():
                    kind |= does.VAGUE
            if kind & does.FILLER and not marks:
                continue
            self.words.append(word)
            self.lowered.append(lowered)
            self.kinds.append(kind)
            self.marks.append(marks)
        self.lowered += "", ""  # after the last word, where some look
        self.kinds += 0, 0

    def __len__(self) -> int:
        return len(self.words)

    def begins(self, at: int) -> bool:
        """Return true if a word is the first of a sentence, or comes after a mark."""
        return not at or self.marks[at - 1] != ""

    def before(self, at: int) -> str:
        """Return the word before another in small letters; empty after a mark."""
        return "" if self.begins(at) else self.lowered[at - 1]

    def span(self, start: int, end: int) -> int:
        """Return all that some words do."""
        kinds = 0
        for kind in self.kinds[start:end]:
            kinds |= kind
        return kinds

    def text(self, start: int, end: int) -> str:
        """Return words as they stand in a title: a sentence's first word in small letters unless it
        is a name."""
        shown = []
        for at in range(start, end):
            word = self.words[at]
            if word[0].isupper() and not self._is_name(at):
                word = word[0].lower() + word[1:]
            shown.append(f"{word}," if self.marks[at] == "," and at + 1 < end else word)
        return " ".join(shown)

    def _is_name(self, at: int) -> bool:
        word, kind = self.words[at], self.kinds[at]
        if self.lexicon.capitals or word[1:2].isupper() or len(word) == 1:
            return not (at == 0 and kind & does.ARTICLE)
        is_known = kind & (does.ARTICLE | does.LINK | does.PRONOUN | does.ASKING | does.AUXILIARY)
        return not is_known and (at > 0 or word in self._names or any(map(str.isdigit, word)))

    def drafts(self, kind: str, form: str, start: int, ends: Iterable[int]) -> Iterator[Draft]:
        """Yield titles of the words from one up to each of some ends."""
        for end in ends:
            points = any(
                kind & does.PRONOUN and not kind & does.LINK for kind in self.kinds[start:end]
            )
            yield Draft(kind, form, self.text(start, end), points)

    def is_strong(self, at: int) -> bool:
        """Return true for a word that a phrase may end with."""
        return not self.kinds[at] & (does.LINK | does.WEAK | does.AUXILIARY)

    def names(self, start: int, end: int) -> bool:
        """Return true if one of the words names something."""
        return any(not kind & _NAMELESS for kind in self.kinds[start:end])

    def phrases(self, start: int, room: int) -> Iterator[int]:
        """Yield the ends of the phrases that begin at a word, of at most `room` words."""
        kind = self.kinds[start]
        hangs = kind & does.LINK and not kind & does.ASKING
        if start >= len(self) or hangs or kind & (does.AUXILIARY | does.BREAK | does.SYMBOL):
            return
        stop = self._end_of_phrase(start, start + room)
        relative = self._end_of_relative(stop)
        if stop < relative <= start + room:
            yield relative
        ends = range(min(stop, start + room), start, -1)
        yield from (at for at in ends if self._may_end(start, at))

    def _end_of_phrase(self, start: int, most: int) -> int:
        """Return where another clause begins, or a mark stands."""
        for at in range(start, min(len(self), most + 1)):
            kind = self.kinds[at]
            if kind & does.PRONOUN and not kind & does.POINTER:
                return at
            if at > start and (
                kind & (does.AUXILIARY | does.BREAK | does.SYMBOL)
                or (kind & does.ASKING and self.lowered[at + 1] != "to")
                or (self.lowered[at] in ("and", "or") and self.kinds[at + 1] & _ANY_VERB)
            ):
                return at
            if self.marks[at] and not self._goes_on(at):
                return at + 1
        return min(len(self), most + 1)

    def _goes_on(self, at: int) -> bool:
        """Return true if the comma after a word is one within a list."""
        if self.marks[at] != "," or self.kinds[at + 1] & (does.BREAK | does.SINCE):
            return False
        if self.lowered[at + 1] in _LISTING:  # the last of a list, of which others came before
            return "," in self.marks[max(0, at - MAX_LIST_WORDS) : at]
        for other in range(at + 1, min(len(self), at + 1 + MAX_LIST_WORDS)):
            if self.lowered[other] in _LISTING:
                return True
            if self.marks[other] not in ("", ","):
                break
        return False

    def _end_of_relative(self, start: int) -> int:
        """Return the end of a clause that begins with "whose" or "that", 0 if it is not whole."""
        if self.lowered[start] not in _RELATIVE or self.begins(start):
            return 0
        end = self._end_of_clause(start)
        is_whole = end == len(self) or (end - start > 2 and self.marks[end - 1])
        return end if is_whole and self.is_strong(end - 1) else 0

    def _may_end(self, start: int, end: int) -> bool:
        last = self.kinds[end - 1]
        is_number = end - start == 1 and self.lowered[start].isdigit()
        if is_number or not self.is_strong(end - 1) or not self.names(start, end):
            return False
        if end == len(self) or self.marks[end - 1]:
            return True
        after = self.kinds[end]
        if not after & _AFTER_PHRASE:
            return False
        before = self.kinds[end - 2] if end - 1 > start else 0
        is_verb = last & (does.VERB | does.GERUND) and before & does.LINK
        wants_object = last & _ANY_VERB and after & does.PRONOUN and end - 1 > start
        return not is_verb and not wants_object

    def find_verb(self, start: int, end: int) -> int:
        """Return where the finite verb of a clause stands; 0 if none is seen."""
        for at in range(start + 1, min(end, start + ROOM + 1)):
            before = self.kinds[at - 1]
            if before & (does.LINK | does.WEAK) and not before & does.ADVERB:
                continue
            finite = does.AUXILIARY | does.FINITE
            if self.lowered[at - 1].endswith("s"):
                finite |= does.BASE
            if self.kinds[at] & finite:
                return at
            if self.lowered[at].endswith("ed") and self.kinds[at + 1] & does.ARTICLE:
                return at
        return 0

    def clauses(self, start: int, room: int) -> Iterator[int]:
        """Yield the end of the clause that begins at a word, if it is whole: with a subject and a
        verb."""
        if start >= len(self) or self.kinds[start] & _NO_SUBJECT:
            return
        end = self._end_of_clause(start)
        fits = end <= start + room and self.is_strong(end - 1)
        if fits and self.find_verb(start, end) and self.names(start, end):
            yield end

    def questions(self, start: int, room: int) -> Iterator[int]:
        """Yield the end of the question that begins at a word, such as "why salt melts ice"."""
        end = self._end_of_clause(start)
        is_short = 2 < end - start <= room
        closes = is_short and (self.is_strong(end - 1) or self.kinds[end - 1] & does.AUXILIARY)
        if closes and self.names(start + 1, end):
            yield end

    def _end_of_clause(self, start: int) -> int:
        """Return where a clause or a question ends; 0 if it holds half a formula."""
        asks = self.kinds[start] & does.ASKING
        for at in range(start, len(self)):
            kind = self.kinds[at]
            if kind & does.SYMBOL or (
                at and self.lowered[at] == "that" and self.kinds[at - 1] & does.AUXILIARY
            ):
                return 0
            if at > start + 2 and kind & does.BREAK and not (asks and kind & does.ASKING):
                return at
            if self.marks[at] and not self._goes_on(at):
                return at + 1
        return len(self)
