"""What is logged, and how: a line for each request, as text or as JSON.

No line holds what was thought, asked or answered, nor a credential.
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
"""The attribute of a log record that holds what `log_request` says, for formatters."""

requests = logging.getLogger("abridge.requests")


def log_request(record: Record) -> None:
    """A line at level INFO. A sink."""
    if requests.isEnabledFor(logging.INFO):
        said = dict(fields(record))
        requests.info("%s", Told(said), extra={FIELDS: said})


class Told:
    """A request in a line of text: `key=value`, what is not known left out."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said

    def __str__(self) -> str:
        return " ".join(f"{key}={_plain(value)}" for key, value in self._said.items())


def fields(record: Record) -> Iterator[tuple[str, Any]]:
    """What is known of a request, in the order in which it is read."""
    for key, value in _fields(record):
        if value is not None:
            yield key, round(value, 6) if isinstance(value, float) else value


def _fields(record: Record) -> Iterator[tuple[str, Any]]:
    yield "id", record.id
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
    """One word, whatever a client wrote."""
    text = value if isinstance(value, str) else dumps(value).decode()
    return text if text.isprintable() and " " not in text and text else ascii(text)


class JsonLines(logging.Formatter):
    """One object a line: `time`, `level`, `logger`, `message`, and a request's own fields."""

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
    """Log to standard error, as `abridge serve` does."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("abridge").setLevel(logging.INFO)
    requests.setLevel(logging.INFO if settings.requests else logging.WARNING)
