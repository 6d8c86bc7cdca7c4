"""Read the file of keys, and change it: for `abridge keys`, and as it changes while Abridge serves.

A change replaces the whole file at once, so that nobody reads half of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple, TypeAlias

from abridge.config.client_key import ClientKey, KeyTable, Limits, key_lines, parse_keys
from abridge.config.settings import Settings
from abridge.config.warnings import covers
from abridge.errors import SettingsError

KEYS_FILE_SETTING = "server.keys_file"

MAX_FILE_BYTES = 4 << 20

OPEN_MODES = stat.S_IWGRP | stat.S_IRWXO
"""Permissions by which others than its owner could change the file, or everybody could read it."""

Stamp: TypeAlias = tuple[int, int, int, int]
"""What differs in a file that has changed: device, inode, size, time of the change."""


class Loaded(NamedTuple):
    """The keys, and the state of the file in which they were there."""

    keys: KeyTable
    stamp: Stamp


def load_keys(path: Path) -> Loaded:
    """Read a file. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(f"{path}: is larger than {MAX_FILE_BYTES} bytes")
    try:
        return Loaded(parse_keys(data.decode()), _stamp(status))
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def current_stamp(path: Path) -> Stamp:
    """Return the state of a file. Raises SettingsError."""
    try:
        return _stamp(path.stat())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def keys_notes(settings: Settings) -> Iterator[str]:
    """Yield what is worth a warning about the file, one line each. Raises SettingsError."""
    if settings.server.keys_file is None:
        return
    path = Path(settings.server.keys_file)
    keys = load_keys(path).keys.values()
    yield from _limit_notes(settings, path, keys)
    if not keys:
        yield (
            f"{KEYS_FILE_SETTING}: {path} has no keys yet, so every request is refused; "
            "`abridge keys add NAME` adds one"
        )
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & OPEN_MODES:
        yield (
            f"{KEYS_FILE_SETTING}: {path} has mode {mode:04o}: who can write it can give out keys, "
            "and who can read it knows their names and limits; `chmod 600` it"
        )


def _limit_notes(settings: Settings, path: Path, keys: Collection[ClientKey]) -> Iterator[str]:
    holders: list[Limits] = [*keys, *(key.team_limits for key in keys if key.team_limits)]
    is_shared = any(route.history.is_shared for route in settings.routes)
    is_limited = any(holder.is_limited for holder in holders)
    if is_limited and not is_shared and not os.access(path.resolve().parent, os.W_OK):
        yield (
            f"{KEYS_FILE_SETTING}: the folder of {path} cannot be written, so each process counts "
            "limits for itself, and anew when it starts"
        )
    for team in sorted({key.team for key in keys if key.team and key.team_limits is None}):
        yield (
            f"{KEYS_FILE_SETTING}: {path} has a team without limits, {team!r}; a line such as "
            f'{{"team": "{team}", "tokens_per_day": 1000000}} sets some'
        )
    if unpriced := sorted(_unpriced_models(settings, keys)):
        yield (
            f"{KEYS_FILE_SETTING}: {path} has budgets of money, and what a model without a price "
            f"uses costs nothing: add {', '.join(map(repr, unpriced))} to prices.models"
        )


def _unpriced_models(settings: Settings, keys: Collection[ClientKey]) -> set[str]:
    """Return globs of the models that keys with a budget of money may use, and of the summarizer's,
    for which there may be no price."""
    served = {glob for route in settings.routes for glob in route.upstream.models}
    used: set[str] = set()
    for key in keys:
        if key.counts_money or (key.team_limits is not None and key.team_limits.counts_money):
            used.update(key.models if key.chooses_models else served)
    if used and settings.summarizer.model is not None:
        used.add(settings.summarizer.model)
    prices = [row.glob for row in settings.prices.models]
    return {glob for glob in used if not any(covers(price, glob) for price in prices)}


def add_key(path: Path, key: ClientKey) -> None:
    """Add a key to a file, which is made if there is none. Raises SettingsError."""
    path = path.resolve()  # not a link to it
    with _changing(path):
        text = _read_text(path) if path.exists() else ""
        if any(known.name == key.name for known in parse_keys(text).values()):
            raise SettingsError(f"{path}: there is a key named {key.name!r} already")
        if text and not text.endswith("\n"):
            text += "\n"
        replace_file(path, f"{text}{key.as_line()}\n")


def revoke_key(path: Path, name: str) -> None:
    """Remove the key of this name from a file; all else in it stays as it is. Raises
    SettingsError."""
    path = path.resolve()  # not a link to it
    with _changing(path):
        text = _read_text(path)
        lines, removed = text.split("\n"), []
        for number, line in key_lines(text):
            if any(key.name == name for key in parse_keys(line).values()):
                removed.append(number - 1)
        if not removed:
            raise SettingsError(f"{path}: there is no key named {name!r}")
        replace_file(path, "\n".join(line for at, line in enumerate(lines) if at not in removed))


def _read_text(path: Path) -> str:
    """Return a file's text. Raises SettingsError if it cannot be read or has an error."""
    load_keys(path)
    return path.read_bytes().decode()


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Have other changes of the file wait, where the system can do that. Raises SettingsError."""
    try:
        with locked(path.parent):
            yield
    except OSError as error:
        raise SettingsError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. Raises OSError."""
    try:
        import fcntl  # noqa: PLC0415 -- POSIX's
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, text: str, *, flush: bool = True) -> None:
    """Replace a file at once, by one with the same owner and mode. Raises OSError.

    With `flush`, the new one outlives a crash of the system.
    """
    before = path.stat() if path.exists() else None
    file = NamedTemporaryFile(dir=path.parent, prefix=".keys-", delete=False)  # noqa: SIM115
    temporary = Path(file.name)
    try:
        with file:
            file.write(text.encode())
            file.flush()
            if flush:
                os.fsync(file.fileno())
            if before is not None:
                _keep_owner(file.fileno(), before)
        temporary.replace(path)  # Windows moves no file that is open
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
