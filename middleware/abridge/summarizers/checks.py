"""Check what a model writes as a summary, while it writes it.

A model that is small, or that thinks, does what nobody asked for: it says one sentence thirty
times, repeats its instructions, answers the user, thinks aloud, or copies the reasoning. What is
wrong with a sentence is found before it is shown, so a text is shown a sentence at a time, and
nothing is taken back. What can be set right is; the rest ends the part with a code of its own.

A text that begins with its title, as it is asked to, is shown as it comes. Any other is held until
its end: its title has to be made of it, and a closing tag may yet show that it was thinking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Literal

from abridge.caches import INSTRUCTIONS
from abridge.core.language import detect_language, is_another_language
from abridge.core.plan import Passage
from abridge.core.segmenter import WIDE_LETTERS, WIDE_RUN, text_size
from abridge.core.styles import STYLES, TITLE
from abridge.errors import SummarizerError
from abridge.lazy_re import lazy_compile
from abridge.stages.hidden_thinking import ThinkingFilter, visible_text
from abridge.summarizers.cleaning import Cleaner
from abridge.summarizers.form import MAX_PLAIN_TITLE, unframed

Code = Literal["loop", "language", "not_a_summary", "echo"]

FAILURES: dict[Code, str] = {
    "loop": "The summarizer repeated itself.",
    "language": "The summarizer wrote in another language than requested.",
    "not_a_summary": "The summarizer did not write a summary.",
    "echo": "The summarizer repeated the reasoning.",
}
"""The codes of what a model may do wrong, and what a client is told of it."""

TOLERANCE = 1.3
"""How much larger than its style allows a part may be."""

MAX_SENTENCE_CHARS = 1000
"""Characters without an end after which a text is taken for a sentence."""

TITLE_SENTENCES = 2
"""The sentences of which a title is made, if no more have come."""

MAX_TITLE_WORDS = 10

MIN_COPIED_TITLE = 32
"""The size of a title from which it may copy the reasoning: shorter ones name what that names."""

LOOP_PERIOD = 48
"""The most words, or characters of scripts without blanks, that a loop repeats."""

MIN_LOOP = 8
"""The least words that repeat those before them in a loop, however few they are."""

MAX_TIMES = 2
"""How often a sentence may be written; it is shown once."""

MIN_KEY = 8
"""The least letters of a sentence that is not to be written again."""

MAX_ECHO = 0.4
"""The share of a text's sequences that may stand in another text."""

MIN_SEQUENCES, MIN_KNOWN_SEQUENCES = 4, 2
"""The least sequences of which that is said, of the reasoning and of the instructions: what shorter
sentences have in common is chance."""

MIN_FOREIGN = 3
"""The least words that a sentence has of the prompt's example, and not of the reasoning, where it
tells what the example tells."""

GATHERED_CHARS = 200
"""Characters that wait at most to be cleaned together: within a sentence nothing is shown."""

HELD_CHARS = 32_000
"""Characters that are held at most until it is clear that they are no thinking."""

_WORD = lazy_compile(rf"[{WIDE_LETTERS}]|[^\W\d_{WIDE_LETTERS}]{{1,40}}+(?=[\W\d_{WIDE_LETTERS}])")

_SENTENCE_END = lazy_compile(
    r"[.!?…。！？\n](?:(?<=[.!?…])(?<!\b[a-zA-Z].)[.!?…]*[\"'”’)\]*_]*(?=\s)"
    r"|(?<=[。！？])[。！？]*[”’」』）]*|(?<=[^\s:：,，]\n)\s*\n)"
)

_OPEN_END = lazy_compile(r"[:：,，;；][*_]*\s*\Z")

_MARK = lazy_compile(r"[.!?…。！？*_\"'”’)\]」』）\n]")
"""What a sentence or a title may end with, but for blanks."""

_BLANKS = lazy_compile(r"\s+")

_SEQUENCE_WORD = lazy_compile(rf"[{WIDE_LETTERS}]|[^\W_{WIDE_LETTERS}]+")

