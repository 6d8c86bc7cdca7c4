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

from abridge.core.conversation import Json
from abridge.core.usage import Tokens
from abridge.observability.record import Record, ShownPart, SummarizerCall

MAX_EXCHANGES = 50

MAX_TIMINGS, MAX_MODEL_CHARS = 100, 200
"""Limits per exchange: calls and parts listed, and characters of the model's name."""

IDENTITY_FIELDS = ("at", "api", "upstream", "model", "stream", "style", "summarizer")

RESULT_FIELDS = ("status", "outcome", "cause", "seconds", "overhead", "characters")

TIME_FIELDS = ("first_summary", "thinking", "answer")
"""Attributes copied from the record as they are, under the same names."""


class Journal:
    """Keep the latest `max_exchanges` exchanges with an API; `add` is a sink."""

    def __init__(self, max_exchanges: int = MAX_EXCHANGES) -> None:
        self._exchanges: deque[tuple[str, str | None, Json]] = deque(maxlen=max_exchanges)
        self._numbers = count()

    def add(self, record: Record) -> None:
        if record.api is not None:
            entry = {"number": next(self._numbers), **make_entry(record)}
            self._exchanges.appendleft((record.id, record.key, entry))

    def newest_first(self, request_id: str | None = None, key: str | None = None) -> list[Json]:
        """Return all exchanges, or those with one request id, or of the key with this name."""
        return [
            entry
            for entry_id, entry_key, entry in self._exchanges
            if request_id in (None, entry_id) and key in (None, entry_key)
        ]


def make_entry(record: Record) -> Json:
    """Build the journal's entry for one request.

    `held` is None where the answer never had to wait: no summary was due, or no answer came. An
    answer that was not delayed has 0.
    """
    waited = record.held_seconds > 0 or (record.style != "off" and record.answer is not None)
    return {
        **{
            name: getattr(record, name) for name in (*IDENTITY_FIELDS, *RESULT_FIELDS, *TIME_FIELDS)
        },
        "model": record.model and record.model[:MAX_MODEL_CHARS],
        "held": record.held_seconds if waited else None,
        "used": _token_counts(record.upstream_tokens),
        "spent": _token_counts(record.summarizer_tokens),
        "summaries": dict(record.summaries),
        "calls": _timings_as_dicts(record.calls),
        "parts": _timings_as_dicts(record.parts),
    }


def _token_counts(tokens: Tokens) -> dict[str, int | None]:
    return {"input": tokens.input, "output": tokens.output, "total": tokens.total}


def _timings_as_dicts(timings: Iterable[SummarizerCall | ShownPart]) -> list[dict[str, Any]]:
    return [asdict(timing) for timing in list(timings)[:MAX_TIMINGS]]
