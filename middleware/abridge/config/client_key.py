"""The keys of `server.keys_file`, and their teams: names, limits, and a digest of each key itself.

A key is 256 random bits. So its SHA-256 can be stored as it is: salts and slow hashes protect
passwords, which can be guessed, and nobody can guess a key. For the same reason a key is found by
its digest in a table. How long that takes may tell something of the digests there, but nobody can
choose a key by its digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import translate
from functools import cached_property
from hashlib import sha256
from secrets import token_urlsafe
from typing import Annotated, TypeAlias

from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    PrivateAttr,
    ValidationError,
)
from starlette.types import Scope

from abridge.apis.json import dumps, parse_object
from abridge.errors import SettingsError

KEY_PREFIX = "abr-"

KEY_BYTES = 32

MAX_KEYS = 1000
"""Keys in a file: each has counters in memory and in the metrics."""

MAX_GLOBS = 100
"""Globs of the models of one key."""

MAX_MODEL_CHARS = 1000
"""Characters of a model's name that is compared with them."""

CLIENT_KEY = "abridge.client_key"
"""The scope key of the `ClientKey` with which a request came."""

LEDGER = "abridge.ledger"
"""The scope key that says whether a ledger is kept of what requests use."""

NAME_REASON = "must be at most 64 letters, digits and . _ @ -, and begin with a letter or digit"

PATTERN_REASONS = {
    "name": NAME_REASON,
    "team": NAME_REASON,
    "sha256": "must be 64 hexadecimal digits in lower case",
}
"""What is wrong with a field that does not have its form."""

Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]

Amount: TypeAlias = PositiveInt | None

Money: TypeAlias = Annotated[float, Field(gt=0, le=1e9)] | None

Glob: TypeAlias = Annotated[str, Field(min_length=1, max_length=256)]


class Limits(BaseModel):
    """What may be used, by a key or by all keys of a team. None is no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    requests_per_minute: Amount = Field(
        None, validation_alias=AliasChoices("requests_per_minute", "rate")
    )
    tokens_per_minute: Amount = None
    tokens_per_day: Amount = None
    tokens_per_month: Amount = None
    money_per_day: Money = None  # in the currency of the prices
    money_per_month: Money = None
    streams: Amount = None  # requests at once

    @property
    def is_limited(self) -> bool:
        return any(getattr(self, name) is not None for name in Limits.model_fields)

    @property
    def has_budget(self) -> bool:
        """True if tokens or money count."""
        return any(getattr(self, name) is not None for name in BUDGETS)

    @property
    def counts_money(self) -> bool:
        return self.money_per_day is not None or self.money_per_month is not None

    def as_line(self) -> str:
        fields = self.model_dump(mode="json", exclude_defaults=True)
        return dumps(dict(sorted(fields.items(), key=lambda field: field[0] != "name"))).decode()


BUDGETS = tuple(name for name in Limits.model_fields if name.startswith(("tokens", "money")))


class Team(Limits):
    """A line of the file with the limits that the keys of a team share."""

    team: Name


class ClientKey(Limits):
    """A line of the file with a key."""

    name: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # of the key
    team: Name | None = None
    models: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=MAX_GLOBS)] = ("*",)
    expires: AwareDatetime | None = None

    _team_limits: Team | None = PrivateAttr(default=None)

    @property
    def team_limits(self) -> Team | None:
        """The limits of its team; None if it has no team, or one without limits."""
        return self._team_limits

    def join(self, team: Team | None) -> None:
        """Take over the limits of its team."""
        self._team_limits = team

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(translate, self.models)))

    @cached_property
    def chooses_models(self) -> bool:
        """True if it may be used for some models only."""
        return "*" not in self.models

    def allows(self, model: str) -> bool:
        """Return whether it may be used for a model, by the name that clients say."""
        return len(model) <= MAX_MODEL_CHARS and self._pattern.match(model) is not None

    def has_expired(self, now: float) -> bool:
        """Return whether it has expired at a time in seconds since the epoch."""
        return self.expires is not None and now >= self.expires.timestamp()


KeyTable: TypeAlias = Mapping[str, ClientKey]
"""Keys by their digests."""


def client_key(scope: Scope) -> ClientKey | None:
    """Return the key with which a request came; None where clients need none."""
    return scope.get(CLIENT_KEY)


def key_name(scope: Scope) -> str | None:
    """Return the name of that key: the tenant to whom what the request leaves belongs."""
    key = client_key(scope)
    return key.name if key is not None else None


def must_count(scope: Scope) -> bool:
    """Return whether the tokens of a request are counted: against a budget, or in the ledger."""
    return scope.get(LEDGER, False) or has_budget(scope)


def has_budget(scope: Scope) -> bool:
    """Return whether the tokens of a request count against a budget, of its key or its team."""
    key = client_key(scope)
    if key is None:
        return False
    return key.has_budget or (key.team_limits is not None and key.team_limits.has_budget)


def new_key() -> str:
    return KEY_PREFIX + token_urlsafe(KEY_BYTES)


def digest(key: str) -> str:
    return sha256(key.encode(errors="surrogatepass")).hexdigest()


def parse_keys(text: str) -> KeyTable:
    """Parse the text of a file. Raises SettingsError, which names the line."""
    keys: dict[str, ClientKey] = {}
    names: set[str] = set()
    teams: dict[str, Team] = {}
    for number, line in key_lines(text):
        entry = _parse_line(number, line)
        if isinstance(entry, Team):
            if entry.team in teams:
                raise SettingsError(f"line {number}: there are two teams named {entry.team!r}")
            teams[entry.team] = entry
            continue
        if entry.name in names:
            raise SettingsError(f"line {number}: there are two keys named {entry.name!r}")
        if entry.sha256 in keys:
            raise SettingsError(f"line {number}: sha256: is the same as that of another key")
        names.add(entry.name)
        keys[entry.sha256] = entry
    for kind, found in (("keys", keys), ("teams", teams)):
        if len(found) > MAX_KEYS:
            raise SettingsError(f"there are {len(found)} {kind}; at most {MAX_KEYS} are allowed")
    for key in keys.values():
        key.join(teams.get(key.team or ""))
    return keys


def key_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with keys, each with its number. Others are blank, or comments after `#`."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _parse_line(number: int, line: str) -> ClientKey | Team:
    try:
        if _is_team(line):
            return Team.model_validate_json(line)
        return ClientKey.model_validate_json(line)
    except ValidationError as error:
        raise SettingsError(f"line {number}: {explain_key(error)}") from None


def _is_team(line: str) -> bool:
    """Return whether a line has the limits of a team: it names one, and no key."""
    entry = parse_object(line.encode()) or {}
    return "team" in entry and not entry.keys() & {"name", "sha256"}


def explain_key(error: ValidationError) -> str:
    """Describe the first error in a key: the field and what is wrong, never the value."""
    first = error.errors()[0]
    field, kind = ".".join(map(str, first["loc"])), first["type"]
    if kind == "string_pattern_mismatch":
        return f"{field}: {PATTERN_REASONS[field]}"
    if kind == "json_invalid":
        return "is not a JSON object"
    if kind == "extra_forbidden":
        return f"{field}: there is no such field"
    reason = {
        "missing": "is missing",
        "timezone_aware": "must have a time zone, such as 2027-01-31T00:00:00Z",
    }.get(kind, first["msg"])
    return f"{field}: {reason}" if field else reason
