"""Test splitting bytes into SSE frames, however they arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis import sse
from abridge.errors import EventTooLarge


def decode(data: bytes, cuts: list[int]) -> list[bytes]:
    decoder = sse.FrameDecoder(1 << 20)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = [frame for start, end in pairwise(edges) for frame in decoder.feed(data[start:end])]
    return found + decoder.end()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"event: x\ndata: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b": comment\n\ndata: a\n\n", [None, b"a"]),
        (b"id: 7\ndata: a\n\n", [b"a"]),
        (b"\n\n", [None]),
        (b"", []),
    ],
)
def test_data_of_each_frame(stream: bytes, expected: list[bytes | None]) -> None:
    assert [sse.frame_data(frame) for frame in decode(stream, [])] == expected


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b'data: {"a":1}', [b'{"a":1}']),
        (b'data: {"a":1}\n', [b'{"a":1}']),
        (b'data: {"a":1}\r\n', [b'{"a":1}']),
        (b'event: x\ndata: {"a":\ndata: 1}', [b'{"a":\n1}']),
        (b"data: [DONE]", [b"[DONE]"]),
        (b'data: {"a":"half of', []),
        (b'data: {"a":1}\ndata: ,', []),
        (b"data: [DO", []),
        (b"event: x", []),
        (b": half a comm", []),
        (b"\n", []),
    ],
)
def test_the_rest_is_a_frame_if_its_data_is_complete(rest: bytes, expected: list[bytes]) -> None:
    for before in ([], [b"first"]):
        stream = b"".join(b"data: %b\n\n" % data for data in before) + rest
        found = [sse.frame_data(frame) for frame in decode(stream, list(range(60)))]
        assert found == [*before, *expected]


def test_a_byte_order_mark_is_dropped() -> None:
    for cuts in ([], [1], [2], [1, 2]):
        assert decode(sse.BOM + b"data: a\n\n", cuts) == [b"data: a\n\n"]
        assert decode(sse.BOM + b"data: {}", cuts) == [b"data: {}\n\n"]


def test_a_lone_crlf_is_one_line_end_and_not_two() -> None:
    assert [sse.frame_data(frame) for frame in decode(b"event: x\r\ndata: a\r\n\r\n", [])] == [b"a"]
    assert len(decode(b"data: a\r\ndata: b\r\n\r\n", list(range(20)))) == 1


def test_a_frame_is_given_as_soon_as_it_is_complete() -> None:
    decoder = sse.FrameDecoder(100)
    assert decoder.feed(b"data: a\n\ndata: b\r\r") == [b"data: a\n\n", b"data: b\r\r"]
    assert decoder.feed(b"data: c\r\n\r") == []
    assert decoder.feed(b"\ndata: d\r\n\r\n") == [b"data: c\r\n\r\n", b"data: d\r\n\r\n"]
    assert decoder.feed(b"data: e\r\n\r") == []
    assert decoder.feed(b"d") == [b"data: e\r\n\r"]


def test_an_event_past_the_limit_is_refused() -> None:
    for before in (b"", b"data: a\n\n", b"data: a\n\ndata: "):
        for end in (b"", b"\n\n", b"\r\n\r\n"):
            decoder = sse.FrameDecoder(100)
            decoder.feed(before)
            with pytest.raises(EventTooLarge):
                decoder.feed(b"data: " + b"x" * 100 + end)


def test_it_is_known_how_much_of_a_frame_waits() -> None:
    decoder = sse.FrameDecoder(100)
    waiting = []
    for data in (b"data: a\n\n", b"data: b\n\n", b"data: ", b"c\n", b"\n", b"data: d\n\nd"):
        decoder.feed(data)
        waiting.append(decoder.waiting)
    assert waiting == [0, 0, 6, 8, 0, 1]


LINES = st.lists(st.sampled_from([b"data: a", b"\n", b"\r\n", b"\r", b": c"]), max_size=30)


@given(LINES, st.data())
def test_any_split_of_the_bytes_gives_the_same_data(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(lines)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10))
    whole = [found for frame in decode(stream, []) if (found := sse.frame_data(frame)) is not None]
    split = [
        found for frame in decode(stream, cuts) if (found := sse.frame_data(frame)) is not None
    ]
    assert split == whole


@given(LINES)
def test_no_split_of_the_bytes_loses_any(lines: list[bytes]) -> None:
    stream = b"".join([*lines, b"data: z\n\n"])
    places = range(len(stream))
    for cuts in (list(places), *([place] for place in places)):
        decoder = sse.FrameDecoder(1 << 20)
        edges = pairwise([0, *cuts, len(stream)])
        frames = [frame for start, end in edges for frame in decoder.feed(stream[start:end])]
        assert b"".join(frames) == stream


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_frames_that_come_byte_by_byte_are_the_same(line_end: bytes) -> None:
    frames = [b"data: a" + 2 * line_end, b"event: b" + line_end + b"data: {}" + 2 * line_end] * 3
    assert decode(b"".join(frames), list(range(200))) == frames


def test_input_byte_by_byte_is_scanned_once() -> None:
    """Quadratic scanning would take minutes here."""
    decoder = sse.FrameDecoder(1 << 24)
    for _ in range(300_000):
        assert decoder.feed(b"x") == []
    assert len(decoder.feed(b"\n\n")) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: {}\n\n", True),
        (b"data:{}", True),
        (b": hello\n\n", True),
        (b"\xef\xbb\xbf\r\n\nevent: ping\n", True),
        (b"retry: 5\n", True),
        (b"id:1\n", True),
        (b'{"data": 1}', False),
        (b'\n\n{"data": 1}', False),
        (b"<p>data: 1", False),
        (b"database: 1", False),
        (b"<html>", False),
        (b"event", None),
        (b"\xef\xbb", None),
        (b"\xef\xbb\xbfevent", None),
        (b"\n" * 9, None),
        (b"\n" * 999 + b"data: {}", False),
        (b"", None),
    ],
)
def test_a_stream_is_told_by_its_first_line(body: bytes, expected: bool | None) -> None:  # noqa: FBT001
    assert sse.begins_stream(body) is expected


def test_an_encoded_frame_has_lf_ends_and_one_data_line() -> None:
    assert sse.encode_frame(b"{}", "ping") == b"event: ping\ndata: {}\n\n"
    assert sse.encode_frame(b"{}") == b"data: {}\n\n"
    assert sse.frame_data(sse.encode_comment("alive")) is None


@pytest.mark.parametrize("name", ["a\nevent: b", "\ud800", "ü", "", None])
def test_an_event_is_never_named_by_what_would_break_its_line(name: str | None) -> None:
    assert sse.encode_frame(b"{}", name) == b"data: {}\n\n"


@given(st.lists(st.sampled_from(["data: a", "event: b\ndata: {}", ": c", "id: 1"]), max_size=6))
@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
def test_joined_frames_are_split(line: str, expected: list[str]) -> None:
    frames = [(one.replace("\n", line) + line * 2).encode() for one in expected]
    whole, rest = sse._split(b"".join(frames))
    assert [*whole, *filter(None, [rest])] == frames


@given(st.lists(st.sampled_from([b"data: a", b"\n", b"\r"]), max_size=12).map(b"".join))
def test_no_byte_is_lost_in_splitting(data: bytes) -> None:
    whole, rest = sse._split(data)
    assert b"".join(whole) + rest == data


@given(LINES)
def test_data_with_one_kind_of_line_end_is_split_like_any(lines: list[bytes]) -> None:
    for each in (lines, [line for line in lines if line != b"\r"]):
        data = b"".join(each)
        assert sse._split(data) == sse._split_mixed(data)
        crlf = data.replace(b"\r", b"").replace(b"\n", b"\r\n")
        assert sse._split(crlf) == sse._split_mixed(crlf)
