"""Each name that a client meets is on a page: Abridge's own headers, the codes of its errors and of
failed summaries, and the fields of what a summary cost. Metrics are tested with docs/metrics.md,
settings with docs/settings.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import abridge
from abridge.core.usage import SummaryShare
from abridge.pipeline.summary_runner import KNOWN_CODES
from abridge.summarizers.checks import FAILURES
from tests.docs.pages import PAGES

CODE = re.compile(r"`[^`\n]+`")
NAMED = {
    name
    for page in PAGES
    for span in CODE.findall(page.read_text())
    for name in re.findall(r"[\w-]+", span)
}

CLASSES = ("ErrorDetail", "SummarizerError")
"""Whose first argument is a code."""


def _trees() -> Iterator[ast.AST]:
    """Yield all that stands in files with a code or a header."""
    texts = (file.read_text() for file in Path(abridge.__file__).parent.rglob("*.py"))
    for text in texts:
        if any(each in text for each in (*CLASSES, "code=", "x-abridge-")):
            yield from ast.walk(ast.parse(text))


def _codes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands where a code does."""
    if isinstance(node, ast.keyword) and node.arg == "code":
        yield node.value
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLASSES:
        yield from node.args[:1]


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield a constant, or those that a condition chooses among."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")


@cache
def nodes() -> list[ast.AST]:
    return list(_trees())


@cache
def codes() -> set[str]:
    return {text for node in nodes() for value in _codes(node) for text in _texts(value)}


def test_each_code_is_on_a_page() -> None:
    assert codes() | KNOWN_CODES | FAILURES.keys() <= NAMED


@cache
def headers() -> set[str]:
    texts = (text for node in nodes() for text in _texts(node))
    return {text for text in texts if re.fullmatch(r"x-abridge(-[a-z]+)+", text)}


def test_each_header_is_on_a_page() -> None:
    assert headers() <= NAMED


def test_the_fields_of_what_a_summary_cost_are_on_a_page() -> None:
    assert SummaryShare().as_dict().keys() <= NAMED


def test_enough_is_looked_for() -> None:
    assert {"timeout", "breaker_open", "invalid_json", "request_too_large"} <= codes() | KNOWN_CODES
    assert {"x-abridge-summary", "x-abridge-via", "x-abridge-estimate"} <= headers()
