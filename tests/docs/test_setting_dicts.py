"""Test that type checkers know the settings as they are."""

from __future__ import annotations

from pathlib import Path

import abridge
from abridge.config import setting_dicts
from abridge.config.settings import Settings
from tests.docs.setting_dicts import setting_dicts as made_of_the_tables
from tests.docs.setting_dicts import tables_of


def test_the_dictionaries_of_settings_are_made_of_the_tables() -> None:
    """If not: `python -m tests.docs.setting_dicts > middleware/abridge/config/setting_dicts.py`."""
    assert Path(setting_dicts.__file__).read_text() == made_of_the_tables()


def test_each_table_of_settings_can_be_imported_from_the_package() -> None:
    assert {table.__name__ for table in tables_of(Settings)} <= set(abridge.__all__)
