"""Test that an exchange takes pieces of a body without awaiting as it takes them by `send`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.http.asgi import find_write_at_once, send_whole
from abridge.pipeline.client import HIGH_WATER
from abridge.pipeline.refused_fields import request_trial
from abridge.work import LIGHT_BYTES
from tests.end_to_end.translation.turn import PATHS, answer
from tests.support.asgi import Call, begin, say, start
from tests.support.checker import check_chat
from tests.support.deployments import build_app
from tests.support.servers import until
from tests.support.streams import THOUGHT, chat_stream, chunk
from tests.support.summarizers import Scripted

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
RESPONSES = {"model": "m", "input": "Hi", "stream": True}

NO_PARTS = {"default": "auto", "min_chars": 100_000}
"""Abridge engages, but nothing depends on when a summarizer has its turn."""


class App:
    """Answers with these pieces: at once where the flags say so and the exchange takes them."""

    def __init__(self, pieces: list[bytes], at_once: list[bool], kind: bytes) -> None:
        self._pieces = pieces
        self._at_once = at_once
        self._kind = kind
        self.waiting: list[bytes] = []  # what was not taken at once and is being sent
        self.gate = asyncio.Event()  # set: the answer ends

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-type", self._kind)]
        before = find_write_at_once(send)
        assert before is None or not before(b"before its start")
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        write_at_once = find_write_at_once(send)
        assert write_at_once is not None
        for piece, at_once in zip(self._pieces, self._at_once, strict=True):
            if not (at_once and write_at_once(piece)):
                self.waiting.append(piece)
                await say(send, piece, more=True)
        await self.gate.wait()
        await say(send, b"")


def ask(app: App, api: str, **tables: Any) -> Call:
    outer = build_app("mounted", app, writer=Scripted(gate=asyncio.Event()), **tables)
    return begin(outer, PATHS[api], RESPONSES if api == "responses" else CHAT)


async def exchange(api: str, pieces: list[bytes], at_once: list[bool], *, stream: bool) -> bytes:
    app = App(pieces, at_once, b"text/event-stream" if stream else b"application/json")
    app.gate.set()
    return (await ask(app, api, summary=NO_PARTS).finish()).data


@given(
    st.sampled_from(["chat", "responses"]),
    st.sampled_from(["stream", "body"]),
    st.lists(st.integers(0, 3000)),
    st.data(),
)
def test_the_client_gets_what_it_gets_by_awaited_sends(
    api: str, form: str, cuts: list[int], data: st.DataObject
) -> None:
    stream = form == "stream"
    steps = answer(api, stream=stream, thought=THOUGHT).steps
    body = b"".join(step for step in steps if isinstance(step, bytes))
    cuts = sorted(cut for cut in cuts if cut < len(body))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    at_once = [data.draw(st.booleans()) for _ in pieces]
    expected = asyncio.run(exchange(api, pieces, [False] * len(pieces), stream=stream))
    assert asyncio.run(exchange(api, pieces, at_once, stream=stream)) == expected


async def test_what_is_sent_while_a_large_frame_is_read_stays_after_it() -> None:
    texts = ["a" * LIGHT_BYTES, "b", "c"]
    large, *others = (chunk({"content": text}) for text in texts)
    pieces = [chunk({"role": "assistant", "content": ""}), large[:-9], large[-9:], *others]
    data = await exchange("chat", pieces, [False, False, True, True, True], stream=True)
    assert check_chat(data).choices[0].text == "".join(texts)


async def test_nothing_is_taken_at_once_while_too_much_waits_for_a_summary() -> None:
    pieces = [*chat_stream(THOUGHT)[:-3], *[chunk({"content": "x" * 500}) for _ in range(40)]]
    app = App(pieces, [True] * len(pieces), b"text/event-stream")
    patient = {"default": "auto", "grace": 60, "first_token": 60}
    request = ask(app, "chat", summary=patient, limits={"held": 2000})
    await until(lambda: bool(app.waiting))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(app.waiting) == 1
    await request.leave()


async def test_nothing_is_taken_at_once_while_the_client_is_slow() -> None:
    piece = chunk({"content": "x" * 1000})
    pieces = [piece] * (3 * HIGH_WATER // len(piece))
    app = App(pieces, [True] * len(pieces), b"text/event-stream")
    request = ask(app, "chat", summary=NO_PARTS)
    request.gate.clear()
    await until(lambda: bool(app.waiting))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(app.waiting) == 1
    request.gate.set()
    app.gate.set()
    await request.finish()
    assert request.data.count(b"x" * 1000) == len(pieces)


async def test_a_client_that_has_left_takes_nothing_at_once() -> None:
    taken: list[bool] = []

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await start(send)
        write_at_once = find_write_at_once(send)
        assert write_at_once is not None
        taken.append(write_at_once(chunk({"role": "assistant", "content": ""})))
        while (await receive())["type"] != "http.disconnect":
            pass
        taken.append(write_at_once(chunk({"content": "Hello."})))

    outer = build_app("mounted", app, writer=Scripted(), summary=NO_PARTS)  # type: ignore[arg-type]
    request = begin(outer, PATHS["chat"], CHAT)
    await request.until(b"assistant")
    await request.leave()
    assert taken == [True, False]


async def test_a_fault_of_our_own_ends_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abridge.apis.sse.FrameDecoder.feed", _fail)
    app = App([chunk({"content": "Hello."})], [True], b"text/event-stream")
    request = ask(app, "chat", summary=NO_PARTS)
    with pytest.raises(TypeError):
        await request.finish()
    assert not request.complete


class Sink:
    """A client that takes what is written at once, and what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []

    async def send(self, message: Any) -> None:
        self.sent.append(("sent", message.get("body", b"start")))

    def write_at_once(self, body: bytes) -> bool:
        self.sent.append(("written", body))
        return True

    async def send_whole(self, _start: Any, body: bytes) -> None:
        self.sent.append(("whole", body))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, [("sent", b"start"), ("written", b"one"), ("sent", b"")]),
        (400, [("sent", b"start"), ("sent", b"one"), ("sent", b"")]),
    ],
)
async def test_a_trial_passes_pieces_on_at_once_unless_it_withholds_them(
    status: int, expected: list[tuple[str, bytes]]
) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        write_at_once = find_write_at_once(send)
        if write_at_once is None or not write_at_once(b"one"):
            await say(send, b"one", more=True)
        await say(send, b"")

    sink = Sink()
    trial = request_trial(app, (), lambda: None, has_state=True)
    await trial({}, asyncio.Event().wait, sink.send)  # type: ignore[arg-type]
    assert sink.sent == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, [("whole", b"one")]), (400, [("sent", b"start"), ("sent", b"one")])],
)
async def test_a_trial_passes_a_whole_answer_on_at_once_unless_it_withholds_it(
    status: int, expected: list[tuple[str, bytes]]
) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        start = {"type": "http.response.start", "status": status, "headers": []}
        await send_whole(send, start, b"one")

    sink = Sink()
    trial = request_trial(app, (), lambda: None, has_state=True)
    await trial({}, asyncio.Event().wait, sink.send)  # type: ignore[arg-type]
    assert sink.sent == expected


def _fail(*_: Any) -> Any:
    raise TypeError("a fault")
