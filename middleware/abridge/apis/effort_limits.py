"""The most effort and the largest budget of thinking that clients may ask of an upstream.

They hold for every spelling that is known of an effort or a budget, in requests of any API. A value
that no API would take is left to upstream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from abridge.apis.defaults import Effort
from abridge.core.conversation import Json

EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""The efforts, the least first."""

LEAST_BUDGET = 1024
"""The least budget that Anthropic's Messages takes, in tokens (its guide to extended thinking)."""

UNLIMITED = -1
"""The budget of a model that decides by itself (Gemini, vLLM), which is beyond any limit."""


class EffortField(NamedTuple):
    """Where a request says its effort, and the least that may stand there."""

    path: tuple[str, ...]
    least: Effort = "none"


_GOOGLE = ("google", "thinking_config")

EFFORT_FIELDS = (
    EffortField(("reasoning_effort",)),  # OpenAI's Chat Completions, and most servers of it
    EffortField(("reasoning", "effort")),  # OpenAI's Responses; OpenRouter
    EffortField(("output_config", "effort"), "low"),  # Anthropic's Messages
    EffortField(("chat_template_kwargs", "reasoning_effort"), "low"),  # gpt-oss on vLLM, SGLang
    EffortField((*_GOOGLE, "thinking_level"), "low"),  # Gemini's compatible endpoint
    EffortField(("extra_body", *_GOOGLE, "thinking_level"), "low"),
    EffortField(("generationConfig", "thinkingConfig", "thinkingLevel"), "low"),  # Gemini's own API
    EffortField(("think",), "low"),  # Ollama
)

BUDGET_FIELDS = (
    ("thinking", "budget_tokens"),  # Anthropic's Messages
    ("reasoning", "max_tokens"),  # OpenRouter
    ("thinking_budget",),  # Qwen's own servers
    ("thinking_token_budget",),  # vLLM
    ("chat_template_kwargs", "thinking_budget"),  # vLLM, SGLang
    (*_GOOGLE, "thinking_budget"),  # Gemini's compatible endpoint
    ("extra_body", *_GOOGLE, "thinking_budget"),
    ("generationConfig", "thinkingConfig", "thinkingBudget"),  # Gemini's own API
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
        return LoweredEffort(self._lower_effort(body), self._lower_budget(body))

    def allows(self, effort: Effort) -> bool:
        return self.effort is None or EFFORTS.index(effort) <= EFFORTS.index(self.effort)

    def _lower_effort(self, body: Json) -> str | None:
        lowered = None
        for path, least in EFFORT_FIELDS if self.effort is not None else ():
            for holder in _find_holder(body, path):
                most = max(self.effort or "none", least, key=EFFORTS.index)
                asked = holder[path[-1]]
                if asked in EFFORTS[EFFORTS.index(most) + 1 :]:
                    holder[path[-1]] = lowered = most
        return lowered

    def _lower_budget(self, body: Json) -> int | None:
        lowered = None
        for path in BUDGET_FIELDS if self.budget is not None else ():
            for holder in _find_holder(body, path):
                asked = holder[path[-1]]
                if type(asked) is int and (asked > (self.budget or 0) or asked == UNLIMITED):
                    holder[path[-1]] = lowered = self.budget
        return lowered


def _find_holder(body: Json, path: tuple[str, ...]) -> Iterator[Json]:
    """Yield the object that holds a field, if the body has it."""
    holder: Any = body
    for name in path[:-1]:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and path[-1] in holder:
        yield holder
