"""The last exchanges, for the page: what they were and how long all took, and nothing that was said
in them. A client's id may say something, of whom it serves: it is told to nobody, and whoever knows
it may find the exchange by it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict
from itertools import count
from typing import Any

from abridge.telemetry.record import Call, Record, Shown
from abridge.turn.usage import Tokens
from abridge.wire.codec import Json

EXCHANGES = 50
MARKS, NAME = 100, 200
"""Calls and parts of one exchange, and characters of a model's name, that are kept."""

IDENTITY = ("at", "api", "upstream", "model", "stream", "style", "summarizer")
COURSE = ("status", "outcome", "cause", "seconds", "overhead", "characters")
TIMES = ("first_summary", "thinking", "answer")
"""What is kept of a record as it is."""


class Journal:
    """Keeps the last `most` exchanges with the two APIs; `take` is a sink."""

    def __init__(self, most: int = EXCHANGES) -> None:
        self._exchanges: deque[tuple[str, Json]] = deque(maxlen=most)
        self._numbers = count()

    def take(self, record: Record) -> None:
        if record.api is not None:
            told = {"number": next(self._numbers), **entry(record)}
            self._exchanges.appendleft((record.id, told))

    def newest_first(self, by: str | None = None) -> list[Json]:
        """All of them, or those of one id."""
        return [told for known, told in self._exchanges if by in (None, known)]


def entry(record: Record) -> Json:
    """What is kept of one exchange. An answer that came, and for which a summary was due, waited
    for it, if only for no time."""
    waited = record.held > 0 or (record.style != "off" and record.answer is not None)
    return {
        **{name: getattr(record, name) for name in (*IDENTITY, *COURSE, *TIMES)},
        "model": record.model and record.model[:NAME],
        "held": record.held if waited else None,
        "used": _tokens(record.used),
        "spent": _tokens(record.spent),
        "summaries": dict(record.summaries),
        "calls": _marks(record.calls),
        "parts": _marks(record.parts),
    }


def _tokens(tokens: Tokens) -> dict[str, int | None]:
    return {"input": tokens.input, "output": tokens.output, "total": tokens.total}


def _marks(marks: Iterable[Call | Shown]) -> list[dict[str, Any]]:
    return [asdict(mark) for mark in list(marks)[:MARKS]]
