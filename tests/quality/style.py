"""How parts look, beside OpenAI's own: figures counted on 57 to 77 public parts of its models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from abridge.core.plan import BYTES_PER_TOKEN
from abridge.core.segmenter import text_size
from tests.quality.lexicon import FIRST_PERSON, GERUND
from tests.quality.texts import Part


@dataclass(frozen=True)
class Figure:
    name: str
    value: float | None  # None: not known, as nothing was timed
    openai: str


def estimate_tokens(text: str) -> float:
    """Return about how many tokens a text is, in any script."""
    return text_size(text) / BYTES_PER_TOKEN


def figures(
    english: Sequence[Part], tokens_per_part: Sequence[float], parts_per_minute: Sequence[float]
) -> list[Figure]:
    """Return the style of English parts, and the pace of all summaries: one figure each."""
    titles = [part.title for part in english if part.title is not None]
    bodies = [part.body for part in english if part.body]
    return [
        Figure("titled, %", _percent(part.title is not None for part in english), "100"),
        Figure("gerund titles, %", _percent(bool(GERUND.match(title)) for title in titles), "95"),
        Figure("words of a title", _middle(len(title.split()) for title in titles), "4"),
        Figure("characters of a body", _middle(map(len, bodies)), "567"),
        Figure("words of a body", _middle(len(body.split()) for body in bodies), "83"),
        Figure("sentences of a body", _middle(len(Part(body).sentences) for body in bodies), "5"),
        Figure(
            "first person, %", _percent(bool(FIRST_PERSON.search(body)) for body in bodies), "90"
        ),
        Figure("tokens of reasoning a part", _middle(tokens_per_part), "358 (280 to 800)"),
        Figure("parts a minute", _middle(parts_per_minute), "8 to 9"),
    ]


def _percent(found: Iterable[bool]) -> float | None:
    values = list(found)
    return 100 * sum(values) / len(values) if values else None


def _middle(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None
