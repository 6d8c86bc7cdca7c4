"""Writes the sampling parameters that the model allows."""

from __future__ import annotations

from abridge.turn.question import Question, Unfit
from abridge.wire.codec import Json
from abridge.wire.messages.asking.models import Ways

TOO_HOT = "This upstream takes a temperature of at most 1."
FIXED = "This model samples in its own way."
THINKS = "A model that thinks samples in its own way."
ONE = "This upstream takes a temperature or top_p, not both."

LEAST_TOP_P = 0.95
"""Lowest top_p that thinking allows (Anthropic's guide to extended thinking)."""


def sample(question: Question, ways: Ways, *, thinking: bool) -> tuple[Json, list[Unfit]]:
    """Return the sampling parameters to send, and those left out. Defaults are not sent."""
    names = ("temperature", "top_p", "top_k")
    given = {name: question.values[name] for name in names if question.values.get(name) is not None}
    given = {name: value for name, value in given.items() if name == "top_k" or value != 1}
    out: dict[str, tuple[str, bool]] = {}
    for name, value in given.items():
        if name == "temperature" and value > 1:
            out[name] = TOO_HOT, True
        elif not ways.sampling:
            out[name] = FIXED, False
        elif thinking and not (name == "top_p" and value >= LEAST_TOP_P):
            out[name] = THINKS, False
        elif name == "top_p" and "temperature" in given and "temperature" not in out:
            out[name] = ONE, False
    unfit = [
        Unfit(question.params.get(name, name), message, matters=matters)
        for name, (message, matters) in out.items()
    ]
    return {name: value for name, value in given.items() if name not in out}, unfit
