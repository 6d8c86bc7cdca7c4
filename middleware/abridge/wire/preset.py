"""Defaults from the settings for what a client left open: effort and verbosity.

Their values are those of OpenAI's API description (`ReasoningEffort`, `Verbosity`). It depends on
the model which of them it accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from abridge.wire.codec import Json
from abridge.wire.profile import ApiName, Profile, asks_to_think

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity: TypeAlias = Literal["low", "medium", "high"]


@dataclass(slots=True, frozen=True)
class Preset:
    """Defaults of an upstream, for all models that go to it."""

    effort: Effort | None = None
    verbosity: Verbosity | None = None

    def fill(self, body: Json, api: ApiName, profile: Profile) -> tuple[str, ...]:
        """Set in a request's body what its client left open; return the names of what was set.

        `profile` is upstream's if the body goes there untranslated.
        """
        fields = {
            "effort": self._effort(body, api, profile),
            "verbosity": self._verbosity(body, api),
        }
        for said in fields.values():
            _lay(body, said)
        return tuple(name for name, said in fields.items() if said)

    def unsayable(self, profile: Profile) -> bool:
        """Return True if an effort is set for which the provider's chat API has no field."""
        return self.effort is not None and not profile.thinking(self.effort)

    def _effort(self, body: Json, api: ApiName, profile: Profile) -> Json:
        if self.effort is None or asks_to_think(body) is not None:
            return {}
        if api == "responses":
            return {"reasoning": {"effort": self.effort}}
        said = profile.thinking(self.effort)
        return {} if any(_says(body, way) for way in (said, profile.thinking_off)) else said

    def _verbosity(self, body: Json, api: ApiName) -> Json:
        if self.verbosity is None:
            return {}
        said: Json = {"verbosity": self.verbosity}
        said = {"text": said} if api == "responses" else said
        return {} if _says(body, said) else said


def _says(body: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return True if any of these fields is in a body, with any value."""
    for key, value in fields.items():
        said = body.get(key)
        inner = isinstance(value, Mapping) and isinstance(said, Mapping)
        if _says(said, value) if inner else said is not None:  # type: ignore[arg-type]
            return True
    return False


def _lay(body: Json, fields: Mapping[str, Any]) -> None:
    """Set fields in a body, merging nested objects."""
    for key, value in fields.items():
        if isinstance(value, Mapping):
            within = body.get(key)
            body[key] = dict(within) if isinstance(within, dict) else {}
            _lay(body[key], value)
        else:
            body[key] = value
