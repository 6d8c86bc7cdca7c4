"""Test that no raw reasoning leaves by the way in which an answer comes over the wire.

An upstream of raw bytes answers as none should: with another type, status or encoding than it says,
with more than an answer, or with less.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from tests.end_to_end.chat_ways import ROLE, SECRET, STOP, THOUGHT
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import Call, call
from tests.support.deployments import settings_for
from tests.support.matrix import each_in_turn
from tests.support.servers import Peer, chunk, listen
from tests.support.streams import chunk as chat_chunk
from tests.support.streams import completion
from tests.support.summarizers import Scripted

WORDS = THOUGHT.encode()
BODY = json.dumps(completion({"content": "So.", "reasoning_content": THOUGHT})).encode()
DELTAS = chat_chunk({"reasoning_content": THOUGHT}) + chat_chunk({"content": "So."})
STREAM = b"".join([ROLE, DELTAS, *STOP])
JSON, EVENTS = b"application/json", b"text/event-stream"


def answer(
    body: bytes, kind: bytes | None = JSON, *headers: bytes, status: bytes = b"200 OK"
) -> bytes:
    """Return the bytes of an answer, which ends with its connection."""
    typed = [] if kind is None else [b"content-type: " + kind]
    return b"\r\n".join([b"HTTP/1.1 " + status, *typed, *headers, b"connection: close", b"", body])


def in_chunks(body: bytes, kind: bytes, *, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    head = answer(b"", kind, b"transfer-encoding: chunked", b"trailer: x-thought")
    return head + b"%x%b\r\n%b\r\n0\r\n%b\r\n" % (len(body), extension, body, trailer)


def odd_types() -> dict[str, bytes]:
    kinds = (
        *(None, b"", b"text/plain", b"application/x-ndjson", b"multipart/mixed; boundary=x"),
        *(b"application/octet-stream", b"application/json-seq", b"application/vnd.x+json"),
        *(JSON, EVENTS, b"Application/JSON; charset=utf-16", b"text/event-stream; charset=utf-16"),
    )
    bodies = {
        "a body": BODY,
        "a stream": STREAM,
        "words": WORDS,
        "UTF-16": BODY.decode().encode("utf-16"),
        "a stream in UTF-16": STREAM.decode().encode("utf-16"),
        "a BOM and a body": b"\xef\xbb\xbf" + BODY,
        "a BOM and a stream": b"\xef\xbb\xbf" + STREAM,
        "lines of JSON": BODY + b"\n" + BODY,
        "a body and words": BODY + WORDS,
        "a body without its end": BODY[:-1],
    }
    return {
        f"{name} as {kind!r}": answer(body, kind) for kind in kinds for name, body in bodies.items()
    }


def odd_statuses() -> dict[str, bytes]:
    error = json.dumps({"error": {"message": "No.", "code": THOUGHT, "failed": THOUGHT}})
    bodies = {
        "a body": (BODY, JSON),
        "a stream": (STREAM, EVENTS),
        "an error": (error.encode(), JSON),
    }
    statuses = (201, 203, 204, 205, 206, 226, 299, 300, 302, 304, 307, 400, 404, 429, 500, 529, 600)
    return {
        f"{name} with a status {status}": answer(body, kind, status=b"%d %b" % (status, WORDS))
        for status in statuses
        for name, (body, kind) in bodies.items()
    }


def odd_encodings() -> dict[str, bytes]:
    plain = {"a body": (BODY, JSON), "a stream": (STREAM, EVENTS)}
    codings = {
        "gzip": gzip.compress,
        "GZIP": gzip.compress,
        "deflate": zlib.compress,
        "identity": bytes,
        "br": bytes,
        "gzip, gzip": gzip.compress,
        "utf-8": bytes,
    }
    return {
        f"{name} {how} as {coding}": answer(data, kind, f"content-encoding: {coding}".encode())
        for coding, encode in codings.items()
        for name, (body, kind) in plain.items()
        for how, data in {
            "encoded": encode(body),
            "not encoded": body,
            "and words, encoded": encode(body) + WORDS,
            "and encoded words, encoded": encode(body) + encode(WORDS),
        }.items()
    }


def odd_bodies() -> dict[str, bytes]:
    bodies: dict[str, Any] = {
        "a list": [THOUGHT],
        "a text": THOUGHT,
        "no choices": {"content": THOUGHT},
        "choices that are null": {"choices": None, "text": THOUGHT},
        "choices that are texts": {"choices": [THOUGHT]},
        "a choice's text": {"choices": [{"index": 0, "text": THOUGHT}]},
        "a message that is a text": {"choices": [{"index": 0, "message": THOUGHT}]},
        "an error": {"error": {"message": THOUGHT, "failed_generation": THOUGHT}},
        "a detail": {"detail": THOUGHT},
        "a wrapped answer": {"data": completion({"content": THOUGHT})},
        "a list of answers": [completion({"content": THOUGHT})],
        "an answer of Ollama's": {"message": {"content": THOUGHT}, "done": True},
        "an answer of Messages": {
            "type": "message",
            "content": [{"type": "text", "text": THOUGHT}],
        },
        "a state of MiniMax's": {"base_resp": {"status_msg": THOUGHT}, "choices": None},
    }
    written = {name: json.dumps(body).encode() for name, body in bodies.items()}
    return {
        **{f"{name} as a body": answer(body) for name, body in written.items()},
        **{
            f"{name} in a stream": answer(ROLE + b"data: %b\n\n" % body, EVENTS)
            for name, body in written.items()
        },
        **{
            f"{name} between the events": answer(ROLE + body + b"\n\n", EVENTS)
            for name, body in written.items()
        },
    }


OTHERS: dict[str, bytes] = {
    "an early hint": b"HTTP/1.1 103 %b\r\nlink: <%b>\r\n\r\n" % (WORDS, WORDS) + answer(BODY),
    "an interim status": b"HTTP/1.1 102 %b\r\n\r\n" % WORDS + answer(STREAM, EVENTS),
    "another protocol": b"HTTP/1.1 101 %b\r\nupgrade: x\r\nx-a: %b\r\n\r\n" % (WORDS, WORDS),
    "HTTP/1.0": b"HTTP/1.0 200 %b\r\ncontent-type: %b\r\n\r\n%b" % (WORDS, JSON, BODY),
    "no HTTP": WORDS,
    "a head that cannot be read": b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % WORDS,
    "a trailer": in_chunks(BODY, JSON, trailer=b"x-thought: %b\r\n" % WORDS),
    "a trailer of a stream": in_chunks(STREAM, EVENTS, trailer=b"x-thought: %b\r\n" % WORDS),
    "a chunk's extension": in_chunks(STREAM, EVENTS, extension=b";x=" + WORDS),
    "more than its length": answer(BODY, JSON, b"content-length: %d" % len(BODY)) + WORDS,
    "less than its length": answer(BODY, JSON, b"content-length: %d" % (len(BODY) + 9)),
    "a cut length": answer(BODY, JSON, b"content-length: %d" % (len(BODY) - 9)),
    "a cut stream": answer(STREAM[: STREAM.index(WORDS) + len(WORDS)], EVENTS),
    "a text that is cut": answer(ROLE + chat_chunk({"content": THOUGHT}), EVENTS),
    "two encodings": answer(
        gzip.compress(BODY), JSON, b"content-encoding: identity", b"content-encoding: gzip"
    ),
    "an encoded transfer": answer(b"", JSON, b"transfer-encoding: gzip, chunked")
    + chunk(gzip.compress(BODY))
    + chunk(b""),
    "comments": answer(b": %b\n\n%b: %b\n\n%b" % (WORDS, ROLE, WORDS, b"".join(STOP)), EVENTS),
    "a first line": answer(WORDS + b"\n\n" + ROLE + b"".join(STOP), EVENTS),
    "a redirect": answer(BODY, JSON, b"location: /" + SECRET.encode(), status=b"307 " + WORDS),
    "an error's headers": answer(
        b"{}", JSON, b"x-thought: " + WORDS, b"warning: " + WORDS, status=b"500 " + WORDS
    ),
}

WIRE: dict[str, bytes] = {
    **odd_types(),
    **odd_statuses(),
    **odd_encodings(),
    **odd_bodies(),
    **OTHERS,
}


async def ask_for_all(client: str, expose: str, *, stream: bool) -> dict[str, Call]:
    """Try the answers whose turn it is with one application, on a connection each."""
    sent = {"answer": b""}

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent["answer"])

    async with listen(play) as upstream:
        settings = settings_for(
            upstreams=[{"base_url": f"{upstream.url}/v1", "api": "chat"}],
            reasoning={"expose": expose},
            summarizer={"kind": "object"},
        )
        app = create_app(settings, summarizer=Scripted("Said."), registry=CollectorRegistry())
        received = {}
        for name, sent["answer"] in each_in_turn(WIRE.items(), [*PATHS].index(client) + stream, 2):
            received[name] = await call(app, PATHS[client], request_body(client, stream=stream))
    return received


def says_it(received: Call) -> bool:
    return SECRET.encode() in received.data or SECRET in repr(received.sent)


STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@STREAMED
@pytest.mark.parametrize("client", PATHS)
async def test_no_answer_leads_out(client: str, *, stream: bool) -> None:
    received = await ask_for_all(client, "summary", stream=stream)
    assert all(one.complete for one in received.values())
    assert not [name for name, one in received.items() if says_it(one)]


@STREAMED
async def test_most_lead_out_where_nothing_is_hidden(*, stream: bool) -> None:
    received = await ask_for_all("chat", "both", stream=stream)
    assert sum(map(says_it, received.values())) > 0.7 * len(received)
