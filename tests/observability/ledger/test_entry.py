"""Test what an entry says of a request."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from abridge.config.settings import Settings
from abridge.core.usage import Tokens
from abridge.observability.ledger.entry import COLUMNS, Entry, is_billable, make_entry
from abridge.observability.record import CompactionRecord
from abridge.observability.spending import Prices
from tests.observability.ledger.cases import NOON, REPORTED, record

CUT = record(outcome="failed", chunks=1)
PRICES = Settings(
    prices={"currency": "EUR", "models": [{"glob": "m", "input": 0.15, "output": 0.6}]}
)


def made(settings: Settings = PRICES, **fields: Any) -> Entry:
    return make_entry(record(**fields), Prices(settings))


def test_an_entry_has_what_a_bill_needs() -> None:
    entry = made(
        key="alice",
        team="research",
        upstream="default",
        response_model="m-2026",
        upstream_tokens=REPORTED,
        summarizer_tokens=Tokens(7, 8),
    )
    assert entry.time == NOON
    assert (entry.request, entry.outcome) == ("req-1", "ok")
    assert (entry.key, entry.team, entry.upstream) == ("alice", "research", "default")
    assert (entry.model, entry.response_model) == ("m", "m-2026")
    assert (entry.input_tokens, entry.cached_tokens, entry.cache_write_tokens) == (100, 40, 5)
    assert (entry.output_tokens, entry.reasoning_tokens) == (50, 30)
    assert (entry.summarizer_input_tokens, entry.summarizer_output_tokens) == (7, 8)
    assert (entry.price, entry.currency) == (Decimal("0.000045"), "EUR")


def test_a_price_that_nobody_set_is_none() -> None:
    entry = made(Settings(), upstream_tokens=REPORTED)
    assert (entry.price, entry.currency) == (None, None)


def test_tokens_that_nobody_reported_are_none() -> None:
    entry = made()
    assert {name for name in COLUMNS if name.endswith("_tokens") and getattr(entry, name)} == set()
    assert entry.input_tokens is None


def test_reasoning_that_is_reported_outside_of_the_output_is_billed_as_output() -> None:
    entry = made(upstream_tokens=Tokens(input=10, output=5, total=45, reasoning=30))
    assert (entry.output_tokens, entry.reasoning_tokens) == (35, 30)


def test_a_compaction_counts_for_who_wrote_it() -> None:
    calls = [record(upstream_tokens=Tokens(1, 2))]
    by_model = made(upstream_tokens=REPORTED, compaction=CompactionRecord("upstream", calls=calls))
    assert (by_model.input_tokens, by_model.output_tokens) == (101, 52)
    by_other = made(upstream_tokens=REPORTED, compaction=CompactionRecord("model", calls=calls))
    assert (by_other.input_tokens, by_other.summarizer_input_tokens) == (100, 1)


def test_two_requests_with_the_same_id_are_two_entries() -> None:
    """A client that could choose an entry's id could have its requests taken for one."""
    one, other = made(), made()
    assert one.request == other.request
    assert one.id != other.id


@pytest.mark.parametrize("name", ["a\x00b", "a\x1b[2Jb", "a\nb"])
def test_a_name_has_no_control_characters(name: str) -> None:
    entry = made(model=name, response_model=name)
    assert entry.model is not None
    assert entry.model.isprintable()
    assert entry.model == entry.response_model
    assert entry.model.startswith("a?")


def test_a_name_that_upstream_chose_is_bounded() -> None:
    entry = made(response_model="m" * 100_000)
    assert len(entry.response_model or "") == 256


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"outcome": "failed"}, True),
        ({"outcome": "left"}, True),
        ({"api": None}, False),
        ({"outcome": "refused"}, False),
        ({"outcome": "refused", "upstream_tokens": REPORTED}, True),
        ({"outcome": "refused", "compaction": CompactionRecord("upstream", calls=[CUT])}, True),
    ],
)
def test_what_asked_no_model_and_what_was_refused_at_the_door_is_left_out(
    fields: dict[str, Any], *, expected: bool
) -> None:
    assert is_billable(record(**fields)) is expected
