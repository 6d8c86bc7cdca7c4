"""Summarize with the model that the client requested: `kind = "upstream"`.

This calls the inner app on the client's path and with the client's credential, so that it works
mounted too and needs no key of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp

from abridge.settings import SummarizerSettings
from abridge.summarize.model import ModelSummarizer
from abridge.summarize.model.endpoint import Endpoint
from abridge.summarize.model.inner import InnerTransport
from abridge.wire.api import Api
from abridge.wire.profiles import Profile

FORWARDED = frozenset(
    {
        b"authorization",
        b"api-key",
        b"x-api-key",
        b"x-goog-api-key",
        b"openai-organization",
        b"openai-project",
        b"host",
    }
)
"""Client headers to copy to the call: credentials, organization, project and host."""


def own_model(
    app: ASGIApp,
    scope: Mapping[str, Any],
    *,
    model: str | None,
    api: Api,
    profile: Profile,
    settings: SummarizerSettings,
) -> ModelSummarizer:
    """Build a summarizer that uses the model behind `app` for the request in `scope`.

    Call this before the app runs, since the app may write to its scope.
    """
    return ModelSummarizer(
        InnerTransport(app, scope),
        Endpoint(_url(scope), model, api, profile, _credentials(scope)),
        settings,
        name="upstream",
    )


def _url(scope: Mapping[str, Any]) -> str:
    """Return the URL that the client called; its host is a placeholder and is never resolved."""
    raw_path: bytes | None = scope.get("raw_path")
    path = raw_path.decode("latin-1") if raw_path else quote(scope["path"])
    query = scope.get("query_string", b"").decode("latin-1")
    return f"http://inner{path}?{query}" if query else f"http://inner{path}"


def _credentials(scope: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in FORWARDED
    }
