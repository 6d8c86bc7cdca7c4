"""Reads Anthropic's usage. In a stream it is cumulative: a later figure replaces an earlier one."""

from __future__ import annotations

from typing import Any

from abridge.turn.usage import Tokens
from abridge.wire.codec import Json
from abridge.wire.usage import count

DETAILS = "output_tokens_details"


def read_usage(usage: Json) -> Tokens | None:
    """Return the figures reported; None if there are none.

    `input_tokens` excludes cache reads and writes, which OpenAI's count includes. No total is
    reported, but `output_tokens` includes thinking by definition (Anthropic API reference,
    `Usage`), so here, and only here, the sum is exact.
    """
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    fresh, said = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    taken = None if fresh is None else fresh + (cached or 0) + (written or 0)
    total = None if taken is None or said is None else taken + said
    details = usage.get(DETAILS)
    thought = count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    tokens = Tokens(taken, said, total, thought, cached, written)
    return None if tokens == Tokens() else tokens


def later(usage: Json, reported: Any) -> Json:
    """Merge newly reported usage into what is known. A null figure keeps the earlier one."""
    if not isinstance(reported, dict):
        return usage
    return {**usage, **{name: figure for name, figure in reported.items() if figure is not None}}
