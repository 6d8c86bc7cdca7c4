"""The latest exchanges, for the page: metadata and times, never content.

A client's request id is not listed, since it may identify one of its users; a reader who knows an
id can look up its exchange.
"""

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
"""Limits per exchange: calls and parts listed, and characters of the model's name."""

IDENTITY = ("at", "api", "upstream", "model", "stream", "style", "summarizer")
COURSE = ("status", "outcome", "cause", "seconds", "overhead", "characters")
TIMES = ("first_summary", "thinking", "answer")
"""Attributes copied from the record as they are, under the same names."""


class Journal:
    """Keep the latest `max_exchanges` exchanges with an API; `add` is a sink."""

    def __init__(self, most: int = EXCHANGES) -> None:
        self._exchanges: deque[tuple[str, Json]] = deque(maxlen=most)
        self._numbers = count()

    def take(self, record: Record) -> None:
        if record.api is not None:
            told = {"number": next(self._numbers), **entry(record)}
            self._exchanges.appendleft((record.id, told))

    def newest_first(self, by: str | None = None) -> list[Json]:
        """Return all exchanges, or those with one request id."""
        return [told for known, told in self._exchanges if by in (None, known)]


def entry(record: Record) -> Json:
    """Build the journal's entry for one request.

    `held` is None where the answer never had to wait: no summary was due, or no answer came. An
    answer that was not delayed has 0.
    """
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
