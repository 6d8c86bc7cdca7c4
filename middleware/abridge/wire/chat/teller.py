"""Read Chat Completions for clients of another API."""

from __future__ import annotations

from typing import ClassVar

from abridge.turn.events import Ended, Event, Failed, Other
from abridge.wire.chat.choice import Choice, Piece
from abridge.wire.chat.reader import ChatReader
from abridge.wire.chat.told import ToldChoice
from abridge.wire.codec import Json


class ChatTeller(ChatReader):
    """Read one response. See the protocol `Reader`; its events are translated, without frames."""

    _CHOICE: ClassVar[type[Choice]] = ToldChoice
    _TOLD: ClassVar[bool] = True

    def whole(self, body: bytes) -> list[Event]:
        events = super().whole(body)
        self._note_failure(events)
        failed = [event.trouble for event in events if isinstance(event, Failed)]
        ended = events[-1]
        if failed and isinstance(ended, Ended):
            ended.ok, ended.trouble = False, failed[0]
        return events

    def _mended(self, chunk: Json, frame: bytes) -> tuple[Json, bytes]:
        return chunk, frame

    def _carried(self, frame: bytes | None) -> bytes | None:  # noqa: ARG002 -- no frames
        return None

    def _framed(
        self,
        pieces: list[Piece],
        chunk: Json,  # noqa: ARG002 -- no frames
        frame: bytes | None = None,  # noqa: ARG002 -- no frames
    ) -> list[Event]:
        events = [piece.event for piece in pieces if not isinstance(piece.event, Other)]
        self._note_failure(events)
        return events

    def _note_failure(self, events: list[Event]) -> None:
        self._failed = self._failed or any(isinstance(event, Failed) for event in events)

    def _end(self, frame: bytes | None) -> list[Event]:
        *events, ended = super()._end(frame)
        if not self._failed:
            for choice in self._choices.values():
                if isinstance(choice, ToldChoice):
                    events += choice.stop()
        return [*events, ended]
