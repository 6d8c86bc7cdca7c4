"""One request of a connection and its response: uvicorn's, and it tells when the client leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class RequestCycle(RequestResponseCycle):
    """It is itself the `receive` of its application."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._on_leave: Callable[[], object] | None = None

    @property
    def receive(self) -> RequestCycle:
        return self

    async def __call__(self) -> Any:
        return await super().receive()

    def call_on_leave(self, callback: Callable[[], object] | None) -> bool:
        """Have `callback` called when the client leaves; see `http/asgi.py`."""
        self._on_leave = callback
        if callback is not None and self.disconnected:
            self.disconnect()
        return True

    def disconnect(self) -> None:
        """Tell the application that its client has left, and the client nothing more."""
        self.disconnected = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        callback, self._on_leave = self._on_leave, None
        if callback is not None:
            callback()
