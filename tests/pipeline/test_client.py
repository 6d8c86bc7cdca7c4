"""Test how the client's end of a request learns that it left, and tells the application; and how
what is written reaches the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from abridge.pipeline.client import HIGH_WATER, Client, Clock


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


class Cycle:
    """Takes what is sent, as Abridge's own server does: at once, unless its client is slow."""

    def __init__(self) -> None:
        self.body = b""
        self.sends = 0
        self.takes_more = asyncio.Event()
        self.takes_more.set()

    async def send(self, message: Message) -> None:
        await self.takes_more.wait()
        self.sends += 1
        self.body += message.get("body", b"")

    def write_at_once(self, body: bytes) -> bool:
        if self.takes_more.is_set():
            self.body += body
        return self.takes_more.is_set()


START = {"type": "http.response.start", "status": 200, "headers": []}


@asynccontextmanager
async def sending(cycle: Cycle) -> AsyncIterator[Client]:
    """Run a client's end whose response has begun, until it is closed."""
    client = Client(Server(), cycle.send, Clock())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.run())
        client.start(START)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        yield client
        cycle.takes_more.set()
        client.close()


STEPS = st.sampled_from(["write", "slow", "fast", "turn", "wait for a task"])


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


class TestWriting:
    async def test_the_server_takes_it_without_a_task(self) -> None:
        cycle = Cycle()
        async with sending(cycle) as client:
            sends = cycle.sends
            client.write(b"a")
            client.write(b"b")
            assert (cycle.body, cycle.sends) == (b"ab", sends)

    async def test_a_slow_client_gets_no_keep_alives_beside_what_waits(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Client, "KEEP_ALIVE_SECONDS", 0.01)
        cycle = Cycle()
        async with sending(cycle) as client:
            client.keep_alive = lambda: b":"
            cycle.takes_more.clear()
            client.write(b"a")
            await asyncio.sleep(0.05)
        assert cycle.body == b"a"

    async def test_what_a_slow_client_is_sent_waits(self) -> None:
        cycle = Cycle()
        async with sending(cycle) as client:
            cycle.takes_more.clear()
            client.write(bytes(HIGH_WATER))
            assert not client.is_behind
            client.write(b"a")
            assert client.is_behind
            assert cycle.body == b""
            cycle.takes_more.set()
            client.write(b"b")
            assert cycle.body == b"", "nothing overtakes what waits"
            await client.drain()
        assert cycle.body == bytes(HIGH_WATER) + b"ab"

    async def test_nothing_is_written_before_the_start_nor_after_the_end(self) -> None:
        cycle = Cycle()
        async with sending(cycle) as client:
            client.start(START)
            client.write(b"a")
            assert cycle.body == b""
        client.write(b"b")
        assert cycle.body == b"a"

    @given(st.lists(STEPS))
    def test_the_client_gets_all_in_order(self, steps: list[str]) -> None:
        async def write_all() -> None:
            cycle, expected = Cycle(), b""
            async with sending(cycle) as client:
                for number, step in enumerate(steps):
                    if step == "write":
                        expected += b"%d," % number
                        client.write(b"%d," % number)
                    elif step == "slow":
                        cycle.takes_more.clear()
                    elif step == "fast":
                        cycle.takes_more.set()
                    elif step == "turn":
                        await asyncio.sleep(0)
                    else:
                        client.send_after(asyncio.create_task(asyncio.sleep(0)))
            assert cycle.body == expected

        asyncio.run(write_all())


async def test_a_disconnect_reported_during_the_last_send_is_no_departure() -> None:
    """uvicorn's `receive` says so as soon as the response is complete, while `send` still waits."""
    complete = asyncio.Event()

    async def receive() -> Message:
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            complete.set()
            await asyncio.sleep(0.01)

    client = Client(receive, send, Clock())
    async with asyncio.TaskGroup() as tasks:
        client.listen(tasks)
        client.start(START)
        client.close()
        await client.run()
    assert client.finished
    assert not client.departed
