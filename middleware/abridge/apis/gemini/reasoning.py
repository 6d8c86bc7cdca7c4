"""Write how much the model is to think, and find what a content holds of its thinking.

A part with `thought: true` holds thoughts: a summary of them, as Google says. A `thoughtSignature`
is a part's own: it stands for the thinking before that part, and is wanted back at the same part
(ai.google.dev: gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from abridge.apis.json import as_object, objects, string
from abridge.apis.params import NO_THINKING, THINKING_ALWAYS_ON
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest
from abridge.providers.gemini import LEVELS, GeminiCapabilities

BUDGETS = {"low": 1024, "medium": 8192, "high": 24576}
"""Tokens to think with, by level, for models that take a budget (ai.google.dev:
gemini-api/docs/openai)."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""The signature to send for calls whose own is lost or was never made, as for those of another
model's (ai.google.dev: gemini-api/docs/thought-signatures, FAQs)."""

STATE_PREFIX = "gemini1."
"""Begins the opaque state that holds a signature: then come the number of its call in the answer,
or `text` for that of the answer's text, a dot and the signature."""

OF_TEXT = "text"

UNKNOWN_THINKING = "It is not known whether this model's thinking can be turned off."

_STATE = re.compile(rf"{re.escape(STATE_PREFIX)}(\d{{1,6}}|{OF_TEXT})\.(.+)", re.DOTALL)


def write_thinking(
    request: ModelRequest, capabilities: GeminiCapabilities, translated: TranslatedRequest
) -> Json:
    """Write `thinkingConfig`. Whatever thinks is asked for its thoughts, which cost nothing more;
    what is shown of them is decided elsewhere."""
    effort, param = request.effort, request.param("effort", "reasoning_effort")
    if capabilities.thinking == "none":
        if effort not in (None, "none"):
            translated.leave_out(param, NO_THINKING)
        return {}
    if effort == "none" or request.declines_reasoning:
        return _turn_off(capabilities, param, translated)
    if request.budget is not None and capabilities.thinking != "level":
        return {"includeThoughts": True, "thinkingBudget": _known_budget(request.budget)}
    level = known_level(effort)
    if level is None:
        return {} if capabilities.thinking == "unknown" else {"includeThoughts": True}
    return {"includeThoughts": True, **_write_level(level, capabilities)}


def _turn_off(capabilities: GeminiCapabilities, param: str, translated: TranslatedRequest) -> Json:
    if capabilities.thinking == "unknown":
        translated.leave_out(param, UNKNOWN_THINKING)
        return {}
    if capabilities.thinking == "budget" and capabilities.least_budget == 0:
        return {"thinkingBudget": 0}
    translated.leave_out(param, THINKING_ALWAYS_ON)
    if capabilities.thinking == "budget":
        return {"includeThoughts": True, "thinkingBudget": capabilities.least_budget}
    return {"includeThoughts": True, "thinkingLevel": capabilities.levels[0]}


def _known_budget(budget: int) -> int:
    """Return the nearest budget that every model takes which takes one."""
    return min(max(budget, BUDGETS["low"]), BUDGETS["high"])


def known_level(effort: str | None) -> str | None:
    """Return the level of an effort; None if it names none."""
    level = LEVELS[-1] if effort == "max" else effort
    return level if level in LEVELS else None


def _write_level(level: str, capabilities: GeminiCapabilities) -> Json:
    supported = supported_level(level, capabilities)
    if capabilities.thinking != "level":
        return {"thinkingBudget": BUDGETS[supported]}
    return {"thinkingLevel": supported}


def supported_level(level: str, capabilities: GeminiCapabilities) -> str:
    """Return the highest level that the model supports and that is not above this one, or else its
    least."""
    below = [one for one in capabilities.levels if LEVELS.index(one) <= LEVELS.index(level)]
    return (below or capabilities.levels)[-1 if below else 0]


def is_thought(part: Json) -> bool:
    """Return whether a part is a thought. A call is none, and nor is what says `false`, which is
    the default."""
    return not is_call(part) and part.get("thought", False) is not False


def thought_text(part: Json) -> str:
    return string(part.get("text")) if is_thought(part) else ""


def is_call(part: Json) -> bool:
    return isinstance(part.get("functionCall"), dict)


def call_of(part: Json) -> Json:
    return as_object(part.get("functionCall"))


def signature_of(part: Json) -> str:
    """Return the model's own signature of a part, "" if it has none."""
    signature = string(part.get("thoughtSignature"))
    return "" if signature == NO_SIGNATURE else signature


def write_state(call: int | None, signature: str) -> str:
    """Return the opaque state that holds the signature of a call, by its number in the answer, or
    that of the text."""
    return f"{STATE_PREFIX}{OF_TEXT if call is None else call}.{signature}"


def read_state(state: str) -> tuple[int | None, str] | None:
    """Return the number of a call, or None for the text, and its signature; None if the state is
    another API's."""
    match = _STATE.fullmatch(state)
    if match is None:
        return None
    return None if match[1] == OF_TEXT else int(match[1]), match[2]


def current_steps(contents: list[Json]) -> Iterator[Json]:
    """Yield the model's contents since the last one of the user's that is not made of results: the
    current turn, in which some models refuse a step of calls without a signature."""
    for content in reversed(contents):
        if content.get("role") == "model":
            yield content
        elif any("functionResponse" not in part for part in objects(content.get("parts"))):
            return


def mark_unsigned(step: Json) -> None:
    """Give the first call of a step `NO_SIGNATURE` if it has none."""
    call = next(filter(is_call, objects(step.get("parts"))), None)
    if call is not None:
        call.setdefault("thoughtSignature", NO_SIGNATURE)
