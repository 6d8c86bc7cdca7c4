"""The trial of a request that is sent again in another way if its answer is a certain error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.opaque_state import refuses_state
from abridge.errors import StateRefused
from abridge.http.asgi import Inflater, can_inflate, get_header, receive_until

MAX_ERROR_BYTES = 64 * 1024
"""Bytes of an error body that are read."""


class Trial:
    """Call an application, and withhold an answer until its error body was checked.

    `must_withhold` chooses answers by their status. `check` is called with the status and the body
    of one; it raises AttemptFailed where the request is to be sent again, and then nothing was sent
    to the client. Else the answer is passed on.
    """

    def __init__(
        self,
        app: ASGIApp,
        must_withhold: Callable[[int], bool],
        check: Callable[[int, bytes], None],
    ) -> None:
        self._app = app
        self._must_withhold = must_withhold
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        withheld: list[Message] = []
        ended = asyncio.Event()  # set when the last message was withheld

        async def send_or_withhold(message: Message) -> None:
            if message["type"] == "http.response.start" and self._must_withhold(message["status"]):
                withheld.append(message)
            elif not withheld:
                await send(message)
            else:
                if _body_size(withheld) <= MAX_ERROR_BYTES:
                    withheld.append(message)
                if not message.get("more_body", False):
                    ended.set()

        await self._app(scope, receive_until(ended, receive), send_or_withhold)
        if withheld:
            self._check(withheld[0]["status"], _error_body(withheld))
        for message in withheld:
            await send(message)


class StateTrial(Trial):
    """Call an application that may not take the reasoning state in a request.

    Raises StateRefused if it does not; then nothing was sent to the client.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, BAD_REQUEST.__eq__, _check_state)


BAD_REQUEST = 400


def _check_state(_: int, body: bytes) -> None:
    if refuses_state(body):
        raise StateRefused


def _error_body(messages: list[Message]) -> bytes:
    """Return the body, decoded; nothing if it cannot be."""
    body = b"".join(message.get("body", b"") for message in messages[1:])
    encoding = get_header(messages[0].get("headers") or (), b"content-encoding")
    if not encoding:
        return body
    try:
        return Inflater(encoding, MAX_ERROR_BYTES).feed(body) if can_inflate(encoding) else b""
    except ValueError:
        return b""


def _body_size(messages: list[Message]) -> int:
    return sum(len(message.get("body", b"")) for message in messages)
