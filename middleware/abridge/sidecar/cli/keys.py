"""`abridge keys`: add, list and revoke the keys of `server.keys_file`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import ValidationError

from abridge.config.client_key import ClientKey, digest, explain_key, new_key, parse_expiry
from abridge.config.loading import load_settings
from abridge.errors import SettingsError
from abridge.sidecar.cli.options import InvalidInput, Overview
from abridge.sidecar.client_keys.file import add_key, load_keys, revoke_key


def with_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where the keys are."""
    for option in (
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The settings file; without --file, its server.keys_file is used.",
        ),
        click.option(
            "--file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The keys file.  [server.keys_file]",
        ),
    ):
        command = option(command)
    return command


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
    "--rate", type=click.IntRange(min=1), metavar="N", help="Requests a minute.  [no limit]"
)
@click.option(
    "--tokens-per-day",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens a day, from midnight UTC.  [no limit]",
)
@click.option(
    "--expires", metavar="WHEN", help="A day or time, or a number of days such as 90d.  [never]"
)
@with_file_options
def add(
    name: str,
    *,
    models: tuple[str, ...],
    rate: int | None,
    tokens_per_day: int | None,
    expires: str | None,
    file: Path | None,
    config: Path | None,
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
            rate=rate,
            tokens_per_day=tokens_per_day,
            expires=_parse_expiry(expires),
        )
        path = _keys_file(file, config)
        add_key(path, made)
    except ValidationError as error:
        raise InvalidInput(explain_key(error)) from None
    except SettingsError as error:
        raise InvalidInput(str(error)) from None
    click.echo(
        f"{name}: added to {path.absolute()}; this is the only time its key is shown", err=True
    )
    click.echo(key)


@keys.command("list")
@with_file_options
def list_keys(file: Path | None, config: Path | None) -> None:
    """List the names and limits of the keys."""
    try:
        known = load_keys(_keys_file(file, config)).keys.values()
    except SettingsError as error:
        raise InvalidInput(str(error)) from None
    for line in key_table(known, datetime.now(UTC).timestamp()):
        click.echo(line)


@keys.command()
@click.argument("name")
@with_file_options
def revoke(name: str, file: Path | None, config: Path | None) -> None:
    """Revoke the key called NAME."""
    try:
        path = _keys_file(file, config)
        revoke_key(path, name)
    except SettingsError as error:
        raise InvalidInput(str(error)) from None
    click.echo(f"{name}: revoked in {path.absolute()}", err=True)


def key_table(keys: Iterable[ClientKey], now: float) -> Iterator[str]:
    """Yield the lines of a table of keys."""
    rows = [("name", "requests a minute", "tokens a day", "expires", "models")]
    for key in keys:
        expires = "never" if key.expires is None else key.expires.isoformat()
        rows.append(
            (
                key.name,
                "no limit" if key.rate is None else str(key.rate),
                "no limit" if key.tokens_per_day is None else str(key.tokens_per_day),
                f"{expires} (has expired)" if key.has_expired(now) else expires,
                ", ".join(key.models),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


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
    """Parse a day or time, which is UTC unless it says otherwise, or days. Raises InvalidInput."""
    if text is None:
        return None
    try:
        return parse_expiry(text, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"--expires: got {text!r:.80}; must be a day such as 2027-01-31, a time such as "
            "2027-01-31T12:00:00Z, or a number of days such as 90d"
        ) from None
