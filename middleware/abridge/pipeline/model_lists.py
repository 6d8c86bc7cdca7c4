"""`GET /models` and `GET /models/{id}` in the shape that the client's headers ask for.

OpenAI's clients and Anthropic's call the same path. What upstream answers in the shape of the
other's is written in the client's; what is in the client's shape already passes as it came.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.credentials import Header, move_key
from abridge.apis.gemini.api import GEMINI, as_openais
from abridge.apis.json import objects, string
from abridge.apis.messages.api import MESSAGES
from abridge.apis.paths import MODELS_PATH, model_in_path
from abridge.config.client_key import ClientKey, client_key
from abridge.config.settings import ROUTE, Settings
from abridge.core.conversation import Json
from abridge.http.asgi import decoded_path, drop_headers, get_header
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import GOOGLES
from abridge.stored_responses.rewriting import RewritingApp

UNKNOWN_TIME = "1970-01-01T00:00:00Z"
"""What Anthropic's API says where it does not know when a model was released."""

VERSION = [(key.encode(), value.encode()) for key, value in MESSAGES.upstream.headers.items()]
"""The request headers that Anthropic's API requires."""

CONDITIONAL_HEADERS = (b"if-none-match", b"if-modified-since")
"""Request headers that could lead to an answer without a body, for one in another shape."""


_PLAIN_NAME = re.compile(r"(?!\.{1,2}(/|$))[\w.:@+ -]+(/(?!\.{1,2}(/|$))[\w.:@+ -]+)*")
"""A model's name that is as many segments of a path as it has, none of them dots alone."""


def wants_anthropics_shape(headers: Iterable[Header]) -> bool:
    """Return whether a client speaks Anthropic's API: it names the API's version, or has the key in
    the header where that API has it."""
    names = {name for name, _ in headers}
    return b"anthropic-version" in names or (
        b"x-api-key" in names and b"authorization" not in names
    )


class ModelLists:
    """Calls an application, and rewrites its answers about models where they may need it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._limit = settings.limits.body
        self._may_be_anthropics = any(route.upstream.api == "messages" for route in settings.routes)
        self._may_be_googles = any(route.upstream.api in GOOGLES for route in settings.routes)
        self._only_upstream = settings.routes[0].upstream if len(settings.routes) == 1 else None

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        is_about_models = scope["method"] == "GET" and _is_about_models(scope)
        return (self._answer if is_about_models else self._app)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        anthropic = wants_anthropics_shape(scope["headers"])
        model, name = _model_names(scope)
        shape_matters = anthropic or self._may_be_anthropics or self._may_be_googles
        key = client_key(scope)
        leaves_out = key is not None and key.chooses_models
        if not (shape_matters or name != model or leaves_out):
            await self._app(scope, receive, send)
            return
        if name != model:
            scope = {**scope, "path": str(scope["path"]).rstrip("/").removesuffix(model) + name}
            scope.pop("raw_path", None)

        async def rewrite(body: Json) -> Json | None:
            listed = as_openais(body) if self._may_be_googles else body
            if key is not None and leaves_out:
                if not model and not isinstance(listed.get("data"), list):
                    return None  # a list in a shape that is not known
                listed = _only_allowed(listed, key)
            rewritten = rewrite_models(listed, anthropic=anthropic) if shape_matters else None
            if rewritten is None and listed is not body:
                rewritten = listed
            described = body if rewritten is None else rewritten
            return {**described, "id": model} if described.get("id") == name != model else rewritten

        rewriting = RewritingApp(
            self._ask, rewrite, self._limit, hide_unread=leaves_out, hides_raw=False
        )
        await rewriting(scope, receive, send)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with headers that bring an answer with a body, those without which
        an upstream that speaks Messages refuses, and the key where Gemini has it."""
        headers = drop_headers(scope["headers"], CONDITIONAL_HEADERS)
        if self._may_be_anthropics:
            headers += [header for header in VERSION if not get_header(headers, header[0])]
        if self._may_be_googles and self._only_upstream is not None:
            profile = PROFILES[self._only_upstream.profile]
            headers = move_key(headers, profile, GEMINI, MESSAGES.upstream)
        await self._app({**scope, "headers": headers}, receive, send)


def _only_allowed(body: Json, key: ClientKey) -> Json:
    """Return a list with those models alone for which a key may be used; one model as it is. Other
    lists beside it, such as the `models` of llama.cpp, are left out."""
    if not isinstance(body.get("data"), list):
        return {**body}
    models = [model for model in objects(body["data"]) if key.allows(string(model.get("id")))]
    plain = {name: value for name, value in body.items() if not isinstance(value, list | dict)}
    ends = _ends(models) if "first_id" in body else {}
    return {**plain, "data": models, **ends}


def _ends(models: list[Json]) -> Json:
    """Return the fields by which a list in Anthropic's shape names its ends."""
    ids = [model.get("id") for model in models]
    return {"first_id": ids[0], "last_id": ids[-1]} if ids else {"first_id": None, "last_id": None}


def _model_names(scope: Scope) -> tuple[str, str]:
    """Return the model that the path names, as the client says it and as upstream does. One that
    could lead to another path than that of a model keeps its name."""
    model, route = model_in_path(decoded_path(scope)) or "", scope[ROUTE]
    name = route.renames.to_upstream(model)
    return model, name if _PLAIN_NAME.fullmatch(name) else model


def _is_about_models(scope: Scope) -> bool:
    path = decoded_path(scope).rstrip("/")
    return path.endswith(MODELS_PATH) or model_in_path(path) is not None


def rewrite_models(body: Json, *, anthropic: bool) -> Json | None:
    """Return a list of models, or one model, in Anthropic's shape or OpenAI's; None if it has that
    shape already, or is neither."""
    describe = _as_anthropics if anthropic else _as_openais
    if not isinstance(body.get("data"), list):
        return None if _has_shape(body, anthropic=anthropic) else describe(body)
    models = objects(body["data"])
    has_lists_shape = "has_more" in body if anthropic else body.get("object") == "list"
    if has_lists_shape and all(_has_shape(model, anthropic=anthropic) for model in models):
        return None
    described = [
        model if _has_shape(model, anthropic=anthropic) else describe(model) for model in models
    ]
    if not anthropic:
        return {"object": "list", "data": described}
    return {"data": described, "has_more": False, **_ends(described)}


def _has_shape(model: Json, *, anthropic: bool) -> bool:
    """Return whether a model is described in a shape; what is no model has either."""
    return "id" not in model or (model.get("type") == "model") == anthropic


def _as_anthropics(model: Json) -> Json:
    name, created = string(model.get("id")), model.get("created")
    return {
        **model,
        "type": "model",
        "id": name,
        "display_name": string(model.get("display_name") or model.get("name")) or name,
        "created_at": string(model.get("created_at")) or _rfc_3339(created),
    }


def _as_openais(model: Json) -> Json:
    return {
        **model,
        "id": string(model.get("id")),
        "object": "model",
        "created": _epoch(string(model.get("created_at"))),
        "owned_by": string(model.get("owned_by")),
    }


def _rfc_3339(created: Any) -> str:
    try:
        return f"{datetime.fromtimestamp(created, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (TypeError, ValueError, OverflowError, OSError):
        return UNKNOWN_TIME


def _epoch(created_at: str) -> int:
    try:
        return int(datetime.fromisoformat(created_at).timestamp())
    except (ValueError, OverflowError):
        return 0
