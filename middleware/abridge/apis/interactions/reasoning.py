"""Write how much the model is to think, and find what the steps hold of its thinking.

A `thought` step has a signature, which stands for the thinking itself, and perhaps a summary of it.
All of them are wanted back as they were, before what they led to (ai.google.dev:
gemini-api/docs/interactions/thinking).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from abridge.apis.gemini.reasoning import (
    NO_SIGNATURE,
    UNKNOWN_THINKING,
    known_level,
    supported_level,
)
from abridge.apis.json import objects, string
from abridge.apis.params import NO_THINKING, THINKING_ALWAYS_ON
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest
from abridge.providers.gemini import GeminiCapabilities

STATE_PREFIX = "interactions1."
"""Begins the opaque state that holds a signature: then come the place of its thought in the answer,
a dot and the signature. Clients of Chat Completions have all reasoning before the rest."""

_STATE = re.compile(rf"{re.escape(STATE_PREFIX)}(\d{{1,6}})\.(.+)", re.DOTALL)

MODEL_STEPS = frozenset({"thought", "model_output", "function_call"})
"""The types of the model's steps that clients can return."""


def write_thinking(
    request: ModelRequest, capabilities: GeminiCapabilities, translated: TranslatedRequest
) -> Json:
    """Write the fields of `generation_config`. There are levels only, for all models (google-genai,
    `GenerationConfig`). Whatever thinks is asked for its summaries, which cost nothing more; what
    is shown of them is decided elsewhere."""
    effort, param = request.effort, request.param("effort", "reasoning_effort")
    level, is_known = known_level(effort), capabilities.thinking != "unknown"
    if capabilities.thinking == "none":
        if effort not in (None, "none"):
            translated.leave_out(param, NO_THINKING)
        return {}
    if effort == "none" or request.declines_reasoning:
        translated.leave_out(param, THINKING_ALWAYS_ON if is_known else UNKNOWN_THINKING)
        level = capabilities.levels[0] if is_known else None
    if level is None:
        return {"thinking_summaries": "auto"} if is_known else {}
    supported = supported_level(level, capabilities)
    return {"thinking_level": supported, "thinking_summaries": "auto"}


def is_thought(step: Json) -> bool:
    return step.get("type") == "thought"


def is_placeholder(step: Json) -> bool:
    return is_thought(step) and step.get("signature") == NO_SIGNATURE


def thought_text(step: Json) -> str:
    if not is_thought(step):
        return ""
    return "".join(string(content.get("text")) for content in objects(step.get("summary")))


def signature_of(step: Json) -> str:
    """Return the model's own signature of a thought, "" if it has none."""
    is_own = is_thought(step) and not is_placeholder(step)
    return string(step.get("signature")) if is_own else ""


def place_of(call_count: int, *, has_begun: bool) -> int:
    """Return the place of what comes after so many calls of an answer: 0 before all of it, 1 after
    its text, 2 after its first call."""
    return call_count + 1 if has_begun else 0


def write_state(place: int, signature: str) -> str:
    """Return the opaque state that holds the signature of a thought at this place."""
    return f"{STATE_PREFIX}{place}.{signature}"


def read_state(state: str) -> tuple[int, str] | None:
    """Return the place of a thought and its signature; None if the state is another API's."""
    match = _STATE.fullmatch(state)
    return None if match is None else (int(match[1]), match[2])


def with_signature(steps: Sequence[Json]) -> list[Json]:
    """Return what the model said without a break, with a thought before its first call if none is
    signed: some models refuse that in the current turn (earendil-works/pi pull 2172)."""
    calls = [n for n, step in enumerate(steps) if step.get("type") == "function_call"]
    if not calls or any(step.get("signature") for step in filter(is_thought, steps)):
        return list(steps)
    unsigned = {"type": "thought", "signature": NO_SIGNATURE}
    return [*steps[: calls[0]], unsigned, *steps[calls[0] :]]
