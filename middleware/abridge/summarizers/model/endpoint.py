"""A summarizer model, and the request to send to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
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
            **MODEL_APIS[self.api.name].build_body(self, prompt),
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
        """Create a splitter for inline reasoning that the API's Reader leaves in the text."""
        return MODEL_APIS[self.api.name].make_splitter(self.profile)


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


def _tag_splitter(profile: Profile) -> TagSplitter:
    return TagSplitter(profile.tags, prefilled=profile.prefilled)


@dataclass(slots=True, frozen=True)
class ModelApi:
    """An API over which a summarizer model can be called."""

    api: Api
    build_body: Callable[[ModelEndpoint, Prompt], Json]
    make_splitter: Callable[[Profile], TagSplitter]
    """Finds inline reasoning, which the Readers but Chat Completions' do not look for in a text."""


MODEL_APIS: Mapping[str, ModelApi] = {
    spelling.api.name: spelling
    for spelling in (
        ModelApi(CHAT, _chat_body, lambda _: TagSplitter(())),
        ModelApi(RESPONSES, _responses_body, _tag_splitter),
        ModelApi(MESSAGES, _messages_body, _tag_splitter),
    )
}
