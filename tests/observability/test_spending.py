"""What a request used, and what it cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from abridge.config.settings import Settings
from abridge.core.usage import Tokens
from abridge.errors import SettingsError
from abridge.observability.record import CompactionRecord, Record
from abridge.observability.spending import Prices, tokens_of


def record(**fields: Any) -> Record:
    return Record("id", 0.0, 0.0, **{"is_whole": fields.get("outcome") == "ok", **fields})


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"outcome": "ok", "upstream_tokens": Tokens(10, 5, 15)}, 15),
        ({"outcome": "ok", "upstream_tokens": Tokens(10, 5)}, 15),
        ({"outcome": "ok", "upstream_tokens": Tokens(10, 5, 40)}, 40),  # reasoning beside output
        (
            {
                "outcome": "ok",
                "upstream_tokens": Tokens(10, 5, 15),
                "summarizer_tokens": Tokens(7, 3, 10),
            },
            25,
        ),
        ({"outcome": "ok", "upstream_tokens": Tokens(10, 5, 15), "chunks": 99}, 15),
        ({"outcome": "ok", "chunks": 8, "characters": 40, "request_bytes": 80}, 38),
        ({"outcome": "left", "upstream_tokens": Tokens(10, 1), "chunks": 99}, 99),
        ({"outcome": "left", "is_whole": True, "upstream_tokens": Tokens(9, 1), "chunks": 99}, 10),
        ({"outcome": "left", "summarizer_tokens": Tokens(7, 3, 10), "characters": 400}, 110),
        ({"outcome": "left", "chunks": 1, "answer_characters": 4000}, 1000),
        ({"outcome": "left", "chunks": 99, "answer_characters": 99}, 99),
        ({"outcome": "left", "engaged": True, "request_bytes": 4000}, 1000),
        ({"outcome": "left", "engaged": True, "request_bytes": 4000, "status": 429}, 0),
        ({"outcome": "left", "request_bytes": 4000}, 0),  # before it was sent
        ({"outcome": "failed", "request_bytes": 4000}, 0),
        ({"outcome": "refused"}, 0),
        ({"outcome": "untouched", "request_bytes": 4000}, 0),
    ],
)
def test_tokens_are_those_reported_else_an_estimate(fields: dict[str, Any], tokens: int) -> None:
    assert tokens_of(record(**fields)) == tokens


BIG, SMALL = (
    {"glob": "big*", "input": 1.25, "cached_input": 0.125, "cache_write": 2, "output": 10},
    {"glob": "small", "input": 0.05, "output": 0.4},
)


def prices(**summarizer: Any) -> Prices:
    tables = {"prices": {"currency": "USD", "models": [BIG, SMALL]}, "summarizer": summarizer}
    return Prices(Settings.model_validate(tables))


@pytest.mark.parametrize(
    ("fields", "amount"),
    [
        ({"model": "big", "upstream_tokens": Tokens(1_000_000, 0)}, "1.25"),
        ({"model": "big-2", "upstream_tokens": Tokens(1000, 100, 1100)}, "0.00225"),
        ({"model": "big", "upstream_tokens": Tokens(1000, 0, 1000, cached=800)}, "0.00035"),
        ({"model": "small", "upstream_tokens": Tokens(100, 0, 100, cached=80)}, "0.000005"),
        (
            {"model": "big", "upstream_tokens": Tokens(1000, 0, cached=800, cache_written=100)},
            "0.000425",
        ),
        ({"model": "big", "upstream_tokens": Tokens(100, 0, cache_written=999)}, "0.0002"),
        ({"model": "small", "upstream_tokens": Tokens(100, 0, cache_written=80)}, "0.000005"),
        ({"model": "big", "upstream_tokens": Tokens(0, 10, 100)}, "0.001"),  # reasoning beside it
        (
            {
                "model": "big",
                "response_model": "small",
                "upstream_tokens": Tokens(1000, 0),
            },
            "0.00005",
        ),
        (
            {
                "model": "big",
                "response_model": "unlisted",
                "upstream_tokens": Tokens(1000, 0),
            },
            "0.00125",
        ),
        ({"model": "big", "outcome": "left", "chunks": 10, "request_bytes": 400}, "0.000225"),
        ({"model": "big", "outcome": "refused"}, "0"),
        ({"model": "unlisted", "upstream_tokens": Tokens(1000, 0)}, None),
        ({}, None),
    ],
)
def test_each_kind_of_token_has_its_price(fields: dict[str, Any], amount: str | None) -> None:
    price = prices().price_of(record(**{"outcome": "ok", **fields}))
    assert price == (None if amount is None else Decimal(amount))


MODEL = {"kind": "model", "model": "small", "base_url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("summarizer", "name", "amount"),
    [
        (MODEL, "model", "0.0025"),
        ({"kind": "upstream"}, "upstream", "0.01375"),
        ({"kind": "object"}, "small", "0.0025"),
        ({"kind": "object"}, "mine", "0.00125"),
    ],
)
def test_the_summarizers_tokens_have_the_price_of_its_model(
    summarizer: dict[str, Any], name: str, amount: str
) -> None:
    used = record(
        outcome="ok",
        model="big",
        upstream_tokens=Tokens(1000, 0),
        summarizer=name,
        summarizer_tokens=Tokens(5000, 2500) if name != "upstream" else Tokens(10_000, 0),
    )
    assert prices(**summarizer).price_of(used) == Decimal(amount)


@pytest.mark.parametrize(("by", "amount"), [("upstream", "1.25"), ("model", "0.05")])
def test_a_compaction_has_the_price_of_the_model_that_wrote_it(by: str, amount: str) -> None:
    call = record(model="small" if by == "model" else "big", upstream_tokens=Tokens(1_000_000, 0))
    made = CompactionRecord(by, "ok", [call])
    assert prices(**MODEL).price_of(record(model="big", compaction=made)) == Decimal(amount)


def test_all_that_was_sent_for_a_compaction_counts_and_only_what_was_reported_is_told() -> None:
    reported = record(outcome="ok", upstream_tokens=Tokens(10, 5, 15))
    estimated = record(outcome="failed", chunks=8, request_bytes=80)
    made = CompactionRecord("upstream", calls=[reported, estimated])
    used = record(outcome="ok", upstream_tokens=Tokens(3, 4, 7), compaction=made)
    assert tokens_of(used) == 15 + 28 + 7
    assert made.tokens == Tokens(10, 5, 15)


def test_a_price_needs_a_unit() -> None:
    with pytest.raises(SettingsError, match=r"prices\.currency: must be set, such as .USD"):
        Settings(prices={"models": [{"glob": "*", "input": 1}]})  # type: ignore[typeddict-item]
