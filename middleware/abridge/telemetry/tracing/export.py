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

FLUSH = 5.0
"""Seconds to wait for the last spans to be exported."""

OFTEN = 60.0
"""Seconds in which the exporter logs each message at most once."""

_log = logging.getLogger(__name__)


@contextmanager
def export() -> Iterator[None]:
    """Export spans while in this context; do nothing if a tracer provider is already set."""
    if not isinstance(get_tracer_provider(), ProxyTracerProvider):
        yield
        return
    _hush()
    exporter = OTLPSpanExporter()
    provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    set_tracer_provider(provider)
    try:
        yield
    finally:
        _end(provider)


def resource() -> Resource:
    """Describe this service; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence."""
    own = Resource.create({"service.name": "abridge", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def _end(provider: TracerProvider) -> None:
    """Flush in a daemon thread, so that an absent collector does not block the process's exit."""
    ending = Thread(target=provider.shutdown, daemon=True)
    ending.start()
    ending.join(FLUSH)
    if ending.is_alive():
        _log.warning("the last spans are lost: no collector took them in %g s", FLUSH)


def _hush() -> None:
    """Limit the SDK's log lines: it logs each failed attempt and each malformed `tracestate`."""
    logging.getLogger(OTLPSpanExporter.__module__).addFilter(Seldom())
    logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)


class Seldom(logging.Filter):
    """Passes each message once per period, whatever its arguments are."""

    def __init__(self, seconds: float = OFTEN) -> None:
        super().__init__()
        self._seconds = seconds
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, message = time.monotonic(), str(record.msg)
        due = now - self._said.get(message, -self._seconds) >= self._seconds
        if due:
            self._said[message] = now
        return due
