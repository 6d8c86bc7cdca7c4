"""A summarizer model, and the request to send to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.config.tables import SummarizerSettings
from abridge.core.conversation import Json
from abridge.providers.claude import find_capabilities
from abridge.providers.profile import Profile
from abridge.stages.tags import TagSplitter
from abridge.summarizers.model.prompts import Prompt

USAGE_IN_STREAM: Json = {"stream_options": {"include_usage": True}}

MAX_TOKENS_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(slots=True, frozen=True)
class ModelEndpoint:
    """A model and its address."""

    url: str  # complete, with path and query
    model: str | None
    api: Api
    profile: Profile
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # with the credential

    def build_body(self, settings: SummarizerSettings, prompt: Prompt) -> Json:
        """Build the request's body: streamed, without tools, not stored, and without parameters
        that the model would refuse.

        `extra_body` is merged over it last; a null there removes a field.
        """
        fields: Json = {
            "model": self.model,
            "stream": True,
            "temperature": settings.temperature,
            **BODY_BUILDERS[self.api.name](self, prompt),
        }
        self.profile.drop_rejected(fields, self.model or "")
        fields |= settings.extra_body
        return {key: value for key, value in fields.items() if value is not None}

    def complete_body(
        self, conversation: Json, settings: SummarizerSettings, max_tokens: int
    ) -> Json:
        """Build the body of a request that goes on with a conversation: streamed, not stored."""
        limits = {
            "chat": {self.profile.max_tokens_field: max_tokens, **USAGE_IN_STREAM},
            "responses": {"max_output_tokens": max_tokens, "store": False},
            "messages": {"max_tokens": max_tokens},
        }
        others = {
            name: conversation[name] for name in conversation if name not in MAX_TOKENS_FIELDS
        }
        fields = {**others, "model": self.model, "stream": True, **limits[self.api.name]}
        self.profile.drop_rejected(fields, self.model or "")
        return fields | settings.extra_body

    def make_splitter(self) -> TagSplitter:
        """Create a splitter for inline reasoning, which the Readers but Chat Completions' do not
        look for in a text."""
        if self.api is CHAT:
            return TagSplitter(())
        return TagSplitter(self.profile.tags, prefilled=self.profile.prefilled)


def _chat_body(endpoint: ModelEndpoint, prompt: Prompt) -> Json:
    return {
        "messages": [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ],
        **USAGE_IN_STREAM,
        endpoint.profile.max_tokens_field: prompt.max_tokens,
        **endpoint.profile.thinking_off,
    }


def _messages_body(endpoint: ModelEndpoint, prompt: Prompt) -> Json:
    capabilities = find_capabilities(endpoint.model or "")
    thinking_off = {
        key: value
        for key, value in endpoint.profile.thinking_off.items()
        if key != "reasoning_effort"  # this API has no such field
    }
    if capabilities.thinking != "none" and capabilities.thinking_off:
        thinking_off["thinking"] = {"type": capabilities.thinking_off}
    return {
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        "max_tokens": prompt.max_tokens,
        **thinking_off,
        **({} if capabilities.sampling else {"temperature": None}),
    }


def _responses_body(endpoint: ModelEndpoint, prompt: Prompt) -> Json:
    thinking_off = dict(endpoint.profile.thinking_off)
    if "reasoning_effort" in thinking_off:  # `reasoning.effort` here: openai-openapi, `Reasoning`
        thinking_off["reasoning"] = {"effort": thinking_off.pop("reasoning_effort")}
    return {
        "instructions": prompt.system,
        "input": prompt.user,
        "max_output_tokens": prompt.max_tokens,
        "store": False,
        **thinking_off,
    }


BODY_BUILDERS: Mapping[str, Callable[[ModelEndpoint, Prompt], Json]] = {
    "chat": _chat_body,
    "responses": _responses_body,
    "messages": _messages_body,
}
"""Build the request's own fields in each API over which a summarizer model can be called."""
