"""Fields that Abridge adds to requests, and that some upstreams refuse.

A client must not pay for a field that it did not send. So a request that is refused for one is sent
again without it, and later ones do not have it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable

from starlette.types import ASGIApp

from abridge.apis.json import as_object, parse_object, string
from abridge.apis.opaque_state import refuses_state
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import FieldRefused, StateRefused
from abridge.lazy_re import lazy_compile
from abridge.pipeline.findings import FOUND_TTL, Findings
from abridge.pipeline.trial import Trial

ADDABLE = ("stream_options", "reasoning_effort", "reasoning", "thinking", "verbosity")
"""The fields that Abridge may add: to ask for usage, or for reasoning, or by its settings."""

ADDABLE_TO_TRANSLATION = ADDABLE[:1]
"""Those whose content a translated request does not owe to its client."""

REFUSED, TAKEN = "refused", "taken"

REFUSALS = (400, 422)
"""The statuses of a request that is refused for what is in it."""

_REFUSING = (
    "unknown|unrecogni[sz]ed|unsupported|unexpected|extra|not (?:permitted|supported|allowed)"
)

_FIELD_REFUSALS = {
    name: lazy_compile(
        rf"(?:{_REFUSING})[^{{}}]{{0,100}}\b{name}\b|\b{name}\b[^{{}}]{{0,100}}(?:{_REFUSING})",
        re.IGNORECASE,
    )
    for name in ADDABLE
}
"""How servers say that they do not take a field."""

_log = logging.getLogger(__name__)


class RefusedFields(Findings):
    """Whether upstreams take the fields that Abridge adds, by model and field."""

    def note_accepted(
        self,
        upstream: UpstreamSettings,
        model: str,
        taken: Collection[str],
        refused: Collection[str],
    ) -> None:
        """Note what a request had that was accepted, and what it had before it was sent again. Only
        that shows what was refused: an error may repeat what a client sent."""
        for field in taken:
            self.keep(upstream, model, field, TAKEN)
        for field in refused:
            self.keep(upstream, model, field, REFUSED)
            self.tell(upstream)
            _log.warning(
                "upstream %s: refused %s, which Abridge had added; left out for %g seconds",
                *(upstream.name, field, FOUND_TTL),
            )

    def those(
        self, value: str, upstream: UpstreamSettings, model: str, fields: Iterable[str] = ADDABLE
    ) -> frozenset[str]:
        """Return which of these fields a model is known to have `REFUSED` or `TAKEN`."""
        found = {field: self.find(upstream, model, field) for field in fields}
        return frozenset(field for field, each in found.items() if each and each.value == value)


def request_trial(
    app: ASGIApp, added: Collection[str], note_accepted: Callable[[], None], *, has_state: bool
) -> Trial:
    """Return an application that may refuse the reasoning state in a request, or one of the fields
    that Abridge `added`: then it raises StateRefused or FieldRefused, and nothing was sent to the
    client. `note_accepted` is called if it does not refuse."""

    def must_withhold(status: int) -> bool:
        if status < min(REFUSALS):
            note_accepted()
        return status in REFUSALS

    def check(_: int, body: bytes) -> None:
        if has_state and refuses_state(body):
            raise StateRefused
        if field := refused_field(body, added):
            raise FieldRefused(field)

    return Trial(app, must_withhold, check)


def refused_field(body: bytes, fields: Collection[str]) -> str | None:
    """Return which of these fields an error body says that upstream does not take."""
    param = string(as_object((parse_object(body) or {}).get("error")).get("param"))
    text = body.decode(errors="replace")
    for field in fields:
        if param.partition(".")[0] == field or _FIELD_REFUSALS[field].search(text):
            return field
    return None
