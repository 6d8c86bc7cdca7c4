"""How much an upstream's settings have models think, whatever the API of a request.

`RequestDefaults` fill in what a client left open: effort and verbosity. Their values are those of
OpenAI's API description (`ReasoningEffort`, `Verbosity`). It depends on the model which of them it
accepts. `EffortLimits` lower what a client asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from abridge.apis.api import Api
from abridge.apis.json import as_object, nested_value, objects, set_nested
from abridge.core.conversation import Json
from abridge.providers.profile import Profile, asks_to_think, nested_field

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

Verbosity: TypeAlias = Literal["low", "medium", "high"]


@dataclass(slots=True, frozen=True)
class RequestDefaults:
    """Defaults of an upstream, for all models that go to it."""

    effort: Effort | None = None
    verbosity: Verbosity | None = None

    def fill(self, body: Json, api: Api, profile: Profile) -> tuple[str, ...]:
        """Set in a request's body what its client left open; return the names of what was set.

        `profile` is upstream's if the body goes there untranslated.
        """
        fields = {
            "effort": self._effort_fields(body, api, profile),
            "verbosity": self._verbosity_fields(body, api),
        }
        for fields_set in fields.values():
            _merge(body, fields_set)
        return tuple(name for name, fields_set in fields.items() if fields_set)

    def has_unsupported_effort(self, profile: Profile) -> bool:
        """Return whether an effort is set for which the provider's chat API has no field."""
        return self.effort is not None and not profile.thinking_fields(self.effort)

    def _effort_fields(self, body: Json, api: Api, profile: Profile) -> Json:
        if self.effort is None or asks_to_think(body) is not None:
            return {}
        if api.effort_field:
            fields = nested_field(api.effort_field, self.effort)
            return {} if _has_any(body, fields) else api.other_efforts.get(self.effort, fields)
        fields = profile.thinking_fields(self.effort)
        is_given = _has_any(body, fields) or _has_any(body, profile.thinking_off)
        return {} if is_given else fields

    def _verbosity_fields(self, body: Json, api: Api) -> Json:
        if self.verbosity is None or not api.verbosity_field:
            return {}
        fields = nested_field(api.verbosity_field, self.verbosity)
        return {} if _has_any(body, fields) else fields


def _has_any(body: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return whether any of these fields is in a body, with any value."""
    for key, value in fields.items():
        present = body.get(key)
        if isinstance(value, Mapping) and isinstance(present, Mapping):
            if _has_any(present, value):
                return True
        elif present is not None:
            return True
    return False


def _merge(body: Json, fields: Mapping[str, Any]) -> None:
    """Set fields in a body, merging nested objects."""
    for key, value in fields.items():
        if isinstance(value, Mapping):
            body[key] = dict(as_object(body.get(key)))
            _merge(body[key], value)
        else:
            body[key] = value


# Limits: they hold for every spelling that is known of an effort or a budget, in requests of any
# API. A value that no API would take is left to upstream.

EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""The efforts, the least first."""

LEAST_BUDGET = 1024
"""The least budget of Messages, in tokens (Anthropic API reference, `ThinkingConfigEnabled`)."""

UNLIMITED = -1
"""The budget of a model that decides by itself (Gemini, vLLM), which is beyond any limit."""


class EffortField(NamedTuple):
    """Where a request says its effort, and the least that may stand there."""

    path: str  # dotted
    least: Effort = "none"


EFFORT_FIELDS = (
    EffortField("reasoning_effort"),  # OpenAI's Chat Completions, and most servers of it
    EffortField("reasoning.effort"),  # OpenAI's Responses; OpenRouter
    EffortField("output_config.effort", "low"),  # Anthropic's Messages
    EffortField("chat_template_kwargs.reasoning_effort", "low"),  # gpt-oss on vLLM, SGLang
    EffortField("google.thinking_config.thinking_level", "low"),  # Gemini's compatible endpoint
    EffortField("extra_body.google.thinking_config.thinking_level", "low"),
    EffortField("generationConfig.thinkingConfig.thinkingLevel", "low"),  # Gemini's own API
    EffortField("generation_config.thinking_level", "low"),  # Gemini's Interactions
    EffortField("think", "low"),  # Ollama
)

BUDGET_FIELDS = (
    "thinking.budget_tokens",  # Anthropic's Messages
    "reasoning.max_tokens",  # OpenRouter
    "thinking_budget",  # Qwen's own servers
    "thinking_token_budget",  # vLLM
    "thinking_budget_tokens",  # llama.cpp
    "reasoning_budget_tokens",  # llama.cpp, the same
    "chat_template_kwargs.thinking_budget",  # vLLM, SGLang
    "google.thinking_config.thinking_budget",  # Gemini's compatible endpoint
    "extra_body.google.thinking_config.thinking_budget",
    "generationConfig.thinkingConfig.thinkingBudget",  # Gemini's own API
)
"""Where a request of any API says its budget, in tokens."""


class LoweredEffort(NamedTuple):
    """The values in force for what was lowered in a request; None for what was not."""

    effort: str | None = None
    budget: int | None = None

    def followed_by(self, later: LoweredEffort) -> LoweredEffort:
        return LoweredEffort(later.effort or self.effort, later.budget or self.budget)


NOTHING_LOWERED = LoweredEffort()


@dataclass(slots=True, frozen=True)
class EffortLimits:
    """The most that clients may ask of an upstream; None is no limit."""

    effort: Effort | None = None
    budget: int | None = None  # in tokens

    def lower(self, body: Json) -> LoweredEffort:
        """Lower in a request's body what is above the limits."""
        efforts = [self._lower_effort(each) for each in (body, *_iter_updates(body))]
        return LoweredEffort(next(filter(None, reversed(efforts)), None), self._lower_budget(body))

    def allows(self, effort: Effort) -> bool:
        return self.effort is None or EFFORTS.index(effort) <= EFFORTS.index(self.effort)

    def _lower_effort(self, body: Json) -> str | None:
        lowered = None
        for path, least in EFFORT_FIELDS if self.effort is not None else ():
            most = max(self.effort or "none", least, key=EFFORTS.index)
            if nested_value(body, path) in EFFORTS[EFFORTS.index(most) + 1 :]:
                lowered = most
                set_nested(body, path, most)
        return lowered

    def _lower_budget(self, body: Json) -> int | None:
        lowered = None
        for path in BUDGET_FIELDS if self.budget is not None else ():
            asked = nested_value(body, path)
            if type(asked) is int and (asked > (self.budget or 0) or asked == UNLIMITED):
                lowered = self.budget
                set_nested(body, path, lowered)
        return lowered


CONFIGURATION_UPDATE = "configuration_update"
"""The type of a Responses item that changes the effort, and the answer's format, from there on
(openai-openapi, `ConfigurationUpdateItemParam`)."""


def _iter_updates(body: Json) -> Iterator[Json]:
    """Yield what changes the effort in the course of a conversation: items, or of Anthropic's
    Messages the instructions for a turn."""
    items, messages = objects(body.get("input")), objects(body.get("messages"))
    yield from (item for item in items if item.get("type") == CONFIGURATION_UPDATE)
    yield from (message for message in messages if "output_config" in message)
