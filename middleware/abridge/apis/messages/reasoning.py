"""Read how much a model is to think, and write it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from abridge.apis.api import ReasoningWish
from abridge.apis.effort import LEAST_BUDGET
from abridge.apis.json import as_object, objects, string
from abridge.apis.messages.history import began_without_thinking
from abridge.apis.messages.tools import forces_tool
from abridge.apis.params import (
    NO_THINKING,
    THINKING_ALWAYS_ON,
    Param,
    check_value,
    read_object,
    read_string,
)
from abridge.apis.summary_request import native_style
from abridge.core.conversation import Json
from abridge.core.model_request import Message, ModelRequest, ReasoningPart, TranslatedRequest
from abridge.core.plan import BYTES_PER_TOKEN, byte_length
from abridge.errors import RequestError
from abridge.providers.claude import EFFORTS, ModelCapabilities, find_capabilities, has_to_ask

BUDGET_SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.95, "max": 0.95}
"""Share of `max_tokens` to think with, by effort, for models that take a budget
(openrouter.ai/docs, best practices: reasoning tokens)."""

BUDGET_EFFORTS = ((4096, "low"), (16384, "medium"))
"""The effort that a budget up to so many tokens stands for; a larger one stands for `high`. Claude
Code's words for thinking gave 4,000 ("think"), 10,000 ("think hard") and 31,999 tokens."""

_BUDGET = Param(types=(int,), minimum=1)

MIN_TOKENS_TO_ASK = 4096
"""The lowest `max_tokens` of a request whose model is asked to think without the client's word:
thinking counts towards it."""

NO_BUDGET_ROOM = "The token limit leaves no room for thinking."

FOREIGN_THINKING = "This thinking comes from another model or another conversation."


PROGRESS_BETA = b"thinking-token-count-"
"""How the beta begins, in the header `anthropic-beta`, with which a client asks to be told of the
progress of thinking that it is not shown."""

PROGRESS_FIELD = "estimated_tokens"

PROGRESS_TOKENS = 50
"""Each progress is a multiple of so many tokens, as at Anthropic (`BetaThinkingDelta`)."""


