"""Find thinking in text that is shown, wherever it stands, where raw reasoning is hidden.

`tags.py` looks for the blocks that a profile names, at the beginning of an answer. This filter
takes for thinking blocks of every form that is known, and text before a closing tag that nothing
opened. Where an opening tag counts is a column of the forms; nothing counts in code, since answers
about tags quote them so. Each form is closed by its own tags alone, by the first one that comes.

A model's template may open the block in the prompt, so that an answer begins inside it. Text is
therefore held back until a block has closed, or the reasoning has come elsewhere, or the text ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, Self

from abridge.core.hidden import HiddenCount
from abridge.providers.profile import Profile
from abridge.stages.json_tokens import JsonTokens
from abridge.stages.surroundings import CONTROL_MARK, MAX_SPAN, Surroundings
from abridge.stages.tag_forms import (
    ANY_TAG,
    FORMS,
    INCOMPLETE,
    MAX_PHRASE,
    MAX_TAG,
    PHRASES,
    STARTERS,
    TAG_PATTERNS,
    Form,
    may_begin_phrase,
    split_stripped,
)
from abridge.stages.tags import BLANK_LINES, MAX_LEADING_BLANKS, Kind, TagPiece

_NOTABLE = re.compile(f"{STARTERS.pattern}|`|~")
"""What begins a tag, or code."""

_BLANKS = re.compile(r"[\s\ufeff]*+")
_TOKEN = re.compile(rf"{CONTROL_MARK}[\s\ufeff]*+")

_COMPONENT = re.compile(r"</{0,2}[A-Z][a-z]")
"""A tag as components and types are written in code."""

_OPENS_WORDS = re.compile(r"\w")

_EMPHASIS = re.compile(r"(?:\A|[\s(\[\"'“])([*_]{1,3})\Z")
"""The marks with which an emphasis begins."""

_IN_REGEX = re.compile(r"\(?(?:\?:)?\.[*+]|\(\[|\[\^|\[?\\{1,2}[sSw]")
"""What follows a tag in regular expressions."""

_MENTIONED = re.compile(
    rf"[ \t,;:)\]}}>!?/\"'`|”’»，。；：）！？、」》]|-(?=\w)|\.(?!\.)|\\n|{_IN_REGEX.pattern}"
    r"|标签|標籤|标记|タグ|태그"
)
"""What follows a tag within a line that names it."""

MIN_AFTER = 4
"""So many characters after a tag tell whether a line only names it."""

MAX_PASSED = 32
"""So many pieces may pass before it is noted where they end."""


class ThinkingFilter:
    """Separate thinking from one text that arrives in pieces.

    With `may_begin_inside` text is held back from the beginning, at most `limit` characters, until
    a block has closed or it is certain that it is the answer; with `begins_inside` it begins inside
    a block for sure.
    """

    def __init__(
        self,
        *,
        may_begin_inside: bool,
        limit: int,
        begins_inside: bool = False,
    ) -> None:
        self._undecided = may_begin_inside and not begins_inside
        self._is_vouched_for = not may_begin_inside
        self._limit = limit
        self._buffer = ""
        self._shown = 0  # characters of the buffer that went out as the text was interrupted
        self._held: list[str] = []  # the undecided text but for the buffer
        self._held_size = 0
        self.open_form: Form | None = FORMS[0] if begins_inside else None  # of the open block
        self.is_assumed = begins_inside  # the prompt opened the block; no text of it has come yet
        self._block_has_text = False
        self._last_paragraph = _LastParagraph(limit)
        self._place = Surroundings()  # of the buffer's beginning
        self._passed: list[str] = []  # before the buffer, which the place does not know of
        self._named: set[Form] = set()  # whose opening tags stand in the text
        self._blank: str | None = None  # white space after a block, before the answer
        self.found = False  # there was thinking in the text
        self.blocks = 0  # blocks that were closed
        self.hidden: HiddenCount = Counter()  # by what began them

    @classmethod
    def for_answer(
        cls,
        profile: Profile,
        limit: int,
        *,
        after: ThinkingFilter | None = None,
        hidden: HiddenCount | None = None,
    ) -> ThinkingFilter:
        """Return the filter for a text of an answer, which goes on with the block that the one
        `after` which it comes left open. What it finds is counted in `hidden`."""
        thinking = cls(
            may_begin_inside=not profile.parses_text, limit=limit, begins_inside=profile.prefilled
        )
        if after is not None and after.open_form is not None:
            thinking.open_form, thinking.is_assumed = after.open_form, after.is_assumed
        return thinking if hidden is None else thinking.counting_in(hidden)

    def counting_in(self, hidden: HiddenCount) -> Self:
        """Count what is found in `hidden`; return the filter."""
        self.hidden = hidden
        return self

    @property
    def has_held_text(self) -> bool:
        return len(self._buffer) > self._shown or bool(self._held)

    @property
    def is_inside(self) -> bool:
        """A block is open."""
        return self.open_form is not None

    def passes(self, text: str) -> bool:
        """Return whether `feed` would return just this text. If so, it is taken to have been said
        here, whether or not it is fed as well."""
        settled = self._blank is None and not (self._undecided or self._buffer or self.open_form)
        if not settled or _NOTABLE.search(text) is not None:
            return False
        self._passed.append(text)
        if len(self._passed) > MAX_PASSED:
            self._note_passed()
        return True

    def _note_passed(self) -> None:
        self._place = self._place.after("".join(self._passed))
        self._passed.clear()

    def note_reasoning(self) -> list[TagPiece]:
        """Note that the reasoning has come elsewhere; return the text that was held back for it."""
        if self.is_assumed:
            self.open_form, self.is_assumed = None, False
        if not self._undecided:
            return []
        self._undecided = False
        return self._take_held("text")

    def feed(self, text: str) -> list[TagPiece]:
        if self.passes(text):
            return [TagPiece("text", text)] if text else []
        if self._is_plain(text):
            self._passed.append(text)
            found = self._take_text(text)
        else:
            self._note_passed()
            self._buffer += text
            found = self._split(at_end=False)
        pieces = [piece for piece in found if piece.text]
        if self._held_size > self._limit:
            pieces += self.note_reasoning()
        return pieces

    def _is_plain(self, text: str) -> bool:
        """Return whether there is no tag in a text, nor a phrase that begins it."""
        may_be_phrase = self._undecided and self._place.is_start
        is_apart = not (self._buffer or self.open_form or may_be_phrase)
        return is_apart and STARTERS.search(text) is None

    def interrupt(self) -> list[TagPiece]:
        """Return the text that was held back, unless a block is open: another part of the answer
        follows."""
        return [] if self.is_inside else self.end()

    def end(self, undecided: Kind = "text") -> list[TagPiece]:
        """End the text; return what was held back. What is `undecided` is taken for this kind: in a
        text that breaks off it may be thinking."""
        self._note_passed()
        pieces = list(self._split(at_end=True))
        pieces += self._last_paragraph.end(undecided)
        if self._undecided:
            self._undecided = False
            if undecided == "raw" and self._held:
                self.hidden["cut"] += 1
            pieces += self._take_held(undecided)
        return [piece for piece in pieces if piece.text]

    def _split(self, *, at_end: bool) -> Iterator[TagPiece]:
        """Split what has come, and keep what may be the beginning of a tag. At the end that goes
        out as well, but is kept in case that more follows all the same."""
        buffer, position, shown = self._buffer, 0, self._shown
        beginning = _partial_tag_start(buffer)
        while True:
            settled = len(buffer) if at_end else self._settled_length(buffer, beginning)
            tag = self._next_tag(buffer, position, at_end=at_end)
            if tag is None or not (at_end or (tag.is_certain and tag.start < settled)):
                break
            yield from self._take_text(buffer[max(position, shown) : tag.start])
            yield from self._take_tag(tag.after(shown))
            position, self._place = tag.end, Surroundings()
        end = max(position, settled if tag is None else min(settled, tag.start))
        yield from self._take_text(buffer[max(position, shown) : end])
        kept = max(position, self._settled_length(buffer, beginning)) if at_end else end
        if self.open_form is None:
            self._place = self._place.after(buffer[position:kept])
        self._buffer, self._shown = buffer[kept:], max(shown, end) - kept

    def _settled_length(self, buffer: str, beginning: int) -> int:
        """Return how much of a text cannot be the beginning of a tag, which may be at its end."""
        in_phrase = self.open_form is not None and self.open_form.is_phrase
        return max(0, len(buffer) - MAX_PHRASE) if in_phrase else beginning

    def _take_text(self, text: str) -> Iterator[TagPiece]:
        if self.open_form is not None:
            if self.open_form.ends_last:
                text = self._last_paragraph.take(text)
            yield self._take_raw(text, self.open_form)
        elif self._undecided:
            self._held += [text] if text else []
            self._held_size += len(text)
        else:
            yield TagPiece("text", self._take_answer(text))

    def _take_raw(self, text: str, form: Form) -> TagPiece:
        if not self._block_has_text:
            text = text.lstrip()
        if self.is_assumed and (opening := form.opening.match(text)) is not None:
            text = text[opening.end() :].lstrip()
        if text and not self._block_has_text:
            if self.is_assumed:
                self.hidden["template"] += 1
            self.is_assumed = False
            text = (form.separator if self.found else "") + text
            self._block_has_text = self.found = True
        return TagPiece("raw", text)

    def _take_answer(self, text: str) -> str:
        """Return text of the answer; blank lines between a block and it belong to the block."""
        if self._blank is None:
            return text
        self._blank += text
        if not self._blank.strip() and len(self._blank) <= MAX_LEADING_BLANKS:
            return ""
        text, self._blank = BLANK_LINES.sub("", self._blank), None
        return text

    def _take_tag(self, tag: _FoundTag) -> Iterator[TagPiece]:
        """Open or close a block. A closing tag that nothing opened makes thinking of what was held,
        an opening one text. Other control tokens are left out."""
        if self.open_form is not None:
            yield from self._last_paragraph.end("raw")
            self.open_form, self._blank, self.is_assumed = None, "", False
            self.blocks += 1
        elif tag.opens:
            yield from self._take_held("text")
            self.open_form, self._block_has_text = tag.form, False
            self.hidden[tag.form.boundary] += 1
        elif self._undecided and tag.form.lone.search(tag.text) is not None:
            yield from self._take_held("raw")
            self._blank = ""
            self.blocks += 1
            self.hidden["closing_tag"] += 1
        else:
            self._held += [""] if self._held else []  # there is a gap in what is held
            return
        self._undecided = False

    def _take_held(self, kind: Kind) -> list[TagPiece]:
        texts = ["".join(group) for is_text, group in groupby(self._held, bool) if is_text]
        held, self._held, self._held_size = "".join(texts), [], 0
        if kind == "raw":
            held = held.lstrip()
        if kind == "text" and (stripped := split_stripped(held)) is not None:
            self.found = True
            self.hidden["phrase"] += 1
            return [TagPiece("raw", stripped[0]), TagPiece("text", stripped[1])]
        self.found = self.found or (kind == "raw" and bool(held))
        if kind == "raw":
            return [TagPiece("raw", held)] if held else []
        return [TagPiece("text", text) for text in texts]

    def _next_tag(self, buffer: str, position: int, *, at_end: bool) -> _FoundTag | None:
        """Find the next tag that counts: any, or inside a block the one that closes it."""
        if (form := self.open_form) is not None:
            closing = form.closing.search(buffer, position)
            return None if closing is None else _FoundTag.of(closing, form, opens=False)
        phrase = self._find_phrase(buffer, position) if self._undecided else None
        if phrase is not None and (phrase.is_certain or not at_end):
            return phrase
        place, read = self._place, position
        for starter in STARTERS.finditer(buffer, position):
            if ANY_TAG.match(buffer, starter.start()) is None:
                continue
            place, read = place.after(buffer[read : starter.start()]), starter.start()
            for form, opens, pattern in TAG_PATTERNS:
                match = pattern.match(buffer, starter.start())
                if match is None:
                    continue
                tag = _FoundTag.of(match, form, opens=opens)
                counts = self._counts(tag, place, buffer[tag.end :][:MAX_SPAN], at_end=at_end)
                if counts is not False:
                    return tag._replace(is_certain=counts is True)
                if opens:
                    self._named.add(form)
        return None

    def _find_phrase(self, buffer: str, position: int) -> _FoundTag | None:
        """Find the phrase that begins the text, or what may become one."""
        if not self._place.is_start:
            return None
        before = _BLANKS.match(buffer, position)
        while before is not None:
            start = before.end()
            for form in PHRASES:
                if (match := form.opening.match(buffer, start)) is not None:
                    return _FoundTag.of(match, form, opens=True)
            if may_begin_phrase(buffer[start : start + MAX_TAG]):
                return _FoundTag(start, start, "", PHRASES[0], opens=True, is_certain=False)
            is_tag = any(pattern.match(buffer, start) for _, _, pattern in TAG_PATTERNS)
            before = None if is_tag else _TOKEN.match(buffer, start)
        return None

    def _counts(
        self, tag: _FoundTag, place: Surroundings, after: str, *, at_end: bool
    ) -> bool | None:
        """Return whether a tag counts where it stands, before this; None while that cannot be
        told."""
        form = tag.form
        is_code = place.is_code(after, at_end=at_end)
        if is_code is not False:
            return None if is_code is None else False
        if form.place == "any" or (tag.opens and place.is_start):
            may_be_link = tag.text.endswith("]") and not (after or at_end)
            return None if may_be_link else True
        if not tag.opens:
            was_named = form in self._named
            if was_named and len(after) < MIN_AFTER and not at_end:
                return None
            is_named = form.place == "start" or _is_emphasised(place.line, after)
            return not (self._is_vouched_for or (was_named and is_named) or tag.is_component)
        return form.place == "line" and _opens_within(tag, place, after, at_end=at_end)


def _partial_tag_start(buffer: str) -> int:
    """Return where the beginning of a tag stands at the end of a text; its length without one."""
    for match in STARTERS.finditer(buffer, max(0, len(buffer) - MAX_TAG)):
        if INCOMPLETE.fullmatch(buffer, match.start()):
            return match.start()
    return len(buffer)


class BlockFilter(ThinkingFilter):
    """Separate thinking from a text that may mention its tags, as the arguments of a call may.

    Only a closed block is thinking. So it is held back, at most `limit` characters of it.
    """

    def __init__(self, *, limit: int) -> None:
        super().__init__(may_begin_inside=False, limit=limit)

    def end(self, undecided: Kind = "text") -> list[TagPiece]:
        return [*super().end(undecided), *self._take_block(undecided)]

    def _next_tag(self, buffer: str, position: int, *, at_end: bool) -> _FoundTag | None:
        """Find the next tag. One between two backticks, which a text names, closes nothing."""
        tag = super()._next_tag(buffer, position, at_end=at_end)
        while self.open_form is not None and tag is not None and self._is_quoted(buffer, tag):
            if tag.end == len(buffer) and not at_end:
                return tag._replace(is_certain=False)
            tag = super()._next_tag(buffer, tag.end, at_end=at_end)
        return tag

    def _is_quoted(self, buffer: str, tag: _FoundTag) -> bool:
        """Return whether a tag stands between backticks, or may do so at the buffer's end."""
        before = buffer[tag.start - 1] if tag.start else "".join(self._held[-1:])[-1:]
        return before == "`" and buffer.startswith("`", tag.end) | (tag.end == len(buffer))

    def _take_text(self, text: str) -> Iterator[TagPiece]:
        if self.open_form is None:
            yield TagPiece("text", text)
            return
        self._keep(text)
        if self._held_size > self._limit:
            yield from self._take_block("text")

    def _take_tag(self, tag: _FoundTag) -> Iterator[TagPiece]:
        if self.open_form is not None:
            self._keep(tag.text)
            self.blocks += 1
            self.hidden[self.open_form.boundary] += 1
            yield from self._take_block("raw")
        elif tag.opens:
            self.open_form = tag.form
            self._keep(tag.text)

    def _counts(
        self, tag: _FoundTag, place: Surroundings, after: str, *, at_end: bool
    ) -> bool | None:
        """Return whether a tag opens a block: one outside code, since most is written in calls."""
        if not tag.opens:
            return False
        if len(after) < MIN_AFTER and not at_end:
            return None
        if _IN_REGEX.match(after) is not None or not tag.opens_words(after):
            return False
        is_code = place.is_code(after, at_end=at_end)
        return None if is_code is None else not is_code

    def _keep(self, text: str) -> None:
        if text:
            self._held.append(text)
            self._held_size += len(text)

    def _take_block(self, kind: Kind) -> list[TagPiece]:
        held, self._held, self._held_size = "".join(self._held), [], 0
        self.open_form = None
        return [TagPiece(kind, held)] if held else []


