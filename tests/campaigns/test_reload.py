"""The short campaign of changed settings."""

from __future__ import annotations

from tests.campaigns import reload


def test_no_stream_is_lost_or_mixed_while_settings_change() -> None:
    assert reload.main(["--streams", "20", "--reloads", "10", "--pieces", "3"]) == 0


def test_nor_with_workers() -> None:
    words = ["--streams", "10", "--reloads", "10", "--pieces", "3", "--workers", "2"]
    assert reload.main(words) == 0