def wants_progress(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    betas = (value for name, value in headers if name == b"anthropic-beta")
    return any(
        beta.strip().startswith(PROGRESS_BETA) for value in betas for beta in value.split(b",")
    )


class ThinkingProgress:
    """Counts the tokens of a block of thinking, roughly."""

    def __init__(self) -> None:
        self._bytes = 0  # that were not told yet

    def add(self, text: str) -> int:
        """Count a piece of the thinking; return how many more tokens are to be told of now."""
        self._bytes += byte_length(text)
        tokens = self._bytes // BYTES_PER_TOKEN // PROGRESS_TOKENS * PROGRESS_TOKENS
        self._bytes -= tokens * BYTES_PER_TOKEN
        return tokens


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


def read_thinking(body: Json, request: ModelRequest) -> None:
    """Read how much the model is to think, and whether upstream itself is to summarize it.

    Raises RequestError for an invalid value.
    """
    config, thinking = read_object(body, "output_config"), read_object(body, "thinking")
    request.effort = read_string(config, "effort", "output_config")
    request.param_names["effort"] = "output_config.effort"
    request.native_style = native_style(body)
    if read_wish(body) == "summarized":
        request.native_style = request.native_style or "auto"
    kind, budget = read_string(thinking, "type", "thinking"), thinking.get("budget_tokens")
    if kind in ("disabled", "between_tools"):
        request.declines_reasoning, request.effort = True, None
    elif kind == "enabled" and budget is not None:
        check_value(budget, _BUDGET, "thinking.budget_tokens")
        request.budget = budget
        if request.effort is None:
            request.effort = effort_of_budget(budget)
            request.param_names["effort"] = "thinking.budget_tokens"


def leave_out_foreign_thinking(body: Json, request: ModelRequest) -> None:
    """Leave out thinking of another model, where the client has bound its thinking to the
    conversation (anthropic-sdk-python, `BetaThinkingBlockBindingParam`). What Abridge itself gave
    the client has gone from the request by now, to be put back as upstream said it.

    Raises RequestError if the client wants to be told so.
    """
    binding = as_object(body.get("thinking")).get("block_binding")
    if not isinstance(binding, dict):
        return
    is_dropped = binding.get("prefix_mismatch_behavior") == "drop_block"
    for message in request.messages:
        given, message.parts = message.parts, []
        for part in given:
            if not (isinstance(part, ReasoningPart) and part.state):
                message.parts.append(part)
            elif is_dropped:
                request.foreign_reasoning.append(part.param)
            else:
                raise RequestError(FOREIGN_THINKING, param=part.param)


def effort_of_budget(budget: int) -> str:
    """Return the effort that a budget of thinking tokens stands for."""
    return next((effort for limit, effort in BUDGET_EFFORTS if budget <= limit), "high")


class ThinkingParams(NamedTuple):
    """The thinking parameters of a request."""

    config: Json | None = None  # None leaves upstream's own default
    effort: str | None = None

    @property
    def is_on(self) -> bool:
        """True if the parameters turn thinking on."""
        return self.config is not None and self.config.get("type") in ("adaptive", "enabled")


def write_thinking(
    request: ModelRequest,
    capabilities: ModelCapabilities,
    max_tokens: int,
    translated: TranslatedRequest,
    *,
    forced: bool,
    asks: bool,
) -> ThinkingParams:
    """Write the thinking parameters. A client that asks for a summary asks for thinking, whether or
    not it says how much; `asks` where the settings do so for it.

    Thinking yields to a forced tool and to an answer that is begun: no model thinks before the one
    or within the other, and some refuse the combination.
    """
    effort, param = request.effort, request.param("effort", "reasoning_effort")
    yields = forced or _is_begun(request)
    client_config = request.extra.get("thinking")  # in Anthropic's own format
    if isinstance(client_config, dict):
        return ThinkingParams(client_config, _supported_effort(effort, capabilities))
    if effort == "none" or request.declines_reasoning:
        return _turn_off(capabilities, param, translated)
    if effort is None and request.native_style is None:
        stands_back = yields or _samples(request.params, capabilities)
        config = None if stands_back or not asks else _asking_config(capabilities, max_tokens)
        return ThinkingParams(config)
    if capabilities.thinking == "none":
        if effort:
            translated.leave_out(param, NO_THINKING)
        return ThinkingParams()
    if yields:
        return ThinkingParams(effort=_supported_effort(effort, capabilities))
    if capabilities.thinking == "budget" and max_tokens <= LEAST_BUDGET:
        translated.leave_out(param, NO_BUDGET_ROOM)
        return ThinkingParams()
    if capabilities.thinking == "budget":
        return ThinkingParams(_write_budget(request, max_tokens))
    return ThinkingParams(
        {"type": "adaptive", "display": "summarized"}, _supported_effort(effort, capabilities)
    )


def _turn_off(
    capabilities: ModelCapabilities, param: str, translated: TranslatedRequest
) -> ThinkingParams:
    if capabilities.thinking == "none":
        return ThinkingParams()
    if capabilities.thinking_off:
        return ThinkingParams({"type": capabilities.thinking_off})
    translated.leave_out(param, THINKING_ALWAYS_ON)
    return ThinkingParams({"type": "adaptive", "display": "summarized"}, "low")


def _write_budget(request: ModelRequest, max_tokens: int) -> Json:
    share = BUDGET_SHARES.get(request.effort or "medium", BUDGET_SHARES["medium"])
    given = request.budget
    budget = int(max_tokens * share) if given is None else min(given, max_tokens - 1)
    return {"type": "enabled", "budget_tokens": max(LEAST_BUDGET, budget)}


def _supported_effort(effort: str | None, capabilities: ModelCapabilities) -> str | None:
    """Return the highest level the model supports that is not above the requested one."""
    if effort is None or not capabilities.efforts:
        return None
    if effort not in EFFORTS:
        return "low" if effort in ("minimal", "none") else None
    below = EFFORTS[: EFFORTS.index(effort) + 1]
    return next(level for level in reversed(below) if level in capabilities.efforts)


# Asking without the client's word


def ask_to_think(body: Json) -> bool:
    """Have a Claude model think, and say so, where a summary is due and its client left it open.

    Return True if that changed the body. Nothing that the client set yields to it.
    """
    model = string(body.get("model"))
    if not has_to_ask(model):
        return False
    thinking, capabilities = body.get("thinking"), find_capabilities(model)
    config = _shown(thinking, capabilities) if thinking else _config_for(body, capabilities)
    if config is not None:
        body["thinking"] = config
    return config is not None


def _shown(thinking: Any, capabilities: ModelCapabilities) -> Json | None:
    """Return the client's own config with its thinking shown; None if it is so already, or thinking
    is off. Models that think adaptively show none by default."""
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "adaptive"):
        return None
    display = thinking.get("display")
    hidden = display == "omitted" or (display is None and capabilities.thinking == "adaptive")
    return {**thinking, "display": "summarized"} if hidden else None


def _config_for(body: Json, capabilities: ModelCapabilities) -> Json | None:
    """Return the config for a body without one; None where thinking would not fit."""
    forced = forces_tool(as_object(body.get("tool_choice")))
    messages, max_tokens = objects(body.get("messages")), body.get("max_tokens")
    begun = bool(messages) and messages[-1].get("role") == "assistant"
    late = capabilities.thinking == "budget" and began_without_thinking(messages)
    if forced or begun or late or _samples(body, capabilities):
        return None
    return _asking_config(capabilities, max_tokens if isinstance(max_tokens, int) else 0)


def _asking_config(capabilities: ModelCapabilities, max_tokens: int) -> Json | None:
    if capabilities.thinking == "none" or max_tokens < MIN_TOKENS_TO_ASK:
        return None
    if capabilities.thinking == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    return {
        "type": "enabled",
        "budget_tokens": max(LEAST_BUDGET, int(max_tokens * BUDGET_SHARES["low"])),
    }


def _samples(params: Json, capabilities: ModelCapabilities) -> bool:
    """Return whether a request sets how a model samples that samples so only without thinking."""
    changed = any(params.get(name) not in (None, 1) for name in ("temperature", "top_p"))
    return capabilities.sampling and (changed or params.get("top_k") is not None)


def _is_begun(request: ModelRequest) -> bool:
    """Return whether a request has its answer begun: no model thinks within one, unless it thought
    before."""
    last = request.messages[-1] if request.messages else Message("user")
    thinks = any(isinstance(part, ReasoningPart) and part.state for part in last.parts)
    return last.role == "assistant" and not thinks
