"""Test what of changed settings takes effect without a restart."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.config.reloading import (
    NEEDS_RESTART,
    changed_keys,
    keep_until_restart,
    needs_restart,
)
from abridge.config.settings import Settings
from abridge.errors import SettingsError


def settings(**tables: Any) -> Settings:
    return Settings.model_validate({"upstreams": [{"base_url": "http://a/v1"}], **tables})


def test_what_needs_a_restart_are_tables_and_keys_of_the_settings() -> None:
    for name in NEEDS_RESTART:
        table, _, key = name.partition(".")
        fields = type(getattr(Settings(), table)).model_fields
        assert not key or key in fields


def test_a_changed_key_is_named_and_upstreams_as_one() -> None:
    now = settings(summary={"grace": 1}, upstreams=[{"base_url": "http://b/v1"}])
    assert list(changed_keys(settings(), now)) == ["upstreams", "summary.grace"]
    assert not list(changed_keys(settings(), settings()))


@pytest.mark.parametrize(
    ("tables", "kept"),
    [
        ({"server": {"port": 1, "drain": 5}}, ["server.port", "server.drain"]),
        ({"log": {"format": "json"}}, ["log.format"]),
        ({"tracing": {"enabled": True}}, ["tracing.enabled"]),
        ({"history": {"bytes": "1MiB", "keep": "all"}}, ["history.bytes"]),
        ({"limits": {"connections": 7, "in_flight": 8}}, ["limits.connections"]),
    ],
)
def test_what_needs_a_restart_stays_and_the_rest_is_taken_over(
    tables: dict[str, Any], kept: list[str]
) -> None:
    before, now = settings(), settings(summary={"grace": 1}, **tables)
    used, named = keep_until_restart(before, now)
    assert named == kept
    assert used.summary.grace == 1
    left = list(changed_keys(used, now))
    assert left == kept
    assert not [key for key in changed_keys(before, used) if needs_restart(key)]


def test_new_settings_that_contradict_what_stays_are_refused() -> None:
    before = settings(history={"store": "none"})
    now = settings(history={"store": "memory"}, reasoning={"expose": "none"})
    with pytest.raises(SettingsError, match=r"history\.store"):
        keep_until_restart(before, now)
