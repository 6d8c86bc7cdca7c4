"""A response of an upstream, parsed as it comes."""

from __future__ import annotations

from typing import NamedTuple

import httpx
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MAX_BETWEEN = 128 << 10
"""Bytes that are no body: of a head with the interim ones before it, between two pieces of a body,
or of trailers."""

UNREADABLE = "Upstream closed the connection, or does not speak HTTP."
"""What says nothing of what upstream sent."""


class ResponseHead(NamedTuple):
    """The head of a final response."""

    status: int
    headers: list[tuple[bytes, bytes]]  # as they came

    @property
    def is_unframed(self) -> bool:
        """True if a body after it has neither a length nor chunks, and ends with the connection."""
        return not any(
            (name := header.lower()) == b"content-length"
            or (name == b"transfer-encoding" and value.lower().endswith(b"chunked"))
            for header, value in self.headers
        )


class ResponseParser:
    """Holds what has come of a response and was not taken; trailers are left out.

    `failure` is the reason why no more comes: of what came before it, nothing is lost.
    """

    __slots__ = (
        *("_between", "_has_no_body", "_headers", "_parser"),
        *("body", "failure", "head", "is_complete", "is_reusable"),
    )

    def __init__(self, *, has_no_body: bool) -> None:
        self._has_no_body = has_no_body  # as the answer to HEAD
        self._headers: list[tuple[bytes, bytes]] = []
        self._between = 0  # bytes since the last piece
        self.head: ResponseHead | None = None
        self.body = bytearray()  # one, since a list of small chunks takes twenty times their size
        self.is_complete = False
        self.is_reusable = False  # True if the connection can be used once it is complete
        self.failure: Exception | None = None
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # servers that are sloppy about a line's end
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    @property
    def is_over(self) -> bool:
        """True if no more comes."""
        return self.is_complete or self.failure is not None

    def feed(self, data: bytes) -> None:
        """Parse what has come."""
        self._between += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.fail(httpx.RemoteProtocolError(UNREADABLE))
        if self._between > MAX_BETWEEN:
            self.fail(httpx.RemoteProtocolError("The response's headers are too long."))

    def end(self, error: Exception | None) -> None:
        """Note that the connection is gone, by an error or not."""
        if self.head is None and error is not None:
            lost = httpx.ReadError(str(error))
            lost.__cause__ = error
            self.fail(lost)
        elif self.head is None:
            self.fail(httpx.RemoteProtocolError(UNREADABLE))
        elif error is None and self.failure is None and self.head.is_unframed:
            self.is_complete = True
        self.fail(httpx.RemoteProtocolError("The response was cut short."))

    def fail(self, error: Exception) -> None:
        """Note why no more comes, unless all has come or that is known."""
        self.is_reusable = False
        if not self.is_over:
            self.failure = error

    def take(self) -> bytes:
        """Return what has come of the body since the last time."""
        data = bytes(self.body)
        self.body.clear()
        return data

    def release(self) -> None:
        """Let go of the parser, which refers to this."""
        del self._parser

    # httptools calls these

    def on_message_begin(self) -> None:
        self._headers = []
        if self.is_complete:  # so it answers no request of ours
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is None:
            self._headers.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self.head is not None:
            return
        if status == 101:
            text = "Upstream switched protocols without a request for it."
            self.fail(httpx.RemoteProtocolError(text))
        elif status >= 200:
            self.head = ResponseHead(status, self._headers)
            self.is_reusable = self._parser.should_keep_alive()
            self.is_complete = self._has_no_body

    def on_body(self, piece: bytes) -> None:
        if self.is_complete:
            self.is_reusable = False
            return
        self._between = 0
        self.body += piece

    def on_message_complete(self) -> None:
        if self.head is not None:
            self.is_complete = True
