"""The subset of a long matrix that an ordinary run selects."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.support.matrix import choose, rows_of_tables

AXES = {"api": "ab", "keeps": "abcde", "stream": "ab", "name": "abcdefgh"}
ROWS = [list(zip(AXES, values, strict=True)) for values in product(*AXES.values())]


@pytest.mark.parametrize(("together", "most"), [(1, 8), (2, 48), (3, 110), (4, 160)])
def test_few_cases_cover_all_combinations(together: int, most: int) -> None:
    chosen = choose(ROWS, together)
    met = {each for place in chosen for each in combinations(ROWS[place], together)}
    assert met == {each for row in ROWS for each in combinations(row, together)}
    assert len(chosen) <= most


def test_values_occur_equally_often() -> None:
    places = choose(ROWS, 1)
    streamed = [dict(ROWS[place])["stream"] for place in places]
    assert streamed.count("a") == streamed.count("b") == 4


def test_a_single_case_is_run() -> None:
    assert choose([ROWS[17]], 3) == {0}


def test_all_cases_are_run_with_too_few_parameters() -> None:
    assert choose([[("api", "a")], [("api", "b")]], 2) == {0, 1}


def test_each_row_of_a_table_occurs_and_meets_those_of_others() -> None:
    cases = [(("chat", 7), stream, "loop") for stream in (True, False)]
    cases += [(("chat", 8), stream, "loop") for stream in (True, False)]
    rows = list(rows_of_tables(cases))
    assert rows == [[("0", x), ("1", y)] for x, y in product("01", repeat=2)]
    assert len(choose(rows, 1)) == 2
    assert len(choose(rows, 2)) == 4


def test_a_test_of_one_table_has_no_others_to_meet() -> None:
    assert list(rows_of_tables([("a",), ("b",)])) == [[("0", "0")], [("0", "1")]]
    assert list(rows_of_tables([()])) == [[]]
