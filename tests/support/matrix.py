"""Long matrices: what is marked `matrix(n)` is a cross product, of which a run takes as much as it
needs for each `n` values of its parameters to meet at least once, and with `--matrix` all.

Parameters that are dataclasses count by their fields. What was named on the command line, or is
left by `-k`, is a matrix of its own. Every worker comes to the same choice.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import combinations
from typing import Any

import pytest

MARK = "matrix"
LEFT = pytest.StashKey[int]()
"""How many tests were left out."""

Fact = tuple[str, str]
Facts = tuple[Fact, ...]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", action="store_true", help="run the long matrices whole")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARK}(n): of which --matrix runs all; else each n values meet at least once"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--matrix"):
        return
    matrices: dict[tuple[Any, str, int], list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker(MARK)
        if marker is not None:
            name = getattr(item, "originalname", item.name)
            matrices.setdefault((item.parent, name, marker.args[0]), []).append(item)
    left: list[pytest.Item] = []
    for (_, _, strength), matrix in matrices.items():
        chosen = choose([list(facts(item)) for item in matrix], strength)
        left += [item for place, item in enumerate(matrix) if place not in chosen]
    if left:
        gone = set(left)
        items[:] = [item for item in items if item not in gone]
        config.stash[LEFT] = len(left)
        config.hook.pytest_deselected(items=left)


def choose(rows: Sequence[Sequence[Fact]], strength: int) -> set[int]:
    """The places of rows in which all comes up that so many facts of a row make together: first
    those that add most, and of those who add the same whose facts came up least."""
    together = [list(combinations(row, min(strength, len(row)))) for row in rows]
    open_: set[Facts] = {each for row in together for each in row}
    used: Counter[Fact] = Counter()
    chosen: set[int] = set()

    def worth(place: int) -> tuple[int, int, int]:
        gain = sum(each in open_ for each in together[place])
        return -gain, sum(used[fact] for fact in rows[place]), place

    waiting = [worth(place) for place in range(len(rows))]
    heapify(waiting)
    while open_:
        place = waiting[0][-1]
        now = worth(place)
        if now > waiting[0]:  # which only ever grows, so the least that is still true is the least
            heapreplace(waiting, now)
            continue
        heappop(waiting)
        chosen.add(place)
        used.update(rows[place])
        open_.difference_update(together[place])
    return chosen


def facts(item: pytest.Item) -> Iterator[Fact]:
    """What its parameters say."""
    callspec = getattr(item, "callspec", None)
    for name, value in callspec.params.items() if callspec else ():
        yield from _facts(name, value)


def _facts(name: str, value: Any) -> Iterator[Fact]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _facts(f"{name}.{field.name}", getattr(value, field.name))
    else:
        yield name, repr(value)
