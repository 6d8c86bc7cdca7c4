"""Select the summarizer for a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from starlette.types import ASGIApp, Scope

from abridge.configure import secret
from abridge.errors import SettingsError
from abridge.http import Transport
from abridge.settings import Limits, SummarizerSettings
from abridge.summarize import Summarizer
from abridge.summarize.extractive import Extractive
from abridge.summarize.model import ModelSummarizer
from abridge.summarize.model.upstream import own_model
from abridge.wire.api import Api
from abridge.wire.profiles import Profile

if TYPE_CHECKING:
    from abridge.telemetry.tracing.spans import Tracing


class Chosen:
    """The summarizer named in the settings, or `override` if given.

    A model is called over `transport`, or over a new transport if none is given; either way,
    `aclose` closes it. With `tracing`, calls to a model carry the trace context. Raise
    SettingsError if the settings name none that can be built.
    """

    def __init__(
        self,
        settings: SummarizerSettings,
        limits: Limits,
        *,
        given: Summarizer | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._settings = settings
        self._transport = transport or Transport(
            connect=limits.connect, headers=settings.timeout, idle=settings.timeout
        )
        if tracing is not None:
            self._transport = tracing.leading(self._transport)
        self._shared = given
        if given is None and settings.kind == "extractive":
            self._shared = Extractive()
        elif given is None and settings.kind == "model":
            self._shared = self._model()
        elif given is None and settings.kind == "object":
            raise SettingsError("summarizer.kind: 'object' needs one handed to the middleware")

    def for_request(
        self, app: ASGIApp, scope: Scope, model: str, api: Api, profile: Profile
    ) -> Summarizer:
        """Return the summarizer for one request. `app` must be callable with `scope`."""
        if self._shared is not None:
            return self._shared
        return own_model(app, scope, model=model, api=api, profile=profile, settings=self._settings)

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _model(self) -> Summarizer:
        variable = self._settings.api_key_env
        key = secret(variable, "summarizer.api_key_env") if variable else None
        return ModelSummarizer.from_settings(self._settings, self._transport, key)
