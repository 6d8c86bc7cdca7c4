"""`abridge keys`, and what `abridge serve` says of the file."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from abridge.config.client_key import Limits, digest
from abridge.config.settings import Settings
from abridge.sidecar.cli.commands import main
from abridge.sidecar.cli.serving import startup_lines
from abridge.sidecar.client_keys.file import load_keys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def invoke(*words: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["keys", *words], env=environ)


def test_the_key_alone_is_on_standard_output(path: Path) -> None:
    result = invoke("add", "alice", "--file", str(path))
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert line.startswith("abr-")
    assert list(load_keys(path).keys) == [digest(line)]
    assert line not in result.stderr
    assert line.removeprefix("abr-") not in path.read_text()


def test_each_limit_is_an_option(path: Path) -> None:
    limits = {name: number for number, name in enumerate(Limits.model_fields, 1)}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
    options += ["--models=a*, b", "--models=c", "--team=red", "--expires=2099-01-31"]
    invoke("add", "alice", *options, "--file", str(path))
    (key,) = load_keys(path).keys.values()
    assert (key.models, key.team) == (("a*", "b", "c"), "red")
    assert {name: getattr(key, name) for name in limits} == limits
    assert key.expires is not None
    assert key.expires.isoformat() == "2099-01-31T00:00:00+00:00"


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2099-01-31", datetime(2099, 1, 31, tzinfo=UTC)),
        ("2099-01-31T10:00", datetime(2099, 1, 31, 10, tzinfo=UTC)),
        ("2099-01-31T10:00:00+02:00", datetime(2099, 1, 31, 8, tzinfo=UTC)),
    ],
)
def test_when_a_key_expires_is_utc_unless_it_says_otherwise(
    path: Path, text: str, time: datetime
) -> None:
    invoke("add", "alice", "--expires", text, "--file", str(path))
    (key,) = load_keys(path).keys.values()
    assert key.expires == time


def test_when_a_key_expires_can_be_said_in_days(path: Path) -> None:
    invoke("add", "alice", "--expires", "30d", "--file", str(path))
    (key,) = load_keys(path).keys.values()
    assert key.expires is not None
    assert timedelta(days=30) - (key.expires - datetime.now(UTC)) < timedelta(minutes=5)


def test_keys_are_listed_with_their_limits_and_without_digests(path: Path) -> None:
    invoke("add", "alice", "--rate", "60", "--models", "a*", "--file", str(path))
    invoke("add", "bob", "--expires", "2099-01-31", "--file", str(path))
    path.write_text(path.read_text().replace("2099", "2020"))
    result = invoke("list", "--file", str(path))
    heading, alice, bob = result.stdout.splitlines()
    assert heading.split() == ["name", "team", "limits", "expires", "models"]
    assert re.split(r"  +", alice) == ["alice", "none", "60 requests/minute", "never", "a*"]
    expired = "2020-01-31T00:00:00+00:00 (has expired)"
    assert re.split(r"  +", bob) == ["bob", "none", "none", expired, "*"]


def test_teams_are_listed_with_the_limits_that_their_keys_share(path: Path) -> None:
    path.write_text('{"team": "red", "tokens_per_day": 1000, "money_per_month": 2.5}\n')
    path.chmod(0o600)
    for name, team in (("alice", "red"), ("bob", "blue")):
        assert invoke("add", name, "--team", team, "--file", str(path)).exit_code == 0
    *_, heading, red, blue = invoke("list", "--file", str(path)).stdout.splitlines()
    assert heading.split() == ["team", "limits"]
    assert re.split(r"  +", red) == ["red", "1000 tokens/day, 2.5 money/month"]
    assert re.split(r"  +", blue) == ["blue", "none"]


def test_a_revoked_key_is_gone(path: Path) -> None:
    for name in ("alice", "bob"):
        invoke("add", name, "--file", str(path))
    result = invoke("revoke", "alice", "--file", str(path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert [key.name for key in load_keys(path).keys.values()] == ["bob"]


def test_the_settings_say_which_file(path: Path, tmp_path: Path) -> None:
    config = tmp_path / "abridge.toml"
    config.write_text(f'[server]\nkeys_file = "{path}"\n')
    assert invoke("add", "alice", "--config", str(config)).exit_code == 0
    assert invoke("add", "bob", ABRIDGE_SERVER__KEYS_FILE=str(path)).exit_code == 0
    assert len(load_keys(path).keys) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("list",), "--file: must name the keys file"),
        (("list", "--file", "/nowhere/keys"), "/nowhere/keys: cannot be read"),
        (("add", "a", "--file", "/nowhere/keys"), "/nowhere/keys: cannot be written"),
        (("revoke", "a", "--file", "/nowhere/keys"), "/nowhere/keys: cannot be written"),
        (("add", "a b", "--file", "keys"), "name: must be at most 64 letters"),
        (("add", "a", "--models", "m,", "--file", "keys"), "models.1: "),
        (("add", "a", "--expires", "soon", "--file", "keys"), "--expires: got 'soon'; must be"),
        (
            ("add", "a", "--expires", "2020-01-31", "--file", "keys"),
            "--expires: got '2020-01-31'",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*words)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_the_start_says_which_file(path: Path) -> None:
    settings = Settings.model_validate({"server": {"keys_file": str(path)}})
    assert f"  keys        {path}" in startup_lines(settings, "http://127.0.0.1:8400", None)


def test_serve_refuses_a_broken_file(path: Path) -> None:
    path.write_text("{}")
    words = ["serve", "--upstream", "http://127.0.0.1:9/v1", "--port", "0"]
    result = CliRunner().invoke(main, words, env={"ABRIDGE_SERVER__KEYS_FILE": str(path)})
    assert result.exit_code == 2
    variable = "ABRIDGE_SERVER__KEYS_FILE"
    assert result.stderr == f"Error: {variable}: {path}: line 1: name: is missing\n"
