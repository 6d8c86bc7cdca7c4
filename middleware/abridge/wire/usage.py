"""Read and write usage objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.turn.usage import Share, Tokens
from abridge.wire.codec import Json

SHARE = "reasoning_summary"
SHARE_ALONE = "reasoning_summary_usage"

MOST = 1 << 53
"""Beyond this a float, which metrics use, is no exact count, and nor is a JavaScript number."""


@dataclass(slots=True, frozen=True)
class Spelling:
    """The names of an API's usage fields."""

    input: str
    output: str
    details: str  # the object with details of the output
    cache: str  # the object with details of the input
    cached: tuple[str, ...]  # fields of the latter that the API requires
    total: str = "total_tokens"

    def read(self, usage: Any) -> Tokens | None:
        """Return the reported figures, or None if there is no usage object or it is empty."""
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
        """Write a usage object.

        Figures that the API requires are 0 if they were not reported while others were.
        """
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
        """Write what upstream reported into `holder["usage"]`, and add the summarizer's share.

        If upstream reported a total alone, the share is not added to it: the input and output
        figures are there only because the API requires them.
        """
        holder["usage"] = self.write(tokens)
        self.add(holder, share, merged=merged and tokens is not None and tokens.input is not None)

    def add(self, holder: Json, share: Share | None, *, merged: bool) -> None:
        """Add the summarizer's share to `holder["usage"]`, or beside it if there is no usage
        object.

        With `merged` the totals grow by it, unless upstream reported a total alone.
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
    """Return `value` if it is a possible count; some servers report -1 for an unknown one."""
    countable = isinstance(value, int) and not isinstance(value, bool)
    return value if countable and 0 <= value < MOST else None
