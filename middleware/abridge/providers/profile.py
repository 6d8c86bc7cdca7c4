"""The columns of the provider catalog: everything in which providers and servers differ.

A fact about a provider is in its row of the catalog (`providers/catalog.py`) and nowhere else in
the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from abridge.caches import GLOBS, is_short
from abridge.core.conversation import Json


@dataclass(slots=True, frozen=True)
class Tag:
    opening: str
    closing: str
    separator: str = "\n"  # goes between blocks that follow each other


ApiName: TypeAlias = Literal["chat", "responses", "messages", "gemini", "interactions"]

GOOGLES: tuple[ApiName, ...] = ("gemini", "interactions")
"""Gemini's own APIs, which share their lists of models and the version in their addresses."""

TokenCounterName: TypeAlias = Literal["messages", "responses", "tokenize"]
"""An endpoint that counts a request's tokens: that of Messages, that of Responses, or vLLM's
`/tokenize`."""

StructuredPlace: TypeAlias = Literal[
    "reasoning_details", "thinking_blocks", "chunks", "tags", "extra_content", "nothing"
]
"""Location of reasoning in a chat message other than a text field: in a list, in `thinking` chunks
of a content list, or inline between tags. `extra_content`, of a message and of its tool calls, has
opaque state only. `thinking_blocks` has what is signed or sealed, and `reasoning_content` beside it
the rest.
"""

ReasoningPlace: TypeAlias = str
"""A `StructuredPlace`, or the name of a field of a chat message that holds reasoning as text."""

RejectCondition: TypeAlias = Literal["always", "thinking", "asked"]
"""Condition under which a model rejects a field: `thinking` unless it is asked not to reason,
`asked` only if it is asked to reason.
"""

StructuredOutputs: TypeAlias = Literal["as_claude", "all", "none"]
"""Which models do: of Claude's those that do at Anthropic's (`providers/claude.py`), or all, or
none."""

