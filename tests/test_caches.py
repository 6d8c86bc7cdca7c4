"""What outlives a request has a ceiling: each cache's entries, and the length of their keys."""

from __future__ import annotations

import ast
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import abridge
from abridge import caches
from abridge.apis.registry import find_api
from abridge.caches import MAX_ARGUMENTS_CHARS, MAX_KEY_CHARS, cached, is_short
from abridge.core.conversation import ToolCall, is_random_id

PACKAGE = Path(abridge.__file__).parent

MAKERS = frozenset(
    {
        *("cache", "lru_cache", "cached", "OrderedDict"),
        *("TTLCache", "LRUCache", "LFUCache", "FIFOCache", "RRCache", "TLRUCache"),
    }
)
"""What makes a cache."""

SIZED_ELSEWHERE = {
    ("caches.py", "lru_cache"): "the size is what `cached` is given",
    ("http/pool.py", "cache"): "of no arguments: one",
    ("memory/opened_blobs.py", "OrderedDict"): "cut to OPENED_BLOB_BYTES after each addition",
    ("memory/stores/memory.py", "TTLCache"): "`history.bytes`, and `max_marks`, which is MARKS",
    ("memory/summaries.py", "cache"): "of three booleans: eight",
    ("memory/summaries.py", "TTLCache"): "`max_marks`, which is MARKS",
    ("observability/metrics_sink.py", "cache"): "of no arguments: one",
    ("providers/learned.py", "OrderedDict"): "cut to LEARNED_MODELS after each addition",
    ("stages/order.py", "OrderedDict"): "what waits of one answer, within `limits.reasoning`",
}
"""Caches that are made without a name of `caches.py`, and what bounds them."""


def makers() -> Iterator[tuple[str, int, str, ast.expr | None]]:
    """Yield each place of the package that makes a cache: file, line, maker, size."""
    for path in PACKAGE.rglob("*.py"):
        file, text = path.relative_to(PACKAGE).as_posix(), path.read_text()
        nodes = ast.walk(ast.parse(text)) if any(maker in text for maker in MAKERS) else ()
        for node in nodes:
            if isinstance(node, ast.Call) and _name(node.func) in MAKERS:
                yield file, node.lineno, _name(node.func), node.args[0] if node.args else None
            for decorator in getattr(node, "decorator_list", ()):
                if _name(decorator) in MAKERS:
                    yield file, decorator.lineno, _name(decorator), None


def _name(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def test_each_cache_has_a_size_that_is_named_in_one_place() -> None:
    unnamed, seen = [], set()
    for file, line, maker, size in makers():
        is_named = isinstance(size, ast.Name) and isinstance(vars(caches).get(size.id), int)
        if not is_named and (file, maker) not in SIZED_ELSEWHERE:
            unnamed.append(f"{file}:{line}: {maker}")
        seen.add((file, maker))
    assert not unnamed
    assert SIZED_ELSEWHERE.keys() <= seen


def test_each_size_is_in_use() -> None:
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py") if path.stem != "caches")
    sizes = {name for name, value in vars(caches).items() if isinstance(value, int)}
    assert sizes
    assert {name for name in sizes if name in source} >= sizes - {"MAX_KEY_CHARS"}


def test_a_result_is_kept_while_it_is_among_the_latest() -> None:
    asked: list[str] = []

    @cached(2)
    def double(text: str) -> str:
        asked.append(text)
        return 2 * text

    assert [double(text) for text in "aabcab"] == ["aa", "aa", "bb", "cc", "aa", "bb"]
    assert asked == list("abcab")


@pytest.mark.parametrize(
    ("keys", "is_kept"),
    [
        (("x" * MAX_KEY_CHARS,), True),
        (("x" * MAX_KEY_CHARS, "y"), False),
        ((b"x" * (MAX_KEY_CHARS + 1),), False),
        ((), True),
    ],
)
def test_a_long_key_is_not_kept(keys: tuple[str | bytes, ...], *, is_kept: bool) -> None:
    asked = 0

    @cached(10)
    def count(*_: str | bytes) -> int:
        nonlocal asked
        asked += 1
        return asked

    assert [count(*keys), count(*keys)] == ([1, 1] if is_kept else [1, 2])


def test_a_key_is_short_up_to_the_limit() -> None:
    assert is_short("x" * MAX_KEY_CHARS)
    assert not is_short("x" * (MAX_KEY_CHARS + 1))


CACHED: dict[str, Callable[[str], Any]] = {
    "paths": lambda text: find_api(f"/{text}", f"/{text}"),
    "call ids": is_random_id,
    "arguments": lambda text: ToolCall("c", "f", f'{{"a": "{text}"}}').canonicalize(),
}


@pytest.mark.parametrize("use", CACHED.values(), ids=CACHED)
def test_long_keys_take_no_memory_for_good(use: Callable[[str], Any]) -> None:
    size = 20 * MAX_ARGUMENTS_CHARS
    use("x" * size)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(100):
        use(str(number) * size)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 10 * size
