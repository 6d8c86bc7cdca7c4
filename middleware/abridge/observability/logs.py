"""Log one line per request, as text or as JSON.

No line contains prompts, reasoning, answers or credentials.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from abridge.apis.json import dumps
from abridge.config.tables import LogSettings
from abridge.observability.record import Record

TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

FIELDS_ATTRIBUTE = "abridge"
"""Attribute of a `logging.LogRecord` that holds the fields of a request, for formatters."""

request_logger = logging.getLogger("abridge.requests")


def log_request(record: Record) -> None:
    """Log a request at level INFO. This is a sink."""
    if request_logger.isEnabledFor(logging.INFO):
        values = dict(record_fields(record))
        request_logger.info("%s", KeyValueLine(values), extra={FIELDS_ATTRIBUTE: values})


class KeyValueLine:
    """Formats the fields of a request as `key=value` pairs."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __str__(self) -> str:
        return " ".join(f"{key}={_format_value(value)}" for key, value in self._values.items())


def record_fields(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the known fields of a request, in the order of the log line."""
    for key, value in _all_fields(record):
        if value is not None:
            yield key, round(value, 6) if isinstance(value, float) else value


def _all_fields(record: Record) -> Iterator[tuple[str, Any]]:
    yield "id", record.id
    yield "trace_id", record.trace_id
    yield "method", record.method
    yield "path", record.path
    yield "websocket", record.websocket or None
    yield "key", record.key
    yield "api", record.api
    yield "upstream", record.upstream
    yield "model", record.model
    yield "status", record.status
    yield "outcome", record.outcome
    yield "cause", record.cause
    yield "seconds", record.seconds
    if record.hidden:
        yield "profile", record.profile
        yield "hidden", dict(record.hidden)
    if record.engaged:
        yield from _engaged_fields(record)


def _engaged_fields(record: Record) -> Iterator[tuple[str, Any]]:
    yield "stream", record.stream
    yield "overhead_seconds", record.overhead
    yield "first_answer_seconds", record.answer[0] if record.answer is not None else None
    yield "input_tokens", record.upstream_tokens.input
    yield "output_tokens", record.upstream_tokens.output
    yield "reasoning_tokens", record.upstream_tokens.reasoning
    yield "reasoning_characters", record.characters
    if record.style != "off":
        yield from _summary_fields(record)


def _summary_fields(record: Record) -> Iterator[tuple[str, Any]]:
    yield "style", record.style
    yield "summarizer", record.summarizer
    yield "summaries", dict(record.summaries)
    yield "summary_error", record.summary_error
    yield "calls", len(record.calls)
    yield "parts", len(record.parts)
    yield "withheld", sum(call.outcome == "withheld" for call in record.calls) or None
    yield "first_summary_seconds", record.first_summary
    yield "held_seconds", record.held_seconds
    yield "summary_input_tokens", record.summarizer_tokens.input
    yield "summary_output_tokens", record.summarizer_tokens.output


def _format_value(value: Any) -> str:
    """Format a value as one printable word without spaces, whatever a client sent."""
    text = value if isinstance(value, str) else dumps(value).decode()
    return text if text.isprintable() and " " not in text and text else ascii(text)


class JsonFormatter(logging.Formatter):
    """Formats a line as one object: `time`, `level`, `logger`, `pid`, the number of the worker if
    there are several, `message`, a request's fields."""

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._worker = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            **self._worker,
        }
        request = getattr(record, FIELDS_ATTRIBUTE, None)
        values |= {"message": "request", **request} if request else {"message": record.getMessage()}
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return dumps(values).decode()


def set_up_logging(settings: LogSettings, worker: int | None = None) -> None:
    """Log to standard error. `abridge serve` calls this, and each of several workers with its
    number."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(worker) if settings.format == "json" else logging.Formatter(TEXT_FORMAT)
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("abridge").setLevel(logging.INFO)
    request_logger.setLevel(logging.INFO if settings.requests else logging.WARNING)
