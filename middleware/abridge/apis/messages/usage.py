"""Read and write the usage of a message. In a stream it is cumulative: a later figure replaces an
earlier one."""

from __future__ import annotations

from typing import Any

from abridge.apis.json import as_object
from abridge.apis.usage import as_count
from abridge.core.conversation import Json
from abridge.core.usage import NO_TOKENS, Tokens

TIERS: Json = {"default": {"service_tier": "standard"}, "priority": {"service_tier": "priority"}}
"""What is written of OpenAI's service tiers, of which this API has only these."""

NO_USAGE: Json = {"input_tokens": 0, "output_tokens": 0}
"""The figures that clients require, where none is known."""

OUTPUT_DETAILS = "output_tokens_details"


def read_usage(usage: Json) -> Tokens | None:
    """Return the figures reported; None if there are none.

    `input_tokens` excludes cache reads and writes, which OpenAI's count includes. No total is
    reported, but `output_tokens` includes thinking by definition (Anthropic API reference,
    `Usage`), so here, and only here, the sum is exact.
    """
    cached = as_count(usage.get("cache_read_input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    fresh, output_tokens = as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens"))
    input_tokens = None if fresh is None else fresh + (cached or 0) + (written or 0)
    total = None if input_tokens is None or output_tokens is None else input_tokens + output_tokens
    thinking_tokens = as_count(as_object(usage.get(OUTPUT_DETAILS)).get("thinking_tokens"))
    tokens = Tokens(input_tokens, output_tokens, total, thinking_tokens, cached, written)
    return None if tokens == NO_TOKENS else tokens


def merge_usage(usage: Json, reported: Any) -> Json:
    """Merge newly reported usage into what is known. A null figure keeps the earlier one."""
    if not isinstance(reported, dict):
        return usage
    return {**usage, **{name: figure for name, figure in reported.items() if figure is not None}}


def write_usage(tokens: Tokens | None) -> Json:
    """Write what an upstream of another API reported; the inverse of `read_usage`.

    `input_tokens` excludes what was read from a cache or written to one, `output_tokens` includes
    thinking (Anthropic API reference, `Usage`). Figures that clients require are 0 if they were not
    reported, others are left out.
    """
    if tokens is None:
        return NO_USAGE
    in_cache = (tokens.cached or 0) + (tokens.cache_written or 0)
    details = None if tokens.reasoning is None else {"thinking_tokens": tokens.reasoning}
    optional = {
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.cache_written,
        "output_tokens_details": details,
    }
    return {
        "input_tokens": max(0, (tokens.input or 0) - in_cache),
        **{name: figure for name, figure in optional.items() if figure is not None},
        "output_tokens": tokens.as_billed().output or 0,
    }