class JsonBlockFilter(BlockFilter):
    """Separate thinking from JSON, as the arguments of a function are.

    A block that begins inside a string ends inside it. Else its tags are text, and without what is
    between them no JSON would be left. What is no JSON is thinking, too.
    """

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self._tokens = JsonTokens()
        self._escapes = False  # the next character of the open block is escaped

    def passes(self, text: str) -> bool:
        """Return whether `feed` would return just this text, which is taken then."""
        if (tokens := self._tokens.after(text)) is None or not super().passes(text):
            return False
        self._tokens = tokens
        return True

    def feed(self, text: str) -> list[TagPiece]:
        pieces = super().feed(text)
        self._count_strays()
        return pieces

    def end(self, undecided: Kind = "text") -> list[TagPiece]:
        pieces = [*super().end(undecided), *self._tokens.end()]
        self._count_strays()
        return pieces

    def _count_strays(self) -> None:
        strays, self._tokens.strays = self._tokens.strays, 0
        self.blocks += strays
        if strays:
            self.hidden["stray"] += strays

    def _next_tag(self, buffer: str, position: int, *, at_end: bool) -> _FoundTag | None:
        """Find the next tag, or the end of the string that the open block begins in."""
        tag, form = super()._next_tag(buffer, position, at_end=at_end), self.open_form
        if form is None:
            return tag
        begin = position + (self._escapes and position == 0)
        end = self._tokens.end_of_string(buffer, begin, len(buffer) if tag is None else tag.start)
        return tag if end is None else _FoundTag(end, end, "", form, opens=False)

    def _take_text(self, text: str) -> Iterator[TagPiece]:
        if self.open_form is None:
            yield from self._tokens.take(text)
            return
        if text:
            goes_on = self._escapes and not text.strip("\\")
            self._escapes = (len(text) - len(text.rstrip("\\")) + goes_on) % 2 == 1
        yield from super()._take_text(text)

    def _take_block(self, kind: Kind) -> list[TagPiece]:
        """Return what was held of a block. What is no JSON is sorted out of what is shown."""
        taken = super()._take_block(kind)
        return [*self._tokens.take("".join(p.text for p in taken))] if kind == "text" else taken

    def _take_tag(self, tag: _FoundTag) -> Iterator[TagPiece]:
        if tag.opens:
            self._escapes = False
        elif not tag.text:
            yield from self._take_block("text")
            return
        yield from super()._take_tag(tag)


