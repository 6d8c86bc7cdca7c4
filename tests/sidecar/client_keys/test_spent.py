"""What keys have used on a day is in a file: it outlives the process, and others add to it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from abridge.sidecar.client_keys.limits import add_spent

TODAY = 20_000
FILE = "keys.spent"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def test_what_is_added_is_there_for_all(path: Path) -> None:
    assert add_spent(path, TODAY, {"alice": 5}) == {"alice": 5}
    assert add_spent(path, TODAY, {"alice": 2, "bob": 1}) == {"alice": 7, "bob": 1}
    assert add_spent(path, TODAY, {}) == {"alice": 7, "bob": 1}
    content = json.loads(path.with_name(FILE).read_text())
    assert content == {"day": "2024-10-04", "tokens": {"alice": 7, "bob": 1}}


def test_a_day_begins_with_nothing(path: Path) -> None:
    add_spent(path, TODAY, {"alice": 5})
    assert add_spent(path, TODAY + 1, {}) == {}
    assert add_spent(path, TODAY + 1, {"bob": 1}) == {"bob": 1}


def test_nothing_is_written_where_nothing_was_used(path: Path) -> None:
    assert add_spent(path, TODAY, {}) == {}
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"day": "2024-10-04", "tokens": 3}', "\xff"])
def test_a_broken_file_has_nothing_and_is_replaced(path: Path, text: str) -> None:
    path.with_name(FILE).write_text(text, encoding="latin-1")
    assert add_spent(path, TODAY, {}) == {}
    assert add_spent(path, TODAY, {"alice": 5}) == {"alice": 5}


def test_counts_that_are_none_are_left_out(path: Path) -> None:
    tokens = {"a": -1, "b": "9", "c": 1e3, "d": True, "e": 4}
    path.with_name(FILE).write_text(json.dumps({"day": "2024-10-04", "tokens": tokens}))
    assert add_spent(path, TODAY, {}) == {"e": 4}


def test_nothing_is_lost_of_what_is_added_at_once(path: Path) -> None:
    def add() -> None:
        for _ in range(20):
            add_spent(path, TODAY, {"alice": 1})

    threads = [threading.Thread(target=add) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert add_spent(path, TODAY, {}) == {"alice": 100}
