"""Translation of a request for an upstream with another API than its client's.

The body is written anew in upstream's API, and the scope points to upstream's endpoint: to the
application it is a request like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import time

from starlette.types import Scope

from abridge.apis.api import Api, RequestEcho, UpstreamApi, UpstreamOptions
from abridge.apis.credentials import Header, move_bearer_key
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.providers.profile import Profile

CONVERSATION_FIELDS = frozenset({"input", "messages"})
"""Request fields that no answer repeats, and that may be large."""


@dataclass(slots=True, frozen=True)
class Translation:
    """A translated request."""

    body: Json
    echo: RequestEcho  # what the answer repeats of the request
    dropped: tuple[str, ...]  # fields upstream's API cannot carry, not essential


def translate_body(
    body: Json, api: Api, upstream: UpstreamApi, options: UpstreamOptions, *, lenient: bool
) -> Translation:
    """Translate a request body to upstream's API.

    Raises RequestError for an essential field that upstream's API cannot carry; if `lenient`, such
    fields are dropped, too.
    """
    model_request = api.read_request(body)
    translated = upstream.write_request(model_request, options)
    for unsupported in translated.unsupported:
        if unsupported.essential and not lenient:
            raise RequestError(
                unsupported.message, param=unsupported.param, code="unsupported_parameter"
            )
    repeated = {key: value for key, value in body.items() if key not in CONVERSATION_FIELDS}
    return Translation(
        translated.body,
        RequestEcho(repeated, translated.tools, time),
        tuple(unsupported.param for unsupported in translated.unsupported),
    )


def scope_for_upstream(scope: Scope, api: Api, upstream: UpstreamApi, profile: Profile) -> Scope:
    """Return the client's scope with upstream's endpoint and headers."""
    path = str(scope["path"]).rstrip("/")
    root = str(scope.get("root_path", "")).rstrip("/")
    base = path.removesuffix(api.path) if path.endswith(api.path) else f"{root}/v1"
    upstream_scope = {**scope, "path": base + upstream.path}
    upstream_scope["headers"] = _upstream_headers(scope["headers"], upstream, profile)
    upstream_scope.pop("raw_path", None)
    return upstream_scope


def _upstream_headers(
    headers: list[Header], upstream: UpstreamApi, profile: Profile
) -> list[Header]:
    present = {name for name, _ in headers}
    defaults = [(name.encode(), value.encode()) for name, value in upstream.headers.items()]
    added = [header for header in defaults if header[0] not in present]
    return [*move_bearer_key(headers, profile, upstream), *added]
