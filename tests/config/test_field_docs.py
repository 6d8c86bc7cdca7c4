"""Test that the text beside each setting is found, and is where people look for it."""

from __future__ import annotations

import ast
import inspect
import pydoc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from abridge.config.setting_types import Table
from abridge.config.settings import Settings
from abridge.config.tables import LimitSettings, PromptSettings, SummarySettings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.styles import STYLES

TABLES = [
    table
    for table in Table.__subclasses__()
    if table.__module__.startswith("abridge.") and not issubclass(PromptSettings, table)
]
"""All but that whose keys are the styles."""


def parsed_texts(table: type[Table]) -> Iterator[tuple[str, str]]:
    """Yield each field and the text after it, as Python's own parser finds them."""
    source = ast.parse(Path(inspect.getfile(table)).read_text())
    (body,) = (
        node.body
        for node in source.body
        if isinstance(node, ast.ClassDef) and node.name == table.__name__
    )
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as written)),
            ):
                yield name, inspect.cleandoc(written)


@pytest.mark.parametrize("table", TABLES)
def test_each_key_is_described_by_the_text_beside_it(table: type[Table]) -> None:
    described = {name: field.description for name, field in table.model_fields.items()}
    assert described == dict(parsed_texts(table))


def test_each_style_has_a_described_key_for_its_prompt() -> None:
    described = {name: field.description for name, field in PromptSettings.model_fields.items()}
    assert described == {style: f"Instructions for the style `{style}`." for style in STYLES}


def test_help_describes_each_key_and_its_unit() -> None:
    text = pydoc.plain(pydoc.render_doc(SummarySettings))
    assert "When to make a summary" in text
    assert "grace = 5.0, in seconds\n |      How long the answer may wait for its summary." in text
    assert "part_chars = 1500, in characters" in text


def test_the_last_unit_of_a_key_counts() -> None:
    doc = LimitSettings.__doc__ or ""
    assert "upload_rate = 10240, in bytes a second" in doc
    assert "body = 33554432, in bytes" in doc


def test_an_optional_keys_unit_is_found() -> None:
    assert "budget_max = None, in tokens" in (UpstreamSettings.__doc__ or "")


def test_a_table_shows_what_was_set() -> None:
    settings = Settings(summary={"default": "auto"}, upstreams=[{"name": "a"}])
    assert repr(settings) == (
        "Settings(upstreams=(UpstreamSettings(name='a'),), summary=SummarySettings(default='auto'))"
    )


def test_json_schema_describes_tables_and_keys() -> None:
    table = Settings.model_json_schema()["$defs"]["SummarySettings"]
    assert table["description"].startswith("When to make a summary")
    assert "Keys:" not in table["description"]
    assert table["properties"]["grace"]["description"] == (
        "How long the answer may wait for its summary."
    )


def test_a_table_whose_source_is_not_at_hand_is_a_table_all_the_same() -> None:
    names: dict[str, Any] = {"Table": Table, "__name__": "nowhere"}
    exec("class Own(Table):\n    key: int = 1", names)  # noqa: S102 -- it is to have no file
    assert names["Own"](key=2).model_dump() == {"key": 2}
