"""The columns of the atlas: all that one provider, or server, can do differently from another.

A fact that is a provider's stands in its row (`wire/profiles.py`) and nowhere else in the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from abridge.wire.codec import Json
from abridge.wire.think import Tag

ApiName: TypeAlias = Literal["chat", "responses", "messages"]

Place: TypeAlias = Literal[
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "chunks",
    "tags",
    "extra_content",
    "nothing",
]
"""Where a chat message holds reasoning: in a field of its own (`wire/chat/dialects.py`), in
`thinking` chunks of a content list, or inline between tags. What stands in `extra_content`, a
message's and its tool calls', is opaque state alone; `thinking_blocks` holds what is signed or
sealed, and `reasoning_content` beside it what is neither."""

When: TypeAlias = Literal["always", "thinking", "asked"]

TAGS = (
    Tag("<think>", "</think>"),
    Tag("<thinking>", "</thinking>"),
    Tag("<thought>", "</thought>"),
    Tag("<reasoning>", "</reasoning>", joint=""),
    Tag("◁think▷", "◁/think▷"),
    Tag("<|START_THINKING|>", "<|END_THINKING|>"),
    Tag("<budget:thinking>", "</budget:thinking>"),
    Tag("<|channel|>analysis<|message|>", "<|end|>"),
    Tag("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
)
"""Tags in which reasoning stands inline at the beginning of an answer: DeepSeek R1 and Qwen, some
fine-tunes, Gemini's compatible endpoint, Bedrock's (a closed tag for each fragment), Kimi-VL and
Command R (SGLang's table of reasoning parsers; llama.cpp issue 11607), LiteLLM's, and harmony's
analysis channel where gpt-oss is served without its parser (openai/harmony, docs/format.md)."""


@dataclass(slots=True, frozen=True)
class Returns:
    """How earlier reasoning must come back in a chat request: `place` is where it is read, and
    `nothing` says that it must not be sent at all.

    `wanted`: without it answers get worse, or are errors. `on_calls`: turns that call tools are
    refused without it; with `even_empty` there must then be an empty string where there was none.
    `refuses`: fields of a message that are answered with an error.
    """

    place: Place = "reasoning_content"
    wanted: bool = False
    on_calls: bool = False
    even_empty: bool = False
    refuses: tuple[Place, ...] = ()


@dataclass(slots=True, frozen=True)
class Refusal:
    """Request fields that are answered with an error, dotted where they are nested.

    `models` are globs of the models that refuse them, `but` of exceptions among these. They do so
    always, or only while they are `thinking`, unless asked not to, or only where they are `asked`
    to think.
    """

    fields: tuple[str, ...]
    models: tuple[str, ...] = ("*",)
    but: tuple[str, ...] = ()
    when: When = "always"

    def applies(self, model: str, *, thinks: bool | None) -> bool:
        """Whether it does; `thinks` is what the request asks for, None where it does not say."""
        if not _matches(model, self.models) or _matches(model, self.but):
            return False
        return (
            self.when == "always" or thinks is True or (self.when == "thinking" and thinks is None)
        )


Feature: TypeAlias = Literal["allowed_tools", "custom_tools", "developer", "refusals"]
"""What few chats know: a choice among some of the tools, tools that take free text, messages of a
developer's (and instructions in the midst of a conversation), refusals beside the text."""

LACKS: Mapping[ApiName, frozenset[str]] = MappingProxyType(
    {
        "chat": frozenset(
            {
                "safety_identifier",
                "prompt_cache_key",
                "prompt_cache_retention",
                "prompt_cache_options",
                "moderation",
            }
        )
    }
)
"""Parameters that strict servers refuse (Groq, Mistral), since only their inventor has them."""

UNSEALED = ("gpt-3*", "gpt-4*", "chatgpt-*", "*-chat-latest")
"""Models that do not think, and refuse to be asked for what they would have thought ("Encrypted
content is not supported with this model.", OpenHands/software-agent-sdk issue 1208)."""


@dataclass(slots=True, frozen=True)
class Profile:
    """One provider's, or server's, ways.

    `holds`: where a chat answer holds raw reasoning, the likeliest first; empty where it holds
    none. `tags`: inline tags to look for. `prefilled`: the first of them is opened by the prompt's
    template, so that only its closing tag appears. `summary_is_raw`: what it calls a summary on
    Responses is the reasoning itself. `returns`: how reasoning must come back.

    `max_tokens`: the field that bounds a chat answer. `effort`: the chat field that says how much
    to think, dotted where it is nested, empty where there is none. `thinking_off`: request fields
    that switch thinking off. `refuses`: request fields it does not take. `knows`: what of chat few
    others do. `lacks`: parameters, by their neutral names, that its API has not. `own_reasoning`:
    it takes no reasoning back in the clear. `least_tokens`: what an answer must be allowed at
    least. `unsealed`: globs of models that cannot be asked for opaque state. `apis`: those it
    speaks, the likeliest first; not all at one address. `key_header`: where a key goes; in
    `authorization` as a bearer. `learns`: what is seen of an upstream refines it
    (`wire/learned.py`). `telemetry`: what OpenTelemetry's conventions call who provides it, where
    that is not its name.
    """

    name: str
    holds: tuple[Place, ...] = ("reasoning_content", "reasoning", "tags")
    tags: tuple[Tag, ...] = TAGS
    prefilled: bool = False
    summary_is_raw: bool = False
    returns: Returns = Returns()
    max_tokens: str = "max_tokens"
    effort: str = "reasoning_effort"
    thinking_off: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    refuses: tuple[Refusal, ...] = ()
    knows: frozenset[Feature] = frozenset()
    lacks: Mapping[ApiName, frozenset[str]] = field(default_factory=lambda: LACKS)
    own_reasoning: bool = False
    least_tokens: int = 1
    unsealed: tuple[str, ...] = UNSEALED
    apis: tuple[ApiName, ...] = ("chat",)
    key_header: str = "authorization"
    learns: bool = False
    telemetry: str = ""
    source: str = ""

    @property
    def wants_reasoning(self) -> bool:
        return self.returns.wanted

    def thinking(self, effort: str) -> Json:
        """The chat fields that say how much to think; none where that cannot be said."""
        if effort == "none" and self.thinking_off:
            return dict(self.thinking_off)
        said: Any = effort
        for key in reversed(self.effort.split(".") if self.effort else ()):
            said = {key: said}
        return said if self.effort else {}

    def drop_refused(self, body: Json, model: str) -> tuple[str, ...]:
        """Take out of a request's body what `model` would refuse; return what that was."""
        name, thinks = model.casefold().rpartition("/")[2], asks_to_think(body)
        fields = dict.fromkeys(
            field
            for refusal in self.refuses
            if refusal.applies(name, thinks=thinks)
            for field in refusal.fields
        )
        return tuple(field for field in fields if _drop(body, field.split(".")))


def asks_to_think(body: Json) -> bool | None:
    """Whether a request of any API asks for thinking; None where it does not say."""
    thinking, reasoning = body.get("thinking"), body.get("reasoning")
    if isinstance(thinking, dict):
        return thinking.get("type") != "disabled"
    effort = body.get("reasoning_effort")
    if effort is None and isinstance(reasoning, dict):
        effort = reasoning.get("effort")
    return None if effort is None else effort != "none"


def _matches(model: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(model, glob) for glob in globs)


def _drop(body: Json, path: list[str]) -> bool:
    """Take a field out, and an object that it leaves empty."""
    key, *inner = path
    if body.get(key) is None:
        return False
    if inner:
        within = body[key]
        dropped = isinstance(within, dict) and _drop(within, inner)
        if dropped and not within:
            del body[key]
        return dropped
    del body[key]
    return True
