"""Usage objects, as each API spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.turn.usage import Share, Tokens
from abridge.wire.codec import Json

SHARE = "reasoning_summary"
SHARE_ALONE = "reasoning_summary_usage"


@dataclass(slots=True, frozen=True)
class Spelling:
    """The names of an API's figures."""

    input: str
    output: str
    details: str
    total: str = "total_tokens"

    def read(self, usage: Any) -> Tokens | None:
        """The figures reported; None where there is no usage object, or nothing in it."""
        if not isinstance(usage, dict) or not usage:
            return None
        details = usage.get(self.details)
        return Tokens(
            _count(usage.get(self.input)),
            _count(usage.get(self.output)),
            _count(usage.get(self.total)),
            _count(details.get("reasoning_tokens")) if isinstance(details, dict) else None,
        )

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
        if merged and _count(usage.get(self.input)) is not None:
            self._grow(usage, share.tokens)

    def _grow(self, usage: Json, spent: Tokens) -> None:
        for name, more in (
            (self.input, spent.input),
            (self.output, spent.output),
            (self.total, spent.total),
        ):
            count = _count(usage.get(name))
            if count is not None and more is not None:
                usage[name] = count + more


CHAT = Spelling("prompt_tokens", "completion_tokens", "completion_tokens_details")
RESPONSES = Spelling("input_tokens", "output_tokens", "output_tokens_details")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
