"""Find thinking in text that is shown, wherever it stands, where raw reasoning is hidden.

`tags.py` looks for the blocks that a profile names, at the beginning of an answer. This filter
takes whatever looks like thinking for thinking: blocks of any known form in any spelling, in the
middle of an answer, too, and text before a closing tag that nothing opened. Only a tag in backticks
is text, since answers about tags quote them so.

A model's template may open the block in the prompt, so that an answer begins inside it. Text is
therefore held back until a block has closed, or the reasoning has come elsewhere, or the text ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from abridge.providers.profile import Profile
from abridge.stages.tag_forms import (
    ANY_TAG,
    FORMS,
    INCOMPLETE,
    MAX_TAG,
    STARTERS,
    TAG_PATTERNS,
    Form,
    split_unmarked,
)
from abridge.stages.tags import BLANK_LINES, MAX_LEADING_BLANKS, TagPiece

_STRING_REST = re.compile(r'(?:[^"\\]++|\\.)*+(?=")', re.DOTALL)
"""The rest of a string of JSON, up to its end."""


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
        self._limit = limit
        self._buffer = ""
        self._shown = 0  # characters of the buffer that went out as the text was interrupted
        self._held: list[str] = []  # the undecided text but for the buffer
        self._held_size = 0
        self.open_form: Form | None = FORMS[0] if begins_inside else None  # of the open block
        self.is_assumed = begins_inside  # the prompt opened the block; no text of it has come yet
        self._block_has_text = False
        self._blank: str | None = None  # white space after a block, before the answer
        self.found = False  # there was thinking in the text
        self.blocks = 0  # blocks that were closed

    @classmethod
    def for_answer(
        cls, profile: Profile, limit: int, *, after: ThinkingFilter | None = None
    ) -> ThinkingFilter:
        """Return the filter for a text of an answer, which goes on with the block that the one
        `after` which it comes left open."""
        thinking = cls(
            may_begin_inside=not profile.parses_text, limit=limit, begins_inside=profile.prefilled
        )
        if after is not None and after.open_form is not None:
            thinking.open_form, thinking.is_assumed = after.open_form, after.is_assumed
        return thinking

    @property
    def has_held_text(self) -> bool:
        return len(self._buffer) > self._shown or bool(self._held)

    @property
    def is_inside(self) -> bool:
        """A block is open."""
        return self.open_form is not None

    def passes(self, text: str) -> bool:
        """Return whether `feed` would return just this text."""
        settled = self._blank is None and not (self._undecided or self._buffer or self.open_form)
        return settled and STARTERS.search(text) is None and not text.endswith("`")

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
        self._buffer += text
        pieces = [piece for piece in self._split(at_end=False) if piece.text]
        if self._held_size > self._limit:
            pieces += self.note_reasoning()
        return pieces

    def interrupt(self) -> list[TagPiece]:
        """Return the text that was held back, unless a block is open: another part of the answer
        follows."""
        return [] if self.is_inside else self.end()

    def end(self) -> list[TagPiece]:
        """End the text; return what was held back."""
        return self._end("text")

    def abort(self) -> list[TagPiece]:
        """End a text that breaks off; what was held back may be thinking."""
        return self._end("raw")

    def _end(self, kind: Literal["raw", "text"]) -> list[TagPiece]:
        """End the text; return what was held back, as the kind that it is taken for."""
        pieces = list(self._split(at_end=True))
        if self._undecided:
            self._undecided = False
            pieces += self._take_held(kind)
        return [piece for piece in pieces if piece.text]

    def _split(self, *, at_end: bool) -> Iterator[TagPiece]:
        """Split what has come, and keep what may be the beginning of a tag. At the end that goes
        out as well, but is kept in case that more follows all the same."""
        buffer, position, shown = self._buffer, 0, self._shown
        settled = len(buffer) if at_end else _settled_length(buffer)
        tag = self._next_tag(buffer, position)
        while tag is not None and (at_end or not _may_go_on(buffer, tag, settled)):
            yield from self._take_text(buffer[max(position, shown) : tag.start])
            yield from self._take_tag(tag.after(shown))
            position = tag.end
            tag = self._next_tag(buffer, position)
        end = settled if tag is None else min(settled, _with_quote(buffer, tag.start))
        end = max(end, position)
        yield from self._take_text(buffer[max(position, shown) : end])
        kept = max(position, _settled_length(buffer)) if at_end else end
        self._buffer, self._shown = buffer[kept:], max(shown, end) - kept

    def _take_text(self, text: str) -> Iterator[TagPiece]:
        if self.open_form is not None:
            yield self._take_raw(text, self.open_form)
        elif self._undecided:
            self._held.append(text)
            self._held_size += len(text)
        else:
            yield TagPiece("text", self._take_answer(text))

    def _take_raw(self, text: str, form: Form) -> TagPiece:
        if not self._block_has_text:
            text = text.lstrip()
        if self.is_assumed and (opening := form.opening.match(text)) is not None:
            text = text[opening.end() :].lstrip()
        if text and not self._block_has_text:
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
        an opening one text."""
        if self.open_form is not None:
            self.open_form, self._blank, self.is_assumed = None, "", False
            self.blocks += 1
        elif tag.opens:
            yield from self._take_held("text")
            self.open_form, self._block_has_text = tag.form, False
        else:
            yield from self._take_held("raw")
            self._blank = ""
            self.blocks += 1
        self._undecided = False

    def _take_held(self, kind: str) -> list[TagPiece]:
        held, self._held, self._held_size = "".join(self._held), [], 0
        if kind == "raw":
            held = held.lstrip()
        if kind == "text" and (unmarked := split_unmarked(held)) is not None:
            self.found = True
            return [TagPiece("raw", unmarked[0]), TagPiece("text", unmarked[1])]
        self.found = self.found or (kind == "raw" and bool(held))
        return [TagPiece("raw" if kind == "raw" else "text", held)] if held else []

    def _next_tag(self, buffer: str, position: int) -> _FoundTag | None:
        """Find the next tag that counts: any, or inside a block the one that closes it."""
        if (form := self.open_form) is not None:
            closing = form.closing.search(buffer, position)
            return None if closing is None else _FoundTag.of(closing, form, opens=False)
        for starter in STARTERS.finditer(buffer, position):
            if ANY_TAG.match(buffer, starter.start()) is None:
                continue
            for form, opens, pattern in TAG_PATTERNS:
                match = pattern.match(buffer, starter.start())
                if match is not None and not _is_quoted(buffer, match):
                    return _FoundTag.of(match, form, opens=opens)
        return None