TAGS = (
    Tag("<think>", "</think>"),
    Tag("<thinking>", "</thinking>"),
    Tag("<thought>", "</thought>"),
    Tag("<reasoning>", "</reasoning>", separator=""),
    Tag("◁think▷", "◁/think▷"),
    Tag("<|START_THINKING|>", "<|END_THINKING|>"),
    Tag("<budget:thinking>", "</budget:thinking>"),
    Tag("<|channel|>analysis<|message|>", "<|end|>"),
    Tag("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
)
"""Tags around inline reasoning at the beginning of an answer: DeepSeek R1 and Qwen, some
fine-tunes, Gemini's compatible endpoint, Bedrock's (a closed tag for each fragment), Kimi-VL and
Command R (SGLang's table of reasoning parsers; llama.cpp issue 11607), LiteLLM's, and harmony's
analysis channel where gpt-oss is served without its parser (openai/harmony, docs/format.md).
"""


@dataclass(slots=True, frozen=True)
class ReasoningReturn:
    """Rules for sending earlier reasoning back in a chat request."""

    place: ReasoningPlace = "reasoning_content"  # its location; `nothing`: must not be sent
    wanted: bool = False  # without it answers get worse, or are errors
    required_on_calls: bool = False  # turns with tool calls are refused without it
    required_even_empty: bool = False  # if there was none, these turns need an empty string
    rejects: tuple[ReasoningPlace, ...] = ()  # locations in a message that cause an error


@dataclass(slots=True, frozen=True)
class RejectedFields:
    """Request fields that cause an error."""

    fields: tuple[str, ...]  # dotted if nested
    models: tuple[str, ...] = ("*",)  # globs of the models that reject them
    except_models: tuple[str, ...] = ()  # globs of exceptions among these
    when: RejectCondition = "always"

    def applies_to(self, model: str, *, thinks: bool | None) -> bool:
        """Return whether `model` rejects them. `thinks` is None if the request does not say."""
        if not matches_any(model, self.models) or matches_any(model, self.except_models):
            return False
        return (
            self.when == "always" or thinks is True or (self.when == "thinking" and thinks is None)
        )


ChatFeature: TypeAlias = Literal["allowed_tools", "custom_tools", "developer", "refusals", "images"]
"""Features that few chat APIs have: a choice among some of the tools, tools that take free text,
developer messages (and instructions within a conversation), refusals beside the text, images in
earlier answers.
"""

OPENAI_ONLY_PARAMS: Mapping[ApiName, frozenset[str]] = MappingProxyType(
    {
        "chat": frozenset(
            {
                "safety_identifier",
                "prompt_cache_key",
                "prompt_cache_retention",
                "prompt_cache_options",
            }
        )
    }
)
"""Parameters of OpenAI's only, which strict servers reject (Groq, Mistral)."""

MODELS_WITHOUT_STATE = ("gpt-3*", "gpt-4*", "chatgpt-*", "*-chat-latest")
"""Models that do not reason and reject a request for opaque state ("Encrypted content is not
supported with this model.", OpenHands/software-agent-sdk issue 1208).
"""


DERIVED_MODELS = ("*distill*", "*gguf*", "*@preset*")
"""Globs of names that bear another model's, which does not answer: OpenRouter's presets name one of
their own."""

REASONING_MODELS = (
    "*qwen3*",
    "qwq*",
    "*deepseek-r*",
    "*deepseek-v[3-9]*",
    "*glm-4.[5-9]*",
    "*glm-[5-9]*",
    "*kimi-k*",
    "*minimax-m*",
    "*magistral*",
    "*gpt-oss*",
    "gpt-5*",
    "o[1-9]*",
    "*thinking*",
    "*reason*",
    "*-r1*",
)
"""Models that reason unless asked not to, by the usual form of their names (the model cards of
their makers). `instruct` in a name means that it does not.
"""

FULL_THINKING_HEADER = b"anthropic-beta"

FULL_THINKING = b"full-thinking"
"""The beginning of the flag in this header with which Anthropic's models return all their thinking,
to those whom it allows that (`dev-full-thinking-2025-05-14`, anthropic-sdk-python)."""


@dataclass(slots=True, frozen=True)
class Profile:
    """The behaviour of one provider or server."""

    name: str
    reasoning_in: tuple[ReasoningPlace, ...] = ("reasoning_content", "reasoning", "tags")
    """Locations of raw reasoning in a chat answer, likeliest first."""
    tags: tuple[Tag, ...] = TAGS  # inline tags to look for
    prefilled: bool = False
    """The prompt's template opens the first tag, so that only its closing tag appears."""
    inline_on_responses: bool = False
    """Its messages on Responses may begin with reasoning in tags."""
    forgets_responses: bool = False
    """Its Responses API stores nothing, so that no request can continue from an earlier response.
    """
    parses_text: bool = False
    """Its text holds no reasoning that nothing opens: its servers parse what their models write.
    Any other may begin inside a block, as with `prefilled`, which only its end tells. Where
    reasoning is hidden, opening tags count in both: MiniMax writes reasoning between them, and
    providers that parse leak it so now and then (QwenLM/qwen-code pull 8818).
    """
    summary_is_raw: bool = False  # its "summary" on Responses is the raw reasoning
    summarized_models: tuple[str, ...] = ()
    """Globs of models whose reasoning is a summary already, whatever the API calls it."""
    signed_models: tuple[str, ...] = ()
    """Globs of models that refuse thinking on Messages unless it is signed as it was."""
    makes_summaries: bool = False
    """Its summaries are written for readers, as its documentation says. Where reasoning is hidden,
    any other's are taken for reasoning.
    """
    encrypts_state: bool = False
    """Its opaque state is encrypted, as its documentation says. Where reasoning is hidden, clients
    get no other's."""
    returns: ReasoningReturn = ReasoningReturn()  # rules for sending reasoning back
    max_tokens_field: str = "max_tokens"  # the field that limits a chat answer
    effort_field: str = "reasoning_effort"
    """The chat field for the effort, dotted if nested; may be empty."""
    budget_field: str = ""
    """The chat field for the tokens to think with, dotted if nested, if it is taken with nothing
    else."""
    cache_marks: bool = False  # its chat API takes Anthropic's `cache_control`
    structured_outputs: StructuredOutputs = "as_claude"
    """The models that give structured outputs on Messages."""
    thinking_off: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Request fields that switch reasoning off."""
    rejects: tuple[RejectedFields, ...] = ()  # request fields that its models reject
    supports: frozenset[ChatFeature] = frozenset()  # chat features that few others have
    lacks: Mapping[ApiName, frozenset[str]] = field(default_factory=lambda: OPENAI_ONLY_PARAMS)
    """Parameters that its API does not have, by their neutral names."""
    rejects_clear_reasoning: bool = False  # accepts no reasoning in the clear
    min_output_tokens: int = 1  # the lowest limit it accepts for an answer
    apis: tuple[ApiName, ...] = ("chat",)  # likeliest first; not all at one address
    token_counters: tuple[TokenCounterName, ...] = ()
    """Its endpoints that count tokens, best first, besides that of a Messages endpoint."""
    compacts: tuple[ApiName, ...] = ()
    """The APIs on which it compacts conversations itself."""
    owns_models: bool = False  # it lists itself, by this name, as the owner of its models
    key_header: str = "authorization"  # in `authorization` the key is a bearer token
    learns: bool = False  # observations refine it (`providers/learned.py`)
    telemetry_name: str = ""  # its name in OpenTelemetry's conventions, if not `name`
    source: str = ""  # where its documentation says so

    @property
    def keeps_summaries_apart(self) -> bool:
        """Return whether its reasoning is never inside a text, where a model may have put it."""
        return self.makes_summaries and "tags" not in self.reasoning_in

    def reasons_in_summaries(self, models: Iterable[str]) -> bool:
        """Return whether the reasoning of all these models is a summary already."""
        names = [model.casefold() for model in models]
        return bool(names) and all(
            is_short(name)
            and matches_any(name.rpartition("/")[2], self.summarized_models)
            and not matches_any(name, DERIVED_MODELS)
            for name in names
        )

    def verifies_signatures(self, model: str) -> bool:
        """Return whether a model's thinking is refused on Messages unless it is signed."""
        name = model.casefold()
        return matches_any(name, self.signed_models) and not matches_any(name, DERIVED_MODELS)

    def takes_unsigned(self, model: str) -> bool:
        """Return whether thinking of other APIs, which nothing signs, may be sent on Messages. An
        upstream of which nothing is known may be Claude's under any name."""
        return self.returns.wanted or not (self.learns or self.verifies_signatures(model))

    def thinking_fields(self, effort: str) -> Json:
        """Return the chat fields that set the effort; none if there is no field for it."""
        if effort == "none" and self.thinking_off:
            return dict(self.thinking_off)
        return nested_field(self.effort_field, effort) if self.effort_field else {}

    def budget_fields(self, tokens: int) -> Json:
        """Return the chat fields that set a budget of tokens; none if there is no field for it."""
        return nested_field(self.budget_field, tokens) if self.budget_field else {}

    def drop_rejected(self, body: Json, model: str) -> tuple[str, ...]:
        """Remove the fields that `model` would reject from a body; return their names."""
        name, thinks = model.casefold().rpartition("/")[2], asks_to_think(body)
        fields = dict.fromkeys(
            field
            for rejected in self.rejects
            if rejected.applies_to(name, thinks=thinks)
            for field in rejected.fields
        )
        return tuple(field for field in fields if _drop_field(body, field.split(".")))


def is_reasoning_model(model: str) -> bool:
    """Return whether a model's name says that it reasons by default."""
    name = model.casefold().rpartition("/")[2]
    return "instruct" not in name and matches_any(name, REASONING_MODELS)


def asks_to_think(body: Json) -> bool | None:
    """Return whether a request of any API asks for reasoning, and None if it does not say."""
    thinking, reasoning = body.get("thinking"), body.get("reasoning")
    if isinstance(thinking, dict):
        return thinking.get("type") != "disabled"
    effort = body.get("reasoning_effort")
    if effort is None and isinstance(reasoning, dict):
        effort = reasoning.get("effort")
    return None if effort is None else effort != "none"


def nested_field(path: str, value: Any) -> Json:
    """Return a field, dotted if nested, with its value."""
    key, _, inner = path.partition(".")
    return {key: nested_field(inner, value) if inner else value}


def matches_any(model: str, globs: Sequence[str]) -> bool:
    """Return whether one of `globs` matches a model."""
    return _pattern_of(tuple(globs)).match(model) is not None


@lru_cache(GLOBS)
def _pattern_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)) or "(?!)")


def _drop_field(body: Json, path: list[str]) -> bool:
    """Remove a field, and an object that is empty without it."""
    key, *inner = path
    if body.get(key) is None:
        return False
    if inner:
        holder = body[key]
        dropped = isinstance(holder, dict) and _drop_field(holder, inner)
        if dropped and not holder:
            del body[key]
        return dropped
    del body[key]
    return True
