"""Capabilities of Gemini models on Gemini's own API, as far as a request depends on them; one row
per family.

Facts only. Sources: Google's pages on thinking, thought signatures and function calling
(ai.google.dev: gemini-api/docs) and on thinking levels (docs.cloud.google.com:
gemini-enterprise-agent-platform/models/thinking, /models/guides/gemini-4-hydrogen), 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from abridge.providers.profile import matches_any

LEVELS = ("minimal", "low", "medium", "high", "xhigh")
"""Thinking levels, the least first."""

GEMINI_SUMMARIES = (
    "gemini-2.5-*",
    "gemini-[3-9]*",
    "gemini-pro-latest",
    "gemini-flash-latest",
    "gemini-flash-lite-latest",
)
"""Thoughts are summaries, "synthesized versions of the model's raw thoughts" (ai.google.dev:
gemini-api/docs/thinking; firebase.google.com: docs/ai-logic/thinking).
"""


@dataclass(slots=True, frozen=True)
class GeminiCapabilities:
    """The capabilities of one model family."""

    globs: tuple[str, ...]
    thinking: Literal["level", "budget", "none", "unknown"] = "level"
    """Control over thinking: by a level, by a token budget, or none, since it does not think. Where
    it is unknown, by a token budget, if a client asks: all models that think take one
    (ai.google.dev: gemini-api/docs/gemini-3, "backwards compatibility")."""
    levels: tuple[str, ...] = ("low", "medium", "high")  # supported thinking levels
    least_budget: int = 0  # in tokens; 0 turns thinking off
    needs_signatures: bool = True
    """Refuses a step of calls in the current turn that comes back without its thought signature."""
    media_in_results: bool = True  # takes images and files inside the result of a call


LATEST_GEMINI = GeminiCapabilities(("*gemini-[3-9]*", "*gemini-*-latest"))
"""Capabilities of a Gemini model that no other row knows."""

GEMINI_MODELS = (
    GeminiCapabilities(("*gemini-3-pro*",), levels=("low", "high")),
    GeminiCapabilities(
        ("*gemini-3-flash*", "*gemini-3.[156]-flash*"), levels=("minimal", "low", "medium", "high")
    ),
    GeminiCapabilities(("*gemini-4-hydrogen*",), levels=("low", "medium", "high", "xhigh")),
    GeminiCapabilities(
        ("*gemini-2.5-pro*",),
        thinking="budget",
        least_budget=128,
        needs_signatures=False,
        media_in_results=False,
    ),
    GeminiCapabilities(
        ("*gemini-2.5-*image*", "*gemini-2.5-*tts*"),
        thinking="none",
        needs_signatures=False,
        media_in_results=False,
    ),
    GeminiCapabilities(
        ("*gemini-2.5-*",), thinking="budget", needs_signatures=False, media_in_results=False
    ),
    LATEST_GEMINI,
    GeminiCapabilities(
        ("*gemini-1*", "*gemini-2.0*", "*gemini-pro*", "*gemma*", "*learnlm*"),
        thinking="none",
        needs_signatures=False,
        media_in_results=False,
    ),
)

OTHER_MODELS = GeminiCapabilities(
    ("*",), thinking="unknown", needs_signatures=False, media_in_results=False
)
"""Whatever else is served on this API, such as a tuned model under a name of its owner's."""


def find_capabilities(model: str) -> GeminiCapabilities:
    """Return a model's capabilities, by its name in any usual form: with a prefix, with a date."""
    name = model.casefold().rpartition("/")[2]
    rows = (row for row in GEMINI_MODELS if matches_any(name, row.globs))
    return next(rows, OTHER_MODELS)
