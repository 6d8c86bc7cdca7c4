"""Sends spans to a collector, by OTLP over HTTP; where to, how many and how often, the variables of
OpenTelemetry's SDK say."""

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
"""Seconds in which the last spans may leave."""

OFTEN = 60.0
"""Seconds in which the exporter says each thing once."""

_log = logging.getLogger(__name__)


@contextmanager
def export() -> Iterator[None]:
    """Within it spans leave the process; where somebody has set that up already, it is theirs."""
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
    """Who exports; what `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say wins."""
    own = Resource.create({"service.name": "abridge", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def _end(provider: TracerProvider) -> None:
    """A collector that is not there does not hold the process: the threads are daemons."""
    ending = Thread(target=provider.shutdown, daemon=True)
    ending.start()
    ending.join(FLUSH)
    if ending.is_alive():
        _log.warning("the last spans are lost: no collector took them in %g s", FLUSH)


def _hush() -> None:
    """The SDK tells of each attempt, and of each client whose `tracestate` is none."""
    logging.getLogger(OTLPSpanExporter.__module__).addFilter(Seldom())
    logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)


class Seldom(logging.Filter):
    """Lets each message by once in so many seconds, whatever it is about."""

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
