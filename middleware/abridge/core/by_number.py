"""What an answer has several of, by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K", bound="int | None")

T = TypeVar("T")


class ByNumber(dict[K, T]):
    """Things by number, each made when it is first asked for."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[K], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: K) -> T:
        made = self[number] = self._make(number)
        return made
