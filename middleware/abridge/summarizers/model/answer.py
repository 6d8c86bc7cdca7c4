"""Read a summarizer model's answer: bytes in, text out.

The Reader of its API parses it, as it does every upstream, so that all the ways in which providers
send reasoning are handled here too. Only what the Reader classifies as content counts as text.
"""

from __future__ import annotations

from abridge.apis.delta_patterns import FrameReader
from abridge.apis.display import Display
from abridge.apis.sse import FrameDecoder, begins_stream
from abridge.core.events import (
    ContentDelta,
    ErrorReported,
    Event,
    Finished,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    UsageReported,
)
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.errors import EventTooLarge, SummarizerError
from abridge.summarizers.model.endpoint import ModelEndpoint

MAX_BYTES = 1 << 20
"""Maximum bytes of one event, or of a body that is not streamed."""


class ModelAnswer:
    """One answer. `ended` is true once its terminal event was read; `reason` is why the model
    stopped, unless it was done."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        read = endpoint.api.upstream.translating_reader  # it tells why an answer ended
        display = Display(show_raw=False)
        self._reader = read(endpoint.answering_profile, display, 0)
        self._frames = FrameReader(self._reader, display)
        self._decoder: FrameDecoder | None = None
        self._body = bytearray()
        self._tokens: Tokens | None = None
        self._model = endpoint.model
        self.reason = ""
        self._has_text = False
        self.failed = False  # it broke off
        self.ended = False

    @property
    def usage(self) -> SummarizerUsage:
        return SummarizerUsage(self._tokens, self._model, self.reason)

    def error(self, code: str, message: str) -> SummarizerError:
        """Build an error that carries the usage reported so far."""
        return SummarizerError(code, message, spent=self._tokens, model=self._model)

    def start(self, status: int) -> None:
        if not 200 <= status < 300:
            message = f"The summarizer model answered with status {status}."
            raise self.error("upstream_error", message)

    def feed(self, data: bytes) -> str:
        """Return the text in `data`. Raise EventTooLarge."""
        if self._decoder is None:
            self._body += data
            if not begins_stream(self._body):
                if len(self._body) > MAX_BYTES:
                    raise EventTooLarge(MAX_BYTES)
                return ""
            self._decoder, data = FrameDecoder(MAX_BYTES), bytes(self._body)
        return self._read_frames(self._decoder.feed(data))

    def end(self) -> str:
        """Return the remaining text at the end of the body."""
        if self._decoder is None:
            return self._collect_text(self._reader.read_whole(bytes(self._body)))
        return self._read_frames(self._decoder.end()) + self._collect_text(self._reader.end())

    def break_off(self) -> None:
        """Take note of the usage that was reported before the connection broke."""
        self._collect_text(self._reader.end())

    def check(self) -> None:
        """Raise SummarizerError if the answer broke off, or was blank and nobody stopped it."""
        if self.failed:
            raise self.error("upstream_error", "The summarizer model's answer broke off.")
        if not self._has_text and self.reason != "content_filter":
            raise self.error("empty", "The summarizer model returned no text.")

    def _read_frames(self, frames: list[bytes]) -> str:
        events: list[Event] = []
        place = 0
        while place < len(frames):
            read, place = self._frames.read(frames, place)
            events += read
        return self._collect_text(events)

    def _collect_text(self, events: list[Event]) -> str:
        text = ""
        for event in events:
            text += event.text if isinstance(event, ContentDelta) else ""
            match event:
                case RefusalDelta(refusal=str(refusal)) if refusal:
                    self.reason = "content_filter"
                case ResponseStarted(model=str(model)) if model:
                    self._model = model
                case UsageReported(usage=usage):
                    self._tokens = usage
                case ErrorReported():
                    self.failed = True
                case Finished(reason=reason) if reason != "stop":
                    self.reason = reason
                case ResponseEnded(ok=ok, usage=usage):
                    self.ended, self.failed = True, self.failed or not ok
                    self._tokens = usage or self._tokens
        self._has_text = self._has_text or bool(text.strip())
        return text
