"""The file of keys: what is read, how it is changed, what is worth a warning."""

from __future__ import annotations

import os
import re
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from abridge.config.client_key import ClientKey, digest
from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.sidecar.app import create_app
from abridge.sidecar.client_keys.file import (
    MAX_FILE_BYTES,
    add_key,
    current_stamp,
    keys_notes,
    load_keys,
    revoke_key,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def key(name: str) -> ClientKey:
    return ClientKey(name=name, sha256=digest(f"abr-{name}"))


def names(path: Path) -> list[str]:
    return [known.name for known in load_keys(path).keys.values()]


def notes(path: Path, **tables: Any) -> list[str]:
    tables["server"] = {"keys_file": str(path)}
    return list(keys_notes(Settings.model_validate(tables)))


def test_keys_are_added_and_revoked_by_name(path: Path) -> None:
    for name in ("alice", "bob", "carol"):
        add_key(path, key(name))
    revoke_key(path, "bob")
    assert names(path) == ["alice", "carol"]


def test_all_else_in_the_file_stays_as_it_is(path: Path) -> None:
    path.write_text(f"# team A\r\n{key('alice').as_line()}\n\n# team B\n{key('bob').as_line()}")
    add_key(path, key("carol"))
    revoke_key(path, "alice")
    assert path.read_bytes().decode() == (
        f"# team A\r\n\n# team B\n{key('bob').as_line()}\n{key('carol').as_line()}\n"
    )


def test_only_the_owner_may_read_a_new_file(path: Path) -> None:
    add_key(path, key("alice"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_keeps_its_mode(path: Path) -> None:
    path.write_text("")
    path.chmod(0o640)
    add_key(path, key("alice"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_file_is_replaced_at_once(path: Path) -> None:
    add_key(path, key("alice"))
    with path.open() as before:
        add_key(path, key("bob"))
        assert before.read().count("\n") == 1  # the old file is whole
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_link_to_the_file_stays_one(path: Path) -> None:
    target = path.parent / "folder" / "of-keys"
    target.parent.mkdir()
    target.write_text("")
    path.symlink_to(target)
    add_key(path, key("alice"))
    assert path.is_symlink()
    assert names(target) == ["alice"]


def test_keys_that_are_added_at_once_are_all_there(path: Path) -> None:
    added = [f"k{number}" for number in range(20)]
    threads = [threading.Thread(target=add_key, args=(path, key(name))) for name in added]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(path)) == sorted(added)


def test_a_name_is_given_once(path: Path) -> None:
    add_key(path, key("alice"))
    with pytest.raises(SettingsError, match="there is a key named 'alice' already"):
        add_key(path, key("alice"))
    with pytest.raises(SettingsError, match="there is no key named 'bob'"):
        revoke_key(path, "bob")


def test_a_broken_file_is_not_changed(path: Path) -> None:
    path.write_text("{}\n")
    for change in (lambda: add_key(path, key("alice")), lambda: revoke_key(path, "alice")):
        with pytest.raises(SettingsError, match="line 1: name: is missing"):
            change()
    assert path.read_text() == "{}\n"


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    for read in (load_keys, current_stamp):
        with pytest.raises(SettingsError, match=r"keys: cannot be read: No such file"):
            read(path)
    with pytest.raises(SettingsError, match="cannot be read"):
        revoke_key(path, "alice")
    with pytest.raises(SettingsError, match="cannot be written: No such file"):
        add_key(path / "folder" / "keys", key("alice"))
    path.write_bytes(b"\xff\n")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        load_keys(path)
    path.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    with pytest.raises(SettingsError, match="is larger than"):
        load_keys(path)


def test_a_change_shows_in_the_stamp(path: Path) -> None:
    add_key(path, key("alice"))
    before = load_keys(path).stamp
    assert current_stamp(path) == before
    revoke_key(path, "alice")
    assert current_stamp(path) != before


def test_who_else_can_use_the_file_is_worth_a_note(path: Path) -> None:
    add_key(path, key("alice"))
    for mode, noted in (
        (0o600, False),
        (0o400, False),
        (0o640, False),
        (0o644, True),
        (0o620, True),
    ):
        path.chmod(mode)
        assert [f"mode 0{mode:o}" in note for note in notes(path)] == [True] * noted


def test_so_is_a_file_without_keys(path: Path) -> None:
    path.touch(0o600)
    assert ["no keys yet" in note for note in notes(path)] == [True]


def test_a_folder_that_cannot_be_written_is_worth_a_note_where_there_are_limits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    add_key(path, key("alice"))
    assert notes(path) == []
    add_key(path, ClientKey(name="bob", sha256="0" * 64, tokens_per_day=1))
    assert ["cannot be written, so each process counts limits" in note for note in notes(path)] == [
        True
    ]


def test_a_team_without_limits_is_worth_a_note(path: Path) -> None:
    path.write_text('{"team": "red", "streams": 2}\n')
    path.chmod(0o600)
    for number, team in enumerate(("red", "blue", "blue")):
        add_key(path, ClientKey(name=f"k{number}", sha256=f"{number}" * 64, team=team))
    (note,) = notes(path)
    assert f"{path} has a team without limits, 'blue'; a line such as " in note


@pytest.mark.parametrize(
    ("fields", "priced", "missing"),
    [
        ({"team": "red"}, [], "'gpt-*', 'qwen', 'small'"),
        ({"money_per_month": 2}, ["gpt-5", "qwen"], "'gpt-*', 'small'"),
        ({"team": "red"}, ["gpt-*", "small", "q*"], None),
        ({"team": "red", "models": ("gpt-5",)}, ["gpt-*", "s*"], None),
        ({"team": "red", "models": ("gpt-5",)}, ["gpt-4"], "'gpt-5', 'small'"),
        ({"tokens_per_day": 2}, [], None),
    ],
)
def test_models_without_a_price_are_worth_a_note_where_money_counts(
    path: Path, fields: dict[str, Any], priced: list[str], missing: str | None
) -> None:
    path.write_text('{"team": "red", "money_per_day": 2}\n')
    path.chmod(0o600)
    add_key(path, ClientKey(name="alice", sha256="0" * 64, **fields))
    server = {"base_url": "http://127.0.0.1:9/v1"}
    found = notes(
        path,
        upstreams=[{**server, "models": ["gpt-*", "qwen"]}],
        summarizer={**server, "kind": "model", "model": "small"},
        prices={"currency": "USD", "models": [{"glob": glob} for glob in priced]},
    )
    assert [note.partition(": add ")[2] for note in found] == (
        [] if missing is None else [f"{missing} to prices.models"]
    )


def test_nothing_is_left_of_a_change_that_failed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_key(path, key("alice"))
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SettingsError, match="cannot be written: No space left"):
        add_key(path, key("bob"))
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_that_does_not_exist_is_reported_with_what_makes_it(path: Path) -> None:
    upstream = {"base_url": "http://127.0.0.1:9/v1"}
    settings = Settings(server={"keys_file": str(path)}, upstreams=[upstream])
    with pytest.raises(SettingsError, match=re.escape(f"`abridge keys add NAME --file {path}`")):
        create_app(settings)
