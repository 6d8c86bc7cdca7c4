"""Test when a circuit breaker lets calls through."""

from __future__ import annotations

from abridge.breaker import CircuitBreaker


def test_a_failure_after_it_was_opened_from_outside_begins_the_pause_anew() -> None:
    """What others have seen counts as if the failures had been its own."""
    now = [0.0]
    breaker = CircuitBreaker(3, 30.0, lambda: now[0])
    breaker.open()
    now[0] = 30.0
    assert breaker.admit("trial")
    breaker.note_failure()
    breaker.release("trial")
    assert not breaker.admits
    now[0] = 60.0
    assert breaker.admits
