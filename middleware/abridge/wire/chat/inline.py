"""Split inline reasoning, between tags, from a content: a text, or the text chunks of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from abridge.wire.chat.dialects import ANSWER
from abridge.wire.codec import Json, string
from abridge.wire.profiles import Profile
from abridge.wire.think import Piece, Splitter


@dataclass(slots=True)
class Inline:
    """A content split into inline reasoning and the rest."""

    raw: str
    content: Any
    thinking: bool  # some of it was inside a block, if only the tags


class TagReader:
    """Split the contents of one choice's deltas.

    Where a field holds the reasoning, tags in the text belong to the answer. If raw is hidden they
    are split off all the same, since they may repeat the field, and what they hold is dropped.
    """

    def __init__(self, profile: Profile, *, hidden: bool) -> None:
        self._splitter = Splitter(profile.tags, prefilled=profile.prefilled)
        self._left = profile.tags if hidden else ()
        self._hidden = hidden
        self._fielded = False

    @property
    def holding(self) -> bool:
        """Text is held back that may yet become a block."""
        return self._splitter.holding

    @property
    def answering(self) -> bool:
        """No further content can hold reasoning."""
        return self._splitter.answering

    def give_way(self) -> None:
        """Note that a field of the deltas holds the reasoning."""
        if not self._fielded:
            self._fielded = True
            self._splitter.narrow(self._left)

    def read(self, delta: Json, *, over: bool) -> Inline | None:
        """Split the delta's content; None if it stays as it is."""
        splitter, content = self._splitter, delta.get("content")
        if splitter.answering:
            return None
        interrupted = any(delta.get(key) for key in ANSWER[1:])
        if not (content or over or interrupted):
            return None
        thinking = splitter.inside
        raw, kept = tell_apart(content, splitter)
        if over or interrupted:
            raw, kept = add_rest(raw, kept, splitter.end() if over else splitter.interrupt())
        thinking = bool(raw) or thinking or splitter.inside
        if not thinking and kept == content:
            return None
        return Inline("" if self._fielded and self._hidden else raw, kept, thinking)


def split_inline(content: Any, profile: Profile, *, alone: bool) -> tuple[str, Any]:
    """Split a whole content into reasoning and the rest.

    With `no_field` no field holds reasoning, so the prompt's template may have opened the block.
    """
    prefilled = profile.prefilled and alone
    if content is None:
        return "", None
    if not prefilled and isinstance(content, str) and "<" not in content and "◁" not in content:
        return "", content  # the usual case: every tag begins with one of these
    splitter = Splitter(profile.tags, prefilled=prefilled)
    raw, kept = tell_apart(content, splitter)
    return add_rest(raw, kept, splitter.end())


def closes_unopened(text: str, profile: Profile) -> bool:
    """Return whether a text closes a block that nothing opened, on a separate line and not in code.

    That happens when the prompt's template opens the block and no server parses it.
    """
    for tag in profile.tags[:1]:
        head, closing, rest = text.partition(tag.closing)
        alone = bool(closing) and head.endswith("\n") and rest.startswith("\n")
        return alone and tag.opening not in head and head.count("```") % 2 == 0
    return False


def tell_apart(content: Any, splitter: Splitter) -> tuple[str, Any]:
    """Split the next content of a stream into reasoning and the rest."""
    if isinstance(content, str):
        return _join(splitter.feed(content))
    if not isinstance(content, list):
        return "", content
    reasoning, kept = "", []
    for chunk in content:
        if not _is_text(chunk):
            kept.append(chunk)
            continue
        raw, text = _join(splitter.feed(chunk["text"]))
        reasoning += raw
        if text == chunk["text"]:
            kept.append(chunk)
        elif text:
            kept.append({**chunk, "text": text})
    return reasoning, kept


def add_rest(raw: str, content: Any, rest: Iterable[Piece]) -> tuple[str, Any]:
    """Append what a splitter had held back."""
    more, text = _join(rest)
    if not text:
        return raw + more, content
    if isinstance(content, list):
        return raw + more, [*content, {"type": "text", "text": text}]
    return raw + more, string(content) + text


def _is_text(chunk: Any) -> bool:
    return (
        isinstance(chunk, dict)
        and chunk.get("type") == "text"
        and isinstance(chunk.get("text"), str)
    )


def _join(pieces: Iterable[Piece]) -> tuple[str, str]:
    raw = text = ""
    for piece in pieces:
        if piece.kind == "raw":
            raw += piece.text
        else:
            text += piece.text
    return raw, text
