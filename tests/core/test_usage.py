"""Test the sum of what summarizers report."""

from __future__ import annotations

import pytest

from abridge.core.usage import SummaryShare, Tokens, UsageLedger


def share_of(*calls: Tokens | None) -> SummaryShare:
    ledger = UsageLedger()
    for spent in calls:
        ledger.add_call(spent, "mini")
    share = ledger.build_share()
    assert share is not None
    return share


@pytest.mark.parametrize(
    ("calls", "tokens", "incomplete"),
    [
        ([Tokens(28, 401)], Tokens(28, 401, 429), False),
        ([Tokens(28, 401), Tokens(10, 5, 15)], Tokens(38, 406, 444), False),
        ([Tokens(28)], Tokens(28, None, 28), True),
        ([Tokens(28, 401), None], Tokens(28, 401, 429), True),
        ([Tokens(reasoning=7)], Tokens(reasoning=7), True),
    ],
)
def test_without_a_total_it_is_the_sum(
    calls: list[Tokens | None], tokens: Tokens, *, incomplete: bool
) -> None:
    share = share_of(*calls)
    assert (share.tokens, share.incomplete) == (tokens, incomplete)


def test_a_total_that_is_reported_stands() -> None:
    """It may count reasoning that the output leaves out."""
    assert share_of(Tokens(28, 401, 500)).tokens == Tokens(28, 401, 500)
