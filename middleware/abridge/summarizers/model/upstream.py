"""Summarize with the model that the client requested: `kind = "upstream"`.

The call goes to the inner app, on the client's path and with the client's credential, so that it
works mounted too and needs no key of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp

from abridge.apis.api import Api
from abridge.apis.credentials import CREDENTIAL_HEADERS, GATEWAY_PREFIXES
from abridge.config.tables import SummarizerSettings
from abridge.http.app_transport import AppTransport
from abridge.http.asgi import quote_non_ascii
from abridge.providers.profile import Profile
from abridge.summarizers.model.endpoint import ModelEndpoint
from abridge.summarizers.model.summarizer import ModelSummarizer

FORWARDED_HEADERS = frozenset(
    {
        *CREDENTIAL_HEADERS,
        b"openai-organization",
        b"openai-project",
        b"anthropic-version",
        b"anthropic-beta",  # some of Anthropic's credentials are taken with a flag in it only
        b"host",
    }
)
"""Client headers to copy to the call, besides those for gateways: credentials, organization,
project and host, and what Anthropic's API demands."""


def upstream_summarizer(
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
        AppTransport(app, scope),
        ModelEndpoint(_client_url(scope), model, api, profile, _credential_headers(scope)),
        settings,
        name="upstream",
    )


def _client_url(scope: Mapping[str, Any]) -> str:
    """Return the URL that the client called; its host is a placeholder and is never resolved."""
    raw_path: bytes | None = scope.get("raw_path")
    path = quote_non_ascii(raw_path) if raw_path else quote(scope["path"])
    query = quote_non_ascii(scope.get("query_string", b""))
    return f"http://inner{path}?{query}" if query else f"http://inner{path}"


def _credential_headers(scope: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in FORWARDED_HEADERS or name.startswith(GATEWAY_PREFIXES)
    }
