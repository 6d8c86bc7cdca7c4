"""Translation of a request for an upstream with another API than its client's.

The body is written anew in upstream's API, and the scope points to upstream's endpoint: to the
application it is a request like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import time

from starlette.types import Scope

from abridge.errors import RequestError
from abridge.wire.api import Api, Asked, Asking, UpstreamApi
from abridge.wire.codec import Json
from abridge.wire.credential import Header, readdressed
from abridge.wire.profile import Profile

HISTORY = frozenset({"input", "messages"})
"""Request fields that no answer repeats, and that may be large."""


@dataclass(slots=True, frozen=True)
class Crossing:
    """A translated request."""

    body: Json
    asked: Asked  # what the answer repeats of the request
    dropped: tuple[str, ...]  # fields upstream's API cannot carry, not essential


def cross(
    body: Json, api: Api, upstream: UpstreamApi, asking: Asking, *, lenient: bool
) -> Crossing:
    """Translate a request body to upstream's API.

    Raises RequestError for an essential field that upstream's API cannot carry; if `lenient`, such
    fields are dropped, too.
    """
    question = api.question(body)
    written = upstream.write(question, asking)
    for unfit in written.unfit:
        if unfit.matters and not lenient:
            raise RequestError(unfit.message, param=unfit.param, code="unsupported_parameter")
    kept = {key: value for key, value in body.items() if key not in HISTORY}
    return Crossing(
        written.body,
        Asked(kept, written.tools, time),
        tuple(unfit.param for unfit in written.unfit),
    )


def scope_at(scope: Scope, api: Api, upstream: UpstreamApi, profile: Profile) -> Scope:
    """Return the client's scope with upstream's endpoint and headers."""
    path = str(scope["path"]).rstrip("/")
    root = str(scope.get("root_path", "")).rstrip("/")
    base = path.removesuffix(api.path) if path.endswith(api.path) else f"{root}/v1"
    at = {**scope, "path": base + upstream.path}
    at["headers"] = _headers(scope["headers"], upstream, profile)
    at.pop("raw_path", None)
    return at


def _headers(headers: list[Header], upstream: UpstreamApi, profile: Profile) -> list[Header]:
    given = {name for name, _ in headers}
    own = [(name.encode(), value.encode()) for name, value in upstream.headers.items()]
    added = [header for header in own if header[0] not in given]
    return [*readdressed(headers, profile, upstream), *added]
