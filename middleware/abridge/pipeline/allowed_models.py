"""Refuse requests for models for which a key may not be used.

What counts is the name that the client says. A request of which the model cannot be read is
refused as well, if its key is for some models only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.types import Scope

from abridge.apis.json import as_object, parse_object, string
from abridge.apis.paths import OpenPaths, all_read_alike
from abridge.config.client_key import CLIENT_KEY, ClientKey, has_budget
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.http.asgi import request_paths

MODEL = "model"

ALTERNATIVES = ("models", "fallbacks")
"""Fields in which OpenRouter and LiteLLM take other models to ask where one cannot answer."""

MAX_ALTERNATIVES = 100
"""Models in one of those fields: each is compared with the key's globs."""

NAMING_SEGMENTS = frozenset({"deployments", "engines"})
"""Segments of a path after which Azure and LiteLLM take a model, whatever the body says."""

WITHOUT_MODEL = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""Methods of requests that ask no model."""


def must_read(scope: Scope) -> bool:
    """Return whether a request and its answer must be read for the limits of its key."""
    key = scope.get(CLIENT_KEY)
    return key is not None and (key.chooses_models or has_budget(scope))


def chooses_models(scope: Scope) -> bool:
    """Return whether a request came with a key that is for some models only."""
    return _choosing_key(scope) is not None


def _choosing_key(scope: Scope) -> ClientKey | None:
    key: ClientKey | None = scope.get(CLIENT_KEY)
    return key if key is not None and key.chooses_models else None


def check_path(scope: Scope, model: str | None, *, is_stored_response: bool) -> None:
    """Check a request whose body is not read; `model` is in its path. Raises RequestError."""
    key = _choosing_key(scope)
    if key is None or (model is None and scope["method"] in WITHOUT_MODEL):
        return
    is_clear = model is not None or is_stored_response
    if not (is_clear and all_read_alike(*request_paths(scope))):
        raise _unreadable(key)
    if model is not None:
        _check_model(key, model)


def check_endpoint(scope: Scope, endpoint: str, open_paths: OpenPaths) -> None:
    """Check that all servers read a path as that of an API's endpoint, and none finds another model
    in it than in the body. Raises RequestError."""
    key = _choosing_key(scope)
    if key is not None and not open_paths.lead_to(endpoint, *request_paths(scope)):
        raise _unreadable(key)


def check_body(scope: Scope, body: Json) -> None:
    """Check every model that a request's body names. Raises RequestError."""
    key = _choosing_key(scope)
    if key is not None:
        for name in _named_models(key, body):
            _check_model(key, name)


def check_unread(scope: Scope, body: bytes | None) -> None:
    """Check a request of which nothing else is read. Raises RequestError."""
    key = _choosing_key(scope)
    if key is None or (not body and scope["method"] in WITHOUT_MODEL):
        return
    if any(NAMING_SEGMENTS.intersection(path.split("/")) for path in request_paths(scope)):
        raise _unreadable(key)
    check_body(scope, (parse_object(body) if body is not None else None) or {})


def _named_models(key: ClientKey, body: Json) -> Iterator[str]:
    """Yield the names of models in a body. Raises RequestError if there is no telling which one
    upstream would take, such as where it ignores the case of fields."""
    if not string(body.get(MODEL)) or any(name != MODEL and name.lower() == MODEL for name in body):
        raise _unreadable(key)
    yield string(body[MODEL])
    for field in ALTERNATIVES:
        value: Any = body.get(field)
        entries = value if isinstance(value, list) else [value] if value else []
        if len(entries) > MAX_ALTERNATIVES:
            raise _unreadable(key)
        for entry in entries:
            yield string(as_object(entry).get(MODEL, entry))


def _check_model(key: ClientKey, model: str) -> None:
    if not key.allows(model):
        raise RequestError(
            f"The API key {key.name!r} does not allow the model '{model:.256}'.",
            status=403,
            param=MODEL,
            code="model_not_allowed",
        )


def _unreadable(key: ClientKey) -> RequestError:
    return RequestError(
        f"The API key {key.name!r} allows only some models, and the model of this request cannot "
        "be read.",
        status=403,
        param=MODEL,
        code="model_not_allowed",
    )
