"""The short campaign of changed settings."""

from __future__ import annotations

import pytest

from tests.campaigns import reload


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.repeat), "2"])
def test_no_stream_is_lost_or_mixed_while_settings_change(workers: str) -> None:
    words = ["--streams", "10", "--reloads", "10", "--pieces", "3", "--pause", "0.2"]
    assert reload.main([*words, "--workers", workers]) == 0
