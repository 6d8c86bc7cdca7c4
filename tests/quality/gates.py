"""What summaries are held to: one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.quality.measure import Measure

Measures = Sequence[Measure]


@dataclass(frozen=True)
class Gate:
    """A figure over all summaries of a corpus, and its bound."""

    name: str
    figure: Callable[[Measures], float]
    bound: float
    least: bool = False  # whether the bounds are the least; otherwise they are the most

    def holds(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound

    @property
    def target(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.bound:g}"


def _of_summaries(share: Callable[[Measure], float]) -> Callable[[Measures], float]:
    """Return the mean over the summaries, in percent."""
    return lambda measures: 100 * sum(map(share, measures)) / max(1, len(measures))


def _of_sentences(name: str) -> Callable[[Measures], float]:
    return _percent(name, "sentences")


def _percent(name: str, of: str) -> Callable[[Measures], float]:
    def figure(measures: Measures) -> float:
        found: int = sum(getattr(measure, name) for measure in measures)
        whole: int = sum(getattr(measure, of) for measure in measures)
        return 100 * found / max(1, whole)

    return figure


GATES = (
    Gate("key points, %", _of_summaries(lambda one: one.key), 90, least=True),
    Gate(
        "conclusion in the last part, %",
        _of_summaries(lambda one: one.final == 1),
        95,
        least=True,
    ),
    Gate("secrets shown", lambda measures: sum(one.secrets for one in measures), 0),
    Gate(
        "things shown that must not be",
        lambda measures: sum(one.never + one.secrets for one in measures),
        2,
    ),
    Gate("sentences taken back, %", _of_sentences("taken_back"), 4),
    Gate("dangling sentences, %", _of_sentences("dangling"), 8),
    Gate("debris, %", _of_sentences("debris"), 2),
    Gate("told again, %", _of_sentences("again"), 3),
    Gate("contradictions, %", _of_sentences("contradicts"), 1),
    Gate("bad titles, %", _percent("bad_titles", "titled"), 10),
)
"""The built-in summarizer keeps to them on the project's own corpus."""


def score(measures: Measures) -> float:
    """Return the mean score, from 0 to 100."""
    return sum(one.score for one in measures) / max(1, len(measures))
