"""An entry of the ledger: what one request used, and who pays for it. No word of its content."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal

from abridge.core.usage import Tokens, add_tokens
from abridge.observability.record import Record, bounded_text, new_request_id
from abridge.observability.spending import Prices, tokens_of


@dataclass(slots=True, frozen=True)
class Entry:
    """The fields are the columns of the ledger; None stands for what nobody said."""

    id: str  # the entry's own, by which it is written once: clients may choose a request's
    time: datetime  # of the request's arrival, in UTC
    request: str
    outcome: str
    key: str | None
    team: str | None
    upstream: str | None
    model: str | None  # as asked
    response_model: str | None  # as answered
    input_tokens: int | None
    cached_tokens: int | None  # of the input
    cache_write_tokens: int | None  # likewise
    output_tokens: int | None  # with those of reasoning
    reasoning_tokens: int | None
    summarizer_input_tokens: int | None
    summarizer_output_tokens: int | None
    price: Decimal | None  # of all these tokens
    currency: str | None


COLUMNS = tuple(field.name for field in fields(Entry))

TOKEN_COLUMNS = tuple(name for name in COLUMNS if name.endswith("_tokens"))


def is_billable(record: Record) -> bool:
    """Return whether a request asked a model, and was not refused before that used anything."""
    return record.api is not None and (record.outcome != "refused" or tokens_of(record) > 0)


def make_entry(record: Record, prices: Prices) -> Entry:
    model, summarizer = _split_tokens(record)
    price = prices.price_of(record)
    return Entry(
        id=new_request_id(),
        time=datetime.fromtimestamp(record.at, UTC),
        request=record.id,
        outcome=record.outcome,
        key=record.key,
        team=record.team,
        upstream=record.upstream,
        model=_printable(record.model),
        response_model=_printable(record.response_model),
        input_tokens=model.input,
        cached_tokens=model.cached,
        cache_write_tokens=model.cache_written,
        output_tokens=model.output,
        reasoning_tokens=model.reasoning,
        summarizer_input_tokens=summarizer.input,
        summarizer_output_tokens=summarizer.output,
        price=price,
        currency=None if price is None else prices.currency,
    )


def _split_tokens(record: Record) -> tuple[Tokens, Tokens]:
    """Return the tokens of the model and of the summarizer, a compaction's among them."""
    model, summarizer = record.upstream_tokens.as_billed(), record.summarizer_tokens
    if record.compaction is None:
        return model, summarizer
    used = record.compaction.tokens
    if record.compaction.summarizer == "upstream":
        return add_tokens(model, used.as_billed()), summarizer
    return model, add_tokens(summarizer, used)


def _printable(text: str | None) -> str | None:
    """Bound a name that a client or an upstream chose, and replace what no name has: PostgreSQL
    refuses a part of that, and a terminal obeys another."""
    if text is None:
        return None
    text = bounded_text(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
