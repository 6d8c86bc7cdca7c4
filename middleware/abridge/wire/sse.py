"""Split server-sent events into frames and encode them.

A frame is one event as received: its lines and the blank line that ends it. Lines end in LF, CRLF
or CR, and CRLF is one line end, never two (HTML standard, section 9.2).
"""

from __future__ import annotations

import re
from itertools import pairwise

from abridge.errors import EventTooLarge
from abridge.wire.codec import loads

BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_OVERLAP = 3  # a blank line may begin this many bytes before the new data


class Decoder:
    """Splits a byte stream into frames, however it is chunked, and scans each byte once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._seen = 0
        self._skip_lf = False
        self._returns = False
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes.

        Raises EventTooLarge if a frame exceeds `limit` bytes.
        """
        if self._begun and not (self._buffer or self._returns) and _is_one_frame(data):
            self._check(len(data))
            return [data]
        if self._skip_lf and data:
            data = data.removeprefix(b"\n")
            self._skip_lf = False
        self._buffer += data
        self._returns = self._returns or b"\r" in data
        frames: list[bytes] = []
        start = 0
        while end := self._end_of_frame(max(start, self._seen)):
            frames.append(bytes(self._buffer[start:end]))
            start = self._seen = end
        if frames:
            self._begin(frames)
            self._skip_lf = start == len(self._buffer) and frames[-1].endswith(b"\r")
            del self._buffer[:start]
        self._check(max(map(len, (self._buffer, *frames))))
        self._seen = max(0, len(self._buffer) - _OVERLAP)
        return frames

    def end(self) -> list[bytes]:
        """End the stream; return the rest as a frame if its data is complete.

        A frame that was cut off cannot be parsed, so it is dropped.
        """
        rest = [bytes(self._buffer).rstrip(b"\r\n") + b"\n\n"]
        self._buffer.clear()
        self._begin(rest)
        return rest if _is_whole(data(rest[0])) else []

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(self._limit)

    def _end_of_frame(self, start: int) -> int:
        """Return the position after the next blank line, or 0. Without CRs that is found fast."""
        if self._returns:
            found = _BLANK_LINE.search(self._buffer, start)
            return found.end() if found is not None else 0
        place = self._buffer.find(b"\n\n", start)
        return place + 2 if place >= 0 else 0

    def _begin(self, frames: list[bytes]) -> None:
        """Remove a byte order mark, which is not part of the first frame, from the start of the
        stream.
        """
        if not self._begun:
            self._begun = True
            frames[0] = frames[0].removeprefix(BOM)


def _is_one_frame(data: bytes) -> bool:
    """True for a read of exactly one event, as it is common where upstream sends each by itself."""
    return data.find(b"\n\n") == len(data) - 2 >= 0 and b"\r" not in data


def _is_whole(said: bytes | None) -> bool:
    if said is None or said.startswith(DONE):
        return said is not None
    try:
        loads(said)
    except (ValueError, RecursionError):
        return False
    return True


def frames(data: bytes) -> list[bytes]:
    """Split bytes that consist of whole frames."""
    if _is_one_frame(data):
        return [data]
    ends = [found.end() for found in _BLANK_LINE.finditer(data)]
    return [data[start:end] for start, end in pairwise([0, *ends, len(data)]) if start < end]


def data(frame: bytes) -> bytes | None:
    """Return the content of a frame's data lines, or None if it has none, as in a comment."""
    start = 0 if frame.startswith(b"data: ") else frame.find(b"\ndata: ") + 1
    end = frame.find(b"\n", start)
    if end == len(frame) - 2 and frame.startswith(b"data: ", start) and b"\r" not in frame:
        return frame[start + 6 : end]  # a single line at the end, as in nearly every frame
    found = [
        line[5:].removeprefix(b" ") for line in frame.splitlines() if line.startswith(b"data:")
    ]
    return b"\n".join(found) if found else None


def encode(payload: bytes, event: str | None = None) -> bytes:
    """Encode one frame, with LF line ends and a single data line, as the strictest parsers want it.

    An event name that is empty or would break the line is left out.
    """
    if event and event.isascii() and event.isprintable():
        return b"event: %b\ndata: %b\n\n" % (event.encode(), payload)
    return b"data: %b\n\n" % payload


def comment(text: str) -> bytes:
    """Encode a frame that every client ignores."""
    return b": %b\n\n" % text.encode()
