"""Split server-sent events into frames and encode them.

A frame is one event as received: its lines and the blank line that ends it. Lines end in LF, CRLF
or CR, and CRLF is one line end, never two (HTML standard, section 9.2).
"""

from __future__ import annotations

import re
from itertools import pairwise

from abridge.apis.json import loads, replace_invalid
from abridge.errors import EventTooLarge

BOM = b"\xef\xbb\xbf"

DONE = b"[DONE]"

_BLANK_LINE = re.compile(rb"\r\r\n?|(?:\r\n|\n)(?:\r\n|\n|\r(?!\Z))")
"""The end of a frame. Where lines end in LFs, a CR that comes last may yet be followed by one."""

_OVERLAP = 3  # a blank line may begin this many bytes before the new data


class FrameDecoder:
    """Split a byte stream into frames, however it is chunked, scanning each byte once.

    No byte of a frame is lost or changed, its line ends included.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._has_cr = False
        self._started = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes.

        Raises EventTooLarge if a frame exceeds `limit` bytes.
        """
        if self._started and not (self._buffer or self._has_cr) and _is_one_frame(data):
            self._check_size(len(data))
            return [data]
        self._buffer += data
        self._has_cr = self._has_cr or b"\r" in data
        frames: list[bytes] = []
        start = 0
        while end := self._find_frame_end(max(start, self._scanned)):
            frames.append(bytes(self._buffer[start:end]))
            start = self._scanned = end
        if frames:
            self._strip_bom(frames)
            del self._buffer[:start]
        self._check_size(max(map(len, (self._buffer, *frames))))
        self._scanned = max(0, len(self._buffer) - _OVERLAP)
        return frames

    def end(self) -> list[bytes]:
        """End the stream; return the rest as a frame if its data is complete.

        A frame that was cut off cannot be parsed, so it is dropped.
        """
        rest = [bytes(self._buffer).rstrip(b"\r\n") + b"\n\n"]
        self._buffer.clear()
        self._strip_bom(rest)
        return rest if _is_complete(frame_data(rest[0])) else []

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(self._limit)

    def _find_frame_end(self, start: int) -> int:
        """Return the position after the next blank line, or 0. Without CRs that is found fast."""
        if self._has_cr:
            match = _BLANK_LINE.search(self._buffer, start)
            return match.end() if match is not None else 0
        position = self._buffer.find(b"\n\n", start)
        return position + 2 if position >= 0 else 0

    def _strip_bom(self, frames: list[bytes]) -> None:
        """Remove a byte order mark, which is not part of the first frame, from the start of the
        stream.
        """
        if not self._started:
            self._started = True
            frames[0] = frames[0].removeprefix(BOM)


def _is_one_frame(data: bytes) -> bool:
    """Return True for a read of exactly one event: common where upstream sends each by itself."""
    return data.find(b"\n\n") == len(data) - 2 >= 0 and b"\r" not in data


def _is_complete(payload: bytes | None) -> bool:
    if payload is None or payload.startswith(DONE):
        return payload is not None
    try:
        loads(replace_invalid(payload))
    except (ValueError, RecursionError):
        return False
    return True


def split_frames(data: bytes) -> list[bytes]:
    """Split bytes that consist of whole frames."""
    if _is_one_frame(data):
        return [data]
    ends = [found.end() for found in _BLANK_LINE.finditer(data)]
    return [data[start:end] for start, end in pairwise([0, *ends, len(data)]) if start < end]


def frame_data(frame: bytes) -> bytes | None:
    """Return the content of a frame's data lines, or None if it has none, as in a comment."""
    start = 0 if frame.startswith(b"data: ") else frame.find(b"\ndata: ") + 1
    end = frame.find(b"\n", start)
    if end == len(frame) - 2 and frame.startswith(b"data: ", start) and b"\r" not in frame:
        return frame[start + 6 : end]  # a single line at the end, as in nearly every frame
    found = [
        line[5:].removeprefix(b" ") for line in frame.splitlines() if line.startswith(b"data:")
    ]
    return b"\n".join(found) if found else None


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
