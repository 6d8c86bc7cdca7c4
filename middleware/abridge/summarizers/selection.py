"""Select the summarizer for a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
from starlette.types import ASGIApp, Scope

from abridge.apis.api import Api
from abridge.config.loading import read_secret
from abridge.config.tables import LimitSettings, SummarizerSettings
from abridge.errors import SettingsError
from abridge.http.transport import Transport
from abridge.providers.profile import Profile
from abridge.summarizers.call import runs_in_process
from abridge.summarizers.model.summarizer import ModelSummarizer
from abridge.summarizers.model.upstream import upstream_summarizer
from abridge.summarizers.review import Review
from abridge.summarizers.summarizer import Summarizer, UserSummarizer

if TYPE_CHECKING:
    from abridge.observability.tracing.spans import Tracing


@dataclass(slots=True, frozen=True)
class Overrides:
    """What an application has used in place of what the settings name."""

    summarizer: Summarizer | None = None
    review: Review | None = None
    transport: httpx.AsyncBaseTransport | None = None


class SummarizerSelection:
    """The summarizer named in the settings, or the one in its place.

    A model is called over a new transport, or over the one in its place; either way, `aclose`
    closes it. With `tracing`, calls to a model carry the trace context. Raises SettingsError if the
    settings name none that can be built.
    """

    def __init__(
        self,
        settings: SummarizerSettings,
        limits: LimitSettings,
        overrides: Overrides,
        tracing: Tracing | None = None,
    ) -> None:
        self._settings = settings
        self._transport = overrides.transport or Transport(
            connect=limits.connect, headers=settings.timeout, idle=settings.timeout
        )
        if tracing is not None:
            self._transport = tracing.wrap_transport(self._transport)
        self._shared_summarizer: Summarizer | None = None
        if overrides.summarizer is not None:
            self._shared_summarizer = UserSummarizer(overrides.summarizer)
        elif settings.kind == "extractive":
            from abridge.summarizers.extractive.extract import (  # noqa: PLC0415 -- many patterns
                ExtractiveSummarizer,
            )

            self._shared_summarizer = ExtractiveSummarizer()
        elif settings.kind == "model":
            variable = settings.api_key_env
            key = read_secret(variable, "summarizer.api_key_env") if variable else None
            self._shared_summarizer = ModelSummarizer.from_settings(settings, self._transport, key)
        elif settings.kind == "object":
            raise SettingsError(
                "summarizer.kind: 'object' needs a summarizer passed to the middleware"
            )

    @property
    def copies(self) -> bool:
        """True if the summarizer is the built-in one, which copies sentences of the reasoning."""
        shared = self._shared_summarizer
        return shared is not None and runs_in_process(shared)

    @property
    def model(self) -> ModelSummarizer | None:
        """The summarizer, if it is a model of its own."""
        shared = self._shared_summarizer
        return shared if isinstance(shared, ModelSummarizer) else None

    def for_request(
        self, app: ASGIApp, scope: Scope, model: str, api: Api, profile: Profile
    ) -> Summarizer:
        """Return the summarizer for one request. `app` must be callable with `scope`."""
        if self._shared_summarizer is not None:
            return self._shared_summarizer
        return upstream_summarizer(
            app, scope, model=model, api=api, profile=profile, settings=self._settings
        )

    async def aclose(self) -> None:
        await self._transport.aclose()
