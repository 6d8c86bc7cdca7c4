"""Write how much the model is to think."""

from __future__ import annotations

from dataclasses import dataclass, field

from abridge.apis.api import ReasoningWish
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Unsupported
from abridge.providers.claude import EFFORTS, ModelCapabilities

MIN_BUDGET = 1024
"""The smallest budget, in tokens (Anthropic API reference, `ThinkingConfigEnabled`)."""

BUDGET_SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.95, "max": 0.95}
"""Share of `max_tokens` to think with, by effort, for models that take a budget
(openrouter.ai/docs, best practices: reasoning tokens)."""

NO_BUDGET_ROOM = "There is no room to think below the bound on tokens."

THINKING_ALWAYS_ON = "This model cannot be kept from thinking; it was asked for the least effort."

NO_THINKING = "This model does not think."


def read_wish(body: Json) -> ReasoningWish | None:
    """Read what a request says of the thinking that its client wants to see.

    Whoever turns thinking on wants to see it summarized, unless `display` says otherwise
    (Anthropic API reference, `ThinkingConfigParam`).
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, dict):
        return None
    if thinking.get("type") not in ("enabled", "adaptive"):
        return "off"
    return "omitted" if thinking.get("display") == "omitted" else "summarized"


@dataclass(slots=True)
class ThinkingParams:
    """The thinking parameters of a request."""

    config: Json | None = None  # None leaves upstream's own default
    effort: str | None = None
    unsupported: list[Unsupported] = field(default_factory=list)

    @property
    def is_on(self) -> bool:
        """True if the parameters turn thinking on."""
        return self.config is not None and self.config.get("type") in ("adaptive", "enabled")


def write_thinking(
    request: ModelRequest, capabilities: ModelCapabilities, max_tokens: int, *, forced: bool
) -> ThinkingParams:
    """Write the thinking parameters. A client that asks for a summary asks for thinking, whether or
    not it says how much.

    Thinking yields to a forced tool: no model thinks before one, and some refuse the combination.
    """
    effort, param = request.effort, request.param_names.get("effort", "reasoning_effort")
    if isinstance(
        client_config := request.extra.get("thinking"), dict
    ):  # in Anthropic's own format
        return ThinkingParams(client_config, _supported_effort(effort, capabilities))
    if effort == "none":
        return _turn_off(capabilities, param)
    if effort is None and request.native_style is None:
        return ThinkingParams()
    if capabilities.thinking == "none":
        return ThinkingParams(
            unsupported=[Unsupported(param, NO_THINKING, essential=False)] if effort else []
        )
    if forced:
        return ThinkingParams(effort=_supported_effort(effort, capabilities))
    if capabilities.thinking == "budget":
        return _write_budget(effort or "medium", max_tokens, param)
    return ThinkingParams(
        {"type": "adaptive", "display": "summarized"}, _supported_effort(effort, capabilities)
    )


def _turn_off(capabilities: ModelCapabilities, param: str) -> ThinkingParams:
    if capabilities.thinking == "none":
        return ThinkingParams()
    if capabilities.thinking_off:
        return ThinkingParams({"type": capabilities.thinking_off})
    unsupported = [Unsupported(param, THINKING_ALWAYS_ON, essential=False)]
    return ThinkingParams({"type": "adaptive", "display": "summarized"}, "low", unsupported)


def _write_budget(effort: str, max_tokens: int, param: str) -> ThinkingParams:
    if max_tokens <= MIN_BUDGET:
        return ThinkingParams(unsupported=[Unsupported(param, NO_BUDGET_ROOM, essential=False)])
    budget = max(MIN_BUDGET, int(max_tokens * BUDGET_SHARES.get(effort, BUDGET_SHARES["medium"])))
    return ThinkingParams({"type": "enabled", "budget_tokens": budget})


def _supported_effort(effort: str | None, capabilities: ModelCapabilities) -> str | None:
    """Return the highest level the model supports that is not above the requested one."""
    if effort is None or not capabilities.efforts:
        return None
    if effort not in EFFORTS:
        return "low" if effort in ("minimal", "none") else None
    below = EFFORTS[: EFFORTS.index(effort) + 1]
    return next(level for level in reversed(below) if level in capabilities.efforts)
