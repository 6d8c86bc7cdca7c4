"""The three ways to deploy Abridge, each in front of the same scripted upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import httpx
import pytest
from opentelemetry.trace import TracerProvider
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.types import ASGIApp

from abridge import create_app
from abridge.config.settings import Settings
from abridge.http.app_transport import AppTransport
from abridge.middleware import AbridgeMiddleware
from abridge.summarizers.summarizer import Summarizer
from tests.support.asgi import scope_for

Form = Literal["mounted", "sidecar", "embedded"]
FORMS: tuple[Form, ...] = ("mounted", "sidecar", "embedded")
PREFIX: dict[Form, str] = {"mounted": "", "sidecar": "", "embedded": "/llm"}
ORIGIN = "http://upstream.test"
METRICS = CollectorRegistry()
"""Shared by apps whose metrics nobody reads: to create all of them takes longer than the rest."""


def transport_to(upstream: ASGIApp) -> httpx.AsyncBaseTransport:
    """Return a transport that sends every request to an app in this process."""
    return AppTransport(upstream, scope_for("/"))


def settings_for(**tables: Any) -> Settings:
    return Settings.model_validate(tables)


def build_app(
    form: Form,
    upstream: ASGIApp,
    *,
    writer: Summarizer | None = None,
    review: Any = None,
    registry: CollectorRegistry | None = None,
    tracer_provider: TracerProvider | None = None,
    **tables: Any,
) -> ASGIApp:
    """Build the app. `tables` are settings; `writer` is a summarizer of kind `object`."""
    registry = registry or METRICS
    if writer is not None:
        tables["summarizer"] = {"kind": "object", **tables.get("summarizer", {})}
    if form == "mounted":
        settings = settings_for(**tables)
        return AbridgeMiddleware(
            upstream,
            settings,
            summarizer=writer,
            review=review,
            registry=registry,
            tracer_provider=tracer_provider,
        )
    tables.setdefault("upstreams", [{"base_url": f"{ORIGIN}/v1"}])
    app = create_app(
        settings_for(**tables),
        transport=transport_to(upstream),
        summarizer=writer,
        review=review,
        registry=registry,
        tracer_provider=tracer_provider,
    )
    if form == "sidecar":
        return app
    outer = Starlette()
    outer.mount("/llm", app)
    return outer


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return request.param  # type: ignore[no-any-return]


Make = Callable[..., ASGIApp]
