"""The pages in a file: they outlive a process, and all processes of a machine write them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from abridge.memory.stores.store import BackendError
from abridge.sidecar.client_keys import books
from abridge.sidecar.client_keys.books import KEPT, FileBook
from abridge.sidecar.client_keys.limits import Claim, Granted, Sender, Wish
from tests.support.servers import until

DAY = 86400.0
TODAY = 20_000 * DAY + 5
FILE = "keys.spent"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def claim(account: str, used: int, *, number: int = 1, process: str = "a") -> Claim:
    wish = Wish("tokens_per_day", "day", 100, used, 0, 0, 0)
    return Claim(account, Sender(process, number, 0, 1), (wish,))


async def write(path: Path, *claims: Claim, now: float = TODAY) -> list[float]:
    """Write claims, and return what is used."""
    replies = await FileBook(path, lambda: now).settle(claims)
    return [reply.granted[0].used for reply in replies]


async def test_what_is_written_is_there_for_all(path: Path) -> None:
    assert await write(path, claim("key:alice", 5)) == [5]
    both = claim("key:alice", 2, process="b"), claim("team:red", 1, process="b")
    assert await write(path, *both) == [7, 1]
    assert await write(path, claim("key:alice", 0, number=2), now=TODAY + DAY) == [0]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"key:bob": 3}', '{"day": "2024-10-04", "tokens": {}}', "\xff"]
)
async def test_a_broken_file_has_nothing_and_is_replaced(path: Path, text: str) -> None:
    path.with_name(FILE).write_text(text, encoding="latin-1")
    assert await write(path, claim("key:alice", 5)) == [5]
    assert await write(path, claim("key:alice", 1, number=2)) == [6]


@pytest.mark.parametrize(
    "page",
    [3, {"used": 3}, {"used": {"tokens_per_day": "9"}}, {"processes": {"a": [9]}}, {"at": "x"}],
)
async def test_so_is_a_broken_page(path: Path, page: Any) -> None:
    pages = {"key:alice": page, "key:bob": {"used": {"tokens_per_day": [9, TODAY * 1000]}, "at": 0}}
    path.with_name(FILE).write_text(json.dumps(pages))
    assert await write(path, claim("key:alice", 5)) == [5]


async def test_pages_that_nobody_writes_are_dropped(path: Path) -> None:
    await write(path, claim("key:alice", 1))
    await write(path, claim("key:bob", 1), now=TODAY + KEPT / 1000)
    assert list(json.loads(path.with_name(FILE).read_text())) == ["key:bob"]


async def test_nothing_is_lost_of_what_is_written_at_once(path: Path) -> None:
    async def add(process: str) -> None:
        book = FileBook(path, lambda: TODAY)
        for number in range(1, 11):
            await book.settle([claim("key:alice", 1, number=number, process=process)])

    await asyncio.gather(*map(add, "abcde"))
    assert await write(path, claim("key:alice", 0, number=99)) == [50]


async def test_a_slow_disk_is_not_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    settle: Callable[..., Any] = books.settle

    def slow(*words: Any) -> Any:
        answers.wait(60)
        return settle(*words)

    monkeypatch.setattr(books, "settle", slow)
    monkeypatch.setattr(books, "PATIENCE_SECONDS", 0.01)
    book = FileBook(path, lambda: TODAY)
    for _ in range(2):
        with pytest.raises(BackendError):
            await book.settle([claim("key:alice", 5)])
    answers.set()
    await until(lambda: book._writing is not None and book._writing.done())
    (reply,) = await book.settle([claim("key:alice", 5)])  # once more: it counts once
    assert reply.granted == (Granted(0, 5.0),)
    await book.aclose()
