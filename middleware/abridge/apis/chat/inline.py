"""Split inline reasoning, between tags, from a content: a text, or the text chunks of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Any

from abridge.apis.chat.reasoning import (
    ANSWER_FIELDS,
    find_reasoning_place,
    is_text_chunk,
    read_answer_text,
)
from abridge.apis.json import string
from abridge.core.conversation import Json
from abridge.providers.learned import Observation
from abridge.providers.profile import Profile, Tag
from abridge.stages.hidden_thinking import ThinkingFilter
from abridge.stages.tags import TagPiece, TagSplitter, may_have_tags


@dataclass(slots=True)
class InlineSplit:
    """A content split into inline reasoning and the rest."""

    raw: str
    content: Any
    in_block: bool  # some of it was inside a block, if only the tags

    def is_text_of(self, contents: Iterable[Any]) -> bool:
        """Return whether this is the text of these contents, unchanged."""
        text = "".join(map(read_answer_text, contents))
        return not self.in_block and read_answer_text(self.content) == text


class TagReader:
    """Split the contents of one choice's deltas.

    Where a field holds the reasoning, tags in the text belong to the answer.
    """

    def __init__(self, tags: tuple[Tag, ...], *, prefilled: bool) -> None:
        self._splitter = TagSplitter(tags, prefilled=prefilled)
        self._has_field = False

    @property
    def holding(self) -> bool:
        """Text is held back that may yet become a block."""
        return self._splitter.has_held_text

    @property
    def is_inside(self) -> bool:
        """A block is open."""
        return self._splitter.is_inside

    @property
    def answering(self) -> bool:
        """No further content can hold reasoning."""
        return self._splitter.is_answering

    def note_field(self) -> None:
        """Note that a field of the deltas holds the reasoning."""
        if not self._has_field:
            self._has_field = True
            self._splitter.ignore_tags()

    def read(self, delta: Json, *, is_last: bool, gives_up: bool = False) -> InlineSplit | None:
        """Split the delta's content; None if it stays as it is. With `gives_up`, text that is held
        back becomes no block any more."""
        splitter, content = self._splitter, delta.get("content")
        if splitter.is_answering:
            return None
        interrupted = gives_up or any(delta.get(key) for key in ANSWER_FIELDS[1:])
        if not (content or is_last or interrupted):
            return None
        in_block = splitter.is_inside
        raw, rest = split_content(content, splitter)
        if is_last or interrupted:
            raw, rest = append_held(raw, rest, splitter.end() if is_last else splitter.interrupt())
        in_block = bool(raw) or in_block or splitter.is_inside
        if not in_block and rest == content:
            return None
        return InlineSplit(raw, rest, in_block)


def is_plain(content: Any) -> bool:
    """Return whether a content is nothing, or a text of which all is the answer, whatever its
    message holds, unless the prompt's template opened a block."""
    return content is None or (isinstance(content, str) and not may_have_tags(content))


def split_inline(content: Any, profile: Profile, *, no_field: bool) -> tuple[str, Any]:
    """Split a whole content into reasoning and the rest.

    With `no_field` no field holds reasoning, so the prompt's template may have opened the block.
    """
    prefilled = profile.prefilled and no_field
    if content is None or (is_plain(content) and not prefilled):
        return "", content  # the usual case
    splitter = TagSplitter(profile.tags, prefilled=prefilled)
    raw, rest = split_content(content, splitter)
    return append_held(raw, rest, splitter.end())


def observe(message: Json, profile: Profile) -> Observation:
    """Return what a whole message shows of where its provider puts reasoning."""
    place, text = find_reasoning_place(message), string(message.get("content"))
    if place is not None or not text:
        return Observation(place)
    if begins_with_reasoning(text, profile):
        return Observation("tags")
    return Observation(unopened_tags=int(has_unopened_block(text, profile)))


def begins_with_reasoning(text: str, profile: Profile) -> bool:
    """Return whether `split_inline` would find reasoning in a text, without any in a field."""
    return TagSplitter(profile.tags, prefilled=profile.prefilled).has_reasoning(text)


def has_unopened_block(text: str, profile: Profile) -> bool:
    """Return whether a text closes a block that nothing opened, on a separate line and not in code.

    That happens when the prompt's template opens the block and no server parses it.
    """
    for tag in profile.tags[:1]:
        head, closing, rest = text.partition(tag.closing)
        on_separate_line = bool(closing) and head.endswith("\n") and rest.startswith("\n")
        return on_separate_line and tag.opening not in head and head.count("```") % 2 == 0
    return False


def split_content(content: Any, splitter: TagSplitter | ThinkingFilter) -> tuple[str, Any]:
    """Split the next content of a stream into reasoning and the rest."""
    if isinstance(content, str):
        return _join_pieces(splitter.feed(content))
    if not isinstance(content, list):
        return "", content
    reasoning, rest = "", []
    for chunk in content:
        if not is_text_chunk(chunk):
            rest.append(chunk)
            continue
        raw, text = _join_pieces(splitter.feed(chunk["text"]))
        reasoning += raw
        if text == chunk["text"]:
            rest.append(chunk)
        elif text:
            rest.append({**chunk, "text": text})
    return reasoning, rest


def split_parts(parts: list[Any], thinking: ThinkingFilter) -> tuple[str, list[Any]]:
    """Split the last parts of a content into reasoning and the rest, each part in its place.

    Parts of which no text is left are left out.
    """
    text = "".join(part["text"] for part in parts if is_text_chunk(part))
    pieces = [*thinking.feed(text), *thinking.end()]
    shown, rest = iter(_mark_shown(text, pieces)), []
    for part in parts:
        kept = "".join(compress(part["text"], shown)) if is_text_chunk(part) else None
        if kept is None or kept == part["text"]:
            rest.append(part)
        elif kept:
            rest.append({**part, "text": kept})
    return _join_pieces(pieces)[0], rest


def _mark_shown(text: str, pieces: list[TagPiece]) -> bytearray:
    """Mark the characters of a text that are shown: the pieces of it follow each other there."""
    marks, position = bytearray(len(text)), 0
    for kind, piece in pieces:
        found = piece.strip() if kind == "raw" else piece  # blanks may have been added to it
        start = text.find(found, position)
        if start >= 0:
            position = start + len(found)
            marks[start:position] = bytes([kind == "text"]) * len(found)
    return marks


def append_held(raw: str, content: Any, held: Iterable[TagPiece]) -> tuple[str, Any]:
    """Append what a splitter had held back."""
    more, text = _join_pieces(held)
    if not text:
        return raw + more, content
    if isinstance(content, list):
        return raw + more, [*content, {"type": "text", "text": text}]
    return raw + more, string(content) + text


def _join_pieces(pieces: Iterable[TagPiece]) -> tuple[str, str]:
    raw = text = ""
    for piece in pieces:
        if piece.kind == "raw":
            raw += piece.text
        else:
            text += piece.text
    return raw, text
