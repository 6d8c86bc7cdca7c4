"""How the time that a function takes grows with its text."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import NamedTuple

LENGTHS = 4 << 10, 16 << 10
"""Characters of the two texts that are compared."""

MAX_GROWTH = 7.0
"""Growth of the time from one text to the other: 4 where it is linear, 16 where it is quadratic."""

ROUNDS, ROUND_SECONDS, ATTEMPTS = 7, 0.005, 3
"""The best of so many rounds counts, each of which lasts so long at least. What grows too much is
measured again, so many times in all."""

HOPELESS_SECONDS = 2.0
"""Time for the shorter text after which the longer one need not be tried."""


class Text(NamedTuple):
    """A text of any length: a beginning, a piece that is repeated, and an end."""

    head: str
    piece: str
    tail: str = ""

    def of_length(self, length: int) -> str:
        """Return a text that is nearly so long: its last piece is whole."""
        room = length - len(self.head) - len(self.tail)
        return self.head + self.piece * (room // len(self.piece)) + self.tail


def grows_too_much(
    function: Callable[[str], object], text: Text, lengths: tuple[int, int] = LENGTHS
) -> bool:
    """Return whether a function takes much longer for a longer text, each time it is measured. Most
    are found to be linear by one look at them."""
    short, long = map(text.of_length, lengths)
    before = min(_glance(function, short), _glance(function, short))
    if before > HOPELESS_SECONDS:
        return True
    if any(_glance(function, long) < MAX_GROWTH * before for _ in range(ATTEMPTS)):
        return False
    return all(
        _measure(function, long) > MAX_GROWTH * _measure(function, short) for _ in range(ATTEMPTS)
    )


def _glance(function: Callable[[str], object], text: str) -> float:
    began = process_time()
    function(text)
    return process_time() - began


def _measure(function: Callable[[str], object], text: str) -> float:
    """Return the CPU time of a call in seconds, of the best of some rounds."""
    return min(_measure_round(function, text) for _ in range(ROUNDS))


def _measure_round(function: Callable[[str], object], text: str) -> float:
    began, calls, spent = process_time(), 0, 0.0
    while spent < ROUND_SECONDS:
        function(text)
        calls, spent = calls + 1, process_time() - began
    return spent / calls
