"""A summarizer model, and the request to send to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from abridge.apis.api import Api, UpstreamOptions
from abridge.config.tables import SummarizerSettings
from abridge.core.conversation import Json
from abridge.core.model_request import Message, ModelRequest, TextPart
from abridge.providers.profile import Profile
from abridge.summarizers.model.prompts import Prompt


@dataclass(frozen=True)
class ModelEndpoint:
    """A model and its address."""

    url: str  # complete, with path and query
    model: str | None
    api: Api
    profile: Profile
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # with the credential

    @cached_property
    def answering_profile(self) -> Profile:
        """The profile to read an answer by: any model may write thinking into its text."""
        places = (*self.profile.reasoning_in, "tags")
        return replace(self.profile, reasoning_in=places, inline_on_responses=True)

    def summary_body(self, prompt: Prompt, settings: SummarizerSettings) -> Json:
        """Build the body of a request for a part: without tools, and without thinking."""
        thinking_off = dict(self.profile.thinking_off)
        thinking_off.pop("reasoning_effort", None)  # which each API spells in its own way
        request = ModelRequest(
            messages=[
                Message("system", [TextPart(prompt.system)]),
                Message("user", [TextPart(prompt.user)]),
            ],
            declines_reasoning=True,
            extra=thinking_off,
        )
        if settings.temperature is not None:
            request.params["temperature"] = settings.temperature
        return self.write_body(request, prompt.max_tokens, settings)

    def write_body(
        self, request: ModelRequest, max_tokens: int, settings: SummarizerSettings
    ) -> Json:
        """Write a request as a bridge does: streamed, not stored, and without parameters that the
        model would refuse.

        `extra_body` is merged over it last; a null there removes a field.
        """
        request.model, request.stream = self.model or "", True
        request.params["max_tokens"] = max_tokens
        request.params.pop("store", None)
        fields = self.api.upstream.write_request(request, UpstreamOptions(self.profile)).body
        self.profile.drop_rejected(fields, request.model)
        fields |= settings.extra_body
        return {key: value for key, value in fields.items() if value is not None}