_REFUSALS = (
    r"(?:I['’]m|I am)\s+(?:really\s+|so\s+|very\s+)?sorry\b|I apologi[sz]e\b|As an AI\b"
    r"|I (?:can(?:no|['’])t|am unable to) (?:help|assist|provide|fulfil|summari[sz]e)"
    r"|(?:Please|Could you(?: please)?|Can you(?: please)?) (?:provide|share|paste|give me)\b"
    r"|(?:Hello|Hi|Dear) (?:there|[A-Z]\w*)[,!]"
    r"|Es tut mir leid\b|Bitte (?:gib|geben Sie) mir\b|Je suis désolé|Lo siento\b"
    r"|(?:很)?抱歉，|对不起，|申し訳(?:ありません|ございません)|죄송(?:합니다|하지만)"
)
"""Beginnings of a text that refuses, asks or greets."""

_ANSWERS = lazy_compile(
    rf"{_REFUSALS}"
    r"|(?:The user|You) (?:wants?|asks?|asked|(?:is|are) asking) (?:me )?(?:to|for) (?:sum|a summ)"
    r"|(?:Okay|OK|Alright|Hmm),? (?:so )?(?:let me|let['’]s|I need to|the user)\b",
    re.IGNORECASE,
)
"""The same, and those of one that thinks of how to sum up."""

_NO_TRANSLATIONS = lazy_compile(_REFUSALS, re.IGNORECASE)
"""What is translated may think aloud, too."""

_OFFERS = lazy_compile(
    r"(?:Please )?(?:let me know|feel free)\b|(?:I )?hope (?:this|that) helps\b"
    r"|(?:Would|Do) you (?:like|want) (?:me )?to\b|(?:Is|Was) there anything else\b"
    r"|(?:Here is|Here['’]s|This is|Below is) (?:a|the|my)\b[^.]{0,40}\bsummary\b"
    r"|(?:Note|Word count):|Ich hoffe, das hilft\b|N['’]hésitez pas\b"
    r"|希望(?:这|對|对)|如果你需要",
    re.IGNORECASE,
)
"""Sentences to the user, which are left out."""

