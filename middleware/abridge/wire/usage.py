"""Usage objects, as each API spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.turn.usage import Share, Tokens
from abridge.wire.codec import Json

SHARE = "reasoning_summary"
SHARE_ALONE = "reasoning_summary_usage"

MOST = 1 << 53
"""From here on a float, as metrics have them, is no exact count; nor is JavaScript's number."""


@dataclass(slots=True, frozen=True)
class Spelling:
    """The names of an API's figures. `cached`: those of the cache that it requires."""

    input: str
    output: str
    details: str
    cache: str
    cached: tuple[str, ...]
    total: str = "total_tokens"

    def read(self, usage: Any) -> Tokens | None:
        """The figures reported; None where there is no usage object, or nothing in it."""
        if not isinstance(usage, dict) or not usage:
            return None
        details, cache = _object(usage.get(self.details)), _object(usage.get(self.cache))
        return Tokens(
            count(usage.get(self.input)),
            count(usage.get(self.output)),
            count(usage.get(self.total)),
            count(details.get("reasoning_tokens")),
            count(cache.get("cached_tokens")),
            count(cache.get("cache_write_tokens")),
        )

    def write(self, tokens: Tokens | None) -> Json | None:
        """A usage object that says what was reported; the figures that the API requires are 0
        where nobody reported them but others are known."""
        if tokens is None:
            return None
        cache = {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written}
        return {
            self.input: tokens.input or 0,
            self.cache: {**dict.fromkeys(self.cached, 0), **_told(cache)},
            self.output: tokens.output or 0,
            self.details: {"reasoning_tokens": tokens.reasoning or 0},
            self.total: tokens.total or 0,
        }

    def bill(
        self, holder: Json, tokens: Tokens | None, share: Share | None, *, merged: bool
    ) -> None:
        """Put what upstream reported into `holder["usage"]`, and the share as `add` does: to a
        total alone nothing is added, whatever the API requires beside it."""
        holder["usage"] = self.write(tokens)
        self.add(holder, share, merged=merged and tokens is not None and tokens.input is not None)

    def add(self, holder: Json, share: Share | None, *, merged: bool) -> None:
        """Put the share into `holder["usage"]`, where there is one, else beside it.

        Merged, the totals grow by it, unless upstream reported a total alone.
        """
        if share is None:
            return
        usage = holder.get("usage")
        if not isinstance(usage, dict):
            holder[SHARE_ALONE] = share.as_dict()
            return
        usage = holder["usage"] = {**usage, SHARE: share.as_dict()}
        if merged and count(usage.get(self.input)) is not None:
            self._grow(usage, share.tokens)

    def _grow(self, usage: Json, spent: Tokens) -> None:
        for name, more in (
            (self.input, spent.input),
            (self.output, spent.output),
            (self.total, spent.total),
        ):
            figure = count(usage.get(name))
            if figure is not None and more is not None:
                usage[name] = figure + more


CHAT = Spelling(
    "prompt_tokens",
    "completion_tokens",
    "completion_tokens_details",
    "prompt_tokens_details",
    ("cached_tokens",),
)
RESPONSES = Spelling(
    "input_tokens",
    "output_tokens",
    "output_tokens_details",
    "input_tokens_details",
    ("cached_tokens", "cache_write_tokens"),
)


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _told(figures: Json) -> Json:
    return {name: count for name, count in figures.items() if count is not None}


def count(value: Any) -> int | None:
    """So many, if that can be: some say -1 for what they do not know."""
    countable = isinstance(value, int) and not isinstance(value, bool)
    return value if countable and 0 <= value < MOST else None
