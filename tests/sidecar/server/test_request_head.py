"""Test which heads are refused: as data, without a connection."""

from __future__ import annotations

import pytest

from abridge.errors import RequestError
from abridge.sidecar.server.refusals import MAX_HEAD, MAX_LINE
from abridge.sidecar.server.request_head import check_head, check_size

HOST = (b"host", b"x")

HOSTS = (
    *(
        "a",
        "a.b-c.example",
        "my_service",
        "127.0.0.1",
        "[::1]",
        "[fe80::1%25eth0]",
        "%C3%A9.example",
    ),
    *("a:", "a:0", "a:80", "a:65535", "a:00080", "[::1]:8400", "a ", "a\t"),
)

ODD_HOSTS = (
    *("", " ", "a b", "a/b", "u@a", "u:p@a", "a?b", "a#b", "a\\b", "a,b;c d", "http://a", '"a"'),
    *("a:65536", "a:99999", "a:-1", "a:x", "a:80:80", ":80", "[::1", "::1", "[::1]x", "a\xff", "é"),
    *("[]", "a\x00", "a\n", "a\r\nb"),
)


def refusal_of(
    version: str = "1.1",
    method: bytes = b"POST",
    target: bytes = b"/v1",
    fields: tuple[tuple[bytes, bytes], ...] = (HOST,),
) -> RequestError | None:
    try:
        check_head(version, method, target, fields)
    except RequestError as error:
        return error
    return None


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_accepted(host: str) -> None:
    assert refusal_of(fields=((b"host", host.encode()),)) is None


@pytest.mark.parametrize("host", ODD_HOSTS)
def test_an_odd_host_is_refused(host: str) -> None:
    refusal = refusal_of(fields=((b"host", host.encode()),))
    assert refusal is not None
    assert refusal.status == 400


@pytest.mark.parametrize(("version", "refused"), [("1.1", True), ("1.0", False)])
def test_only_http_1_0_may_lack_a_host(version: str, refused: bool) -> None:  # noqa: FBT001
    assert (refusal_of(version, fields=()) is not None) == refused


@pytest.mark.parametrize("version", ["0.9", "2.0", "1.2"])
def test_another_version_is_refused(version: str) -> None:
    refusal = refusal_of(version)
    assert refusal is not None
    assert refusal.status == 505


@pytest.mark.parametrize(
    "name", [b"host", b"content-length", b"transfer-encoding"], ids=lambda name: name.decode()
)
def test_what_frames_a_request_may_not_be_repeated(name: bytes) -> None:
    value = {b"host": b"x", b"content-length": b"1", b"transfer-encoding": b"chunked"}[name]
    others = () if name == b"host" else (HOST,)
    assert refusal_of(fields=(*others, (name, value))) is None
    assert refusal_of(fields=(*others, (name, value), (name, value))) is not None


def test_other_headers_may_be_repeated() -> None:
    assert refusal_of(fields=(HOST, (b"accept", b"a"), (b"accept", b"b"))) is None


@pytest.mark.parametrize(
    "coding", [b"gzip, chunked", b"gzip", b"identity", b"chunked, chunked", b"xchunked", b""]
)
def test_a_coding_other_than_chunked_is_refused(coding: bytes) -> None:
    assert refusal_of(fields=(HOST, (b"transfer-encoding", coding))) is not None


@pytest.mark.parametrize("coding", [b"chunked", b"Chunked", b"chunked "])
def test_chunked_is_accepted_where_nothing_contradicts_it(coding: bytes) -> None:
    field = (b"transfer-encoding", coding)
    assert refusal_of(fields=(HOST, field)) is None
    assert refusal_of("1.0", fields=(HOST, field)) is not None
    assert refusal_of(fields=(HOST, field, (b"content-length", b"3"))) is not None


@pytest.mark.parametrize(
    ("method", "target", "refused"),
    [
        (b"POST", b"/", False),
        (b"POST", b"//x/y?z", False),
        (b"OPTIONS", b"*", False),
        (b"POST", b"http://X/v1", False),
        (b"POST", b"http://x/v1#y", True),
        (b"POST", b"http://x", True),
        (b"POST", b"http://y/v1", True),
        (b"POST", b"http://x:80/v1", True),
        (b"POST", b"http://u@x/v1", True),
        (b"POST", b"ftp://x/v1", True),
        (b"POST", b"*", True),
        (b"POST", b"/v1#y", True),
        (b"POST", b"v1", True),
        (b"CONNECT", b"x:443", True),
        (b"CONNECT", b"/v1", True),
        (b"CONNECT", b"http://x/v1", True),
    ],
)
def test_a_target_that_may_be_read_in_two_ways_is_refused(
    method: bytes,
    target: bytes,
    refused: bool,  # noqa: FBT001
) -> None:
    assert (refusal_of(method=method, target=target) is not None) == refused


def test_an_absolute_target_needs_a_host_to_agree_with() -> None:
    assert refusal_of("1.0", target=b"http://x/v1", fields=()) is not None


@pytest.mark.parametrize(
    ("target", "fields", "status"),
    [
        (b"/" * MAX_LINE, [], None),
        (b"/" * (MAX_LINE + 1), [], 414),
        (b"/", [(b"x", b"y" * (MAX_LINE - 1))], None),
        (b"/", [(b"x", b"y" * MAX_LINE)], 431),
        (b"/", [(b"x" * MAX_LINE, b"y")], 431),
        (b"/", [(b"x", b"y" * (MAX_LINE - 1))] * 3, None),
        (b"/", [(b"x", b"y" * (MAX_HEAD // 8 - 1))] * 8, 431),
    ],
    ids=lambda value: "" if isinstance(value, bytes | list) else str(value),
)
def test_a_line_or_a_head_that_is_too_long_is_refused(
    target: bytes, fields: list[tuple[bytes, bytes]], status: int | None
) -> None:
    found = None
    try:
        check_size(target, fields)
    except RequestError as error:
        found = error.status
    assert found == status
