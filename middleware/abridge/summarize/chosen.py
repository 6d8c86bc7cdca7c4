"""Which summarizer a request gets."""

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
    """The settings' choice, or `given` in its place. Raises SettingsError.

    `transport` is the one by which a model is called; without it one is made, and closed here.
    With `tracing` a model is told whose trace it is in.
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
        """The summarizer of one request; `scope` is one with which `app` can be called."""
        if self._shared is not None:
            return self._shared
        return own_model(app, scope, model=model, api=api, profile=profile, settings=self._settings)

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _model(self) -> Summarizer:
        variable = self._settings.api_key_env
        key = secret(variable, "summarizer.api_key_env") if variable else None
        return ModelSummarizer.from_settings(self._settings, self._transport, key)
