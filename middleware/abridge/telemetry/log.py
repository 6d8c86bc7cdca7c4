"""Log one line per request, as text or as JSON.

No line contains prompts, reasoning, answers or credentials.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from abridge.settings import Log
from abridge.telemetry.record import Record
from abridge.wire.codec import dumps

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

FIELDS = "abridge"
"""Attribute of a `logging.LogRecord` that holds the fields of a request, for formatters."""

requests = logging.getLogger("abridge.requests")


def log_request(record: Record) -> None:
    """Log a request at level INFO. This is a sink."""
    if requests.isEnabledFor(logging.INFO):
        said = dict(fields(record))
        requests.info("%s", Told(said), extra={FIELDS: said})


class Told:
    """Formats the fields of a request as `key=value` pairs."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said

    def __str__(self) -> str:
        return " ".join(f"{key}={_plain(value)}" for key, value in self._said.items())


def fields(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the known fields of a request, in the order of the log line."""
    for key, value in _fields(record):
        if value is not None:
            yield key, round(value, 6) if isinstance(value, float) else value


def _fields(record: Record) -> Iterator[tuple[str, Any]]:
    yield "id", record.id
    yield "trace_id", record.trace
    yield "method", record.method
    yield "path", record.path
    yield "api", record.api
    yield "upstream", record.upstream
    yield "model", record.model
    yield "status", record.status
    yield "outcome", record.outcome
    yield "cause", record.cause
    yield "seconds", record.seconds
    if record.engaged:
        yield from _engaged(record)


def _engaged(record: Record) -> Iterator[tuple[str, Any]]:
    yield "stream", record.stream
    yield "overhead_seconds", record.overhead
    yield "first_answer_seconds", record.answer[0] if record.answer is not None else None
    yield "input_tokens", record.used.input
    yield "output_tokens", record.used.output
    yield "reasoning_tokens", record.used.reasoning
    yield "reasoning_characters", record.characters
    if record.style != "off":
        yield from _summarized(record)


def _summarized(record: Record) -> Iterator[tuple[str, Any]]:
    yield "style", record.style
    yield "summarizer", record.summarizer
    yield "summaries", dict(record.summaries)
    yield "calls", len(record.calls)
    yield "parts", len(record.parts)
    yield "first_summary_seconds", record.first_summary
    yield "held_seconds", record.held
    yield "summary_input_tokens", record.spent.input
    yield "summary_output_tokens", record.spent.output


def _plain(value: Any) -> str:
    """Format a value as one printable word without spaces, whatever a client sent."""
    text = value if isinstance(value, str) else dumps(value).decode()
    return text if text.isprintable() and " " not in text and text else ascii(text)


class JsonLines(logging.Formatter):
    """Formats a line as one object: `time`, `level`, `logger`, `message`, a request's fields."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        request = getattr(record, FIELDS, None)
        said |= {"message": "request", **request} if request else {"message": record.getMessage()}
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return dumps(said).decode()


def set_up(settings: Log) -> None:
    """Log to standard error. `abridge serve` calls this."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("abridge").setLevel(logging.INFO)
    requests.setLevel(logging.INFO if settings.requests else logging.WARNING)
