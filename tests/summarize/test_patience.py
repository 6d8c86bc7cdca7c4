"""Routes that keep answers waiting in vain are not waited for."""

from __future__ import annotations

from abridge.summarize.patience import ROUTES, SECONDS, Patience


def test_two_misses_running_make_a_route_wait_free_for_a_while() -> None:
    patience = Patience()
    patience.missed("a", 0.0)
    assert patience.grace("a", 1.0, 5.0) == 5.0
    patience.missed("a", 1.0)
    assert patience.grace("a", 2.0, 5.0) == 0.0
    assert patience.grace("a", 0.9 + SECONDS, 5.0) == 0.0
    assert patience.grace("a", 1.0 + SECONDS, 5.0) == 5.0


def test_a_summary_in_time_between_them_breaks_the_run() -> None:
    patience = Patience()
    patience.missed("a", 0.0)
    patience.met("a")
    patience.missed("a", 1.0)
    assert patience.grace("a", 2.0, 5.0) == 5.0


def test_the_first_miss_after_the_while_makes_another() -> None:
    patience = Patience()
    patience.missed("a", 0.0)
    patience.missed("a", 0.0)
    patience.missed("a", SECONDS)
    assert patience.grace("a", SECONDS + 1, 5.0) == 0.0


def test_misses_without_any_grace_do_not_lengthen_it() -> None:
    patience = Patience()
    for now in (0.0, 0.0, 10.0, 20.0):
        patience.missed("a", now)
    assert patience.grace("a", SECONDS, 5.0) == 5.0


def test_routes_are_apart() -> None:
    patience = Patience()
    patience.missed("a", 0.0)
    patience.missed("b", 0.0)
    patience.missed("a", 0.0)
    assert patience.grace("a", 1.0, 5.0) == 0.0
    assert patience.grace("b", 1.0, 5.0) == 5.0


def test_only_so_many_routes_are_remembered() -> None:
    patience = Patience()
    for route in ("first", *map(str, range(ROUTES))):
        patience.missed(route, 0.0)
        patience.missed(route, 0.0)
    assert patience.grace("first", 1.0, 5.0) == 5.0
    assert patience.grace("0", 1.0, 5.0) == 0.0
