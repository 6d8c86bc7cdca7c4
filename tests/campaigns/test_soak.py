"""The short soak, and its arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.campaigns import soak
from tests.campaigns.stage import GAUGES


def test_a_short_soak_finds_nothing() -> None:
    assert soak.main(["--seconds", "3", "--rate", "8"]) == 0


def test_a_slope_is_that_of_the_line_of_least_squares() -> None:
    assert soak.slope_of([(0, 1), (1, 3), (2, 5)]) == (2, 0)
    assert soak.slope_of([(0, 1), (1, 3), (2, 5), (3, 1)]) == pytest.approx((0.2, 1.08**0.5))
    assert soak.slope_of([(0, 1), (1, 2)]) == (0, 0)


class TestVerdict:
    def test_what_grows_is_wrong_after_a_long_time(self) -> None:
        grown = samples(lambda at: 100 + 20 * at)
        assert soak.judge(grown, 7200) == ["descriptors grow by 16% an hour"]
        assert soak.judge(grown, 60) == []

    def test_what_grew_while_it_warmed_up_is_not(self) -> None:
        assert soak.judge(samples(lambda at: 100 + 100 * min(at, 0.7)), 7200) == []

    def test_what_goes_up_and_down_is_not(self) -> None:
        assert soak.judge(samples(lambda at: 100 + 50 * (at * 100 % 2) + 20 * at), 7200) == []


def samples(descriptors: Callable[[float], float]) -> list[soak.Sample]:
    """Return two hours' worth of samples, of which descriptors alone change."""
    level = dict.fromkeys((*soak.MEASURES, *GAUGES), 1.0)
    hours = [2 * place / 100 for place in range(100)]
    return [{**level, "hours": at, "descriptors": descriptors(at)} for at in hours]
