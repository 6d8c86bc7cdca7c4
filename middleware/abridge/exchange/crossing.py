"""A request's way to an upstream that speaks another API than its client.

The question is written anew in upstream's words, and the scope leads to upstream's endpoint: for
the application it is a request like any other.
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
"""What no answer repeats of its request, and may be much."""


@dataclass(slots=True, frozen=True)
class Crossing:
    """A question as upstream gets it. `asked` is what its answer repeats; `dropped` are the fields
    that upstream's API cannot carry and the answer does not need."""

    body: Json
    asked: Asked
    dropped: tuple[str, ...]


def cross(
    body: Json, api: Api, upstream: UpstreamApi, asking: Asking, *, lenient: bool
) -> Crossing:
    """Write a client's request in upstream's words.

    Raises RequestError for what upstream's API cannot carry and the answer's meaning depends on;
    if `lenient`, that is dropped as well.
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
    """The scope that leads to upstream's endpoint, in place of the client's."""
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
