"""Load settings, and what they name: secrets and optional packages.

Settings come from defaults, then a TOML file, then the environment, then flags; the last wins. What
is wrong in any of them is said at once, one line each, with where it was set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from abridge.config.addresses import find_own_addresses
from abridge.config.settings import Settings
from abridge.config.sources import (
    Source,
    read_environment,
    read_file,
    read_flags,
    spell_key,
    stray_variables,
)
from abridge.errors import SettingsError

if TYPE_CHECKING:
    from abridge.config.mistakes import Mistake


_VARIABLE_NAME = re.compile(r"[A-Z]{1,12}|[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
"""What is surely the name of a variable, and no key that was put in its place."""


class SettingSources:
    """A file, the environment and flags, from which settings are loaded.

    `flags` are nested like the file, and `flag_names` are the flags' own by the keys that they set.
    """

    def __init__(
        self,
        file: Path | None = None,
        environ: Mapping[str, str] = os.environ,
        flags: Mapping[str, Any] | None = None,
        flag_names: Mapping[str, str] | None = None,
    ) -> None:
        self._sources = (
            read_file(file) if file else Source(),
            read_environment(environ),
            read_flags(flags or {}, flag_names or {}),
        )
        self._strays = stray_variables(environ)
        self._merged = reduce(_merge, (source.values for source in self._sources))

    def load(self) -> Settings:
        """Raises SettingsError, with a line for each mistake."""
        lines = [line for source in self._sources for line in source.mistakes]
        lines += self._explain_strays()
        try:
            settings = Settings.model_validate(self._merged)
        except ValidationError as error:
            from abridge.config.mistakes import find_all_mistakes  # noqa: PLC0415 -- seldom needed

            found = find_all_mistakes(error, Settings, self._merged)
            if lines:  # part of the settings is missing, which may be why others contradict
                found = [mistake for mistake in found if not mistake.is_contradiction]
            lines += [self._say(mistake) for mistake in found]
        if lines:
            raise SettingsError("\n".join(lines))
        return settings

    def load_served(self) -> Settings:
        """Load settings for `abridge serve`, which needs upstreams other than itself. Raises
        SettingsError."""
        settings = self.load()
        if not settings.upstreams:
            raise SettingsError(
                "upstreams: none is set; set at least one, with --upstream "
                "http://127.0.0.1:8000/v1, or in the file as [[upstreams]] with a base_url"
            )
        if own := list(find_own_addresses(settings)):
            raise SettingsError(self.locate("\n".join(own)))
        return settings

    def _explain_strays(self) -> list[str]:
        if not self._strays:
            return []
        from abridge.config.mistakes import explain_strays  # noqa: PLC0415 -- seldom needed

        return list(explain_strays(self._strays, Settings, self._merged))

    def locate(self, message: str) -> str:
        """Return the lines of an error with where the key is set with which each begins."""
        from abridge.config.mistakes import Mistake, split_key  # noqa: PLC0415 -- seldom needed

        return "\n".join(self._say(Mistake(*split_key(line))) for line in message.splitlines())

    def _say(self, mistake: Mistake) -> str:
        path, name = mistake.path, ""
        if path[:1] == ("upstreams",) and len(path) > 1 and path[2:] != ("name",):
            name = _upstream_name(self._merged, path[1])
        for end in range(len(path), 0, -1):
            for source in reversed(self._sources):
                if source.sets(path[:end]):
                    return mistake.tell(source.describe(path, name), source.spell)
        return mistake.tell(f"{spell_key(path)}{name}")


@dataclass(slots=True, frozen=True)
class SettingsOrigin:
    """Where settings are read, and read again once they have changed: see `SettingSources`."""

    file: Path | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    flag_names: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> SettingSources:
        return SettingSources(self.file, flags=self.flags, flag_names=self.flag_names)


def load_settings(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Merge all sources into settings; `flags` is nested like the file. Raises SettingsError."""
    return SettingSources(file, environ, flags).load()


def read_secret(variable: str, key: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the secret in an environment variable, or in the file that `<variable>_FILE` names.

    `key` is the setting that names the variable. Raises SettingsError, which never contains the
    secret.
    """
    if value := environ.get(variable, "").strip():
        return _check_secret(value, f"{key}: the variable")
    if path := environ.get(f"{variable}_FILE"):
        file = f"{key}: the file that {variable}_FILE names"
        try:
            return _check_secret(Path(path).read_text("utf-8").strip(), file)
        except OSError as error:
            raise SettingsError(f"{file} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SettingsError(f"{file} is not text") from None
    if _VARIABLE_NAME.fullmatch(variable):
        raise SettingsError(
            f"{key}: neither the variable {variable}, which it names, nor {variable}_FILE, which "
            "would name a file with its value, is set"
        )
    raise SettingsError(
        f"{key}: must name an environment variable that holds the key, such as MODEL_API_KEY, and "
        "must not be the key itself"
    )


def check_secrets(settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
    """Raise SettingsError, with a line for each API key that the settings name and none has."""
    named = {f"upstreams[{i}]": row.api_key_env for i, row in enumerate(settings.upstreams)}
    named |= {"summarizer": settings.summarizer.api_key_env, "review": settings.review.api_key_env}
    lines = []
    for table, variable in named.items():
        try:
            if variable is not None:
                read_secret(variable, f"{table}.api_key_env", environ)
        except SettingsError as error:
            lines.append(str(error))
    if lines:
        raise SettingsError("\n".join(lines))


@contextmanager
def require_extra(extra: str, key: str) -> Iterator[None]:
    """Raise SettingsError if an import within the block fails.

    `extra` is the extra that installs the package, `key` the setting that requires it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise SettingsError(
            f"{key}: needs the package {package}; pip install '.[{extra}]' in Abridge's repository"
        ) from None


def _check_secret(value: str, source: str) -> str:
    """Return a value that is safe in a header. Raises SettingsError if it is empty or not."""
    if not value:
        raise SettingsError(f"{source} is empty")
    if not all("!" <= character <= "~" for character in value):
        raise SettingsError(
            f"{source} must hold only a key: visible ASCII characters, no spaces or line breaks"
        )
    return value


def _merge(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        current = merged.get(key)
        if isinstance(value, dict) and isinstance(current, dict):
            merged[key] = _merge(current, value)
        else:
            merged[key] = value
    return merged


def _upstream_name(merged: dict[str, Any], index: str | int) -> str:
    """Return the name of an upstream as the messages have it, nothing if it has none, or an address
    in its place."""
    try:
        name = merged["upstreams"][index]["name"]
    except (IndexError, KeyError, TypeError):
        return ""
    return "" if "://" in str(name) else f" (of {name!r:.80})"
