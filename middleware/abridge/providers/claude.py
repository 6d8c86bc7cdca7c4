"""Capabilities of Claude models, as far as a request depends on them; one row per family.

Facts only. Sources: Anthropic's pages on thinking, effort, structured outputs and mid-conversation
system messages, the migration guides of its models (platform.claude.com/docs), and the capabilities
that Vercel's AI SDK has for each model (packages/anthropic, `getModelCapabilities`, 2026-10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from abridge.providers.profile import StructuredOutputs, matches_any

EFFORTS = ("low", "medium", "high", "xhigh", "max")

CLAUDE_SUMMARIES = (
    "claude-opus-[4-9]*",
    "claude-sonnet-[4-9]*",
    "claude-haiku-[4-9]*",
    "claude-fable-*",
    "claude-mythos-*",
    *(f"claude-[4-9]*-{family}*" for family in ("opus", "sonnet", "haiku")),
)
"""Since Claude 4, thinking is a summary (docs.aws.amazon.com: bedrock
claude-messages-thinking-differences; platform.claude.com: build-with-claude/thinking). Claude 3.7
returns all of it. OpenRouter answers under names such as `claude-4.5-sonnet-20250929` (recorded).
"""


@dataclass(slots=True, frozen=True)
class ModelCapabilities:
    """The capabilities of one model family."""

    globs: tuple[str, ...]
    thinking: Literal["adaptive", "budget", "none"] = "adaptive"
    """Control over thinking: by the model itself, by a token budget, or none."""
    thinking_off: Literal["disabled", "between_tools", ""] = "disabled"
    """The `thinking.type` that turns thinking off; empty if nothing does."""
    efforts: tuple[str, ...] = EFFORTS  # supported effort levels
    sampling: bool = False  # takes temperature, top_p and top_k
    forced_tools: bool = True  # a tool call can be forced
    structured_outputs: bool = True  # strict tools and an output format, at Anthropic's
    late_instructions: bool = False  # instructions may follow a user message


_LATEST_CLAUDE = ModelCapabilities(("*claude*",))
"""Capabilities of an unknown Claude model: those of the latest."""

_BUDGET_CLAUDE = ModelCapabilities((), thinking="budget", efforts=(), sampling=True)

CLAUDE_MODELS = (
    ModelCapabilities(
        ("*claude-sonnet-5-5*",),
        thinking_off="between_tools",
        forced_tools=False,
        late_instructions=True,
    ),
    ModelCapabilities(
        ("*claude-opus-5-5*",), thinking_off="", forced_tools=False, late_instructions=True
    ),
    ModelCapabilities(("*claude-haiku-5-5*",), late_instructions=True),
    ModelCapabilities(
        ("*claude-fable-5-[12]*", "*claude-mythos-5-[12]*"),
        thinking_off="",
        forced_tools=False,
        late_instructions=True,
    ),
    ModelCapabilities(
        ("*claude-fable-5*", "*claude-mythos-5*"), thinking_off="", late_instructions=True
    ),
    ModelCapabilities(("*claude-opus-5*", "*claude-opus-4-8*"), late_instructions=True),
    ModelCapabilities(("*claude-sonnet-5*", "*claude-opus-4-7*")),
    ModelCapabilities(
        ("*claude-opus-4-6*", "*claude-sonnet-4-6*"),
        efforts=("low", "medium", "high", "max"),
        sampling=True,
    ),
    replace(
        _BUDGET_CLAUDE,
        globs=(
            "*claude-opus-4-5*",
            "*claude-sonnet-4-5*",
            "*claude-haiku-4-5*",
            "*claude-opus-4-1*",
        ),
    ),
    replace(
        _BUDGET_CLAUDE,
        globs=("*claude-opus-4*", "*claude-sonnet-4*", "*claude-3-7*"),
        structured_outputs=False,
    ),
    replace(
        _BUDGET_CLAUDE,
        globs=("*claude-3*", "*claude-2*", "*claude-v2*", "*claude-instant*"),
        thinking="none",
        structured_outputs=False,
    ),
    _LATEST_CLAUDE,
)

OTHER_MODELS = replace(_BUDGET_CLAUDE, structured_outputs=False)
"""Other models behind this API (the compatible endpoints of DeepSeek, Moonshot, Z.ai and MiniMax),
which take `thinking` as the first Claude models did."""


def find_capabilities(
    model: str, structured_outputs: StructuredOutputs = "as_claude"
) -> ModelCapabilities:
    """Return a model's capabilities, by its name in any usual form: with a vendor prefix, with a
    date. The provider has a word on structured outputs (see `Profile.structured_outputs`)."""
    name = model.casefold().rpartition("/")[2].replace(".", "-")
    rows = (row for row in CLAUDE_MODELS if matches_any(name, row.globs))
    found = next(rows, OTHER_MODELS)
    if structured_outputs == "as_claude":
        return found
    return replace(found, structured_outputs=structured_outputs == "all")


def has_to_ask(model: str) -> bool:
    """Return whether a model thinks on Messages, or says what it thinks, only if asked."""
    return "claude" in model.casefold().rpartition("/")[2]
