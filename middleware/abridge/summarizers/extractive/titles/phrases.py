"""Find what of a sentence can stand in a title: phrases, questions and clauses that are whole.

Each ends where its clause does, or is cut before a word that brings something more. None ends with
a word that wants another, and none of them holds half a formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.titles import lexicon as does
from abridge.summarizers.extractive.titles.drafts import Draft, Kind, Loss
from abridge.summarizers.extractive.titles.lexicon import Lexicon
from abridge.summarizers.extractive.titles.questions import turn_questions
from abridge.summarizers.extractive.words import words_of

MAX_READ_CHARS = 200  # characters of a sentence that are read
ROOM = 12  # words of a title at most
MAX_CUTS = 3  # ways to cut a phrase, the longest first
MAX_SUBJECT_WORDS = 12  # before a verb
MAX_LIST_WORDS = 5  # of the last item but one of a list

_OPENING, _CLOSING = '"“„«([', '.,;:?!…"”»)]'
_QUOTED = lazy_compile(r"[\"“]([\w'’-]+(?: [\w'’-]+){0,3})[.,]?[\"”]")
_PARENTHESIS = lazy_compile(r" \([^()]{0,99}\)|（[^（）]{0,99}）")
_AS_IT_IS = Lexicon({}, capitals=True)
_WORD_STARTS = "'’$€£π√-+~"  # what is no letter and no digit, and begins a word
_HALVING = words_of("that who whose which of and or than versus vs it them this these und oder et")
"""Words before which a phrase is only half of what is meant."""

_KEPT_TOGETHER = words_of("of than and or out up")  # links before which a clause is not cut
_ROUGHLY = words_of("about over around nearly roughly")
_LISTING = words_of("and or und oder et ou y o e")
_RELATIVE = words_of("whose that who which")
_COPULAS = words_of("is are was were be next")
_NUMBERS = words_of("one two three four five six seven eight nine ten both all no that this")
_PLURALS = words_of("people men women children mice feet teeth two three four five both police")
_SINGULAR_ENDS = ("'s", "ss", "us", "is")


_ANY_VERB = does.VERB | does.BASE | does.FINITE | does.GERUND
_OPEN = does.VERB | does.GERUND | does.ADJECTIVE
"""What wants another word, so that nothing is cut after it."""

_AFTER_PHRASE = (
    does.LINK | does.AUXILIARY | does.PRONOUN | does.ADVERB | does.BREAK | does.ASKING | does.FINITE
)
"""What may follow the end of a phrase."""

_NO_SUBJECT = does.LINK | does.SYMBOL | does.AUXILIARY | does.ASKING | does.SINCE
_NO_ITEM = does.PRONOUN | does.BREAK | does.AUXILIARY | does.FINITE
"""What begins neither a clause, nor the last item of a list."""


class End(NamedTuple):
    """Where a phrase may end: before a word. What follows is lost."""

    at: int
    loss: Loss = ""


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


class Words:
    """The words of a sentence without fillers, with what each does, and the marks after it."""

    def __init__(self, text: str, lexicon: Lexicon, names: frozenset[str] = frozenset()) -> None:
        self.lexicon, self._names = lexicon, names
        self.words: list[str] = []
        self.lowered: list[str] = []
        self.kinds: list[int] = []
        self.marks: list[str] = []
        known = lexicon.kinds.get
        for written in text.replace("’", "'").split():
            word, marks = written, ""
            if not written.isalnum():
                word = written.lstrip(_OPENING)
                opened = len(word) < len(written)
                if opened and self.marks:
                    self.marks[-1] = self.marks[-1] or '"'
                if not word:
                    continue
                bare = word.rstrip(_CLOSING)
                if bare.count("(") > bare.count(")"):  # parse()
                    bare = word[: word.rfind(")") + 1] or bare
                word, marks = bare or word, word[len(bare) :] if bare else ""
            lowered = word.lower()
            kind = known(lowered, 0)
            if kind & does.FILLER and not marks:
                continue
            if not kind and not (word[:1].isalnum() or (word[:1] in _WORD_STARTS and word[1:])):
                kind = does.SYMBOL
            self.words.append(word)
            self.lowered.append(lowered)
            self.kinds.append(kind)
            self.marks.append(marks)

    def __len__(self) -> int:
        return len(self.words)

    def begins(self, at: int) -> bool:
        """Return true if a word is the first of a sentence, or comes after a mark."""
        return not at or self.marks[at - 1] != ""

    def starts(self) -> list[int]:
        """Return where a clause may begin: at the beginning, after a mark or "that"."""
        rows = zip(self.marks[:-1], self.lowered, strict=False)
        return [0, *[at for at, (marks, word) in enumerate(rows, 1) if marks or word == "that"]]

    def before(self, at: int) -> str:
        """Return the word before another in small letters; empty after a mark."""
        return "" if self.begins(at) else self.lowered[at - 1]

    def kind(self, at: int) -> int:
        return self.kinds[at] if at < len(self.kinds) else 0

    def word(self, at: int) -> str:
        """Return a word in small letters, empty after the last."""
        return self.lowered[at] if at < len(self.lowered) else ""

    def span(self, start: int, end: int) -> int:
        """Return all that some words do."""
        kinds = 0
        for kind in self.kinds[start:end]:
            kinds |= kind
        return kinds

    def text(self, start: int, end: int) -> str:
        """Return words as they stand in a title: a sentence's first word in small letters unless it
        is a name, and "the" for what points at something that is not shown."""
        shown = []
        for at in range(start, end):
            word, kind = self.words[at], self.kinds[at]
            if kind & does.POINTER and at + 1 < end and self._may_be_noun(at + 1):
                word = "the"
            elif word[0].isupper() and not self._is_name(at):
                word = word[0].lower() + word[1:]
            shown.append(f"{word}," if self.marks[at] == "," and at + 1 < end else word)
        return " ".join(shown)

    def _is_name(self, at: int) -> bool:
        word, kind = self.words[at], self.kinds[at]
        if self.lexicon.capitals or word[1:2].isupper() or len(word) == 1:
            return not (at == 0 and kind & does.ARTICLE)
        if word[:2] in ("I'", "I’"):
            return True
        is_known = kind & (does.ARTICLE | does.LINK | does.PRONOUN | does.ASKING | does.AUXILIARY)
        return not is_known and (at > 0 or word in self._names)

    def _may_be_noun(self, at: int) -> bool:
        return not self.kinds[at] & (_AFTER_PHRASE | does.WEAK)

    def is_strong(self, at: int) -> bool:
        """Return true for a word that a phrase may end with."""
        word = self.lowered[at]
        if len(word) == 1:
            return word not in "ai" or self.words[at] == "A"
        weak = does.LINK | does.WEAK if word in _NUMBERS else does.LINK | does.WEAK | does.ARTICLE
        return not self.kinds[at] & weak

    def names(self, start: int, end: int) -> bool:
        """Return true if one of the words names something."""
        nameless = does.VAGUE | does.LINK | does.WEAK | does.ADJECTIVE | does.PRONOUN | does.ARTICLE
        return any(
            (not self.kinds[at] & nameless or self.lowered[at] in _PLURALS)
            and (len(self.words[at]) > 1 or self.words[at].isdigit())
            and any(map(str.isalnum, self.words[at]))
            for at in range(start, end)
        )

    def phrases(self, start: int, room: int) -> Iterator[End]:
        """Yield the ends of the phrases that begin at a word, of at most `room` words."""
        kind = self.kind(start)
        hangs = kind & does.LINK and not kind & does.ASKING
        if start >= len(self) or hangs or kind & (does.AUXILIARY | does.BREAK | does.SYMBOL):
            return
        stop = self._end_of_phrase(start, start + room)
        relative = self._end_of_relative(stop, start + room) if stop > start else None
        if relative is not None:
            yield relative
        ends = range(min(stop, start + room), start, -1)
        yield from islice(
            (self._end(at, stop) for at in ends if self._may_end(start, at)), MAX_CUTS
        )

    def _end_of_phrase(self, start: int, most: int) -> int:
        """Return where another clause begins, or a mark stands."""
        for at in range(start, min(len(self), most + 1)):
            kind = self.kinds[at]
            if kind & does.PRONOUN and not kind & does.POINTER:
                return at
            if at > start and (
                kind & (does.AUXILIARY | does.BREAK | does.SYMBOL)
                or (kind & does.ASKING and self.word(at + 1) != "to")
            ):
                return at
            if at > start and self._begins_verb(at):
                return at
            if self.marks[at] and not self._goes_on(at):
                return at + 1
        return min(len(self), most + 1)

    def _begins_verb(self, at: int) -> bool:
        """Return true for a verb whose subject stands before it, and for "and" before a verb."""
        kind, after = self.kinds[at], self.kind(at + 1)
        if kind & does.FINITE:
            return bool(after & (does.ARTICLE | does.PRONOUN))
        if self.lowered[at] not in ("and", "or") or self.marks[at]:
            return False
        has_object = self.kind(at + 2) & (does.ARTICLE | does.PRONOUN | does.ADVERB | does.WEAK)
        return bool(after & does.VERB or (after & (does.BASE | does.FINITE) and has_object))

    def _goes_on(self, at: int) -> bool:
        """Return true if the comma after a word is one within a list."""
        if self.marks[at] != "," or self.kind(at + 1) & (does.PRONOUN | does.BREAK | does.SINCE):
            return False
        if self.word(at + 1) in _LISTING:  # the last of a list, of which others came before
            return "," in self.marks[max(0, at - MAX_LIST_WORDS) : at]
        for other in range(at + 1, min(len(self), at + 1 + MAX_LIST_WORDS)):
            if self.lowered[other] in _LISTING:
                return not self.kind(other + 1) & _NO_ITEM
            if self.marks[other] not in ("", ","):
                break
        first, second = self.words[at], self.words[at + 1] if at + 1 < len(self) else "-"
        both_named = first[0].isupper() and second[0].isupper()
        return both_named or (first[0].isdigit() and second[0].isdigit())

    def _end_of_relative(self, start: int, most: int) -> End | None:
        """Return the end of a clause that begins with "whose" or "that", if it is whole."""
        if self.word(start) not in _RELATIVE or self.begins(start):
            return None
        end = start
        for at in range(start, min(len(self), most)):
            if self.kinds[at] & does.SYMBOL or (at > start + 1 and self.kinds[at] & does.BREAK):
                break
            end = at + 1
            if self.marks[at]:
                break
        is_whole = end == len(self) or self.marks[end - 1]
        seems_verb = self.word(start + 1).endswith("s")
        has_verb = seems_verb or self.span(start + 1, end) & (_ANY_VERB | does.AUXILIARY)
        is_known = end - start > 2 and is_whole and has_verb and self.is_strong(end - 1)
        return End(end) if is_known else None

    def _may_end(self, start: int, end: int) -> bool:
        last = self.kinds[end - 1]
        is_number = end - start == 1 and self.lowered[start].isdigit()
        if is_number or not self.is_strong(end - 1) or not self.names(start, end):
            return False
        if end == len(self) or self.marks[end - 1]:
            return True
        after = self.kinds[end]
        if after & does.SYMBOL or last & does.ADJECTIVE:
            return False
        if self.lowered[end - 1].isdigit() and end - 2 > start and self.kinds[end - 2] & does.LINK:
            return False
        if not after & _AFTER_PHRASE:
            return False
        is_verb = last & (does.VERB | does.GERUND) or self.lowered[end - 1].endswith("ing")
        if is_verb and end - 1 > start and self.kinds[end - 2] & does.LINK:
            return False
        wants_object = after & does.PRONOUN and last & _ANY_VERB
        return not (wants_object and end - 1 > start)

    def _end(self, at: int, stop: int) -> End:
        """Return an end with what the words after it take from what comes before."""
        if at == len(self) or (self.marks[at - 1] and at == stop):
            return End(at)
        if self.marks[at - 1]:  # half a list
            return End(at, "halved")
        if self.lowered[at] in _HALVING or self.kinds[at] & does.BREAK:
            return End(at, "halved")
        return End(at, "cut")

    def find_verb(self, start: int, end: int) -> int:
        """Return where the finite verb of a clause stands; 0 if none is seen."""
        for at in range(start + 1, min(end, start + MAX_SUBJECT_WORDS + 1)):
            kind, word = self.kinds[at], self.lowered[at]
            before, noun = self.kinds[at - 1], self.lowered[at - 1]
            if kind & does.BREAK and not kind & does.FINITE:
                return 0
            if (
                noun.isdigit()
                or before & does.LINK
                or (before & does.WEAK and not before & (does.ADVERB | does.PRONOUN))
            ):
                continue
            is_plural = noun in _PLURALS or (noun[-1:] == "s" and noun[-2:] not in _SINGULAR_ENDS)
            if kind & does.AUXILIARY or word.endswith("n't"):
                return at
            if kind & does.FINITE and not (is_plural and word[-1] == "s"):
                return at
            if kind & does.BASE and is_plural:
                return at
            if not kind and self._seems_finite(start, at, end, is_plural=is_plural):
                return at
        return 0

    def _seems_finite(self, start: int, at: int, end: int, *, is_plural: bool) -> bool:
        """Return true for an unknown word that is most likely a finite verb."""
        word, before, after = self.lowered[at], self.kinds[at - 1], self.kind(at + 1)
        if word.endswith("ed"):
            return at + 1 < end and bool(after & (_AFTER_PHRASE | does.ARTICLE))
        is_noun = at - 2 >= start and self.kinds[at - 2] & does.ARTICLE and not before
        return word[-1:] == "s" and not is_plural and bool(is_noun) and not after & does.AUXILIARY

    def clauses(self, start: int, room: int) -> Iterator[End]:
        """Yield the ends of the whole clauses that begin at a word: with a subject and a verb."""
        if start >= len(self) or not self._may_be_subject(start):
            return
        stop = self._end_of_clause(start)
        verb = self.find_verb(start, stop.at)
        is_whole = verb and (verb + 1 < stop.at or not self.kinds[verb] & does.AUXILIARY)
        if not is_whole or stop.loss == "broken" or not self.names(start, stop.at):
            return
        may_cut = not self.span(start, stop.at) & does.LIMITING
        yield from self._cuts(stop, start, start + room, verb + 2 if may_cut else stop.at)

    def _may_be_subject(self, at: int) -> bool:
        kind = self.kinds[at]
        if self.lowered[at] in _ROUGHLY and self.word(at + 1)[:1].isdigit():
            return True
        return not kind & _NO_SUBJECT and (not kind & does.ADVERB or kind & does.ARTICLE > 0)

    def _end_of_clause(self, start: int) -> End:
        for at in range(start, len(self)):
            kind, marks = self.kinds[at], self.marks[at]
            if kind & does.SYMBOL or (
                at and self.lowered[at] == "that" and self.kinds[at - 1] & does.AUXILIARY
            ):
                return End(at, "broken")
            if at > start + 2 and kind & does.BREAK:
                return End(at)
            if marks and not self._goes_on(at):
                return End(at + 1)
        return End(len(self))

    def questions(self, start: int, room: int) -> Iterator[End]:
        """Yield the ends of the questions that begin at a word, such as "why salt melts ice"."""
        stop = len(self)
        for at in range(start, len(self)):
            if self.kinds[at] & does.SYMBOL:
                return
            if at > start + 1 and self.kinds[at] & does.BREAK and not self.kinds[at] & does.ASKING:
                stop = at
                break
            if self.marks[at] and not self._goes_on(at):
                stop = at + 1
                break
        if stop - start > 2 and self.names(start + 1, stop):
            yield from self._cuts(self._end(stop, stop), start, start + room, start + 4)

    def _cuts(self, stop: End, start: int, most: int, least: int) -> Iterator[End]:
        """Yield an end if it is near enough, and the last link before it where a clause can be cut,
        but not before `least`."""
        found, end = 0, stop
        while found < MAX_CUTS - 1:
            if end.at <= most and self._may_close(start, end):
                found += 1
                yield end
            links = range(end.at - 1, least - 1, -1)
            cut = next((at for at in links if self._is_cut(at)), 0)
            if not cut:
                return
            end = End(cut, "cut")

    def _is_cut(self, at: int) -> bool:
        return bool(self.kinds[at] & does.LINK) and self.lowered[at] not in _KEPT_TOGETHER

    def _may_close(self, start: int, end: End) -> bool:
        """Return true if a clause may end so: "what the fourth one is" may."""
        last = end.at - 1
        word = self.lowered[last]
        is_open = self.kinds[last] & _OPEN or word.endswith("ing")
        if end.loss == "cut" and is_open:
            return False
        if self.lexicon.capitals and self.kinds[start] & does.ASKING:
            has_noun = any(one[0].isupper() for one in self.words[start + 1 : end.at])
            return has_noun and (word[-1] in "tn" or self.kinds[last] & does.FINITE > 0)
        asks_what = self.kinds[start] & does.ASKING and word in _COPULAS and word != "be"
        return bool(asks_what) or word == "where" or self.is_strong(last)


def copied(kind: Kind, thing: str, form: str = "{}") -> Draft:
    """Return a draft of a thing that is shown as it is."""
    title = form.format(thing).replace("{", "{{").replace("}", "}}")
    words = Words(thing, _AS_IT_IS)
    return Draft(kind, title, words, 0, len(words))
