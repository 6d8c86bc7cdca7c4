"""Run a covering subset of long test matrices.

A test marked `matrix(n)` is a cross product. A run selects enough cases for every combination of
`n` parameter values to occur at least once; `--matrix` runs them all. A dataclass parameter counts
as its fields. Likewise a run tries a share of a property's examples, and each test of sockets on
one event loop.

A test of many cases that crosses tables of parameters is a matrix without a mark: each row of each
table occurs, and of three tables or more each row of one meets each row of another.

A case marked `repeat` shows in a dear way, mostly in another process, what others show already; it
runs with `--matrix` alone.

Cases named on the command line or left by `-k` form a matrix of their own. Every worker selects the
same cases.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import combinations
from typing import Any, TypeVar

import pytest
from hypothesis import settings

MARK, REPEAT = "matrix", "repeat"
LEFT = pytest.StashKey[int]()
"""The number of cases left out."""

MANY, PAIRS = 8, 2
"""Cases beyond which a test without a mark is a matrix, and how many rows meet in it at most."""

SHARE = 8
"""Of so many examples of a property an ordinary run tries one."""

FEWEST = 2
"""Examples of a property that every run tries."""

T = TypeVar("T")
C = TypeVar("C", bound="pytest.Item | Case")
Fact = tuple[str, str]
Facts = tuple[Fact, ...]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", action="store_true", help="run the long matrices whole")


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("patient", deadline=None)
    settings.register_profile("sample", deadline=None, max_examples=100 // SHARE)
    settings.load_profile("patient" if config.getoption("--matrix") else "sample")
    for line in (
        f"{MARK}(n): a matrix, run whole by --matrix, else so that every n values meet",
        f"{REPEAT}: a dear case of what others show already, run by --matrix alone",
    ):
        config.addinivalue_line("markers", line)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A case of a test for which no item is made yet, with what is asked of an item.

    It has the marks that the cases of its test share.
    """

    shared: Sequence[pytest.Mark]
    callspec: Any

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark for mark in (*self.shared, *self.callspec.marks) if mark.name == name)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(self.iter_markers(name), None)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: Any) -> Iterator[None]:
    """Leave out cases before items are made of them, where no option chooses some of them."""
    yield
    config = metafunc.config
    if config.getoption("--matrix") or _are_chosen(config):
        return
    definition, calls = metafunc.definition, metafunc._calls
    shared = list(definition.iter_markers())
    cases = [Case(shared, call) for call in calls]
    left = {id(case.callspec) for case in _all_left_out(definition.name, cases)}
    if len(left) < len(calls):
        metafunc._calls = [call for call in calls if id(call) not in left]
        config.stash[LEFT] = config.stash.get(LEFT, 0) + len(left)


def _are_chosen(config: pytest.Config) -> bool:
    return bool(config.option.keyword) or any("::" in arg for arg in config.args)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--matrix"):
        return
    chosen = _are_chosen(config)
    matrices: dict[tuple[Any, str], list[pytest.Item]] = {}
    for item in items:
        if chosen or item.get_closest_marker(REPEAT):
            name = getattr(item, "originalname", item.name)
            matrices.setdefault((item.parent, name), []).append(item)
    gone = {item for (_, name), matrix in matrices.items() for item in _all_left_out(name, matrix)}
    if gone:
        items[:] = [item for item in items if item not in gone]
        config.stash[LEFT] = config.stash.get(LEFT, 0) + len(gone)
        config.hook.pytest_deselected(items=list(gone))


def _all_left_out(name: str, matrix: Sequence[C]) -> Iterator[C]:
    kept = []
    for case in matrix:
        if case.get_closest_marker(REPEAT):
            yield case
        else:
            kept.append(case)
    if kept:
        yield from _left_out(name, kept)


def _left_out(name: str, matrix: Sequence[C]) -> Iterator[C]:
    marker = matrix[0].get_closest_marker(MARK)
    if marker is not None:
        rows, strength = [list(facts(item)) for item in matrix], marker.args[0]
    else:
        rows = list(rows_of_tables([tuple(_tables(item)) for item in matrix]))
        strength = min(PAIRS, len(rows[0]) - 1)
    if strength > 0 and (marker or len(matrix) > MANY):
        chosen = choose(rows, strength, zlib.crc32(name.encode()) % len(matrix))
        yield from (item for place, item in enumerate(matrix) if place not in chosen)


