"""The subset of a long matrix that an ordinary run selects."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.support.matrix import batches, choose, each_in_turn, rows_of_tables

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


def test_batches_have_every_case_and_the_names_of_their_ends() -> None:
    parts = batches("abcdefg", 3)
    assert [case for part in parts for case in part.values[0]] == [*"abcdefg"]
    assert [part.id for part in parts] == ["a to c", "d to f", "g to g"]


@pytest.mark.parametrize(("turns", "ones", "others"), [(2, 2, 2), (2, 3, 2), (3, 3, 3), (3, 5, 3)])
def test_in_turn_each_case_meets_each_value_of_two_parameters(
    turns: int, ones: int, others: int
) -> None:
    for place, name in product(range(10), (0, 1)):
        met = {
            pair[name]
            for pair in product(range(ones), range(others))
            if place in each_in_turn(range(10), sum(pair), turns)
        }
        assert met == set(range((ones, others)[name]))
