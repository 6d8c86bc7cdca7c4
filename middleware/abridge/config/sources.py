"""Where settings come from: a TOML file, the environment, flags; and where each was set.

Every key is also a variable `ABRIDGE_SECTION__KEY`, and `ABRIDGE_UPSTREAMS` is the list of
upstreams; lists and tables are written as JSON.
"""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from abridge.errors import SettingsError

KeyPath: TypeAlias = tuple[str | int, ...]
"""The way to a key: names of tables and keys, and the places in lists."""

ENV_PREFIX = "ABRIDGE_"

UPSTREAMS_VARIABLE = "ABRIDGE_UPSTREAMS"

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def spell_key(path: KeyPath) -> str:
    """Spell a key as the file and the messages do: `upstreams[0].base_url`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]


def variable_of(path: KeyPath) -> str:
    """Return the variable that sets a key; one of an upstream has none, and is spelled as it is."""
    if path[0] == "upstreams" and len(path) > 1:
        return spell_key(path)
    return ENV_PREFIX + "__".join(str(name).upper() for name in path)


@dataclass(slots=True, frozen=True)
class Source:
    """Some of the settings, nested like the file."""

    values: dict[str, Any] = field(default_factory=dict)
    find_places: Callable[[], Mapping[KeyPath, str]] = dict
    """Says where keys are set, as far as that is known: `abridge.toml:3`."""
    mistakes: tuple[str, ...] = ()  # what could not be read, one line each
    spell: Callable[[KeyPath], str] = spell_key
    places_are_keys: bool = False  # a place says which key it is

    def sets(self, path: KeyPath) -> bool:
        """Return whether it sets this key, or a list or a value in which it would be."""
        value: Any = self.values
        for part in path:
            if not isinstance(value, dict):
                return True
            if part not in value:
                return False
            value = value[part]
        return True

    def describe(self, path: KeyPath, name: str = "") -> str:
        """Return a key and where it is set, with the name of its upstream."""
        places = self.find_places()
        ends = (end for end in range(len(path), 0, -1) if path[:end] in places)
        inner = (place for key, place in places.items() if key[: len(path)] == path)
        if (end := next(ends, None)) is not None:
            place = places[path[:end]]
        elif (place := next(inner, "")) == "":
            return f"{spell_key(path)}{name}"
        if self.places_are_keys and end == len(path):
            return f"{place}{name}"
        return f"{place}: {spell_key(path)}{name}"


def read_file(path: Path) -> Source:
    try:
        text = path.read_text("utf-8-sig")
        return Source(tomllib.loads(text), lambda: _places_in(text, path))
    except OSError as error:
        return Source(mistakes=(f"{path}: cannot be read: {error.strerror}",))
    except UnicodeDecodeError:
        return Source(mistakes=(f"{path}: must be UTF-8 text, as TOML requires",))
    except tomllib.TOMLDecodeError as error:
        return Source(mistakes=(_explain_toml(path, text, str(error)),))


def _explain_toml(path: Path, text: str, message: str) -> str:
    found = _TOML_PLACE.search(message)
    line = found[1] if found and found[1] else str(text.rstrip("\n").count("\n") + 1)
    reason = _TOML_PLACE.sub("", message)
    if reason == "Invalid value":
        reason = "a value must be a number, true, false, a list, or text in quotes"
    return f"{path}:{line}: is not valid TOML: {reason}"


def _places_in(text: str, path: Path) -> dict[KeyPath, str]:
    return {key: f"{path}:{line}" for key, line in _key_lines(text).items()}


def _key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each table and key of a TOML text that is valid.

    A statement goes as far as it takes to be valid TOML by itself.
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}  # of the tables in each list so far
    table: KeyPath = ()
    statement, begin = "", 1
    for number, line in enumerate(io.StringIO(text), 1):
        statement += line
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if statement.lstrip().startswith("["):
            table = _header_path(parsed, counts)
            lines.setdefault(table, begin)
        else:
            for inner in _paths_in(parsed):
                lines.setdefault((*table, *inner), begin)
        statement, begin = "", number + 1
    return lines


def _header_path(parsed: Any, counts: dict[KeyPath, int]) -> KeyPath:
    """Return the way to the table whose header was parsed, the last one of each list."""
    path: KeyPath = ()
    while parsed:
        ((name, parsed),) = parsed.items()
        path = (*path, name)
        if isinstance(parsed, list):
            counts[path] = counts.get(path, 0) + 1
            parsed = None
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _paths_in(value: Any) -> Iterator[KeyPath]:
    """Yield the way to each value within another, outer ones first."""
    parts: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    for part, each in parts:
        yield (part,)
        yield from ((part, *rest) for rest in _paths_in(each))


def read_environment(environ: Mapping[str, str]) -> Source:
    values: dict[str, Any] = {}
    places: dict[KeyPath, str] = {}
    mistakes: list[str] = []
    for name, text in sorted(environ.items(), key=lambda item: item[0].lower()):  # outer first
        if not name.startswith(ENV_PREFIX) or not ("__" in name or name == UPSTREAMS_VARIABLE):
            continue
        path = tuple(name.removeprefix(ENV_PREFIX).lower().split("__"))
        try:
            _put(values, path, _parse_value(text))
        except SettingsError as error:
            mistakes.append(f"{name}: {error}")
        else:
            places[path] = name
    return Source(values, lambda: places, tuple(mistakes), variable_of, places_are_keys=True)


def stray_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the variables with the prefix that no source reads. A Kubernetes Service called
    `abridge` puts `ABRIDGE_PORT` and the like into every pod; such are not returned."""
    services = tuple(
        name.removesuffix("SERVICE_HOST") for name in environ if name.endswith("_SERVICE_HOST")
    )
    return [
        name
        for name, value in environ.items()
        if name.startswith(ENV_PREFIX)
        and not ("__" in name or name == UPSTREAMS_VARIABLE)
        and not (name.startswith(services) or value.startswith(("tcp://", "udp://")))
    ]


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *tables, key = path
    table = values
    for part in tables:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise SettingsError(f"another variable sets {part} to a single value")
    table[key] = value


def _parse_value(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"must be valid JSON, as a list or table requires: {error.msg} at character "
            f"{error.pos + 1}"
        ) from None


def read_flags(flags: Mapping[str, Any], names: Mapping[str, str]) -> Source:
    """Return what flags set. `names` are those of the flags, by key; one for all of a list names
    the list, too."""
    places = {
        path: names[key] for path in _paths_in(dict(flags)) if (key := spell_key(path)) in names
    }
    return Source(dict(flags), lambda: places, places_are_keys=True)
