"""Server-sent events, split into frames and put together again.

A frame is one event as it came: its lines and the blank line that ends it. See the HTML standard,
section 9.2: lines end in LF, CRLF or CR, so that CRLF is one line end and never two.
"""

from __future__ import annotations

import re
from itertools import pairwise

from abridge.errors import EventTooLarge
from abridge.wire.codec import loads

BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_OVERLAP = 3  # a blank line may begin this many bytes before what is new


class Decoder:
    """Splits a byte stream into frames, however it arrives, looking at each byte once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._seen = 0
        self._skip_lf = False
        self._returns = False
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that `data` completes. Raises EventTooLarge past `limit` bytes of one."""
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
        """The stream is over: what is left is a frame too, if what it says is whole.

        A frame that was cut off says half of something, and nobody could read it.
        """
        rest = [bytes(self._buffer).rstrip(b"\r\n") + b"\n\n"]
        self._buffer.clear()
        self._begin(rest)
        return rest if _is_whole(data(rest[0])) else []

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(self._limit)

    def _end_of_frame(self, start: int) -> int:
        """Where the next blank line ends, or 0; without carriage returns that is soon found."""
        if self._returns:
            found = _BLANK_LINE.search(self._buffer, start)
            return found.end() if found is not None else 0
        place = self._buffer.find(b"\n\n", start)
        return place + 2 if place >= 0 else 0

    def _begin(self, frames: list[bytes]) -> None:
        """A stream may begin with a byte order mark, which is none of its first frame."""
        if not self._begun:
            self._begun = True
            frames[0] = frames[0].removeprefix(BOM)


def _is_one_frame(data: bytes) -> bool:
    """As a read often brings it, from an upstream that sends each event by itself."""
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
    """Whole frames that were put together, told apart."""
    if _is_one_frame(data):
        return [data]
    ends = [found.end() for found in _BLANK_LINE.finditer(data)]
    return [data[start:end] for start, end in pairwise([0, *ends, len(data)]) if start < end]


def data(frame: bytes) -> bytes | None:
    """What a frame's data lines say; None where it has none, as a comment."""
    start = 0 if frame.startswith(b"data: ") else frame.find(b"\ndata: ") + 1
    end = frame.find(b"\n", start)
    if end == len(frame) - 2 and frame.startswith(b"data: ", start) and b"\r" not in frame:
        return frame[start + 6 : end]  # one line, the last, as nearly every frame has it
    found = [
        line[5:].removeprefix(b" ") for line in frame.splitlines() if line.startswith(b"data:")
    ]
    return b"\n".join(found) if found else None


def encode(payload: bytes, event: str | None = None) -> bytes:
    """One frame, with LF line ends and a single data line, as the strictest parsers want it.

    A name that would break the line, or is none, is left out.
    """
    if event and event.isascii() and event.isprintable():
        return b"event: %b\ndata: %b\n\n" % (event.encode(), payload)
    return b"data: %b\n\n" % payload


def comment(text: str) -> bytes:
    """A frame that every client ignores."""
    return b": %b\n\n" % text.encode()
