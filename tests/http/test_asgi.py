"""Test the helpers for ASGI messages, headers and content encodings."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable

import pytest
from anyio import move_on_after
from starlette.types import Message, Receive, Scope, Send

from abridge.http.asgi import (
    SLICE,
    AppReceive,
    Inflater,
    ReceiveUntil,
    call_on_leave,
    content_encoding,
    request_paths,
    run_lifespan,
)
from abridge.waiting import Flag
from tests.support.servers import soon

EVENTS = [b"data: %d\n\n" % number for number in range(5)]
LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKINGS = pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        (b"gzip", gzip.compress),
        (b"x-gzip", gzip.compress),
        (b"deflate", zlib.compress),
        (b"deflate", raw_deflate),
    ],
)


@pytest.mark.parametrize(
    ("given", "encoding"),
    [
        ((), b""),
        ((b"identity",), b""),
        ((b"None",), b""),
        ((b" GZip ",), b"gzip"),
        ((b"gzip, identity",), b"gzip"),
        ((b"gzip", b"br"), b"gzip,br"),
    ],
)
def test_a_body_is_encoded_only_if_something_was_done_to_it(
    given: tuple[bytes, ...], encoding: bytes
) -> None:
    assert content_encoding([(b"Content-Encoding", value) for value in given]) == encoding


@pytest.mark.parametrize(
    ("root", "path", "below"),
    [
        ("", "/v1/x", "/v1/x"),
        ("/llm", "/llm/v1/x", "/v1/x"),
        ("/llm", "/llmore/v1/x", "/llmore/v1/x"),
        ("/llm", "/v1/x", "/v1/x"),
    ],
    ids=["none", "below it", "of another name", "left out by the server"],
)
@pytest.mark.parametrize("is_encoded", [False, True])
def test_a_path_is_read_below_the_mount_point(
    root: str, path: str, below: str, *, is_encoded: bool
) -> None:
    raw = path.replace("x", "%78") if is_encoded else path
    scope = {"root_path": root, "path": path, "raw_path": raw.encode()}
    assert request_paths(scope) == (below, below.replace("x", "%78") if is_encoded else below)


class TestInflater:
    @PACKINGS
    def test_a_body_in_one_piece(self, encoding: bytes, pack: Callable[[bytes], bytes]) -> None:
        body = b"".join(EVENTS) * SLICE
        assert Inflater(encoding, len(body)).feed(pack(body)) == body

    @PACKINGS
    def test_a_body_byte_by_byte(self, encoding: bytes, pack: Callable[[bytes], bytes]) -> None:
        inflater = Inflater(encoding, LIMIT)
        body = b"".join(EVENTS)
        assert b"".join(inflater.feed(bytes([byte])) for byte in pack(body)) == body

    @PACKINGS
    def test_each_event_in_a_member_of_its_own(
        self, encoding: bytes, pack: Callable[[bytes], bytes]
    ) -> None:
        inflater = Inflater(encoding, LIMIT)
        assert [inflater.feed(pack(event)) for event in EVENTS] == EVENTS

    @PACKINGS
    @pytest.mark.parametrize("size", [1, 7, LIMIT])
    def test_members_are_split_anywhere(
        self, encoding: bytes, pack: Callable[[bytes], bytes], size: int
    ) -> None:
        packed = b"".join(map(pack, EVENTS))
        inflater = Inflater(encoding, LIMIT)
        pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
        assert b"".join(map(inflater.feed, pieces)) == b"".join(EVENTS)

    def test_zeros_after_a_member_are_padding(self) -> None:
        inflater = Inflater(b"gzip", LIMIT)
        assert inflater.feed(gzip.compress(b"a") + bytes(9)) == b"a"
        assert inflater.feed(bytes(9) + gzip.compress(b"b")) == b"b"
        assert inflater.feed(bytes(9)) == b""

    @pytest.mark.parametrize(
        "data",
        [b"no gzip", gzip.compress(b"a") + b"rubbish", bytes(9)],
        ids=["no gzip", "rubbish after a member", "zeros"],
    )
    def test_anything_else_is_an_error(self, data: bytes) -> None:
        with pytest.raises(ValueError, match="while decompressing"):
            Inflater(b"gzip", LIMIT).feed(data)

    @PACKINGS
    @pytest.mark.parametrize("members", [1, 4])
    def test_the_limit_holds_for_all_members_of_a_call(
        self, encoding: bytes, pack: Callable[[bytes], bytes], members: int
    ) -> None:
        packed, size = pack(bytes(1000)) * members, 1000 * members
        assert Inflater(encoding, size).feed(packed) == bytes(size)
        with pytest.raises(ValueError, match="unpacks to more than"):
            Inflater(encoding, size - 1).feed(packed)


class TestReceiveUntil:
    async def test_messages_pass_until_the_end(self) -> None:
        messages = asyncio.Queue[Message]()
        ended = Flag()
        async with ReceiveUntil(ended, messages.get) as receive:
            messages.put_nowait({"type": "http.request", "body": b"1"})
            assert await soon(receive()) == {"type": "http.request", "body": b"1"}
            waiting = asyncio.create_task(receive())
            await asyncio.sleep(0)
            ended.set()
            assert await soon(waiting) == {"type": "http.disconnect"}
        messages.put_nowait({"type": "http.request", "body": b"2"})
        assert messages.qsize() == 1, "no receive is left that would take it"

    async def test_who_wants_to_be_called_when_the_client_leaves_is(self) -> None:
        class Client:
            on_leave: Callable[[], object] | None = None

            async def __call__(self) -> Message:
                raise AssertionError

            def call_on_leave(self, callback: Callable[[], object]) -> bool:
                self.on_leave = callback
                return True

        client, callback = Client(), list[int]
        async with ReceiveUntil(Flag(), client) as receive:
            assert call_on_leave(receive, callback)
        assert client.on_leave is callback

    async def test_who_polls_misses_no_message(self) -> None:
        messages = asyncio.Queue[Message]()
        async with ReceiveUntil(Flag(), messages.get) as receive:
            for _ in range(3):
                with move_on_after(0):
                    await receive()
            messages.put_nowait({"type": "http.request", "body": b"1"})
            await asyncio.sleep(0)
            with move_on_after(0) as polled:
                assert await receive() == {"type": "http.request", "body": b"1"}
            assert not polled.cancelled_caught


class TestRunLifespan:
    async def test_it_closes_before_the_shutdown_is_reported(self) -> None:
        """hypercorn cancels what an application does after that report, and logs the error."""
        happened: list[str] = []
        reported = asyncio.Event()

        async def app(_scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "lifespan.shutdown.complete"})

        async def receive() -> Message:
            return {"type": "lifespan.shutdown"}

        async def send(message: Message) -> None:
            happened.append(message["type"])
            reported.set()

        async def close() -> None:
            await asyncio.sleep(0.01)
            happened.append("closed")

        running = asyncio.create_task(run_lifespan(app, {"type": "lifespan"}, receive, send, close))
        await soon(reported.wait())
        running.cancel()
        await running
        assert happened == ["closed", "lifespan.shutdown.complete"]

    async def test_without_a_report_it_closes_at_the_end(self) -> None:
        closed = []

        async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
            raise ValueError("no lifespan here")

        async def receive() -> Message:
            raise AssertionError

        async def send(_: Message) -> None:
            raise AssertionError

        async def close() -> None:
            closed.append(True)

        with pytest.raises(ValueError, match="no lifespan"):
            await run_lifespan(app, {"type": "lifespan"}, receive, send, close)
        assert closed == [True]


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
