"""Split server-sent events into frames and encode them.

A frame is one event as received: its lines and the blank line that ends it. Lines end in LF, CRLF
or CR, and CRLF is one line end, never two (HTML standard, section 9.2).
"""

from __future__ import annotations

import re
from itertools import pairwise

from abridge.apis.json import loads, replace_invalid
from abridge.errors import EventTooLarge

CR = ord("\r")
"""A number, for which `in` looks at once. For bytes, `in` first raises an exception within, which
takes longer than the search; `find` does not. This runs for every frame."""

BOM = b"\xef\xbb\xbf"

DONE = b"[DONE]"

_LF_BLANK = rb"\n(?:\r\n|\n|\r(?!\Z))"

_BLANK_LINE = re.compile(rb"\r(?:\r\n?|%b)|%b" % (_LF_BLANK, _LF_BLANK))
"""The end of a frame. Where lines end in LFs, a CR that comes last may yet be followed by one."""

BLANK_LINES = (b"\n\n", b"\r\n\r\n")
"""What ends a frame in nearly every stream."""

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")

_LOOKED_AT = 64  # bytes of which the first that are not blank tell what a body is

_OVERLAP = 3  # a blank line may begin this many bytes before the new data


class FrameDecoder:
    """Split a byte stream into frames, however it is chunked, scanning each byte once.

    No byte of a frame is lost or changed, its line ends included.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.rest = bytearray()  # a frame that is not complete
        self._scanned = 0
        self._started = False
        self.waiting = 0  # bytes of a frame that is not complete

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes; afterwards some bytes of the next are `waiting`.

        Raises EventTooLarge if a frame exceeds `limit` bytes.
        """
        if self.rest:
            self.rest += data
            if not self._has_blank_line():
                self.waiting = len(self.rest)
                self._check_size(self.waiting)
                return []
            data = bytes(self.rest)
            self.rest.clear()
        frames, rest = _split(data)
        if frames:
            self._strip_bom(frames)
        if rest:
            self.rest += rest
        self.waiting, self._scanned = len(rest), max(0, len(rest) - _OVERLAP)
        if len(data) > self._limit:
            self._check_size(max(map(len, (rest, *frames))))
        return frames

    def end(self) -> list[bytes]:
        """End the stream; return the rest as a frame if its data is complete.

        A frame that was cut off cannot be parsed, so it is dropped.
        """
        rest = [bytes(self.rest).rstrip(b"\r\n") + b"\n\n"]
        self.rest.clear()
        self._strip_bom(rest)
        return rest if _is_complete(frame_data(rest[0])) else []

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(self._limit)

    def _has_blank_line(self) -> bool:
        """Return whether what was added to the buffer ends a frame."""
        start, self._scanned = self._scanned, max(0, len(self.rest) - _OVERLAP)
        if self.rest.find(b"\n\n", start) >= 0:
            return True
        has_cr = self.rest.find(b"\r", start) >= 0
        return has_cr and _BLANK_LINE.search(self.rest, start) is not None

    def _strip_bom(self, frames: list[bytes]) -> None:
        """Remove a byte order mark, which is not part of the first frame, from the start of the
        stream.
        """
        if not self._started:
            self._started = True
            frames[0] = frames[0].removeprefix(BOM)


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """Split data into frames and the beginning of one, by what ends lines in nearly every stream if
    nothing else does."""
    if CR not in data:
        blank = b"\n\n"
    elif b"\n\n" in data or b"\r\r" in data or data.count(b"\n\r") != data.count(b"\r\n\r\n"):
        return _split_mixed(data)
    else:
        blank = b"\r\n\r\n"
    pieces = data.split(blank)
    rest = pieces.pop()
    return [piece + blank for piece in pieces], rest


def _split_mixed(data: bytes) -> tuple[list[bytes], bytes]:
    ends = [found.end() for found in _BLANK_LINE.finditer(data)]
    frames = [data[start:end] for start, end in pairwise([0, *ends])]
    return frames, data[ends[-1] :] if ends else data


def _is_complete(payload: bytes | None) -> bool:
    if payload is None or payload.startswith(DONE):
        return payload is not None
    try:
        loads(replace_invalid(payload))
    except (ValueError, RecursionError):
        return False
    return True


def frame_data(frame: bytes) -> bytes | None:
    """Return the content of a frame's data lines, or None if it has none, as in a comment."""
    start = 0 if frame.startswith(b"data: ") else frame.find(b"\ndata: ") + 1
    end = frame.find(b"\n", start)
    if end == len(frame) - 2 and frame.startswith(b"data: ", start) and CR not in frame:
        return frame[start + 6 : end]  # a single line at the end, as in nearly every frame
    found = [
        line[5:].removeprefix(b" ") for line in frame.splitlines() if line.startswith(b"data:")
    ]
    return b"\n".join(found) if found else None


def says_nothing(frame: bytes, data: bytes) -> bool:
    """Return whether a frame says nothing by its data, nor by a name: another may be lost in it."""
    return data.strip() == b"null" and b"event:" not in frame


def begins_stream(body: bytes | bytearray) -> bool | None:
    """Return whether a body is a stream, as some are that come with another type: it begins with
    the name of a field, as no JSON does. None while that cannot be told."""
    begun = bytes(body[:_LOOKED_AT]).removeprefix(BOM).lstrip(b"\r\n")
    if begun.startswith(_FIELDS):
        return True
    may_become_one = any(first.startswith(begun) for first in (BOM, *_FIELDS))
    return None if may_become_one and len(body) < _LOOKED_AT else False


def encode_frame(payload: bytes, event: str | None = None) -> bytes:
    """Encode one frame, with LF line ends and a single data line, as the strictest parsers want it.

    An event name that is empty or would break the line is left out.
    """
    if event and event.isascii() and event.isprintable():
        return b"event: %b\ndata: %b\n\n" % (event.encode(), payload)
    return b"data: %b\n\n" % payload


def encode_comment(text: str) -> bytes:
    """Encode a frame that every client ignores."""
    return b": %b\n\n" % text.encode()
