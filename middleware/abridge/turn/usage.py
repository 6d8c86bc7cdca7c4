"""Token usage of the model and of the summarizer. A figure that nobody reported is None."""

from __future__ import annotations

from dataclasses import dataclass, field

EXTRACTIVE = "extractive"
"""Stands for the model's name where no model wrote the summary."""


@dataclass(slots=True, frozen=True)
class Tokens:
    """Tokens as an upstream reported them; None if not reported."""

    input: int | None = None
    output: int | None = None  # may or may not include `reasoning`
    total: int | None = None
    """May or may not include `reasoning`, so no figure is ever derived from the others."""
    reasoning: int | None = None
    cached: int | None = None  # input read from a cache
    written: int | None = None  # input written to a cache


@dataclass(slots=True, frozen=True)
class Share:
    """The summarizer's share of the usage."""

    tokens: Tokens
    model: str | None  # names of the models, joined by commas
    parts: int  # number of calls
    incomplete: bool  # some call did not report all of its usage

    def as_dict(self) -> dict[str, int | str | bool | None]:
        return {
            "input_tokens": self.tokens.input,
            "output_tokens": self.tokens.output,
            "total_tokens": self.tokens.total,
            "model": self.model,
            "parts": self.parts,
            "incomplete": self.incomplete,
        }


@dataclass(slots=True)
class Ledger:
    """Adds up the usage of the summarizer's calls for one response."""

    tokens: Tokens = Tokens()
    models: list[str] = field(default_factory=list)
    parts: int = 0
    incomplete: bool = False

    def book(self, spent: Tokens | None, model: str | None = None) -> None:
        """Add one call with its reported usage."""
        self.parts += 1
        if model is not None and model not in self.models:
            self.models.append(model)
        if spent is None or None in (spent.input, spent.output, spent.total):
            self.incomplete = True
        if spent is not None:
            self.tokens = _sum(self.tokens, spent)

    def note_extract(self) -> None:
        """Record that an extract replaced the summary of a failed call."""
        if EXTRACTIVE not in self.models:
            self.models.append(EXTRACTIVE)

    def share(self) -> Share | None:
        """Return the sum so far, or None if no call was made."""
        if not self.parts:
            return None
        return Share(self.tokens, ", ".join(self.models) or None, self.parts, self.incomplete)


def _sum(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(
        _add(one.input, other.input),
        _add(one.output, other.output),
        _add(one.total, other.total),
        _add(one.reasoning, other.reasoning),
        _add(one.cached, other.cached),
        _add(one.written, other.written),
    )


def _add(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
