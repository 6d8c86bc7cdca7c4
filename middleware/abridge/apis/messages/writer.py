"""Write Anthropic Messages: events as a stream, or into a whole message.

An event that carries its frame goes out in it, unless more is in it than is shown. An event without
a frame is built: which ones there are depends on the upstream's API (`upstream_message.py`,
`translated_message.py`). The writer owns a block's `index`, dense from 0.
"""

from __future__ import annotations

from itertools import starmap

from abridge.apis.display import Display
from abridge.apis.frames import encode_event
from abridge.apis.json import dumps
from abridge.apis.messages.errors import error_body
from abridge.apis.messages.translated_message import TranslatedMessage
from abridge.apis.messages.upstream_message import UpstreamMessage
from abridge.core.events import Event, ResponseEnded

PING = encode_event("ping", {})


class MessagesWriter:
    """Write one response. See the protocol `Writer`."""

    final_response = None

    def __init__(self, display: Display, message: UpstreamMessage | TranslatedMessage) -> None:
        self._display = display
        self._message = message
        self._upstream = message if isinstance(message, UpstreamMessage) else None

    def write(self, event: Event) -> bytes:
        if event.frame is None or self._upstream is None:
            added = self._message.add_text(event)
            if added is None:
                return b"".join(starmap(encode_event, self._message.compose(event)))
            frame, text = added
            return b"" if frame is None else frame.write(text)
        return self._upstream.show(event, event.frame)

    def keep_alive(self) -> bytes:
        return PING

    def note(self, event: Event) -> None:
        self._message.note(event)

    def write_whole(self, end: ResponseEnded) -> bytes:
        message = self._message.build_whole(end)
        if message is None:
            return end.frame or b""
        if end.error is None or not end.ok:
            return dumps(message)
        error = error_body(end.error.message, code=end.error.code)
        return dumps({**error, "error": {**error["error"], "response": message}})
