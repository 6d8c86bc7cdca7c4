"""Test that the page on settings, and type checkers, know the settings as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

import abridge
from abridge.config import setting_dicts
from abridge.config.reloading import NEEDS_RESTART
from abridge.config.settings import Settings
from abridge.sidecar.cli.commands import serve
from tests.docs.setting_dicts import setting_dicts as made_of_the_tables
from tests.docs.setting_dicts import tables_of
from tests.docs.settings import sections_of, settings_page

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

KEYS = [
    (section, key)
    for section in sections_of(Settings)
    for key in section.table.model_fields
    if f"{section.name}.{key}" != "summarizer.prompts"
]


def test_the_page_on_settings_is_made_of_the_model() -> None:
    """If not: `python -m tests.docs.settings > docs/settings.md`."""
    assert PAGE.read_text() == settings_page()


def test_it_has_every_key_and_every_flag() -> None:
    headings = {line for line in settings_page().splitlines() if line.startswith("### ")}
    assert headings == {f"### `{section.prefix}.{key}`" for section, key in KEYS}
    flags = {option.opts[0] for option in serve.params} - {"--config"}
    assert flags == {flag for flag in flags if f"- Flag: `{flag}`" in settings_page()}


def test_the_example_of_each_key_is_valid_and_not_the_default() -> None:
    for section, key in KEYS:
        example, wrong_keys = section.examples[key], set[Any]()
        try:
            section.table.model_validate({key: example})
        except ValidationError as error:
            wrong_keys = {place for found in error.errors() for place in found["loc"]}
        assert not wrong_keys, (section.name, key)  # else it is right, and requires other keys
        default = section.table.model_fields[key].get_default(call_default_factory=True)
        assert example != default, (section.name, key)


def test_there_are_no_examples_of_keys_that_do_not_exist() -> None:
    for section in sections_of(Settings):
        assert section.examples.keys() <= section.table.model_fields.keys()


def test_the_page_on_the_sidecar_names_each_table_that_needs_a_restart() -> None:
    page = (PAGE.parent / "sidecar.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("- **Settings that need a")]
    assert not [key for key in NEEDS_RESTART if "." not in key and f"`{key}`" not in line]


def test_the_dictionaries_of_settings_are_made_of_the_tables() -> None:
    """If not: `python -m tests.docs.setting_dicts > middleware/abridge/config/setting_dicts.py`."""
    assert Path(setting_dicts.__file__).read_text() == made_of_the_tables()


def test_each_table_of_settings_can_be_imported_from_the_package() -> None:
    assert {table.__name__ for table in tables_of(Settings)} <= set(abridge.__all__)
