"""Title a stretch that names little itself, by what an earlier title names."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PARTICLE = r"(?:out|into|through|at|for|on|up|with|about)\b"
_TOPIC = re.compile(
    rf"(?:[A-Z][a-z-]+ing\b(?: {_PARTICLE})* |(?![A-Z][a-z-]+ing\b))"
    rf"(?!{_PARTICLE}|that\b|it\b|other |another |(?:the|an?) \w+$)"
    r"(?P<topic>(?:\w+, )?[\w'’.-]+(?: [\w'’.-]+)*)"
)
"""A title, in English without its verb; none that says what is concluded, or names nothing."""


def take_up(earlier: Sequence[str], forms: Sequence[str]) -> list[str]:
    """Return titles of what the first earlier title that names a topic is about."""
    topics = [found["topic"] for title in earlier if (found := _TOPIC.fullmatch(title))]
    return [form.format(topic) for topic in topics[:1] for form in forms]
