"""OpenTelemetry spans of requests.

Each request gets a span. Its children are a span for each upstream call, which is an inference span
of the semantic conventions for generative AI, and one for each summarizer call. Trace context is
read from and sent on in `traceparent`. OpenTelemetry is an optional extra: only this package
imports it, and only if tracing is on.

No span contains prompts, reasoning, answers, credentials or the message of an exception.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from abridge.config.loading import require_extra
from abridge.config.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from abridge.observability.tracing.spans import Tracing

EXTRA, SETTING = "otel", "tracing.enabled"


def create_tracing(settings: Settings, provider: TracerProvider | None = None) -> Tracing | None:
    """Create the tracer for `provider` or else the application's global one; None if tracing is
    off. Raises SettingsError."""
    if not settings.tracing.enabled:
        return None
    with require_extra(EXTRA, SETTING):
        from abridge.observability.tracing.spans import Tracing  # noqa: PLC0415 -- an extra
    return Tracing(settings, provider)


def exporting_spans(settings: Settings) -> AbstractContextManager[None]:
    """Return a context in which spans are exported, if tracing is on. Raises SettingsError at
    once."""
    if not settings.tracing.enabled:
        return nullcontext()
    with require_extra(EXTRA, SETTING):
        from abridge.observability.tracing.export import export_spans  # noqa: PLC0415 -- an extra
    return export_spans()
