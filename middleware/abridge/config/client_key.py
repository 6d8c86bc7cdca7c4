"""One key of `server.keys_file`: its name and limits, and a digest of the key itself.

A key is 256 random bits. So its SHA-256 can be stored as it is: salts and slow hashes protect
passwords, which can be guessed, and nobody can guess a key. For the same reason a key is found by
its digest in a table. How long that takes may tell something of the digests there, but nobody can
choose a key by its digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import translate
from functools import cached_property
from hashlib import sha256
from secrets import token_urlsafe
from typing import Annotated, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PositiveInt, ValidationError
from starlette.types import Scope

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

Glob: TypeAlias = Annotated[str, Field(min_length=1, max_length=256)]


class ClientKey(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # of the key
    team: Name | None = None
    models: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=MAX_GLOBS)] = ("*",)
    rate: PositiveInt | None = None  # requests a minute
    tokens_per_day: PositiveInt | None = None
    expires: AwareDatetime | None = None

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

    def as_line(self) -> str:
        return self.model_dump_json(exclude_defaults=True)


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
    """Return whether the tokens of a request count against a budget."""
    key = client_key(scope)
    return key is not None and key.tokens_per_day is not None


def new_key() -> str:
    return KEY_PREFIX + token_urlsafe(KEY_BYTES)


def digest(key: str) -> str:
    return sha256(key.encode(errors="surrogatepass")).hexdigest()


def parse_keys(text: str) -> KeyTable:
    """Parse the text of a file. Raises SettingsError, which names the line."""
    keys: dict[str, ClientKey] = {}
    names: set[str] = set()
    for number, line in key_lines(text):
        key = _parse_line(number, line)
        if key.name in names:
            raise SettingsError(f"line {number}: there are two keys named {key.name!r}")
        if key.sha256 in keys:
            raise SettingsError(f"line {number}: sha256: is the same as that of another key")
        names.add(key.name)
        keys[key.sha256] = key
    if len(keys) > MAX_KEYS:
        raise SettingsError(f"there are {len(keys)} keys; at most {MAX_KEYS} are allowed")
    return keys


def key_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with keys, each with its number. Others are blank, or comments after `#`."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _parse_line(number: int, line: str) -> ClientKey:
    try:
        return ClientKey.model_validate_json(line)
    except ValidationError as error:
        raise SettingsError(f"line {number}: {explain_key(error)}") from None


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
        "timezone_aware": "must say its time zone, such as 2027-01-31T00:00:00Z",
    }.get(kind, first["msg"])
    return f"{field}: {reason}" if field else reason


def parse_expiry(text: str, now: datetime) -> datetime:
    """Parse a day, a time, or a number of days such as `30d`. Raises ValueError."""
    if match := re.fullmatch(r"(\d{1,5})d", text):
        return (now + timedelta(days=int(match[1]))).replace(microsecond=0)
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