class _FoundTag(NamedTuple):
    start: int
    end: int
    text: str
    form: Form
    opens: bool
    is_certain: bool = True  # whatever comes next

    @classmethod
    def of(cls, match: re.Match[str], form: Form, *, opens: bool) -> _FoundTag:
        return cls(match.start(), match.end(), match[0], form, opens)

    def after(self, shown: int) -> _FoundTag:
        """Return the tag without what of it stands before a place."""
        return self._replace(text=self.text[max(0, shown - self.start) :])

    @property
    def is_component(self) -> bool:
        return _COMPONENT.match(self.text) is not None

    def opens_words(self, after: str) -> bool:
        """Return whether a tag that is written as a component opens words, as those do not that
        code consists of; any other does."""
        if not self.is_component:
            return True
        return self.form.place == "line" and _OPENS_WORDS.match(after) is not None


def _opens_within(tag: _FoundTag, place: Surroundings, after: str, *, at_end: bool) -> bool | None:
    """Return whether a tag that no document uses opens a block after the text's start. Within a
    line it does where words follow it at once; elsewhere the line names it."""
    is_line_start = place.is_line_start
    if is_line_start and not tag.is_component:
        return True
    if len(after) < MIN_AFTER and not at_end:
        return None
    if not tag.opens_words(after):
        return False
    follows_name = place.line[-1:].isalnum()
    is_named = _MENTIONED.match(after) is not None or (follows_name and not after[:1].isalnum())
    return is_line_start or not (is_named or _is_emphasised(place.line, after))


