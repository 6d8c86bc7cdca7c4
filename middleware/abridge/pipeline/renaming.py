"""Rename models: clients' names to upstream's in a request, and back in its answer.

The answer is changed before anything else reads it, as upstream would have sent it under the
client's name, so that it makes no difference whether Abridge engages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.json import string
from abridge.apis.model_names import AnsweredNames, ModelRenames
from abridge.apis.sse import begins_stream
from abridge.config.settings import ROUTE, Route
from abridge.core.conversation import Json
from abridge.http.asgi import (
    BODY_HEADERS,
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
        if content_type == b"text/event-stream":
            return _Lines(self._names, self._fits)
        if content_type in UNTYPED or content_type.endswith(b"+json"):
            return _Untyped(self._names, self._fits)
        return None

    def _fits(self, size: int) -> bool:
        """Return whether so many bytes may wait."""
        return size <= self._limit and (self._room is None or self._room.holds(size))


class _Rewriter(Protocol):
    async def feed(self, data: bytes, *, last: bool) -> bytes:
        """Take more of a body; return what of it can be sent."""


class _Lines:
    """The lines of a stream of events: an incomplete one waits for its end."""

    def __init__(self, names: AnsweredNames, fits: Callable[[int], bool]) -> None:
        self._names = names
        self._fits = fits
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    async def feed(self, data: bytes, *, last: bool) -> bytes:
        end = len(data) if last else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        is_too_long = not self._fits(self._waiting_bytes + len(data))
        if not (end or last or is_too_long):
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            return b""
        lines = b"".join([*self._waiting, data if is_too_long else data[:end]])
        rest = b"" if is_too_long else data[end:]
        self._waiting, self._waiting_bytes = [rest], len(rest)
        if is_too_long:
            return lines
        return await Work.on(lines).run(self._names.replace_in_lines, lines)


class _Untyped:
    """A body whose first bytes tell whether it is a stream of events or one text."""

    def __init__(self, names: AnsweredNames, fits: Callable[[int], bool]) -> None:
        self._names = names
        self._fits = fits
        self._begun = b""
        self._chosen: _Rewriter | None = None

    async def feed(self, data: bytes, *, last: bool) -> bytes:
        if self._chosen is None:
            data, self._begun = self._begun + data, b""
            is_stream = begins_stream(data)
            if is_stream is None and not last:
                self._begun = data
                return b""
            self._chosen = (_Lines if is_stream else _WholeText)(self._names, self._fits)
        return await self._chosen.feed(data, last=last)


class _WholeText:
    """One JSON text, which waits for its end."""

    def __init__(self, names: AnsweredNames, fits: Callable[[int], bool]) -> None:
        self._names = names
        self._fits = fits
        self._text = bytearray()
        self._passes = False

    async def feed(self, data: bytes, *, last: bool) -> bytes:
        if self._passes:
            return data
        self._text += data
        self._passes = not self._fits(len(self._text))
        if not (last or self._passes):
            return b""
        text, self._text = bytes(self._text), bytearray()
        return text if self._passes else await Work.on(text).run(self._names.replace_in_text, text)
