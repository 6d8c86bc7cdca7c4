"""Read and write usage objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.apis.json import as_integer, as_object, string
from abridge.core.conversation import Json
from abridge.core.events import Event, TierReported
from abridge.core.usage import SummaryShare, Tokens

SHARE_FIELD = "reasoning_summary"

STANDALONE_SHARE_FIELD = "reasoning_summary_usage"

SERVICE_TIERS = {
    **{name: name for name in ("default", "flex", "scale", "priority", "fast")},
    **dict.fromkeys(("standard", "on_demand"), "default"),  # Anthropic's and Google's, Groq's
}
"""The names of service tiers in OpenAI's words (openai-openapi, `ServiceTier`). `auto` is none."""

MAX_COUNT = 1 << 53
"""Beyond this a float, which metrics use, is no exact count, and nor is a JavaScript number."""


@dataclass(slots=True, frozen=True)
class UsageFields:
    """The names of an API's usage fields."""

    input: str
    output: str
    output_details: str  # the object with details of the output
    input_details: str  # the object with details of the input
    required_details: tuple[str, ...]  # fields of the latter that the API requires
    total: str = "total_tokens"

    def read(self, usage: Any) -> Tokens | None:
        """Return the reported figures, or None if there is no usage object or it is empty."""
        if not isinstance(usage, dict) or not usage:
            return None
        details = as_object(usage.get(self.output_details))
        cache = as_object(usage.get(self.input_details))
        return Tokens(
            as_count(usage.get(self.input)),
            as_count(usage.get(self.output)),
            as_count(usage.get(self.total)),
            as_count(details.get("reasoning_tokens")),
            as_count(cache.get("cached_tokens")),
            as_count(cache.get("cache_write_tokens")),
        )

    def write(self, tokens: Tokens | None) -> Json | None:
        """Write a usage object.

        Figures that the API requires are 0 if they were not reported while others were.
        """
        if tokens is None:
            return None
        cache = {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_written}
        return {
            self.input: tokens.input or 0,
            self.input_details: {**dict.fromkeys(self.required_details, 0), **_reported(cache)},
            self.output: tokens.output or 0,
            self.output_details: {"reasoning_tokens": tokens.reasoning or 0},
            self.total: tokens.total or 0,
        }

    def fill_details(self, usage: Any) -> Any:
        """Return a usage object with the details that the API requires, 0 where they are missing;
        anything else as it is."""
        if not isinstance(usage, dict) or not usage:
            return usage
        required = {
            self.input_details: dict.fromkeys(self.required_details, 0),
            self.output_details: {"reasoning_tokens": 0},
        }
        missing = {
            name: details
            for name, details in required.items()
            if not isinstance(usage.get(name), dict)
        }
        return {**usage, **missing} if missing else usage

    def write_with_share(
        self, holder: Json, tokens: Tokens | None, share: SummaryShare | None, *, merged: bool
    ) -> None:
        """Write what upstream reported into `holder["usage"]`, and add the summarizer's share.

        If upstream reported a total alone, the share is not added to it: the input and output
        figures are there only because the API requires them.
        """
        holder["usage"] = self.write(tokens)
        self.add_share(
            holder, share, merged=merged and tokens is not None and tokens.input is not None
        )

    def add_share(self, holder: Json, share: SummaryShare | None, *, merged: bool) -> None:
        """Add the summarizer's share to `holder["usage"]`, or beside it if there is no usage
        object.

        With `merged` the totals grow by it, unless upstream reported a total alone.
        """
        if share is None:
            return
        usage = holder.get("usage")
        if not isinstance(usage, dict):
            holder[STANDALONE_SHARE_FIELD] = share.as_dict()
            return
        usage = holder["usage"] = {**usage, SHARE_FIELD: share.as_dict()}
        if merged and as_count(usage.get(self.input)) is not None:
            self.add_to_totals(usage, share.tokens)

    def add_to_totals(self, usage: Json, spent: Tokens) -> None:
        """Add tokens to the totals of a usage object, as far as it has them."""
        for name, more in (
            (self.input, spent.input),
            (self.output, spent.output),
            (self.total, spent.total),
        ):
            figure = as_count(usage.get(name))
            if figure is not None and more is not None:
                usage[name] = figure + more


CHAT_USAGE = UsageFields(
    "prompt_tokens",
    "completion_tokens",
    "completion_tokens_details",
    "prompt_tokens_details",
    ("cached_tokens",),
)

RESPONSES_USAGE = UsageFields(
    "input_tokens",
    "output_tokens",
    "output_tokens_details",
    "input_tokens_details",
    ("cached_tokens", "cache_write_tokens"),
)
"""Messages has these names, too, for the figures that a share is added to."""


def _reported(figures: Json) -> Json:
    return {name: count for name, count in figures.items() if count is not None}


def report_tier(name: Any) -> list[Event]:
    """Report the service tier that upstream names, if it names one."""
    tier = SERVICE_TIERS.get(string(name).lower())
    return [TierReported(None, None, tier)] if tier else []


def as_count(value: Any) -> int | None:
    """Return `value` if it is a possible count; some servers report -1 for an unknown one."""
    count = None if isinstance(value, bool) else as_integer(value)
    return count if count is not None and 0 <= count < MAX_COUNT else None
