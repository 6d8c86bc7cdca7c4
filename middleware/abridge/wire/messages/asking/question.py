"""Writes a request in the format of Anthropic Messages."""

from __future__ import annotations

from abridge.turn.question import Question, Unfit, Written
from abridge.wire.api import Asking
from abridge.wire.asking.params import PARAMS
from abridge.wire.codec import Json
from abridge.wire.messages.asking.dialogue import Dialogue
from abridge.wire.messages.asking.models import Ways, ways_of
from abridge.wire.messages.asking.offer import Offer
from abridge.wire.messages.asking.sampling import sample
from abridge.wire.messages.asking.thinking import Thinking, think

FIELDS = (
    "max_tokens",
    "parallel_tool_calls",
    "safety_identifier",
    "service_tier",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "user",
)
"""The plain parameters, by neutral name, that this API supports in some form."""

TIERS = {"auto": "auto", "default": "standard_only", "priority": "auto"}

UNKNOWN = "Not supported by this upstream."
NO_SCHEMA = "This upstream gives JSON by a schema only."
NO_FORMAT = "This model has no structured outputs."
BLANK_STOP = "This upstream takes no stop sequence that is blank."


def write_question(question: Question, asking: Asking) -> Written:
    """Write a request. Anthropic's own parameters that the client sent (`extra`) are passed on,
    unless the request sets the same key."""
    values, ways = question.values, ways_of(question.model)
    where = question.params.get("messages", "messages")
    unsigned = asking.profile.wants_reasoning  # it refuses none, and needs its own back
    dialogue = Dialogue(question.speeches, ways, where, unsigned=unsigned)
    offer = Offer(question, ways)
    bound = values.get("max_tokens") or asking.max_tokens
    thinking = think(question, ways, bound, forced=offer.forced)
    sampled, unsampled = sample(question, ways, thinking=thinking.on)
    stops, blank = _stops(question)
    formatted, unformatted = _format(question, ways)
    body = {
        "model": question.model,
        "max_tokens": bound,
        "system": dialogue.system,
        "messages": dialogue.messages,
        "tools": offer.spelled,
        "tool_choice": offer.choice,
        "thinking": thinking.config,
        "output_config": _output(question, thinking, formatted),
        "stop_sequences": stops,
        "metadata": _metadata(question),
        "service_tier": TIERS.get(values.get("service_tier", "")),
        "stream": question.stream,
        **sampled,
    }
    told = {
        key: value for key, value in body.items() if value or key in sampled or key == "messages"
    }
    left = [*offer.unfit, *thinking.unfit, *unsampled, *blank, *unformatted, *_left_out(question)]
    return Written({**question.extra, **told}, [*dialogue.unfit, *left], offer.tools)


def _stops(question: Question) -> tuple[list[str], list[Unfit]]:
    given = question.values.get("stop") or []
    stops = [given] if isinstance(given, str) else list(given)
    kept = [stop for stop in stops if stop.strip()]
    unfit = [Unfit(question.params.get("stop", "stop"), BLANK_STOP, matters=True)]
    return kept, unfit if len(kept) < len(stops) else []


def _format(question: Question, ways: Ways) -> tuple[Json, list[Unfit]]:
    wanted, param = question.format, question.params.get("format", "response_format")
    if wanted is None:
        return {}, []
    if wanted.schema is None:
        return {}, [Unfit(param, NO_SCHEMA, matters=True)]
    if not ways.structured:
        return {}, [Unfit(param, NO_FORMAT, matters=True)]
    return {"format": {"type": "json_schema", "schema": wanted.schema}}, []


def _output(question: Question, thinking: Thinking, formatted: Json) -> Json:
    effort = {"effort": thinking.effort} if thinking.effort else {}
    given = question.extra.get("output_config")
    return {**effort, **formatted, **(given if isinstance(given, dict) else {})}


def _metadata(question: Question) -> Json:
    user = question.values.get("safety_identifier") or question.values.get("user")
    return {"user_id": user} if user else {}


def _left_out(question: Question) -> list[Unfit]:
    """Report the plain parameters that are left out."""
    return [
        Unfit(question.params.get(name, name), UNKNOWN, matters=PARAMS[name].matters)
        for name, value in question.values.items()
        if name not in FIELDS or (name == "service_tier" and value not in TIERS)
    ]
