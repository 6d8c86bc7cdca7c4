"""Export spans to a collector, by OTLP over HTTP.

The environment variables of OpenTelemetry's SDK set the address, batch size and interval.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider, set_tracer_provider

from abridge import __version__

FLUSH_SECONDS = 5.0
"""Seconds to wait for the last spans to be exported."""

REPEAT_SECONDS = 60.0
"""Seconds in which the exporter logs each message at most once."""

_log = logging.getLogger(__name__)


@contextmanager
def export_spans() -> Iterator[None]:
    """Export spans while in this context; do nothing if a tracer provider is already set."""
    if not isinstance(get_tracer_provider(), ProxyTracerProvider):
        yield
        return
    _limit_sdk_logs()
    exporter = OTLPSpanExporter()
    provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    set_tracer_provider(provider)
    try:
        yield
    finally:
        _shut_down(provider)


def resource() -> Resource:
    """Describe this service; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence."""
    defaults = Resource.create({"service.name": "abridge", "service.version": __version__})
    return defaults.merge(OTELResourceDetector().detect())


def _shut_down(provider: TracerProvider) -> None:
    """Flush in a daemon thread, so that an absent collector does not block the process's exit."""
    thread = Thread(target=provider.shutdown, daemon=True)
    thread.start()
    thread.join(FLUSH_SECONDS)
    if thread.is_alive():
        _log.warning(
            "the last spans are lost: no collector accepted them within %g s", FLUSH_SECONDS
        )


def _limit_sdk_logs() -> None:
    """Limit the SDK's log lines: it logs each failed attempt and each malformed `tracestate`."""
    logging.getLogger(OTLPSpanExporter.__module__).addFilter(RepeatFilter())
    logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)


class RepeatFilter(logging.Filter):
    """Passes each message once per period, whatever its arguments are."""

    def __init__(self, seconds: float = REPEAT_SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._last_logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, message = time.monotonic(), str(record.msg)
        due = now - self._last_logged.get(message, -self._seconds) >= self._seconds
        if due:
            self._last_logged[message] = now
        return due
