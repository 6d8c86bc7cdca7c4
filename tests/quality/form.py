"""What no part may be, whoever writes it: counted over all parts, and all must be none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from abridge.core.segmenter import text_size
from abridge.core.styles import STYLES, SummaryStyle
from abridge.summarizers.checks import TOLERANCE
from tests.quality.run import Shown
from tests.quality.style import estimate_tokens
from tests.quality.texts import Part, letters

_MARKER = re.compile(r"```|~~~|\[[0-9a-f]{6}\b|<\|[^|>]*\|>|</?(?:s|think)>|\[/?(?:INST|THINK)\]")


def _says_a_sentence_twice(part: Part) -> bool:
    said = [key for key in map(letters, part.sentences) if key]
    return len(set(said)) < len(said)


def faults(style: SummaryStyle) -> Mapping[str, Callable[[Part], bool]]:
    row = STYLES[style]
    return {
        "without a title": lambda part: row.titled and not part.title,
        "over length": lambda part: text_size(part.body) > TOLERANCE * row.size,
        "with a sentence twice": _says_a_sentence_twice,
        "with a marker": lambda part: _MARKER.search(part.text) is not None,
        "in several paragraphs": lambda part: "\n" in part.body,
    }


def counts(shown: Sequence[Shown], style: SummaryStyle) -> Mapping[str, int]:
    """Return how many parts have each fault, and how many there are."""
    parts = [Part(text) for one in shown for text in one.parts]
    found = {name: sum(map(has, parts)) for name, has in faults(style).items()}
    return {"parts": len(parts), **found, "failed": sum(len(one.failures) for one in shown)}


def output_tokens(shown: Sequence[Shown]) -> str:
    """Return the tokens of all parts, as the summarizer reports them, and of the reasoning."""
    spent = sum(one.output_tokens for one in shown)
    return f"{spent:,} of {sum(estimate_tokens(one.reasoning.prose) for one in shown):,.0f}"


def table(found: Mapping[str, int], shown: Sequence[Shown]) -> list[str]:
    """Return a line for each figure, and the codes of what failed."""
    rows = [f"{name:32}{count:>8}" for name, count in found.items()]
    codes = Counter(code for one in shown for code in one.failures)
    rows.append(f"{'output tokens, of reasoning':32}{output_tokens(shown):>8}")
    return [*rows, *(f"failed: {code:24}{count:>8}" for code, count in codes.items())]


def holds(found: Mapping[str, int]) -> bool:
    return not any(count for name, count in found.items() if name not in ("parts", "failed"))
