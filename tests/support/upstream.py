"""A scripted upstream: an ASGI app that answers as a model and records its requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.types import Receive, Scope, Send

Step = bytes | float | asyncio.Event | Exception | Callable[[], None]
"""A step of a scripted answer: send bytes, sleep, wait for an event, raise, call."""


@dataclass
class Answer:
    """Each of `steps` is sent as one body message; an exception breaks off the answer."""

    steps: Iterable[Step] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    before: Iterable[Step] = ()

    @classmethod
    def json(cls, body: Any, status: int = 200, **headers: str) -> Answer:
        data = json.dumps(body).encode()
        return cls([data], status, {"content-type": "application/json", **headers})


@dataclass
class ReceivedRequest:
    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    raw_path: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key == name.encode()]
        return found[0].decode() if found else None


class Upstream:
    """Answers each request with the next of `answers`, then repeats the last.

    `requests` are those received; `left` counts clients that left before their answer's end;
    `running` counts the answers under way.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[ReceivedRequest] = []
        self.left = 0
        self.running = 0
        self.sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left += 1
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        self.requests.append(
            ReceivedRequest(
                scope["method"],
                scope["path"],
                scope.get("query_string", b""),
                list(scope["headers"]),
                body,
                scope.get("raw_path") or b"",
            )
        )
        answer = self.answer(self.requests[-1])
        self.running += 1
        gone = asyncio.create_task(_departure(receive))
        try:
            await self._answer(answer, send, gone)
        finally:
            self.running -= 1
            gone.cancel()
            await asyncio.wait([gone])

    async def until_stalled(self) -> None:
        """Wait until something was sent and nothing more is, as its `send` waits or all is sent."""
        before = 0
        while not before or before != self.sent:
            before = self.sent
            for _ in range(50):
                await asyncio.sleep(0)

    def answer(self, request: ReceivedRequest) -> Answer:
        """Return the answer to a request; a subclass may compute it."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def _answer(self, answer: Answer, send: Send, gone: asyncio.Task[None]) -> None:
        try:
            async for data in _play(answer.before, gone):
                assert not data, "nothing is sent before the start"
            headers = [(key.encode(), value.encode()) for key, value in answer.headers.items()]
            start = {"type": "http.response.start", "status": answer.status, "headers": headers}
            await send(start)
            async for data in _play(answer.steps, gone):
                await send({"type": "http.response.body", "body": data, "more_body": True})
                self.sent += len(data)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (_Gone, OSError):
            self.left += 1


class NamingUpstream(Upstream):
    """Names in its answers the model that was asked for, where the script has `thinker-1`."""

    def answer(self, request: ReceivedRequest) -> Answer:
        answer, asked = super().answer(request), request.json.get("model")
        return of_model(answer, asked) if isinstance(asked, str) else answer


def of_model(answer: Answer, model: str) -> Answer:
    """Return an answer with a model's name in place of `thinker-1`."""
    name = json.dumps(model).encode()
    steps = [
        step.replace(b'"thinker-1"', name) if isinstance(step, bytes) else step
        for step in answer.steps
    ]
    return replace(answer, steps=steps)


class _Gone(Exception):
    pass


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _play(steps: Iterable[Step], gone: asyncio.Task[None]) -> AsyncIterator[bytes]:
    for step in steps:
        if isinstance(step, bytes):
            yield step
        elif isinstance(step, Exception):
            raise step
        elif isinstance(step, (int, float, asyncio.Event)):
            wait = step.wait() if isinstance(step, asyncio.Event) else asyncio.sleep(step)
            waiting = asyncio.ensure_future(wait)
            try:
                await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
        else:
            step()
        if gone.done():
            raise _Gone