_BAD_TITLE = lazy_compile(
    r"(?:title|summary|reasoning|answer|conclusion|step \d+|bold title)\b\W*\Z"
    r"|(?:if|because|since|although|so|but|and|or|therefore|however|that|this|it|there|i|we|you"
    r"|the (?:answer|user))\b"
    r"|.*(?:\b(?:is|are|was|were|the|an?|of|to|for|with|that|which|and|or|by|as|in|on|at|from)"
    r"|[,;:，、：])\W*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""Labels, beginnings of sentences and halves of them."""


class Loops:
    """Finds words that go on repeating themselves, at most `LOOP_PERIOD` words apart."""

    def __init__(self) -> None:
        self._rest = ""
        self._latest: dict[str, int] = {}  # the number of each word where it stood last
        self._earlier: list[int] = []  # for each word, where it stood before
        self._runs: dict[int, int] = {}  # how many words are those of so many words earlier

    def found_in(self, text: str) -> bool:
        """Take the next piece of the text; return whether it runs in a loop by then."""
        self._rest += text
        end = 0
        for word in _WORD.finditer(self._rest):
            end = word.end()
            if self._repeats(word[0].casefold()):
                return True
        self._rest = self._rest[end:][-MAX_SENTENCE_CHARS:]
        return False

    def _repeats(self, word: str) -> bool:
        number, at = len(self._earlier), self._latest.get(word, -1)
        runs: dict[int, int] = {}
        self._latest[word] = number
        self._earlier.append(at)
        while at >= 0 and (distance := number - at) <= LOOP_PERIOD:
            runs[distance] = self._runs.get(distance, 0) + 1
            if runs[distance] >= max(MIN_LOOP, 2 * distance):
                return True
            at = self._earlier[at]
        self._runs = runs
        return False


class Echo:
    """What a text may not repeat: its sequences of five words, or of six characters in scripts
    that write no blanks."""

    def __init__(self, known: frozenset[str], least: int = MIN_SEQUENCES) -> None:
        self._known = known
        self._least = least
        self._pending: list[str] = []  # words of sentences too short to be judged

    def is_in(self, words: list[str]) -> bool:
        """Return whether a sentence, with the short ones just before it, repeats the text."""
        words = [*self._pending, *words]
        repeats = self.judge(words)
        self._pending = words if repeats is None else []
        return repeats is True

    def judge(self, words: list[str]) -> bool | None:
        """Return whether words repeat it by themselves, None for too few to be judged."""
        if not self._known:
            return False
        sequences = list(_sequences(words))
        if len(sequences) < self._least:
            return None
        return sum(map(self._known.__contains__, sequences)) > MAX_ECHO * len(sequences)


def _sequences(words: list[str]) -> Iterator[str]:
    wide = len([word for word in words if len(word) == 1 and WIDE_RUN.match(word)])
    size = 6 if 2 * wide > len(words) else 5
    return (" ".join(words[at : at + size]) for at in range(len(words) - size + 1))


@lru_cache(INSTRUCTIONS)
def _told_by(instructions: str, example: str) -> tuple[frozenset[str], set[str], str]:
    words = _words(example)
    long, key = {word for word in words if len(word) > 3}, "".join(filter(str.isalnum, words))
    return frozenset(_sequences(_words(instructions))), long, key


def _words(text: str) -> list[str]:
    return _SEQUENCE_WORD.findall(text.casefold())


class OwnThinking:
    """Cuts the thinking out of what a model wrote."""

    def __init__(self) -> None:
        self._filter = ThinkingFilter(may_begin_inside=True, limit=HELD_CHARS)
        self._beginning: str | None = ""

    def feed(self, text: str, *, last: bool) -> str:
        pieces = []
        if self._beginning is not None:
            self._beginning = (self._beginning + text).lstrip()
            if self._beginning.startswith("**"):
                pieces += self._filter.note_reasoning()
            if len(self._beginning) > 1:
                self._beginning = None
        pieces += self._filter.feed(text)
        if last:
            pieces += self._filter.end()
        return visible_text(pieces)


class Checks:
    """Checks one part, and brings it into the form of its style.

    `instructions` are those of the prompt, `hidden` is the reasoning that must not be repeated.
    Once `is_over`, no more needs to be written: the part is as long as it may be, or has failed.
    """

    _answers = _ANSWERS

    def __init__(self, passage: Passage, *, instructions: str = "", hidden: str = "") -> None:
        self._passage = passage
        self._style = STYLES[passage.style]
        self._language = passage.language or detect_language(passage.text)
        self._loops = Loops()
        self._thinking = OwnThinking()
        self._cleaner = Cleaner(None if passage.translates else passage.style)
        told, self._example, self._example_key = _told_by(instructions, self._style.example)
        self._instructions = Echo(told, MIN_KNOWN_SEQUENCES)
        self._hidden = Echo(frozenset(_sequences(_words(hidden))))
        self._gathered = ""  # not yet clean
        self._follows_mark = False
        self._text = ""  # clean, and not yet read
        self._title: str | None = None if self._style.titled else ""
        self._rejected_title = ""
        self._waiting: list[str] = []  # sentences that are shown once there is a title
        self._gap = "\n\n" if self._style.titled else ""  # before the next sentence
        self._said = ""  # the sentences that are shown
        self._times: dict[str, int] = {}
        self._room = TOLERANCE * self._style.size
        self.failure: SummarizerError | None = None
        self.is_over = False
        self.stopped = ""  # why the model was, where it is known before the end of the text

    def feed(self, text: str, *, last: bool = False) -> str:
        """Return what of the part may be shown by now; `failure` says if that is all."""
        if self.is_over:
            return ""
        loops = self._loops.found_in(text)
        ends = last or loops
        self._gathered += text
        if not (self._may_show(text) or ends):
            return ""
        text, self._gathered = self._gathered, ""
        self._text += self._cleaner.feed(self._thinking.feed(text, last=ends), last=ends)
        shown = "".join(self._read(last=last, ends=ends))
        if loops:
            self._fail("loop")
        elif last and (self.stopped == "content_filter" or (not self._said and self._times)):
            self._fail("not_a_summary")
        self.is_over = self.is_over or last
        return shown

    def _may_show(self, text: str) -> bool:
        """Return whether with this piece a sentence or a title may be whole."""
        follows_mark, self._follows_mark = self._follows_mark, _MARK.match(text[-1:]) is not None
        is_due = follows_mark or len(self._gathered) > GATHERED_CHARS
        return is_due or _MARK.search(text) is not None

    def _read(self, *, last: bool, ends: bool) -> Iterator[str]:
        """Read what came; the words after the last sentence only at the end of the whole text."""
        if self._title is None and not self._times:
            yield self._read_title(ends=ends)
        for sentence in self._sentences(last=last):
            if self.is_over:
                return
            if self._title and not self._times and not sentence.startswith("\n"):
                self._gap = " "  # what is bold begins a sentence
            if self._passes(sentence):
                yield from self._show(sentence)
        if (ends or self.is_over) and self._title is None:
            yield from self._make_title()

    def _read_title(self, *, ends: bool) -> str:
        """Return the title that the model wrote, if there is one and it is good. A bold word that
        begins a sentence is none. If its words may not be shown, the part fails unless there is
        text below of which a title can be made."""
        found = TITLE.match(self._text)
        if found is None:
            return ""
        title, rest = found[1], self._text[found.end() :]
        is_echo = text_size(title) >= MIN_COPIED_TITLE and self._hidden.judge(_words(title)) is True
        fault = self._fault_of(title, is_first=True, is_echo=is_echo)
        if fault is None and self._is_good_title(title):
            self._title, self._text = title, rest
            return found[0]
        if fault is not None and ends and not rest:
            self._fail(fault)
        elif rest or ends:
            self._rejected_title = title
            self._text = rest if not rest or rest.startswith("\n") else f"{title}{rest}"
        return ""

    def _is_good_title(self, title: str) -> bool:
        wide = WIDE_RUN.match(title[-1:]) is not None
        return not (
            _BAD_TITLE.match(title)
            or text_size(title) > MAX_PLAIN_TITLE
            or len(title.split()) > MAX_TITLE_WORDS
            or (len(title.split()) < 2 and not wide)
            or f"**{title}**" in self._style.example
            or self._instructions.judge(_words(title))
        )

    def _sentences(self, *, last: bool) -> Iterator[str]:
        """Take whole sentences off the text."""
        while (found := _SENTENCE_END.search(self._text, 1, MAX_SENTENCE_CHARS)) or (
            len(self._text) > MAX_SENTENCE_CHARS
        ):
            end = found.end() if found else MAX_SENTENCE_CHARS
            sentence, self._text = self._text[:end], self._text[end:]
            yield sentence
        if last:
            sentence, self._text = self._text, ""
            if not self._is_cut_off(sentence):
                yield sentence

    def _is_cut_off(self, sentence: str) -> bool:
        """Return whether the last words lack what was to follow, and are not all of the text."""
        if self.stopped and (self._title or self._times):
            return _SENTENCE_END.search(f"{sentence} ", 1) is None
        return bool(self._times) and _OPEN_END.search(sentence) is not None

    def _passes(self, sentence: str) -> bool:
        """Return whether a sentence may be shown; fail where the whole part may not."""
        words = _words(sentence)
        if not (key := "".join(filter(str.isalnum, words))):
            return False
        times = self._times[key] = self._times.get(key, 0) + (len(key) >= MIN_KEY)
        sentence = _BLANKS.sub(" ", sentence).strip()
        if times > 1 or _OFFERS.match(sentence) or self._is_of_instructions(words, key):
            if times > MAX_TIMES:
                self._fail("loop")
            return False
        is_first, is_echo = len(self._times) == 1, self._hidden.is_in(words)
        code = self._fault_of(sentence, is_first=is_first, is_echo=is_echo)
        if code is not None:
            self._fail(code)
        return code is None

    @cached_property
    def _foreign(self) -> set[str]:
        """The words of the example that the reasoning has not: few parts need them."""
        return self._example.difference(_words(self._passage.text))

    def _is_of_instructions(self, words: list[str], key: str) -> bool:
        """Return whether a sentence repeats the prompt, or tells what its example tells."""
        long = {word for word in words if len(word) > 3}
        shared = long & self._example
        foreign = len(shared & self._foreign) if len(shared) >= MIN_FOREIGN else 0
        is_of_example = foreign >= MIN_FOREIGN and 2 * foreign > len(long)
        is_copied = len(key) >= MIN_KEY and key in self._example_key
        return is_of_example or is_copied or self._instructions.is_in(words)

    def _fault_of(self, sentence: str, *, is_first: bool, is_echo: bool) -> Code | None:
        if is_first and self._answers.match(sentence):
            return "not_a_summary"
        written = detect_language(" ".join([self._said, *self._waiting, sentence]))
        if written and self._language and is_another_language(written, self._language):
            return "language"
        return "echo" if is_echo else None

    def _show(self, sentence: str) -> Iterator[str]:
        """Show a sentence as far as there is room, once the part has its title."""
        size = text_size(sentence)
        if size > self._room:
            self.is_over = True
            if self._said or self._waiting:
                return
            sentence = _shorten(sentence, self._room)
        self._room -= size
        self._waiting.append(sentence)
        if self._title is None and len(self._waiting) >= TITLE_SENTENCES:
            yield from self._make_title()
        elif self._title is not None:
            yield from self._release()

    def _release(self) -> Iterator[str]:
        for sentence in self._waiting:
            words = _BLANKS.sub(" ", sentence.replace("```", "")).strip()
            yield f"{self._gap}{words}"
            self._said += f"{words} "
            self._gap = "" if WIDE_RUN.match(words[-1:]) else " "
        self._waiting.clear()

    def _make_title(self) -> Iterator[str]:
        """Make a title of what is shown below it, and show both."""
        from abridge.summarizers.extractive.titles.make import (  # noqa: PLC0415 -- many words
            make_title,
        )
        from abridge.summarizers.extractive.titles.rating import TitleSource  # noqa: PLC0415 -- the same

        if self._style.title_only and self._rejected_title:
            self._waiting = [self._rejected_title]
        if not self._waiting:
            return
        self._title = make_title(
            [TitleSource(text) for text in self._waiting], self._passage.titles
        )
        yield f"**{self._title}**"
        if not self._style.title_only:
            yield from self._release()

    def _fail(self, code: Code) -> None:
        self.failure = self.failure or SummarizerError(code, FAILURES[code])
        self.is_over = True


class TranslationChecks(Checks):
    """Checks a translation, which is shown once it is whole, in its own form."""

    _answers = _NO_TRANSLATIONS

    def feed(self, text: str, *, last: bool = False) -> str:
        if self.is_over:
            return ""
        self._text += self._cleaner.feed(self._thinking.feed(text, last=last), last=last)
        if self._loops.found_in(text):
            self._fail("loop")
        elif last:
            self._end()
        self.is_over = self.is_over or last
        return self._text if last and self.failure is None else ""

    def _end(self) -> None:
        """Take off what frames the translation but not what it translates; fail if it is none, or
        not all of one."""
        original = self._passage.text.strip()
        self._text = unframed(self._text) if unframed(original) == original else self._text.strip()
        code = self._fault_of(self._text, is_first=True, is_echo=False)
        if self.stopped or code is not None:
            self._fail(code or "not_a_summary")


def _shorten(sentence: str, size: float) -> str:
    """Return the words of a sentence that fit."""
    end = next(end for end in range(len(sentence), -1, -1) if text_size(sentence[:end]) < size)
    words = sentence[:end].rpartition(" ")[0] or sentence[:end]
    return f"{words}…"
