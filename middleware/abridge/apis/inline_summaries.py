"""Summaries of Abridge's that a client returns inside the text of an answer, between tags.

Clients write reasoning that they find no field for that way: pydantic-ai does so with every part of
a summary but the first (`models/openai.py`, thinking parts of a Responses request).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from abridge.apis.json import objects, string
from abridge.providers.profile import TAGS, Tag
from abridge.stages.tags import may_have_tags

TEXT_TYPES = ("text", "output_text")
"""Types of the parts of a content that hold an answer's text."""

_OPENINGS = tuple(tag.opening for tag in TAGS)

_BLANK_LINES = re.compile(r"\s*\n")


def strip_content(content: Any, is_our_summary: Callable[[str], bool]) -> Any:
    """Return an answer's content, a text or a list of parts, without Abridge's summaries in it.

    Parts of which nothing is left are left out. Unchanged, the content itself is returned.
    """
    if isinstance(content, str):
        return strip_text(content, is_our_summary)
    if not isinstance(content, list) or not any(map(_may_have_tags, content)):
        return content
    remaining = [rest for part in content for rest in _strip_part(part, is_our_summary)]
    is_same = len(remaining) == len(content) and all(map(operator.is_, remaining, content))
    return content if is_same else remaining


def _may_have_tags(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") not in TEXT_TYPES:
        return False
    return may_have_tags(string(part.get("text")))


def _strip_part(part: Any, is_our_summary: Callable[[str], bool]) -> list[Any]:
    """Return what is left of a part: the part itself, another one, or nothing."""
    if not isinstance(part, dict) or part.get("type") not in TEXT_TYPES:
        return [part]
    text = string(part.get("text"))
    rest = strip_text(text, is_our_summary)
    if rest == text:
        return [part]
    return [{**part, "text": rest}] if rest.strip() else []


def strip_text(text: str, is_our_summary: Callable[[str], bool]) -> str:
    """Return a text without the tagged blocks in it that hold a summary of Abridge's."""
    for tag in TAGS if may_have_tags(text) else ():
        if tag.opening in text:
            text = _strip_blocks(text, tag, is_our_summary)
    return text


def _strip_blocks(text: str, tag: Tag, is_our_summary: Callable[[str], bool]) -> str:
    """Remove blocks between these tags, with the blank lines after them. A block that is not closed
    reaches to the end of the text."""
    kept, position = list[str](), 0
    while (start := text.find(tag.opening, position)) >= 0:
        inner = start + len(tag.opening)
        end = text.find(tag.closing, inner)
        end, after = (len(text), len(text)) if end < 0 else (end, end + len(tag.closing))
        if is_our_summary(text[inner:end]):
            kept.append(text[position:start])
            blank = _BLANK_LINES.match(text, after)
            after = blank.end() if blank else after
        else:
            kept.append(text[position:after])
        position = after
    return "".join([*kept, text[position:]])


def is_tagged(content: Any) -> bool:
    """Return whether a content is nothing but one block of reasoning between tags."""
    parts = [] if isinstance(content, str) else objects(content)
    text = string(content) or "".join([string(part.get("text")) for part in parts])
    if not may_have_tags(text):
        return False
    text = text.strip()
    return text.startswith(_OPENINGS) and any(
        text.startswith(tag.opening) and text.find(tag.closing) == len(text) - len(tag.closing)
        for tag in TAGS
    )
