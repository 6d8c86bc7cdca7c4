"""Reasoning inline in a content: in a text, or in the text chunks of a list."""

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
    """A content told apart: the reasoning in it, and what is left.

    `thinking`: some of it stood within a block, if only its tags.
    """

    raw: str
    content: Any
    thinking: bool


class TagReader:
    """Tells the contents of one choice's deltas apart.

    Beside a field that holds reasoning, tags in the text are the answer's own, unless raw is
    hidden: then they may hold what the field holds, and what they hold was heard there.
    """

    def __init__(self, profile: Profile, *, hidden: bool) -> None:
        self._splitter = Splitter(profile.tags, prefilled=profile.prefilled)
        self._left = profile.tags if hidden else ()
        self._hidden = hidden
        self._fielded = False

    @property
    def holding(self) -> bool:
        """Whether text is kept back that may yet become a block."""
        return self._splitter.holding

    @property
    def answering(self) -> bool:
        """Whether no content can hold reasoning any more."""
        return self._splitter.answering

    def give_way(self) -> None:
        """A field holds reasoning."""
        if not self._fielded:
            self._fielded = True
            self._splitter.narrow(self._left)

    def read(self, delta: Json, *, over: bool) -> Inline | None:
        """The delta's content told apart; None where it stays as it is."""
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
    """The reasoning in a whole content, and what is left.

    `alone`: it stands nowhere else, so that the template's own tag may be meant.
    """
    prefilled = profile.prefilled and alone
    if content is None:
        return "", None
    if not prefilled and isinstance(content, str) and "<" not in content and "◁" not in content:
        return "", content  # as nearly always: no tag begins otherwise
    splitter = Splitter(profile.tags, prefilled=prefilled)
    raw, kept = tell_apart(content, splitter)
    return add_rest(raw, kept, splitter.end())


def closes_unopened(text: str, profile: Profile) -> bool:
    """Whether a text closes, on a line of its own and outside of code, a block that nothing opened:
    as where the prompt's template opens it, and no server parses it."""
    for tag in profile.tags[:1]:
        head, closing, rest = text.partition(tag.closing)
        alone = bool(closing) and head.endswith("\n") and rest.startswith("\n")
        return alone and tag.opening not in head and head.count("```") % 2 == 0
    return False


def tell_apart(content: Any, splitter: Splitter) -> tuple[str, Any]:
    """The reasoning in more of a content, and what is left of it."""
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
    """Add what a splitter had kept back."""
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
