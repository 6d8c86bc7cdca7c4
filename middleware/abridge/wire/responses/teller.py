"""Read the Responses API for clients of another API."""

from __future__ import annotations

from collections.abc import Mapping

from abridge.turn.conversation import Heard
from abridge.turn.events import Began, Ended, Event, Stopped, StopReason, Trouble
from abridge.wire.codec import Json, string
from abridge.wire.display import Display
from abridge.wire.profiles import Profile
from abridge.wire.responses.items import LANE
from abridge.wire.responses.reader import ResponsesReader
from abridge.wire.responses.rounds import hear
from abridge.wire.responses.told import ToldItems, tells
from abridge.wire.usage import RESPONSES

REASONS: Mapping[str, StopReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


class ResponsesTeller(ResponsesReader):
    """Reads one response into translated events. See `abridge.apis.api.Reader`."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        super().__init__(profile, display, limit)
        self._items: ToldItems = ToldItems(limit, hidden=not display.raw)
        self._began = False

    def read(self, frame: bytes) -> list[Event]:
        return self._told(super().read(frame))

    def whole(self, body: bytes) -> list[Event]:
        return self._told(super().whole(body))

    def heard(self) -> list[Heard]:
        return hear(self._final)

    def _told(self, events: list[Event]) -> list[Event]:
        """Drop events that say nothing, and the start of the response after the first time."""
        told = []
        for event in events:
            if isinstance(event, Began):
                if self._began:
                    continue
                self._began = True
            if tells(event):
                told.append(event)
        return told

    def _lead(self, event: Json, kind: str) -> list[Event]:  # noqa: ARG002 -- the writer adds it
        return []

    def _carried(self, frame: bytes | None) -> bytes | None:  # noqa: ARG002 -- no frames
        return None

    def _over(
        self,
        response: Json,
        frame: bytes | None,  # noqa: ARG002 -- no frames
        *,
        ok: bool,
    ) -> list[Event]:
        """Emit what only the final response says, and the end."""
        ok = ok and response.get("status") not in ("failed", "cancelled")
        unsaid = self._unsaid(response)
        stopped = [Stopped(LANE, None, self._reason(response))] if ok else []
        usage = RESPONSES.read(response.get("usage"))
        trouble = None if ok else self._failure or _trouble(response)
        ended = Ended(None, None, ok=ok, usage=usage, trouble=trouble)
        return [*unsaid, *stopped, ended]

    def _unsaid(self, response: Json) -> list[Event]:
        named = bool(response) and self._response is None
        events = self._name(response, None) if named else []
        for number, item in self._final:
            if isinstance(item, dict):
                events += self._items.whole(number, item)
        return events

    def _reason(self, response: Json) -> StopReason:
        details = response.get("incomplete_details")
        reason = string(details.get("reason")) if isinstance(details, dict) else ""
        return REASONS.get(reason, "tool_calls" if self._items.called else "stop")


def _trouble(response: Json) -> Trouble:
    error = response.get("error")
    message = string(error.get("message")) if isinstance(error, dict) else ""
    return Trouble("upstream_error", message)
