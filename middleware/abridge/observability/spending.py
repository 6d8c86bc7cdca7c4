"""What a request used: its tokens, and what they cost.

Where upstream did not report all of what it was asked for, tokens are estimated: a piece of the
answer is a token or more, and all text has some four characters to a token.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fnmatch import translate
from typing import TypeAlias

from abridge.config.settings import Settings
from abridge.config.tables import ModelPriceSettings
from abridge.core.usage import Tokens
from abridge.observability.record import Record

CHARS_PER_TOKEN = 4
"""For an estimate where nobody reports tokens."""

PER_TOKENS = Decimal(1_000_000)
"""The number of tokens that a price is for."""

Names: TypeAlias = tuple[str | None, ...]
"""Names of a model, of which the first that has a price counts."""


class Prices:
    """The prices of the settings, in `currency`; that is None if there are none."""

    def __init__(self, settings: Settings) -> None:
        self.currency = settings.prices.currency
        self._models = [_ModelPrices(row) for row in settings.prices.models]
        self._summarizer = settings.summarizer

    def price_of(self, record: Record) -> Decimal | None:
        """Return what a request cost, its summaries included; None if its models have no price.

        What only some of its models cost is counted, where the others have no price.
        """
        own: Names = (record.response_model, record.model)
        spent: list[tuple[Names, Tokens]] = [
            ((call.response_model, call.model), _of_model(call)) for call in _calls_of(record)
        ]
        if record.summarizer_tokens.input or record.summarizer_tokens.output:
            by = self._summarizer.model if self._summarizer.kind == "model" else record.summarizer
            writers = own if self._summarizer.kind == "upstream" else (by,)
            spent.append((writers, record.summarizer_tokens))
        amounts = [self._price(names, tokens) for names, tokens in spent]
        known = [amount for amount in amounts if amount is not None]
        return sum(known, Decimal()) if known else None

    def _price(self, names: Names, tokens: Tokens) -> Decimal | None:
        for name in filter(None, names):
            for prices in self._models:
                if prices.matches(name):
                    return prices.price(tokens.as_billed())
        return None


class _ModelPrices:
    """The prices of the models that a glob matches."""

    def __init__(self, row: ModelPriceSettings) -> None:
        self._pattern = re.compile(translate(row.glob))
        self._fresh, self._output, self._cached, self._written = (
            Decimal(str(row.input if price is None else price))
            for price in (row.input, row.output, row.cached_input, row.cache_write)
        )

    def matches(self, name: str) -> bool:
        return self._pattern.match(name) is not None

    def price(self, tokens: Tokens) -> Decimal:
        fresh = tokens.input or 0
        cached = min(tokens.cached or 0, fresh)
        written = min(tokens.cache_written or 0, fresh - cached)
        fresh -= cached + written
        price = fresh * self._fresh + cached * self._cached + written * self._written
        return (price + (tokens.output or 0) * self._output) / PER_TOKENS


def tokens_of(record: Record) -> int:
    """Return the tokens that a request used: its model's and the summarizer's."""
    used = sum(_reported(_of_model(call)) for call in _calls_of(record))
    return used + _reported(record.summarizer_tokens)


def _calls_of(record: Record) -> list[Record]:
    """Return the record, and those of the requests that were sent to compact its conversation."""
    return [record, *(record.compaction.calls if record.compaction is not None else ())]


def _of_model(record: Record) -> Tokens:
    """Return the tokens of a request's model, as far as upstream reported them, else estimated."""
    reported = record.upstream_tokens
    is_final = record.is_whole and _reported(reported) > 0
    return reported if is_final else max(reported, _estimated(record), key=_reported)


def _reported(tokens: Tokens) -> int:
    return max(tokens.total or 0, (tokens.input or 0) + (tokens.output or 0))


def _estimated(record: Record) -> Tokens:
    if not (record.chunks or record.characters or _left_while_upstream_worked(record)):
        return Tokens()
    answer = max(record.chunks, record.answer_characters // CHARS_PER_TOKEN)
    total = answer + (record.characters + record.request_bytes) // CHARS_PER_TOKEN
    read = record.request_bytes // CHARS_PER_TOKEN
    return Tokens(read, total - read, total)


def _left_while_upstream_worked(record: Record) -> bool:
    """Return whether upstream was sent a request, and its client left, before anything came."""
    was_refused = record.status is not None and record.status >= 400
    return record.outcome == "left" and record.engaged and not was_refused
