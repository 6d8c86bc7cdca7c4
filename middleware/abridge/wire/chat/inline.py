"""Reasoning inline in a content: in a text, or in the text chunks of a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from abridge.wire.codec import string
from abridge.wire.profiles import Profile
from abridge.wire.think import Piece, Splitter


def split_inline(content: Any, profile: Profile, *, alone: bool) -> tuple[str, Any]:
    """The reasoning in a whole content, and what is left.

    `alone`: it stands nowhere else, so that the template's own tag may be meant.
    """
    splitter = Splitter(profile.tags, prefilled=profile.prefilled and alone)
    raw, kept = tell_apart(content, splitter)
    return add_rest(raw, kept, splitter.end())


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
        isinstance(chunk, dict) and chunk.get("type") == "text" and isinstance(chunk["text"], str)
    )


def _join(pieces: Iterable[Piece]) -> tuple[str, str]:
    raw = text = ""
    for piece in pieces:
        if piece.kind == "raw":
            raw += piece.text
        else:
            text += piece.text
    return raw, text