def _tables(item: pytest.Item | Case) -> Iterator[tuple[int, ...]]:
    """Yield of each table the row that a case has of it, as the identities of its values."""
    callspec = getattr(item, "callspec", None)
    params = dict(callspec.params) if callspec else {}
    for table in item.iter_markers("parametrize"):
        names = table.args[0]
        names = names.replace(",", " ").split() if isinstance(names, str) else names
        yield tuple(id(params.pop(name, None)) for name in names)
    yield from ((id(value),) for value in params.values())


def rows_of_tables(cases: Sequence[Sequence[Hashable]]) -> Iterator[list[Fact]]:
    """Number the rows that cases have of tables, and leave out tables of which all have the same.

    Every worker numbers them alike, by their first case.
    """
    columns = [column for column in zip(*cases, strict=True) if len(set(column)) > 1]
    numbers = [{row: str(n) for n, row in enumerate(dict.fromkeys(column))} for column in columns]
    for place in range(len(cases)):
        rows = (number[column[place]] for number, column in zip(numbers, columns, strict=True))
        yield [(str(table), row) for table, row in enumerate(rows)]


def choose(rows: Sequence[Sequence[Fact]], strength: int, first: int = 0) -> set[int]:
    """Choose rows, by index, that cover every combination of `strength` facts of a row.

    Greedy: take the row that adds most combinations, on a tie the one with the least used facts, or
    that comes first from `first` on: so similar tests choose different rows.
    """
    bits: dict[Facts, int] = {}
    together = [
        sum(
            1 << bits.setdefault(each, len(bits))
            for each in set(combinations(row, min(strength, len(row))))
        )
        for row in rows
    ]
    open_ = (1 << len(bits)) - 1
    used: Counter[Fact] = Counter()
    chosen: set[int] = set()

    def worth(place: int) -> tuple[int, int, int]:
        gain = (together[place] & open_).bit_count()
        return -gain, sum(used[fact] for fact in rows[place]), (place - first) % len(rows)

    waiting = [worth(place) for place in range(len(rows))]
    heapify(waiting)
    while open_:
        place = (waiting[0][-1] + first) % len(rows)
        now = worth(place)
        if now > waiting[0]:  # a cost only grows, so re-rank the row and try the next
            heapreplace(waiting, now)
            continue
        heappop(waiting)
        chosen.add(place)
        used.update(rows[place])
        open_ &= ~together[place]
    return chosen


def some(examples: int) -> int:
    """Return how many of a property's examples to try: all with `--matrix`, else a share."""
    return examples if _is_whole() else max(FEWEST, examples // SHARE)


def share_of(items: Sequence[T], name: str, share: int = SHARE) -> Sequence[T]:
    """Return the items to try: all with `--matrix`, else a share that begins as `name` says."""
    return items if _is_whole() else items[zlib.crc32(name.encode()) % share :: share] or items[:1]


def batches(cases: Iterable[T], size: int = 25) -> list[Any]:
    """Return parameters that are so many cases each, named by the first and the last.

    A test that loops over such a batch names the case in each of its assertions: of thousands of
    tests, most time is spent around them.
    """
    every = list(cases)
    parts = (every[start : start + size] for start in range(0, len(every), size))
    return [pytest.param(part, id=f"{part[0]} to {part[-1]}") for part in parts]


def each_in_turn(items: Iterable[T], turn: int, turns: int) -> Sequence[T]:
    """Return the items of a turn: all with `--matrix`, else every `turns`-th from `turn` on.

    So in a test with two more parameters, of at least `turns` values each, whose places add up to
    the turn, each item meets each value of each.
    """
    every = list(items)
    return every if _is_whole() else every[turn % turns :: turns]


def _is_whole() -> bool:
    return settings().max_examples >= 100


def facts(item: pytest.Item | Case) -> Iterator[Fact]:
    """Yield the parameter values of a case."""
    callspec = getattr(item, "callspec", None)
    for name, value in callspec.params.items() if callspec else ():
        yield from _facts(name, value)


def _facts(name: str, value: Any) -> Iterator[Fact]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _facts(f"{name}.{field.name}", getattr(value, field.name))
    else:
        yield name, repr(value)
