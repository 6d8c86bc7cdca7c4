"""Defaults from the settings for what a client left open: effort and verbosity.

Their values are those of OpenAI's API description (`ReasoningEffort`, `Verbosity`). It depends on
the model which of them it accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from abridge.apis.api import Api
from abridge.apis.params import set_nested
from abridge.core.conversation import Json
from abridge.providers.profile import Profile, asks_to_think

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

Verbosity: TypeAlias = Literal["low", "medium", "high"]


@dataclass(slots=True, frozen=True)
class RequestDefaults:
    """Defaults of an upstream, for all models that go to it."""

    effort: Effort | None = None
    verbosity: Verbosity | None = None

    def fill(self, body: Json, api: Api, profile: Profile) -> tuple[str, ...]:
        """Set in a request's body what its client left open; return the names of what was set.

        `profile` is upstream's if the body goes there untranslated.
        """
        fields = {
            "effort": self._effort_fields(body, api, profile),
            "verbosity": self._verbosity_fields(body, api),
        }
        for fields_set in fields.values():
            _merge(body, fields_set)
        return tuple(name for name, fields_set in fields.items() if fields_set)

    def has_unsupported_effort(self, profile: Profile) -> bool:
        """Return whether an effort is set for which the provider's chat API has no field."""
        return self.effort is not None and not profile.thinking_fields(self.effort)

    def _effort_fields(self, body: Json, api: Api, profile: Profile) -> Json:
        if self.effort is None or asks_to_think(body) is not None:
            return {}
        if api.effort_field:
            fields = api.other_efforts.get(self.effort) or _nested(api.effort_field, self.effort)
            return {} if _has_any(body, _nested(api.effort_field, self.effort)) else fields
        fields = profile.thinking_fields(self.effort)
        return (
            {} if any(_has_any(body, other) for other in (fields, profile.thinking_off)) else fields
        )

    def _verbosity_fields(self, body: Json, api: Api) -> Json:
        if self.verbosity is None or not api.verbosity_field:
            return {}
        fields = _nested(api.verbosity_field, self.verbosity)
        return {} if _has_any(body, fields) else fields


def _nested(field: str, value: str) -> Json:
    """Return the fields of a body that set a dotted one."""
    fields: Json = {}
    set_nested(fields, field, value)
    return fields


def _has_any(body: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return whether any of these fields is in a body, with any value."""
    for key, value in fields.items():
        present = body.get(key)
        if isinstance(value, Mapping) and isinstance(present, Mapping):
            if _has_any(present, value):
                return True
        elif present is not None:
            return True
    return False


def _merge(body: Json, fields: Mapping[str, Any]) -> None:
    """Set fields in a body, merging nested objects."""
    for key, value in fields.items():
        if isinstance(value, Mapping):
            present = body.get(key)
            body[key] = dict(present) if isinstance(present, dict) else {}
            _merge(body[key], value)
        else:
            body[key] = value
