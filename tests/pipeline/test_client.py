"""Test how the client's end of a request learns that it left, and tells the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Message

from abridge.http.asgi import call_on_leave
from abridge.pipeline.client import AppReceive, Client, Clock


class Server:
    """A `receive` that calls when its client leaves, as that of Abridge's own server does."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] | None = None

    async def __call__(self) -> Message:
        raise AssertionError("nobody needs to wait for it")

    def call_on_leave(self, callback: Callable[[], object]) -> bool:
        self.callback = callback
        return True


async def _send(message: Message) -> None:
    pass


class TestListening:
    async def test_a_server_that_calls_needs_no_task(self) -> None:
        server = Server()
        client = Client(server, _send, Clock())
        async with asyncio.TaskGroup() as tasks:
            client.listen(tasks)
            assert server.callback is not None
            server.callback()
        assert client.departed
        assert await client.receive() == {"type": "http.disconnect"}

    async def test_it_is_called_no_more_once_detached(self) -> None:
        server = Server()
        client = Client(server, _send, Clock())
        async with asyncio.TaskGroup() as tasks:
            client.listen(tasks)
            client.detach()
        assert server.callback is not None
        server.callback()
        assert not client.departed

    async def test_of_another_server_a_task_receives(self) -> None:
        messages = asyncio.Queue[Message]()
        client = Client(messages.get, _send, Clock())
        async with asyncio.TaskGroup() as tasks:
            client.listen(tasks)
            messages.put_nowait({"type": "http.disconnect"})
        assert client.departed

    async def test_a_client_that_has_all_does_not_leave_early(self) -> None:
        server = Server()
        client = Client(server, _send, Clock())
        async with asyncio.TaskGroup() as tasks:
            client.listen(tasks)
            client.finished = True
            assert server.callback is not None
            server.callback()
        assert not client.departed


class TestAppReceive:
    async def test_the_request_comes_first_and_once(self) -> None:
        receive = AppReceive()
        receive.body = b"{}"
        receive.end()
        assert await receive() == {"type": "http.request", "body": b"{}", "more_body": False}
        assert await receive() == {"type": "http.disconnect"}

    async def test_the_application_is_called_once_when_the_client_leaves(self) -> None:
        receive, calls = AppReceive(), list[str]()
        assert call_on_leave(receive, lambda: calls.append("left"))
        assert calls == []
        receive.leave()
        receive.leave()
        assert calls == ["left"]

    async def test_or_at_once_where_it_has_left_already(self) -> None:
        receive, calls = AppReceive(), list[str]()
        receive.leave()
        call_on_leave(receive, lambda: calls.append("left"))
        assert calls == ["left"]

    async def test_a_complete_response_is_no_departure(self) -> None:
        receive, calls = AppReceive(), list[str]()
        call_on_leave(receive, lambda: calls.append("left"))
        receive.end()
        assert calls == []
        assert await receive() == {"type": "http.disconnect"}
