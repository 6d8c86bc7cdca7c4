"""Writes how much the model is to think."""

from __future__ import annotations

from dataclasses import dataclass, field

from abridge.turn.question import Question, Unfit
from abridge.wire.codec import Json
from abridge.wire.messages.asking.models import EFFORTS, Ways

LEAST = 1024
"""The smallest budget, in tokens (Anthropic API reference, `ThinkingConfigEnabled`)."""

SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.95, "max": 0.95}
"""Share of `max_tokens` to think with, by effort, for models that take a budget
(openrouter.ai/docs, best practices: reasoning tokens)."""

NO_ROOM = "There is no room to think below the bound on tokens."
NEVER_OFF = "This model cannot be kept from thinking; it was asked for the least effort."
NOT_AT_ALL = "This model does not think."


@dataclass(slots=True)
class Thinking:
    """The thinking parameters of a request."""

    config: Json | None = None  # None leaves upstream's own default
    effort: str | None = None
    unfit: list[Unfit] = field(default_factory=list)

    @property
    def on(self) -> bool:
        """True if the parameters turn thinking on."""
        return self.config is not None and self.config.get("type") in ("adaptive", "enabled")


def think(question: Question, ways: Ways, bound: int, *, forced: bool) -> Thinking:
    """Write the thinking parameters. A client that asks for a summary asks for thinking, whether or
    not it says how much.

    Thinking yields to a forced tool: no model thinks before one, and some refuse the combination.
    """
    effort, param = question.effort, question.params.get("effort", "reasoning_effort")
    if isinstance(given := question.extra.get("thinking"), dict):  # in Anthropic's own format
        return Thinking(given, _level(effort, ways))
    if effort == "none":
        return _off(ways, param)
    if effort is None and question.summary is None:
        return Thinking()
    if ways.thinking == "none":
        return Thinking(unfit=[Unfit(param, NOT_AT_ALL, matters=False)] if effort else [])
    if forced:
        return Thinking(effort=_level(effort, ways))
    if ways.thinking == "budget":
        return _budget(effort or "medium", bound, param)
    return Thinking({"type": "adaptive", "display": "summarized"}, _level(effort, ways))


def _off(ways: Ways, param: str) -> Thinking:
    if ways.thinking == "none":
        return Thinking()
    if ways.off:
        return Thinking({"type": ways.off})
    unfit = [Unfit(param, NEVER_OFF, matters=False)]
    return Thinking({"type": "adaptive", "display": "summarized"}, "low", unfit)


def _budget(effort: str, bound: int, param: str) -> Thinking:
    if bound <= LEAST:
        return Thinking(unfit=[Unfit(param, NO_ROOM, matters=False)])
    budget = max(LEAST, int(bound * SHARES.get(effort, SHARES["medium"])))
    return Thinking({"type": "enabled", "budget_tokens": budget})


def _level(effort: str | None, ways: Ways) -> str | None:
    """Return the highest level the model supports that is not above the requested one."""
    if effort is None or not ways.efforts:
        return None
    if effort not in EFFORTS:
        return "low" if effort in ("minimal", "none") else None
    below = EFFORTS[: EFFORTS.index(effort) + 1]
    return next(level for level in reversed(below) if level in ways.efforts)
