"""Build a message from translated events, block by block."""

from __future__ import annotations

from collections.abc import Iterator

from abridge.apis.api import RequestEcho
from abridge.apis.display import Display
from abridge.core.conversation import Json
from abridge.core.events import Event, ResponseEnded


class TranslatedMessage:
    def __init__(self, display: Display, echo: RequestEcho, limit: int) -> None:
        self._display = display

    def compose(self, event: Event) -> Iterator[tuple[str, Json]]:
        """Build the events of a stream, type and fields, for one that carries no frame."""
        raise NotImplementedError

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""
        raise NotImplementedError

    def build_whole(self, end: ResponseEnded) -> Json | None:
        """Build the whole message; None if upstream's body is to go out as it is."""
        raise NotImplementedError
