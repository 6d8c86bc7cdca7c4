"""Who is admitted: by the key, its limits, and the file as it is now."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Scope

from abridge.config.client_key import (
    MAX_KEYS,
    ClientKey,
    digest,
    key_name,
    new_key,
)
from abridge.config.settings import Settings
from abridge.core.usage import Tokens
from abridge.errors import RequestError, SettingsError
from abridge.observability.metrics import metrics_for
from abridge.observability.record import Record
from abridge.sidecar.client_keys import door
from abridge.sidecar.client_keys.door import ClientKeys, open_keys
from abridge.sidecar.client_keys.file import Loaded, add_key, revoke_key
from tests.support.asgi import scope_for
from tests.support.servers import soon, until

DAY = 86400
NOON = 100 * DAY + DAY / 2
"""Of the eleventh of April 1970."""


@dataclass
class Clocks:
    """Both clocks of the door."""

    seconds: float = 0.0

    def now(self) -> float:
        return NOON + self.seconds

    def monotonic(self) -> float:
        return 5000.0 + self.seconds


class Team:
    """A file of keys, and the door that reads it."""

    def __init__(self, folder: Path, **tables: Any) -> None:
        self.path = folder / "keys"
        self.tables = tables
        self.path.touch(0o600)
        self.clocks = Clocks()
        self.registry = CollectorRegistry()
        self._door: ClientKeys | None = None

    def add(self, name: str, **limits: Any) -> str:
        key = new_key()
        add_key(self.path, ClientKey(name=name, sha256=digest(key), **limits))
        return key

    @property
    def door(self) -> ClientKeys:
        self._door = self._door or ClientKeys(
            self.path,
            Settings.model_validate(self.tables),
            metrics_for(self.registry),
            now=self.clocks.now,
            monotonic=self.clocks.monotonic,
        )
        return self._door

    async def admit(self, headers: Mapping[str, str] | str) -> Record:
        """Admit a request with these headers, or with this key."""
        if isinstance(headers, str):
            headers = {"authorization": f"Bearer {headers}"}
        scope = scope_of(headers)
        record = Record("id", 0.0, 0.0)
        await self.door.admit(scope, record)
        assert key_name(scope) == record.key is not None
        return record

    async def refusal(self, headers: Mapping[str, str] | str) -> RequestError:
        with pytest.raises(RequestError) as caught:
            await self.admit(headers)
        return caught.value

    def finish(self, record: Record, tokens: int, outcome: str = "ok") -> None:
        record.outcome, record.upstream_tokens = outcome, Tokens(tokens, 0, tokens)
        self.door.count(record)

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"abridge_{name}", labels)


def scope_of(headers: Mapping[str, str]) -> Scope:
    scope = scope_for("/v1/responses")
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {**scope, "headers": raw}


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


@pytest.mark.parametrize(
    "write",
    [
        lambda key: {"authorization": f"Bearer {key}"},
        lambda key: {"authorization": f"bearer   {key} "},
        lambda key: {"x-api-key": key},
        lambda key: {"authorization": "Bearer sk-other", "x-api-key": key},
        lambda key: {"x-api-key": "other", "authorization": f"Bearer {key}"},
    ],
)
async def test_a_key_comes_as_clients_of_any_api_send_it(
    team: Team, write: Callable[[str], dict[str, str]]
) -> None:
    record = await team.admit(write(team.add("alice")))
    assert record.key == "alice"


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda _: {}, "An API key is required"),
        (lambda key: {"authorization": key}, "An API key is required"),
        (lambda key: {"authorization": f"Basic {_basic(key)}"}, "An API key is required"),
        (lambda key: {"api-key": key}, "An API key is required"),
        (lambda key: {"x-api-key": key[:-1]}, "is not valid"),
        (lambda key: {"x-api-key": f"{key}x"}, "is not valid"),
        (lambda key: {"x-api-key": key.upper()}, "is not valid"),
        (lambda key: {"x-api-key": digest(key)}, "is not valid"),
        (lambda _: {"x-api-key": "abr-\xe9" + "x" * 5000}, "is not valid"),
        (lambda _: {"authorization": "Bearer "}, "is not valid"),
    ],
)
async def test_nobody_else_is_admitted(
    team: Team, write: Callable[[str], dict[str, str]], words: str
) -> None:
    refusal = await team.refusal(write(team.add("alice")))
    assert (refusal.status, refusal.code) == (401, "invalid_api_key")
    assert words in str(refusal)
    assert dict(refusal.headers) == {b"www-authenticate": b'Bearer realm="Abridge"'}


def _basic(key: str) -> str:
    return base64.b64encode(f"anybody:{key}".encode()).decode()


async def test_a_browser_may_send_it_as_a_password(team: Team) -> None:
    key = team.add("alice")
    for headers in ({"authorization": f"Basic {_basic(key)}"}, {"x-api-key": key}):
        found = await team.door.authenticate(scope_of(headers), from_browser=True)
        assert found.name == "alice"
    for wrong in (_basic("abr-x"), "%", base64.b64encode(b"abr").decode(), ""):
        with pytest.raises(RequestError) as caught:
            await team.door.authenticate(
                scope_of({"authorization": f"Basic {wrong}"}), from_browser=True
            )
        assert caught.value.headers[0][1].startswith(b"Basic realm=")


async def test_a_key_is_good_until_it_expires(team: Team) -> None:
    from datetime import UTC, datetime

    key = team.add("alice", expires=datetime.fromtimestamp(NOON + 10, UTC))
    await team.admit(key)
    team.clocks.seconds = 10
    refusal = await team.refusal(key)
    assert (refusal.status, str(refusal)) == (401, "This API key has expired.")


async def test_beyond_the_rate_a_client_is_told_when_to_come_again(team: Team) -> None:
    key, other = team.add("alice", rate=2), team.add("bob", rate=2)
    await team.admit(key)
    await team.admit(key)
    refusal = await team.refusal(key)
    assert (refusal.status, refusal.code) == (429, "rate_limit_exceeded")
    assert dict(refusal.headers) == {b"retry-after": b"30"}
    await team.admit(other)
    team.clocks.seconds = 30
    await team.admit(key)


async def test_beyond_the_budget_a_client_is_told_to_come_tomorrow(team: Team) -> None:
    key, other = team.add("alice", tokens_per_day=100), team.add("bob", tokens_per_day=100)
    record = await team.admit(key)
    team.finish(record, 100)
    refusal = await team.refusal(key)
    assert (refusal.status, refusal.code) == (429, "insufficient_quota")
    assert dict(refusal.headers) == {
        b"retry-after": b"%d" % (DAY / 2),
        b"x-should-retry": b"false",
    }
    await team.admit(other)
    team.clocks.seconds = DAY / 2
    await team.admit(key)


async def test_a_large_budget_is_told_in_full(tmp_path: Path) -> None:
    prices = {"currency": "EUR", "models": [{"glob": "*", "input": 1e9}]}
    team = Team(tmp_path, prices=prices)
    key = team.add("alice", money_per_day=1234567.5)
    record = await team.admit(key)
    record.model = "m"
    team.finish(record, 2000)
    assert str(await team.refusal(key)).startswith("The 1234567.5 EUR a day of the API key")


PRICES = {"currency": "EUR", "models": [{"glob": "*", "input": 1e6}]}  # a token costs 1
QUOTA, RATE = "insufficient_quota", "rate_limit_exceeded"


@pytest.mark.parametrize(
    ("limits", "code", "seconds", "message"),
    [
        ({"requests_per_minute": 1}, RATE, 60, "The {} allows 1 requests a minute. Try again in"),
        ({"tokens_per_minute": 9}, RATE, 14, "The {} allows 9 tokens a minute. Try again in 14 s."),
        ({"streams": 1}, RATE, 1, "The {} allows 1 requests at once. Try again in 1 s."),
        ({"tokens_per_day": 9}, QUOTA, DAY // 2, "The 9 tokens a day of the {} are used up. The"),
        ({"money_per_day": 2.5}, QUOTA, DAY // 2, "The 2.5 EUR a day of the {} are used up. The"),
        (
            {"tokens_per_month": 9},
            QUOTA,
            20 * DAY - DAY // 2,
            "The 9 tokens a month of the {} are used up. The next month begins at midnight UTC.",
        ),
    ],
)
@pytest.mark.parametrize("holder", ["API key 'alice'", "team 'red'"])
async def test_a_teams_limit_is_told_as_the_teams(
    tmp_path: Path, *, holder: str, limits: dict[str, Any], code: str, seconds: int, message: str
) -> None:
    team = Team(tmp_path, prices=PRICES)
    team.path.write_text(json.dumps({"team": "red", **(limits if "red" in holder else {})}) + "\n")
    key = team.add("alice", team="red", **({} if "red" in holder else limits))
    record = await team.admit(key)
    assert record.team == "red"
    if "streams" not in limits:
        record.model = "m"
        team.finish(record, 10)
    refusal = await team.refusal(key)
    assert (refusal.status, refusal.code) == (429, code)
    assert str(refusal).startswith(message.format(holder))
    headers = {b"retry-after": b"%d" % seconds}
    if code == QUOTA:
        headers[b"x-should-retry"] = b"false"
    assert dict(refusal.headers) == headers
    whose = "team" if "red" in holder else "key"
    (name,) = limits
    assert team.sample("limit_refusals_total", holder=whose, limit=name) == 1


async def test_a_budget_that_begins_anew_soon_is_tried_again(team: Team) -> None:
    key = team.add("alice", tokens_per_day=100)
    team.clocks.seconds = DAY / 2 - 20
    team.finish(await team.admit(key), 100)
    refusal = await team.refusal(key)
    assert dict(refusal.headers) == {b"retry-after": b"20"}
    assert str(refusal).endswith("are used up. Try again in 20 s.")


async def test_what_a_team_uses_and_what_that_costs_is_counted(tmp_path: Path) -> None:
    team = Team(tmp_path, prices=PRICES)
    record = await team.admit(team.add("alice", team="red"))
    record.model = "m"
    team.finish(record, 70)
    assert team.sample("team_requests_total", team="red", outcome="ok") == 1
    assert team.sample("team_tokens_total", team="red") == 70
    for holder in ({"team": "red"}, {"key": "alice"}):
        (kind,) = holder
        assert team.sample(f"{kind}_cost_total", **holder, currency="EUR") == 70


async def test_a_background_response_counts_against_its_keys_team(tmp_path: Path) -> None:
    """It ran without its client: the request that began it was admitted in its place."""
    team = Team(tmp_path)
    team.path.write_text('{"team": "red", "tokens_per_day": 100}\n')
    key = team.add("alice", team="red")
    began = await team.admit(key)
    team.finish(began, 0)
    ran = Record("id", 0.0, 0.0, key="alice", team="red", engaged=True)
    team.finish(ran, 100)
    assert str(await team.refusal(key)).startswith("The 100 tokens a day of the team 'red'")


async def test_a_request_that_is_refused_uses_nothing_of_the_rate(team: Team) -> None:
    key = team.add("alice", rate=1, tokens_per_day=100)
    record = await team.admit(key)
    team.finish(record, 100)
    for _ in range(5):
        assert (await team.refusal(key)).code == "insufficient_quota"
    team.clocks.seconds = DAY / 2
    await team.admit(key)


async def test_what_a_key_uses_is_counted_by_its_name(team: Team) -> None:
    key = team.add("alice")
    team.finish(await team.admit(key), 70)
    team.finish(await team.admit(key), 5, "failed")
    team.door.count(Record("id", 0.0, 0.0, outcome="refused"))  # came without a key
    assert team.sample("key_requests_total", key="alice", outcome="ok") == 1
    assert team.sample("key_requests_total", key="alice", outcome="failed") == 1
    assert team.sample("key_tokens_total", key="alice") == 75


async def test_names_that_are_labels_are_bounded(team: Team) -> None:
    for number in range(MAX_KEYS + 2):
        team.door.count(Record("id", 0.0, 0.0, key=f"k{number}", outcome="ok"))
    assert team.sample("key_requests_total", key="k0", outcome="ok") == 1
    assert team.sample("key_requests_total", key=f"k{MAX_KEYS}", outcome="ok") is None
    assert team.sample("key_requests_total", key="other", outcome="ok") == 2


class TestBudgetsAreShared:
    async def test_what_was_used_outlives_the_process(self, team: Team, tmp_path: Path) -> None:
        key = team.add("alice", tokens_per_day=100)
        team.finish(await team.admit(key), 100)
        await team.door.aclose()
        later = Team(tmp_path)
        assert (await later.refusal(key)).code == "insufficient_quota"
        later.clocks.seconds = DAY / 2
        await later.admit(key)

    async def test_processes_count_together(self, team: Team, tmp_path: Path) -> None:
        key, other = team.add("alice", tokens_per_day=100), Team(tmp_path)
        for seconds, each in enumerate((team, other, team, other)):
            team.clocks.seconds = other.clocks.seconds = 2 * seconds
            each.finish(await each.admit(key), 25)
        for each in (team, other):
            each.clocks.seconds = 20
            await each.door.aclose()
        for each in (team, other):
            assert (await each.refusal(key)).code == "insufficient_quota"

    async def test_what_a_revoked_key_used_counts_for_the_one_that_replaces_it(
        self, team: Team
    ) -> None:
        key = team.add("alice", tokens_per_day=100)
        team.finish(await team.admit(key), 100)
        revoke_key(team.path, "alice")
        team.clocks.seconds = 1
        await team.refusal(key)
        key = team.add("alice", tokens_per_day=100)
        team.clocks.seconds = 2
        assert (await team.refusal(key)).code == "insufficient_quota"

    async def test_where_nothing_can_be_written_a_process_counts_for_itself(
        self, team: Team, caplog: pytest.LogCaptureFixture
    ) -> None:
        key = team.add("alice", tokens_per_day=100)
        team.path.with_name("keys.spent").mkdir()
        for seconds in range(4):
            team.clocks.seconds = seconds
            team.finish(await team.admit(key), 25)
        team.clocks.seconds = 5
        assert (await team.refusal(key)).code == "insufficient_quota"
        (error,) = [entry for entry in caplog.records if entry.levelname == "WARNING"]
        assert "keys.spent: unreachable (Is a directory); each process" in error.getMessage()

    async def test_without_budgets_nothing_is_written(self, team: Team) -> None:
        key = team.add("alice")
        team.finish(await team.admit(key), 100)
        await team.door.aclose()
        assert [entry.name for entry in team.path.parent.iterdir()] == ["keys"]


class TestTheFileChanges:
    async def test_a_key_that_was_added_is_good_within_a_second(self, team: Team) -> None:
        await team.admit(team.add("alice"))
        key = team.add("bob")
        assert (await team.refusal(key)).code == "invalid_api_key"
        team.clocks.seconds = 1
        assert (await team.admit(key)).key == "bob"

    async def test_a_key_that_was_revoked_is_good_for_no_request_more(self, team: Team) -> None:
        key = team.add("alice")
        await team.admit(key)
        revoke_key(team.path, "alice")
        team.clocks.seconds = 3600
        both = await asyncio.gather(team.refusal(key), team.refusal(key))
        assert [refusal.status for refusal in both] == [401, 401]

    async def test_what_was_used_stays_used(self, team: Team) -> None:
        key = team.add("alice", tokens_per_day=10)
        team.finish(await team.admit(key), 10)
        team.add("bob")
        team.clocks.seconds = 1
        assert (await team.refusal(key)).code == "insufficient_quota"

    async def test_what_was_used_belongs_to_the_name(self, team: Team) -> None:
        key = team.add("alice", rate=1)
        await team.admit(key)
        revoke_key(team.path, "alice")
        team.clocks.seconds = 1
        assert (await team.refusal(key)).code == "invalid_api_key"
        key = team.add("alice", rate=1)
        team.clocks.seconds = 2
        assert (await team.refusal(key)).code == "rate_limit_exceeded"
        team.clocks.seconds = 60
        assert (await team.admit(key)).key == "alice"

    async def test_a_broken_file_leaves_the_keys_in_force(
        self, team: Team, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "abridge")
        key, good = team.add("alice"), team.path.read_text()
        await team.admit(key)
        for seconds, text in ((1, "{"), (2, "{"), (3, f"{good}{{}}\n")):
            team.path.write_text(text)
            team.clocks.seconds = seconds
            await team.admit(key)
        team.path.unlink()
        team.clocks.seconds = 4
        await team.admit(key)
        errors = [entry.getMessage() for entry in caplog.records if entry.levelname == "ERROR"]
        for message, words in zip(
            errors,
            ("line 1: is not a JSON", "line 2: name: is missing", "cannot be read"),
            strict=True,
        ):
            assert words in message
            assert message.endswith("the keys that were read before stay in force")
        team.path.write_text("")
        team.clocks.seconds = 5
        await team.refusal(key)

    async def test_the_file_is_looked_at_once_a_second(
        self, team: Team, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[int] = []

        def look(path: Path, stamp: object) -> None:
            looks.append(threading.get_ident())

        key = team.add("alice")
        await team.admit(key)
        monkeypatch.setattr(door, "_load_changed", look)
        for seconds in (0.1, 0.5, 0.9):
            team.clocks.seconds = seconds
            await team.admit(key)
        assert looks == []
        team.clocks.seconds = 1
        await asyncio.gather(*(team.admit(key) for _ in range(9)))
        assert len(looks) == 1
        assert threading.get_ident() not in looks

    async def test_a_slow_disk_is_not_waited_for(
        self, team: Team, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = threading.Event()

        def look(path: Path, stamp: object) -> Loaded | None:
            answers.wait(60)
            return None

        key = team.add("alice")
        await team.admit(key)
        monkeypatch.setattr(door, "_load_changed", look)
        monkeypatch.setattr(door, "PATIENCE_SECONDS", 0.01)
        for seconds in (1, 2, 3):
            team.clocks.seconds = seconds
            assert (await soon(team.admit(key))).key == "alice"
        answers.set()
        await until(lambda: team.door._look is None)

    async def test_a_client_that_leaves_does_not_end_the_look(self, team: Team) -> None:
        await team.admit(team.add("alice"))
        key = team.add("bob")
        team.clocks.seconds = 1
        leaving = asyncio.create_task(team.admit(key))
        await asyncio.sleep(0)
        leaving.cancel()
        await team.admit(key)
        with pytest.raises(asyncio.CancelledError):
            await leaving


class TestSettings:
    def settings(self, team: Team, **tables: Any) -> Settings:
        upstream = {"base_url": "http://127.0.0.1:9/v1"}
        merged = {"upstreams": [upstream], "server": {"keys_file": str(team.path)}, **tables}
        return Settings.model_validate(merged)

    def test_without_a_file_nobody_needs_a_key(self) -> None:
        assert open_keys(Settings()) is None

    def test_a_file_that_cannot_be_read_is_an_error(self, team: Team) -> None:
        team.path.write_text("{}")
        with pytest.raises(
            SettingsError, match=r"server\.keys_file: .*keys: line 1: name: is miss"
        ):
            open_keys(self.settings(team), team.registry)

    def test_a_key_is_not_forwarded_by_default(self, team: Team) -> None:
        (route,) = self.settings(team).routes
        assert not route.client_credential

    def test_settings_that_would_forward_it_are_an_error(self, team: Team) -> None:
        upstreams = [{"base_url": "http://127.0.0.1:9/v1", "credential": "client"}]
        with pytest.raises(SettingsError, match=r"would send it the keys of server\.keys_file"):
            open_keys(self.settings(team, upstreams=upstreams), team.registry)

    def test_another_rule_for_tenants_is_an_error(self, team: Team) -> None:
        with pytest.raises(SettingsError, match=r"history\.tenant: must be left out"):
            open_keys(self.settings(team, history={"tenant": "header:x-user"}), team.registry)
