"""Test what outlasts a change of settings."""

from __future__ import annotations

from abridge.lasting import Lasting


class Thing:
    """Something that is found out."""


def test_a_thing_is_the_same_for_all_who_ask_for_it_by_the_same_key() -> None:
    lasting = Lasting()
    first = lasting.get(("learned", "a"), Thing)
    assert lasting.get(("learned", "a"), Thing) is first
    assert lasting.get(("learned", "b"), Thing) is not first


def test_nothing_is_kept_where_nothing_is_made() -> None:
    lasting = Lasting()
    assert lasting.get("ledger", lambda: None) is None
    assert lasting.get("ledger", Thing) is not None


def test_it_is_kept_for_as_long_as_anybody_uses_it() -> None:
    lasting, made = Lasting(), list[int]()

    def make() -> Thing:
        made.append(1)
        return Thing()

    used = lasting.get("key", make)
    lasting.get("key", make)
    assert len(made) == 1
    del used
    lasting.get("key", make)
    assert len(made) == 2
