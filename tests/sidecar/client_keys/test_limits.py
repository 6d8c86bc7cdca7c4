"""Rates and budgets, by a clock that is passed in."""

from __future__ import annotations

from abridge.config.client_key import ClientKey
from abridge.sidecar.client_keys.limits import DAY, Allowance


def key(**limits: int) -> ClientKey:
    return ClientKey(name="alice", sha256="0" * 64, **limits)  # type: ignore[arg-type]


class TestRate:
    def test_a_minutes_requests_may_come_at_once(self) -> None:
        allowance, limited = Allowance(), key(rate=3)
        waits = [allowance.wait_for_rate(limited, 1000.0) for _ in range(5)]
        assert waits == [0, 0, 0, 20, 20]

    def test_the_bucket_fills_evenly(self) -> None:
        allowance, limited = Allowance(), key(rate=3)
        for _ in range(3):
            allowance.wait_for_rate(limited, 0.0)
        waits = [allowance.wait_for_rate(limited, now) for now in (5.0, 19.0, 20.0, 20.1, 40.1)]
        assert waits == [15, 1, 0, 20, 0]

    def test_it_holds_no_more_than_a_minutes_requests(self) -> None:
        allowance, limited = Allowance(), key(rate=2)
        allowance.wait_for_rate(limited, 0.0)
        waits = [allowance.wait_for_rate(limited, 9999.0) for _ in range(3)]
        assert waits == [0, 0, 30]

    def test_a_client_that_waits_as_it_was_told_is_admitted(self) -> None:
        allowance, limited, now = Allowance(), key(rate=7), 0.0
        for _ in range(50):
            if seconds := allowance.wait_for_rate(limited, now):
                now += seconds
                assert allowance.wait_for_rate(limited, now) == 0

    def test_a_lower_rate_holds_at_once(self) -> None:
        allowance = Allowance()
        allowance.wait_for_rate(key(rate=100), 0.0)
        waits = [allowance.wait_for_rate(key(rate=1), now) for now in (1.0, 1.0)]
        assert waits == [0, 60]

    def test_without_a_rate_there_is_no_limit(self) -> None:
        allowance = Allowance()
        assert {allowance.wait_for_rate(key(), 0.0) for _ in range(1000)} == {0}


class TestBudget:
    def test_it_is_used_up_until_midnight(self) -> None:
        allowance, limited, noon = Allowance(), key(tokens_per_day=100), 20 * DAY + DAY / 2
        assert allowance.wait_for_budget(limited, noon) == 0
        allowance.spend(99, noon)
        assert allowance.wait_for_budget(limited, noon) == 0
        allowance.spend(1, noon)
        assert allowance.wait_for_budget(limited, noon) == DAY // 2
        assert allowance.wait_for_budget(limited, 21 * DAY - 0.5) == 1
        assert allowance.wait_for_budget(limited, 21 * DAY) == 0

    def test_the_next_day_begins_with_nothing(self) -> None:
        allowance, limited = Allowance(), key(tokens_per_day=100)
        allowance.spend(500, 10 * DAY + 1)
        allowance.spend(40, 11 * DAY + 1)
        assert allowance.wait_for_budget(limited, 11 * DAY + 2) == 0
        allowance.spend(60, 11 * DAY + 2)
        assert allowance.wait_for_budget(limited, 11 * DAY + 3) == DAY - 3

    def test_without_a_budget_there_is_no_limit(self) -> None:
        allowance = Allowance()
        allowance.spend(10**12, 5.0)
        assert allowance.wait_for_budget(key(), 6.0) == 0