class BlockFilter(ThinkingFilter):
    """Separate thinking from a text that may mention its tags, as the arguments of a call may.

    Only a closed block is thinking. So it is held back, at most `limit` characters of it.
    """

    def __init__(self, *, limit: int) -> None:
        super().__init__(may_begin_inside=False, limit=limit)

    def _end(self, kind: Literal["raw", "text"]) -> list[TagPiece]:
        return [*super()._end(kind), *self._take_block(kind)]

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
            yield from self._take_block("raw")
        elif tag.opens:
            self.open_form = tag.form
            self._keep(tag.text)
        else:
            yield TagPiece("text", tag.text)

    def _keep(self, text: str) -> None:
        if text:
            self._held.append(text)
            self._held_size += len(text)

    def _take_block(self, kind: Literal["raw", "text"]) -> list[TagPiece]:
        held, self._held, self._held_size = "".join(self._held), [], 0
        self.open_form = None
        return [TagPiece(kind, held)] if held else []


class JsonBlockFilter(BlockFilter):
    """Separate thinking from JSON, as the arguments of a function are.

    A block that begins inside a string ends inside it. Else its tags are text, and without what is
    between them no JSON would be left.
    """

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self._last = ""  # the last character that is shown, but for white space
        self._begins_in_string = False
        self._escapes = False  # the next character of the open block is escaped

    def passes(self, text: str) -> bool:
        """Return whether `feed` would return just this text. If so, it counts as shown."""
        passes = super().passes(text)
        if passes:
            self._note_shown(text)
        return passes

    def _next_tag(self, buffer: str, position: int) -> _FoundTag | None:
        """Find the next tag, or the end of the string that the open block begins in."""
        tag, form = super()._next_tag(buffer, position), self.open_form
        if form is None or not self._begins_in_string:
            return tag
        begin = position + (self._escapes and position == 0)
        rest = _STRING_REST.match(buffer, begin, len(buffer) if tag is None else tag.start)
        return tag if rest is None else _FoundTag(rest.end(), rest.end(), "", form, opens=False)

    def _take_text(self, text: str) -> Iterator[TagPiece]:
        if self.open_form is None:
            self._note_shown(text)
        elif text:
            goes_on = self._escapes and not text.strip("\\")
            self._escapes = (len(text) - len(text.rstrip("\\")) + goes_on) % 2 == 1
        yield from super()._take_text(text)

    def _note_shown(self, text: str) -> None:
        self._last = text.rstrip()[-1:] or self._last

    def _take_tag(self, tag: _FoundTag) -> Iterator[TagPiece]:
        if tag.opens:
            self._begins_in_string = self._last not in ("", "}", "]")
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

    @classmethod
    def of(cls, match: re.Match[str], form: Form, *, opens: bool) -> _FoundTag:
        return cls(match.start(), match.end(), match[0], form, opens)

    def after(self, shown: int) -> _FoundTag:
        """Return the tag without what of it stands before a place."""
        return self._replace(text=self.text[max(0, shown - self.start) :])


def _may_go_on(buffer: str, tag: _FoundTag, settled: int) -> bool:
    """Return whether a tag may yet turn out to be quoted, to be longer, as harmony's end, or to be
    inside of one that begins before it. The text may go on from `settled`."""
    if settled <= tag.start:
        return True
    return tag.end == len(buffer) and _with_quote(buffer, tag.start) < tag.start


def _is_quoted(buffer: str, match: re.Match[str]) -> bool:
    """Return whether backticks enclose a tag."""
    start, end = match.span()
    return _with_quote(buffer, start) < start and buffer[end : end + 1] == "`"


def _with_quote(buffer: str, start: int) -> int:
    """Return where a tag begins, with the backtick before it if there is one."""
    return start - (buffer[start - 1 : start] == "`")


def _settled_length(buffer: str) -> int:
    """Return how much of a text cannot be the beginning of a tag."""
    for match in STARTERS.finditer(buffer, max(0, len(buffer) - MAX_TAG)):
        if INCOMPLETE.fullmatch(buffer, match.start()):
            return _with_quote(buffer, match.start())
    return _with_quote(buffer, len(buffer))


def visible_text(pieces: Iterable[TagPiece]) -> str:
    """Return the text of these pieces that is shown."""
    return "".join(piece.text for piece in pieces if piece.kind == "text")
