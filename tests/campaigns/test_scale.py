"""The simulation of a large fleet: what it asks of Redis is what its plan says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.campaigns import scale
from tests.campaigns.constants import Constants
from tests.campaigns.scale import (
    LINES,
    PLOT,
    SIZES,
    STREAMS_EACH,
    Asked,
    Plan,
    Rates,
    Simulation,
    costs,
    plot,
    read,
    table,
)

SECONDS = 10.0
PLAN = Plan(replicas=4, streams=400, lasts=8.0, keys=20, teams=2)


def test_streams_end_at_their_rate() -> None:
    answers = Simulation(PLAN).run(SECONDS).answers
    assert answers / SECONDS == pytest.approx(PLAN.streams / PLAN.lasts, rel=0.15)


def test_costs_are_added_up() -> None:
    constants = Constants(
        claim=70.0, claim_replica=2.0, round_trip=10.0, store_trips=3.0, store_trip=5.0, entry=7.0
    )
    asked = Asked(rounds=20, claims=100, claim_replicas=300, batches=10, answers=50)
    found = asked.a_second(10.0, constants)
    assert found.store == 15.0
    assert found.trips == 2.0 + 1.0 + 15.0
    assert dict(found.busy) == pytest.approx(
        {
            "limits": (100 * 70 + 300 * 2) / 1e7,
            "store": 150 * 5 / 1e7,
            "ledger": 50 * 7 / 1e7,
            "round trips": 180 * 10 / 1e7,
        }
    )


def test_a_key_on_one_replica_shares_its_page_with_no_other() -> None:
    spread, hashed = (
        Simulation(replace(PLAN, hashed=hashed, teams=20)).run(SECONDS) for hashed in (False, True)
    )
    assert hashed.claim_replicas == 0
    assert spread.claim_replicas > 2 * spread.claims
    assert hashed.claims < spread.claims


def test_the_plot_shows_each_line() -> None:
    rates = Rates(1.0, 1.0, 1.0, 1.0, {"limits": 0.5})
    lines = {name: dict.fromkeys(SIZES, rates) for name in ("one", "two", "three")}
    drawn = plot(lines)
    assert drawn.count("<polyline ") == len(lines)
    assert all(f">{name}</text>" in drawn for name in lines)


@pytest.mark.parametrize("line", LINES)
def test_the_file_holds_what_is_simulated(line: str) -> None:
    plan = replace(LINES[line], replicas=SIZES[0], streams=SIZES[0] * STREAMS_EACH)
    assert read()[line][SIZES[0]] == Simulation(plan).run(scale.SECONDS)
    assert list(read()[line]) == list(SIZES)


def test_the_page_shows_the_last_simulation() -> None:
    found = costs(read(), Constants.load())
    assert table(found) in PLOT.with_suffix(".md").read_text()
    assert PLOT.read_text() == plot(found)
