"""Test that routes whose summaries keep missing the grace are not waited for."""

from __future__ import annotations

from abridge.summarizers.guard import BACKOFF_SECONDS, MAX_ROUTES, GraceBackoff


def test_two_misses_in_a_row_suspend_waiting_on_a_route() -> None:
    patience = GraceBackoff()
    patience.note_miss("a", 0.0)
    assert patience.grace("a", 1.0, 5.0) == 5.0
    patience.note_miss("a", 1.0)
    assert patience.grace("a", 2.0, 5.0) == 0.0
    assert patience.grace("a", 0.9 + BACKOFF_SECONDS, 5.0) == 0.0
    assert patience.grace("a", 1.0 + BACKOFF_SECONDS, 5.0) == 5.0


def test_a_summary_in_time_resets_the_count() -> None:
    patience = GraceBackoff()
    patience.note_miss("a", 0.0)
    patience.note_success("a")
    patience.note_miss("a", 1.0)
    assert patience.grace("a", 2.0, 5.0) == 5.0


def test_the_first_miss_after_the_pause_starts_another() -> None:
    patience = GraceBackoff()
    patience.note_miss("a", 0.0)
    patience.note_miss("a", 0.0)
    patience.note_miss("a", BACKOFF_SECONDS)
    assert patience.grace("a", BACKOFF_SECONDS + 1, 5.0) == 0.0


def test_misses_without_grace_do_not_extend_the_pause() -> None:
    patience = GraceBackoff()
    for now in (0.0, 0.0, 10.0, 20.0):
        patience.note_miss("a", now)
    assert patience.grace("a", BACKOFF_SECONDS, 5.0) == 5.0


def test_routes_are_independent() -> None:
    patience = GraceBackoff()
    patience.note_miss("a", 0.0)
    patience.note_miss("b", 0.0)
    patience.note_miss("a", 0.0)
    assert patience.grace("a", 1.0, 5.0) == 0.0
    assert patience.grace("b", 1.0, 5.0) == 5.0


def test_the_number_of_remembered_routes_is_limited() -> None:
    patience = GraceBackoff()
    for route in ("first", *map(str, range(MAX_ROUTES))):
        patience.note_miss(route, 0.0)
        patience.note_miss(route, 0.0)
    assert patience.grace("first", 1.0, 5.0) == 5.0
    assert patience.grace("0", 1.0, 5.0) == 0.0