def _is_emphasised(line: str, after: str) -> bool:
    """Return whether an emphasis begins just before a tag, and ends just after it."""
    begins = _EMPHASIS.search(line)
    if begins is None or not after.startswith(begins[1]):
        return False
    return not after[len(begins[1]) :][:1].isalnum()


class _LastParagraph:
    """Hold back the last paragraph of thinking, which may be the answer: at most `limit` characters
    of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: list[str] = []
        self._blank = ""
        self._size = 0
        self._is_second = False  # a blank line came before it

    def take(self, text: str) -> str:
        """Take more text; return what it ends of the thinking."""
        text = self._blank + text
        said = text.rstrip()
        self._blank = text[len(said) :]
        at = said.rfind("\n\n")
        if at >= 0:
            self._is_second = True
            before, self._held = "".join(self._held) + said[: at + 2], [said[at + 2 :]]
            self._size = len(self._held[0])
            return before
        self._size += len(said)
        self._held.append(said)
        if self._size + len(self._blank) <= self._limit:
            return ""
        before, self._held, self._size = "".join(self._held) + self._blank, [], 0
        self._blank, self._is_second = "", False
        return before

    def end(self, undecided: Kind) -> list[TagPiece]:
        """Return what was held back. A first paragraph is thinking, a later one undecided."""
        text, self._held, self._size = "".join(self._held) + self._blank, [], 0
        kind, self._blank, self._is_second = undecided if self._is_second else "raw", "", False
        return [TagPiece(kind, text)] if text else []


def visible_text(pieces: Iterable[TagPiece]) -> str:
    """Return the text of these pieces that is shown."""
    return "".join(piece.text for piece in pieces if piece.kind == "text")
