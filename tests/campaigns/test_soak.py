"""The short soak, and its arithmetic."""

from __future__ import annotations

from tests.campaigns import soak
from tests.campaigns.stage import GAUGES


def test_a_short_soak_finds_nothing() -> None:
    assert soak.main(["--seconds", "5", "--rate", "8"]) == 0


def test_a_slope_is_that_of_the_line_of_least_squares() -> None:
    assert soak.slope_of([(0, 1), (1, 3), (2, 5)]) == 2
    assert soak.slope_of([(0, 1)]) == 0


def test_steep_slopes_are_wrong_after_a_long_time() -> None:
    samples = [
        {**dict.fromkeys(GAUGES, 0.0), "hours": at, "descriptors": 100 * at} for at in (1, 2)
    ]
    samples = [{"MiB": 1.0, "threads": 1.0, **one} for one in samples * 4]
    assert soak.judge(samples, 7200) == ["descriptors grow by 100.0 an hour"]
    assert soak.judge(samples, 60) == []
