"""Token usage of the model and of the summarizer. A figure that nobody reported is None."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


class Tokens(NamedTuple):
    """Tokens as an upstream reported them; None if not reported."""

    input: int | None = None
    output: int | None = None  # may or may not include `reasoning`
    total: int | None = None
    """May or may not include `reasoning`, so none of the model's figures is ever derived from the
    others."""
    reasoning: int | None = None
    cached: int | None = None  # input read from a cache
    cache_written: int | None = None  # input written to a cache

    def with_total(self) -> Tokens:
        """Return the figures with a total: the sum of input and output, as far as they were
        reported, where there was none.

        Without it a bill to which they are added would be more than its own total.
        """
        counts = [count for count in (self.input, self.output) if count is not None]
        return self._replace(total=sum(counts)) if self.total is None and counts else self

    def as_billed(self) -> Tokens:
        """Return the figures with reasoning among the output tokens, as it is billed.

        Some upstreams report it outside of them; then only the total has both.
        """
        if self.input is None or self.total is None:
            return self
        return self._replace(output=max(self.output or 0, self.total - self.input))


NO_TOKENS = Tokens()


@dataclass(slots=True, frozen=True)
class SummarizerUsage:
    """Usage of one summarizer call, as far as it was reported."""

    tokens: Tokens | None = None
    model: str | None = None  # the model that answered
    stopped: str = ""
    """Why the model was stopped before it was done: `length`, `content_filter`. Only Abridge's own
    summarizers say so."""


EXTRACTIVE = "extractive"
"""Stands for the model's name where no model wrote the summary."""


@dataclass(slots=True, frozen=True)
class SummaryShare:
    """The summarizer's share of a response's usage."""

    tokens: Tokens = NO_TOKENS
    models: tuple[str, ...] = ()
    parts: int = 0  # number of calls
    incomplete: bool = False  # some call did not report all of its usage

    def with_call(self, spent: Tokens | None, model: str | None = None) -> SummaryShare:
        """Return the share with one more call, and what that reported."""
        spent = spent or NO_TOKENS
        return replace(
            self if model is None else self.with_model(model),
            tokens=add_tokens(self.tokens, spent.with_total()),
            parts=self.parts + 1,
            incomplete=self.incomplete or None in (spent.input, spent.output),
        )

    def with_model(self, model: str) -> SummaryShare:
        """Return the share with the name of another model."""
        return replace(self, models=tuple(dict.fromkeys((*self.models, model))))

    def as_dict(self) -> dict[str, int | str | bool | None]:
        return {
            "input_tokens": self.tokens.input,
            "output_tokens": self.tokens.output,
            "total_tokens": self.tokens.total,
            "model": ", ".join(self.models) or None,
            "parts": self.parts,
            "incomplete": self.incomplete,
        }


def add_tokens(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(*map(_add_counts, one, other))


def _add_counts(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
