"""One connection of a client to the sidecar: uvicorn's, and stricter."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """Takes no trailer for a header: it comes after what was decided by the headers, and would be
    sent on, or believed, as one of them."""

    _in_body = False

    def on_message_begin(self) -> None:
        self._in_body = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body = True
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:
            super().on_header(name, value)
