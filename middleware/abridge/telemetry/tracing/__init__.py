"""Spans of requests, for OpenTelemetry.

Each request gets a span, with a child for each time upstream is asked, which is inference as the
conventions for generative AI have it, and one for each call of a summarizer. `traceparent` leads to
them and from them on. OpenTelemetry comes with an extra: only modules of this package know it, and
where tracing is off nobody imports them.

No span holds what was thought, asked or answered, nor a credential, nor what an exception says.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from abridge.extras import needed
from abridge.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from abridge.telemetry.tracing.spans import Tracing

EXTRA, KEY = "otel", "tracing.enabled"


def tracing_for(settings: Settings, provider: TracerProvider | None = None) -> Tracing | None:
    """Who draws the spans, by `provider` or by the application's global one; None where tracing is
    off. Raises SettingsError."""
    if not settings.tracing.enabled:
        return None
    with needed(EXTRA, KEY):
        from abridge.telemetry.tracing.spans import Tracing  # noqa: PLC0415 -- an extra
    return Tracing(settings, provider)


def exporting(settings: Settings) -> AbstractContextManager[None]:
    """Within it spans leave the process, if tracing is on. Raises SettingsError, and at once."""
    if not settings.tracing.enabled:
        return nullcontext()
    with needed(EXTRA, KEY):
        from abridge.telemetry.tracing.export import export  # noqa: PLC0415 -- an extra
    return export()
