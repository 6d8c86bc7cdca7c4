"""Show what upstream wrote in this API, with summaries in the place of thinking."""

from __future__ import annotations

from collections.abc import Iterator

from abridge.apis.display import Display
from abridge.core.conversation import Json
from abridge.core.events import Event, ResponseEnded


class UpstreamMessage:
    def __init__(self, display: Display) -> None:
        self._display = display

    def compose(self, event: Event) -> Iterator[tuple[str, Json]]:
        """Build the events of a stream, type and fields, for one that carries no frame."""
        raise NotImplementedError

    def show(self, event: Event, frame: bytes) -> bytes:
        """Return the bytes in which an event with a frame goes to the client."""
        raise NotImplementedError

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""
        raise NotImplementedError

    def build_whole(self, end: ResponseEnded) -> Json | None:
        """Build the whole message; None if upstream's body is to go out as it is."""
        raise NotImplementedError
