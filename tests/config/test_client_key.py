"""A key: the form of its line in the file, its models, when it expires."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.types import Scope

from abridge.config.client_key import (
    CLIENT_KEY,
    MAX_KEYS,
    MAX_MODEL_CHARS,
    ClientKey,
    Limits,
    digest,
    has_budget,
    new_key,
    parse_keys,
)
from abridge.errors import SettingsError

DIGEST = digest("abr-of-a-test")


def line(**fields: Any) -> str:
    return json.dumps({"name": "alice", "sha256": DIGEST, **fields})


def key(**fields: Any) -> ClientKey:
    (made,) = parse_keys(line(**fields)).values()
    return made


def test_a_key_is_256_random_bits_and_its_digest_does_not_tell_it() -> None:
    one, other = new_key(), new_key()
    assert one.startswith("abr-")
    assert len(one) == len("abr-") + 43  # 6 bits a character
    assert one != other
    assert one.removeprefix("abr-") not in digest(one)
    assert len(digest(one)) == 64


def test_a_line_with_all_fields() -> None:
    made = key(models=["m-*", "n"], rate=60, tokens_per_day=1000, expires="2027-01-31T00:00:00Z")
    assert (made.name, made.models, made.requests_per_minute, made.tokens_per_day) == (
        "alice",
        ("m-*", "n"),
        60,
        1000,
    )
    assert made.expires == datetime(2027, 1, 31, tzinfo=UTC)


def test_a_line_is_written_as_it_is_read() -> None:
    made = key(models=["m-*"], rate=60, expires="2027-01-31T00:00:00+02:00")
    assert parse_keys(made.as_line()) == {DIGEST: made}
    assert json.loads(key().as_line()) == {"name": "alice", "sha256": DIGEST}


@pytest.mark.parametrize("name", ["rate", "requests_per_minute"])
def test_a_line_as_it_was_written_before_is_read(name: str) -> None:
    made = key(**{name: 60})
    assert made.requests_per_minute == 60
    assert json.loads(made.as_line())["requests_per_minute"] == 60


def test_keys_share_the_limits_of_their_team() -> None:
    team = '{"team": "red", "tokens_per_day": 9, "money_per_month": 2.5, "streams": 3}'
    others = line(name="bob", sha256=digest("abr-2"), team="red"), line(team="blue")
    bob, alice = parse_keys("\n".join((others[0], team, others[1]))).values()
    assert bob.team_limits is not None
    assert (bob.team_limits.tokens_per_day, bob.team_limits.money_per_month) == (9, 2.5)
    assert (alice.team, alice.team_limits) == ("blue", None)


def test_what_counts_tokens_or_money_has_a_budget() -> None:
    found = [key(**{name: 1}).has_budget for name in Limits.model_fields]
    assert found == [False, True, True, True, True, True, False]
    scope: Scope = {CLIENT_KEY: key(team="red", streams=1)}
    assert not has_budget(scope)
    text = f'{line(team="red")}\n{{"team": "red", "tokens_per_day": 1}}'
    (scope[CLIENT_KEY],) = parse_keys(text).values()
    assert has_budget(scope)


def test_comments_and_blank_lines_are_skipped() -> None:
    text = f"# the team\n\n{line()}\r\n   # more\n  \n"
    assert [made.name for made in parse_keys(text).values()] == ["alice"]
    assert parse_keys("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: is not a JSON object"),
        ("[]", "line 1: "),
        (f"{line()}\nabc", "line 2: is not a JSON object"),
        ('{"name": "alice"}', "line 1: sha256: is missing"),
        (line(name="a b"), "line 1: name: must be at most 64 letters"),
        (line(name="a" * 65), "line 1: name: must be at most 64 letters"),
        (line(sha256="abr-x"), "line 1: sha256: must be 64 hexadecimal digits"),
        (line(rate=0), "line 1: rate: "),
        (line(rate="9"), "line 1: rate: "),
        (line(rate=True), "line 1: rate: "),
        (line(tokens_per_day=1.5), "line 1: tokens_per_day: "),
        (line(models=[]), "line 1: models: "),
        (line(models=[""]), "line 1: models.0: "),
        (line(models="m"), "line 1: models: "),
        (line(expires="2027-01-31T00:00:00"), "line 1: expires: must have a time zone"),
        (line(expires="soon"), "line 1: expires: "),
        (line(budget=3), "line 1: budget: there is no such field"),
        (line(money_per_day=0), "line 1: money_per_day: "),
        (line(team="a b"), "line 1: team: must be at most 64 letters"),
        ('{"team": "red", "models": ["m"]}', "line 1: models: there is no such field"),
        ('{"team": "red"}\n{"team": "red"}', "line 2: there are two teams named 'red'"),
        (f"{line()}\n{line(sha256=digest('abr-2'))}", "line 2: there are two keys named 'alice'"),
        (f"{line()}\n{line(name='bob')}", "line 2: sha256: is the same as that of another key"),
    ],
)
def test_a_bad_line_is_named_with_its_field(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_keys(text)
    assert str(caught.value).startswith(message)
    assert DIGEST not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_has_so_many_keys_at_most() -> None:
    lines = [line(name=f"k{number}", sha256=f"{number:064x}") for number in range(MAX_KEYS + 1)]
    assert len(parse_keys("\n".join(lines[:-1]))) == MAX_KEYS
    with pytest.raises(SettingsError, match=f"there are {MAX_KEYS + 1} keys; at most {MAX_KEYS}"):
        parse_keys("\n".join(lines))


@pytest.mark.parametrize(
    ("models", "model", "allowed"),
    [
        (["*"], "anything", True),
        (["m-*"], "m-1", True),
        (["m-*"], "x-m-1", False),
        (["m-*"], "M-1", False),
        (["m"], "m\nx", False),
        (["m", "n?"], "n1", True),
        (["m", "n?"], "n", False),
        (["gpt[45]"], "gpt5", True),
        (["m"], "", False),
        (["m*"], "m" * MAX_MODEL_CHARS, True),
        (["m*"], "m" * (MAX_MODEL_CHARS + 1), False),
    ],
)
def test_models_are_globs(models: list[str], model: str, *, allowed: bool) -> None:
    assert key(models=models).allows(model) is allowed
    assert key(models=models).chooses_models is (models != ["*"])


def test_it_expires_at_its_time() -> None:
    made = key(expires="1970-01-01T00:01:40Z")
    assert [made.has_expired(now) for now in (99.9, 100.0, 101.0)] == [False, True, True]
    assert not key().has_expired(1e12)
