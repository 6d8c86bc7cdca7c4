"""`abridge keys`: add, list and revoke the keys of `server.keys_file`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from abridge.config.client_key import ClientKey, Limits, digest, explain_key, new_key
from abridge.config.loading import load_settings
from abridge.errors import SettingsError
from abridge.sidecar.cli.options import (
    Command,
    InvalidInput,
    Overview,
    file_option,
    parse_time,
    text_columns,
    with_options,
)
from abridge.sidecar.client_keys.file import add_key, load_keys, revoke_key

with_file_options = with_options(
    file_option("--file", "The keys file.  [server.keys_file]"),
    file_option("--config", "The settings file; without --file, its server.keys_file is used."),
)

LIMIT_TEXTS = {
    "requests_per_minute": "Requests a minute.",
    "tokens_per_minute": "Tokens a minute.",
    "tokens_per_day": "Tokens a day, which begins at midnight UTC.",
    "tokens_per_month": "Tokens a month.",
    "money_per_day": "Money a day, in the currency of the prices.",
    "money_per_month": "Money a month.",
    "streams": "Requests at once.",
}


def _limit_option(name: str, text: str) -> Callable[[Command], Command]:
    kind = click.FloatRange if name.startswith("money") else click.IntRange
    flags = [name, f"--{name.replace('_', '-')}"]
    if name == "requests_per_minute":
        flags.append("--rate")
    least = kind(min=0, min_open=True)
    return click.option(*flags, type=least, metavar="N", help=f"{text}  [no limit]")


@click.group(cls=Overview)
def keys() -> None:
    """Add, list and revoke keys for clients.

    `abridge serve` requires one of these keys from clients if server.keys_file is set. It notices
    a changed file within a second, at the next request.
    """


@keys.command()
@click.argument("name")
@click.option(
    "--models",
    multiple=True,
    metavar="GLOBS",
    help="The models that it may use, such as 'gpt-oss-*,qwen3-*'.  [all]",
)
@click.option(
    "--team",
    metavar="TEAM",
    help="The team whose limits it shares, which are a line of the file.  [none]",
)
@with_options(*(_limit_option(*limit) for limit in LIMIT_TEXTS.items()))
@click.option(
    "--expires", metavar="WHEN", help="A day or time, or a number of days such as 90d.  [never]"
)
@with_file_options
def add(
    name: str,
    *,
    models: tuple[str, ...],
    team: str | None,
    expires: str | None,
    file: Path | None,
    config: Path | None,
    **limits: Any,
) -> None:
    """Make a key and print it once; only its digest is stored.

    NAME identifies it in the log and in the metrics. Remembered conversations belong to the name.
    """
    key = new_key()
    globs = tuple(glob.strip() for entry in models for glob in entry.split(","))
    try:
        made = ClientKey(
            name=name,
            sha256=digest(key),
            models=globs or ("*",),
            team=team,
            expires=_parse_expiry(expires),
            **limits,
        )
    except ValidationError as error:
        raise InvalidInput(explain_key(error)) from None
    path = _keys_file(file, config)
    add_key(path, made)
    click.echo(
        f"{name}: added to {path.absolute()}; this is the only time its key is shown", err=True
    )
    click.echo(key)


@keys.command("list")
@with_file_options
def list_keys(file: Path | None, config: Path | None) -> None:
    """List the names and limits of the keys."""
    known = load_keys(_keys_file(file, config)).keys.values()
    for line in key_table(known, datetime.now(UTC).timestamp()):
        click.echo(line)


@keys.command()
@click.argument("name")
@with_file_options
def revoke(name: str, file: Path | None, config: Path | None) -> None:
    """Revoke the key called NAME."""
    path = _keys_file(file, config)
    revoke_key(path, name)
    click.echo(f"{name}: revoked in {path.absolute()}", err=True)


def key_table(keys: Iterable[ClientKey], now: float) -> Iterator[str]:
    """Yield the lines of a table of keys, and of one of their teams."""
    known = list(keys)
    rows = [("name", "team", "limits", "expires", "models")]
    for key in known:
        expires = "never" if key.expires is None else key.expires.isoformat()
        rows.append(
            (
                key.name,
                key.team or "none",
                _limits(key),
                f"{expires} (has expired)" if key.has_expired(now) else expires,
                ", ".join(key.models),
            )
        )
    yield from text_columns(rows)
    teams = {key.team: key.team_limits for key in known if key.team is not None}
    if teams:
        yield ""
        limits = [(name, _limits(each) if each else "none") for name, each in teams.items()]
        yield from text_columns([("team", "limits"), *limits])


def _limits(limits: Limits) -> str:
    values = {name: getattr(limits, name) for name in LIMIT_TEXTS}
    said = [f"{value} {name.replace('_per_', '/')}" for name, value in values.items() if value]
    return ", ".join(said) or "none"


def _keys_file(file: Path | None, config: Path | None) -> Path:
    """Return the file that is named, or that the settings name. Raises SettingsError."""
    if file is not None:
        return file
    named = load_settings(config).server.keys_file
    if named is None:
        raise SettingsError(
            "--file: must name the keys file, or --config the settings with server.keys_file"
        )
    return Path(named)


def _parse_expiry(text: str | None) -> datetime | None:
    """Parse a day or time, or a number of days. Raises InvalidInput."""
    if text is None:
        return None
    now = datetime.now(UTC)
    if days := re.fullmatch(r"(\d{1,5})d", text):
        expires = now.replace(microsecond=0) + timedelta(days=int(days[1]))
    else:
        expires = parse_time("--expires", text, ", or a number of days such as 90d")
    if expires <= now:
        raise InvalidInput(f"--expires: got {text!r:.80}; must be in the future")
    return expires
