"""Check requests and answers against the types of Google's official client.

Its types let unknown keys and variants pass, so that those are looked for here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.apis.gemini.spec import GENAI, needs_genai

__all__ = ["GENAI", "check_answer", "check_events", "check_request", "needs_genai"]

UNTYPED = {"object"}
"""Keys of answers that the documentation shows, and no type has."""


@cache
def _types() -> Any:
    from google.genai import interactions

    return interactions


def check_request(body: dict[str, Any]) -> None:
    """Raise if the body is no request, or has a key that no type knows."""
    _check(_types().CreateModelInteraction.model_validate(body))


def check_answer(body: dict[str, Any]) -> None:
    _check(_types().Interaction.model_validate(body))


def check_events(events: list[dict[str, Any]]) -> None:
    for event in events:
        _check(_types().InteractionSSEStreamEvent.model_validate({"data": event}))


def _check(model: Any) -> None:
    assert not list(_unknown(model))


def _unknown(value: Any) -> Iterator[str]:
    """Yield what the client does not know: keys, and variants of what it knows."""
    if isinstance(value, list):
        for each in value:
            yield from _unknown(each)
    elif hasattr(value, "model_fields_set"):
        yield from (value.model_extra or {}).keys() - UNTYPED
        if getattr(value, "is_unknown", False):
            yield repr(value)
        for name in value.model_fields_set - (value.model_extra or {}).keys():
            yield from _unknown(value.__dict__[name])
