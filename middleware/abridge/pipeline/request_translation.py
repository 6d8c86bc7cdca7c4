"""Translation of a request for an upstream with another API than its client's.

The body is written anew in upstream's API, and the scope points to upstream's endpoint: to the
application it is a request like any other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from time import time
from urllib.parse import unquote

from starlette.types import Scope

from abridge.apis.api import Api, UpstreamApi, UpstreamOptions
from abridge.apis.credentials import Header, move_key
from abridge.apis.json import objects
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.messages import read_input_items
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile


@dataclass(slots=True, frozen=True)
class Translation:
    """A translated request."""

    body: Json
    echo: RequestEcho  # what the answer repeats of the request
    dropped: tuple[str, ...]  # fields upstream's API cannot carry, not essential
    endpoint: str  # the end of upstream's path, percent-encoded, and its query if it has one


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
    # No answer repeats the conversation, which may be large.
    repeated = {key: value for key, value in body.items() if key != api.conversation_field}
    return Translation(
        translated.body,
        RequestEcho(
            repeated,
            translated.tools,
            time,
            foreign_reasoning=tuple(model_request.foreign_reasoning),
        ),
        tuple(unsupported.param for unsupported in translated.unsupported),
        upstream.endpoint(model_request.model, stream=model_request.stream),
    )


def as_items(body: Json, api: Api) -> list[Json]:
    """Return the conversation of a request as items of Responses."""
    if api is RESPONSES:
        return objects(read_input_items(body))
    conversation = {api.conversation_field: body.get(api.conversation_field)}
    options = UpstreamOptions(PROFILES["auto"])
    written = RESPONSES.upstream.write_request(api.read_request(conversation), options)
    return objects(written.body["input"])


def from_items(items: list[Json], api: Api) -> list[Json]:
    """Return items of Responses as items or messages of an API."""
    if api is RESPONSES:
        return items
    options = UpstreamOptions(PROFILES["auto"])
    written = api.upstream.write_request(RESPONSES.read_request({"input": items}), options)
    return objects(written.body[api.conversation_field])


def scope_for_upstream(
    scope: Scope, api: Api, upstream: UpstreamApi, endpoint: str, profile: Profile
) -> Scope:
    """Return the client's scope with upstream's endpoint and headers. An endpoint's own query takes
    the place of the client's."""
    path = str(scope["path"]).rstrip("/")
    root = str(scope.get("root_path", "")).rstrip("/")
    base = path.removesuffix(api.path) if path.endswith(api.path) else f"{root}/v1"
    own_path, _, own_query = endpoint.partition("?")
    query = own_query.encode() or _without(api.upstream.query_names, scope.get("query_string", b""))
    upstream_scope = {**scope, "path": base + unquote(own_path), "query_string": query}
    upstream_scope["headers"] = _upstream_headers(scope["headers"], api, upstream, profile)
    upstream_scope.pop("raw_path", None)
    return upstream_scope


def _upstream_headers(
    headers: list[Header], api: Api, upstream: UpstreamApi, profile: Profile
) -> list[Header]:
    """Return the headers for upstream: without those that the client's API alone knows, with those
    that upstream's needs."""
    prefix = api.upstream.header_prefix.encode()
    kept = [header for header in headers if not (prefix and header[0].startswith(prefix))]
    present = {name for name, _ in kept}
    defaults = [(name.encode(), value.encode()) for name, value in upstream.headers.items()]
    added = [header for header in defaults if header[0] not in present]
    return [*move_key(kept, profile, upstream, api.upstream), *added]


def _without(names: Collection[str], query: bytes) -> bytes:
    """Return a query without the parameters of these names."""
    dropped = {name.encode() for name in names}
    parameters = query.split(b"&") if dropped else []
    kept = [parameter for parameter in parameters if parameter.partition(b"=")[0] not in dropped]
    return b"&".join(kept) if dropped else query
