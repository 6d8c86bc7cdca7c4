"""What fields beside a text say of it: that it is thinking.

Some servers write thinking where an answer stands, and say so in a field of their own. Only what is
known to mean thinking counts: a key or a word that nobody has understood hides no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from abridge.apis.json import as_object, nested_value
from abridge.apis.shapes import DropCount, Shape
from abridge.stages.tag_forms import FORMS, MAX_TAG

_WORDS = frozenset(
    {
        *("analysis", "chain_of_thought", "reasoning", "think", "thinking", "thought", "thoughts"),
        *("inner_monologue", "scratchpad"),
    }
)

_TRUE = frozenset({True})

MARKERS: Mapping[str, frozenset[str | bool]] = {
    "extra_content.google.thought": _TRUE,  # Gemini on Chat Completions
    "thought": _TRUE,  # as of a part of Gemini's
    "channel": _WORDS,  # harmony's; its `commentary` is said to the user
    "phase": _WORDS,  # OpenAI's, which has `commentary` and `final_answer`
    "role": _WORDS,
}
"""Fields, dotted if nested, and the values by which they mark thinking."""


_MARKING = frozenset(path.partition(".")[0] for path in MARKERS)


def is_marked(value: Any) -> bool:
    """Return whether an object says that its text is thinking."""
    given = as_object(value)
    return not _MARKING.isdisjoint(given) and any(
        _normalize(nested_value(given, path)) in meanings for path, meanings in MARKERS.items()
    )


def _normalize(value: Any) -> str | bool | None:
    if isinstance(value, str):
        return value.strip().casefold()
    return value if isinstance(value, bool) else None


def unless_marked(shape: Shape) -> Shape:
    """A value of this shape, where nothing marks it as thinking."""

    def rebuild_answer(value: Any, drops: DropCount) -> Any:
        return drops.drop(value) if is_marked(value) else shape(value, drops)

    return rebuild_answer


def split_marked(text: str) -> tuple[str, str]:
    """Split a marked text into its thinking and the rest.

    Gemini writes tags around it as well, and marks a text that goes on after them: where it begins
    with a tag, the rest is the tags and what follows. Later pieces may close what this one opens.
    """
    start = len(text) - len(text.lstrip())
    for form in FORMS:
        if (opening := form.opening.match(text, start)) is not None:
            closing = form.closing.search(text, opening.end())
            end = len(text) if closing is None else closing.start()
            return text[opening.end() : end], opening[0] + text[end:]
    end = _find_last_tag(text.rstrip())
    return text[:end], text[end:]


def _find_last_tag(text: str) -> int:
    """Return where the closing tag begins with which a text ends; its length without one."""
    closings = (
        closing.start()
        for form in FORMS
        for closing in form.closing.finditer(text, max(0, len(text) - MAX_TAG))
        if closing.end() == len(text)
    )
    return min(closings, default=len(text))
