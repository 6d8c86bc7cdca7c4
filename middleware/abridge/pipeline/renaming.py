"""Rename models: clients' names to upstream's in a request, and back in its answer.

The answer is changed before anything else reads it, as upstream would have sent it under the
client's name, so that it makes no difference whether Abridge engages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.json import string
from abridge.apis.model_names import AnsweredNames, ModelRenames
from abridge.apis.sse import begins_stream
from abridge.config.settings import ROUTE, Route
from abridge.core.conversation import Json
from abridge.http.asgi import (
    BODY_HEADERS,
    EVENT_STREAM,
    content_encoding,
    drop_headers,
    media_type,
    scope_for_body,
    scope_of_read_answer,
    without_trailers,
)
from abridge.pipeline.body import Room
from abridge.work import Work

UNTYPED = (b"application/json", b"text/plain", b"")
"""Types with which some servers send streams as well."""


def rename_models(body: Json, renames: ModelRenames) -> dict[str, str]:
    """Give the models that a request names upstream's names: `model`, and OpenRouter's fallbacks in
    `models`. Return clients' names by upstream's, of those that differ."""
    renamed: dict[str, str] = {}

    def rename(name: object) -> object:
        if not isinstance(name, str) or not name:
            return name
        target = renames.to_upstream(name)
        if target != name:
            renamed.setdefault(target, name)
        return target

    if string(body.get("model")):
        body["model"] = rename(body["model"])
    if isinstance(body.get("models"), list):
        body["models"] = [rename(name) for name in body["models"]]
    return renamed


def rename_unread(
    app: ASGIApp, scope: Scope, body: bytes, model: str, *, limit: int, room: Room
) -> tuple[ASGIApp, Scope, bytes]:
    """Return the application, scope and body for a request that is passed on unread but for its
    model: with upstream's name of that, and with the client's in the answer."""
    route: Route = scope[ROUTE]
    name = route.renames.to_upstream(model)
    if name == model:
        return app, scope, body
    body = AnsweredNames({model: name}).replace_in_text(body)
    scope = scope_of_read_answer(scope_for_body(scope, body))
    return RenamingApp(app, {name: model}, limit, room), scope, body


class RenamingApp:
    """Calls an application, and puts clients' names in the place of upstream's in its answer.

    `names` are clients' names by upstream's. An event or a body of more than `limit` bytes passes
    as it is, and so does one for which there is no `room`, and one that is encoded.
    """

    def __init__(
        self, app: ASGIApp, names: Mapping[str, str], limit: int, room: Room | None = None
    ) -> None:
        self._app = app
        self._names = AnsweredNames(names)
        self._limit = limit
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rewriter: _Rewriter | None = None

        async def send_renamed(message: Message) -> None:
            nonlocal rewriter
            if message["type"] == "http.response.start":
                start = without_trailers(message)
                rewriter = self._choose_rewriter(start)
                if rewriter is not None:
                    message = {**start, "headers": drop_headers(start["headers"], BODY_HEADERS)}
                await send(message)
            elif message["type"] == "http.response.body" and rewriter is not None:
                more = message.get("more_body", False)
                body = await rewriter.feed(message.get("body", b""), last=not more)
                if body or not more:
                    await send({**message, "body": body})
            else:
                await send(message)

        await self._app(scope, receive, send_renamed)

    def _choose_rewriter(self, start: Message) -> _Rewriter | None:
        headers = start["headers"]
        if not 200 <= start["status"] < 300 or content_encoding(headers):
            return None
        content_type = media_type(headers)
        is_stream = content_type == EVENT_STREAM
        if not (is_stream or content_type in UNTYPED or content_type.endswith(b"+json")):
            return None
        return _Rewriter(self._names, self._fits, is_stream=is_stream or None)

    def _fits(self, size: int) -> bool:
        """Return whether so many bytes may wait."""
        return size <= self._limit and (self._room is None or self._room.holds(size))


class _Rewriter:
    """Rewrites a body piece by piece. Of a stream of events, a line waits for its end; any other
    body is one text, all of which waits. `is_stream` is None if its first bytes are to tell."""

    def __init__(
        self, names: AnsweredNames, fits: Callable[[int], bool], *, is_stream: bool | None
    ) -> None:
        self._names = names
        self._fits = fits
        self._is_stream = is_stream
        self._waiting = bytearray()
        self._passes = False  # what follows, since some of the text has

    async def feed(self, data: bytes, *, last: bool) -> bytes:
        """Take more of a body; return what of it can be sent."""
        if self._passes:
            return data
        before = len(self._waiting)
        self._waiting += data
        if self._is_stream is None:
            self._is_stream, before = begins_stream(self._waiting), 0
        fits = self._fits(len(self._waiting))
        end = len(self._waiting) if last or not fits else self._last_line_end(before)
        taken = bytes(self._waiting[:end])
        del self._waiting[:end]
        if not fits:
            self._passes = not self._is_stream
            return taken
        is_lines = self._is_stream
        rename = self._names.replace_in_lines if is_lines else self._names.replace_in_text
        return await Work.on(taken).run(rename, taken) if taken else b""

    def _last_line_end(self, start: int) -> int:
        """Return the end of the last line of a stream, looked for from `start` on; 0 if there is
        none."""
        if not self._is_stream:
            return 0
        return 1 + max(self._waiting.rfind(newline, start) for newline in (b"\n", b"\r"))
