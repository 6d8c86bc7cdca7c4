"""A summarizer model, and the request to send to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from abridge.settings import SummarizerSettings
from abridge.summarize.model.prompts import Prompt
from abridge.wire.api import Api
from abridge.wire.apis import CHAT, RESPONSES
from abridge.wire.codec import Json
from abridge.wire.profiles import Profile
from abridge.wire.think import Splitter


@dataclass(slots=True, frozen=True)
class Endpoint:
    """A model and its address."""

    url: str  # complete, with path and query
    model: str | None
    api: Api
    profile: Profile
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # with the credential

    def body(self, settings: SummarizerSettings, told: Prompt) -> Json:
        """Build the request's body: streamed, without tools, not stored, and without parameters
        that the model would refuse.

        `extra_body` is merged over it last; a null there removes a field.
        """
        fields: Json = {
            "model": self.model,
            "stream": True,
            "temperature": settings.temperature,
            **SPELLINGS[self.api.name].body(self.profile, settings, told),
        }
        self.profile.drop_refused(fields, self.model or "")
        fields |= settings.extra_body
        return {key: value for key, value in fields.items() if value is not None}

    def splitter(self) -> Splitter:
        """Create a splitter for inline reasoning that the API's Reader leaves in the text."""
        return SPELLINGS[self.api.name].splitter(self.profile)


def _chat_body(profile: Profile, settings: SummarizerSettings, told: Prompt) -> Json:
    return {
        "messages": [
            {"role": "system", "content": told.system},
            {"role": "user", "content": told.user},
        ],
        "stream_options": {"include_usage": True},
        profile.max_tokens: settings.max_tokens,
        **profile.thinking_off,
    }


def _responses_body(profile: Profile, settings: SummarizerSettings, told: Prompt) -> Json:
    off = dict(profile.thinking_off)
    if "reasoning_effort" in off:  # `reasoning.effort` here: openai-openapi, `Reasoning`
        off["reasoning"] = {"effort": off.pop("reasoning_effort")}
    return {
        "instructions": told.system,
        "input": told.user,
        "max_output_tokens": settings.max_tokens,
        "store": False,
        **off,
    }


@dataclass(slots=True, frozen=True)
class Spelling:
    """An API over which a summarizer model can be called."""

    api: Api
    body: Callable[[Profile, SummarizerSettings, Prompt], Json]
    splitter: Callable[[Profile], Splitter]
    """Finds inline reasoning, which the Reader does not look for in a Responses message."""


SPELLINGS: Mapping[str, Spelling] = {
    spelling.api.name: spelling
    for spelling in (
        Spelling(CHAT, _chat_body, lambda _: Splitter(())),
        Spelling(
            RESPONSES,
            _responses_body,
            lambda profile: Splitter(profile.tags, prefilled=profile.prefilled),
        ),
    )
}
