"""Test how a response is parsed, in whatever pieces it comes."""

from __future__ import annotations

import tracemalloc

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.http.response import MAX_BETWEEN, ResponseParser

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"content-length: 2\r\n\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def parse(*reads: bytes, has_no_body: bool = False) -> ResponseParser:
    parser = ResponseParser(has_no_body=has_no_body)
    for data in reads:
        parser.feed(data)
    return parser


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (LENGTH + b"ab", b"ab"),
        (CHUNKED + b"1\r\na\r\n1;x=y\r\nb\r\n0\r\nx-trailer: c\r\n\r\n", b"ab"),
        (CHUNKED + b"2 \r\nab\r\n0\r\n\r\n", b"ab"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + LENGTH + b"ab", b"ab"),
        (OK.replace(b"\r", b"") + b"content-length: 2\n\nab", b"ab"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_what_is_complete_is_told_so_in_any_pieces(data: bytes, body: bytes) -> None:
    for reads in ([data], [data[at : at + 1] for at in range(len(data))]):
        parser = parse(*reads)
        assert parser.is_complete
        assert parser.failure is None
        assert parser.is_reusable
        assert parser.take() == body


def test_headers_are_told_as_they_came_without_the_space_after_them() -> None:
    parser = parse(OK + b"X-A:  b c \t\r\nx-a: \xe9\r\ncontent-length: 0\r\n\r\n")
    assert parser.head is not None
    assert parser.head.headers == [
        (b"X-A", b"b c"),
        (b"x-a", b"\xe9"),
        (b"content-length", b"0"),
    ]


@pytest.mark.parametrize(
    ("data", "has_no_body"),
    [
        (LENGTH + b"abc", False),
        (LENGTH + b"ab" + LENGTH, False),
        (LENGTH + b"a", True),
        (OK + b"connection: close\r\ncontent-length: 2\r\n\r\nab", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab", False),
    ],
)
def test_more_than_was_asked_for_or_a_close_leaves_nothing_for_the_next(
    data: bytes, *, has_no_body: bool
) -> None:
    parser = parse(data, has_no_body=has_no_body)
    assert parser.is_complete
    assert parser.failure is None
    assert not parser.is_reusable
    assert parser.take() == (b"" if has_no_body else b"ab")


FILLER = b"x: y\r\n" * 1000


@pytest.mark.parametrize(
    "parts",
    [
        [OK, *[FILLER] * 30],
        [OK + b"x: ", *[b"y" * 4096] * 40],
        [b"HTTP/1.1 103 Early Hints\r\n\r\n" * 200] * 30,
        [CHUNKED + b"2\r\nab\r\n0\r\n", *[FILLER] * 30],
        [CHUNKED + b"2;", *[b"y" * 4096] * 40],
    ],
    ids=["headers", "one header", "interim", "trailers", "chunk extension"],
)
def test_what_is_no_body_has_a_limit(parts: list[bytes]) -> None:
    assert sum(map(len, parts)) > MAX_BETWEEN
    parser = parse(*parts)
    assert isinstance(parser.failure, httpx.RemoteProtocolError)
    assert not parser.is_complete


def test_a_long_body_has_none() -> None:
    parser = parse(CHUNKED)
    for _ in range(MAX_BETWEEN // 100):
        parser.feed(b"1\r\na\r\n" * 100)
        parser.take()
    assert parser.failure is None


def test_what_is_unread_takes_its_own_size_however_small_its_chunks_are() -> None:
    parser, chunks = parse(CHUNKED), b"2\r\nab\r\n" * 20_000
    tracemalloc.start()
    parser.feed(chunks)
    unread, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert unread < 60_000
    assert parser.take() == b"ab" * 20_000


@pytest.mark.parametrize(
    ("data", "error", "is_complete"),
    [
        (OK + b"\r\nab", None, True),
        (OK + b"transfer-encoding: gzip\r\n\r\nab", None, True),
        (OK + b"\r\nab", ConnectionResetError(104, "reset"), False),
        (LENGTH + b"a", None, False),
        (CHUNKED + b"2\r\nab\r\n", None, False),
        (OK, None, False),
    ],
)
def test_an_end_of_the_connection_is_one_of_the_body_only_if_nothing_else_is(
    data: bytes, error: Exception | None, *, is_complete: bool
) -> None:
    parser = parse(data)
    parser.end(error)
    assert parser.is_complete is is_complete
    assert (parser.failure is None) is is_complete
    assert not parser.is_reusable


@pytest.mark.parametrize("is_cut", [False, True])
def test_an_end_after_an_error_is_not_one_of_the_body(*, is_cut: bool) -> None:
    parser = parse(OK + b"\r\nab")
    if is_cut:
        parser.fail(httpx.ReadError("cut here"))
    parser.end(None)
    assert parser.is_complete is not is_cut
    assert str(parser.failure) == ("cut here" if is_cut else "None")


def test_what_comes_after_an_error_is_not_taken_for_the_first_reason() -> None:
    parser = parse(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")
    parser.end(None)
    assert "switched protocols" in str(parser.failure)


@given(st.lists(st.binary(max_size=30), max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_any_chunks_in_any_reads_give_the_body(texts: list[bytes], cuts: list[int]) -> None:
    chunks = (b"%x\r\n%b\r\n" % (len(text), text) for text in [*filter(None, texts), b""])
    data = CHUNKED + b"".join(chunks)
    ends = [*sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parser = parse(*(data[start:end] for start, end in zip([0, *ends], ends, strict=False)))
    assert parser.is_complete
    assert parser.take() == b"".join(texts)
