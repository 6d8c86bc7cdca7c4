"""Read a summarizer model's answer: bytes in, text out.

The Reader of its API parses it, as it does every upstream, so that all the ways in which providers
send reasoning are handled here too. Only what the Reader classifies as content counts as text.
"""

from __future__ import annotations

from collections.abc import Iterable

from abridge.errors import EventTooLarge, SummarizerError
from abridge.summarize import Spent
from abridge.summarize.model.endpoint import Endpoint
from abridge.turn.events import Began, Billed, Ended, Event, Failed, Said
from abridge.turn.usage import Tokens
from abridge.wire.display import Display
from abridge.wire.sse import Decoder

MOST = 1 << 20
"""Maximum bytes of one event, or of a body that is not streamed."""


class Answer:
    """One answer. `ended` is true once its terminal event was read."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._reader = endpoint.api.reader(endpoint.profile, Display(raw=False), 0)
        self._splitter = endpoint.splitter()
        self._decoder: Decoder | None = None
        self._body = bytearray()
        self._tokens: Tokens | None = None
        self._model = endpoint.model
        self._spoke = False
        self._failed = False
        self.ended = False

    @property
    def spent(self) -> Spent:
        return Spent(self._tokens, self._model)

    def error(self, code: str, message: str) -> SummarizerError:
        """Build an error that carries the usage reported so far."""
        return SummarizerError(code, message, spent=self._tokens, model=self._model)

    def begin(self, status: int, content_type: str) -> None:
        if not 200 <= status < 300:
            message = f"The summarizer model answered with status {status}."
            raise self.error("upstream_error", message)
        if content_type.startswith("text/event-stream"):
            self._decoder = Decoder(MOST)

    def feed(self, data: bytes) -> str:
        """Return the text in `data`. Raise EventTooLarge."""
        if self._decoder is not None:
            return self._read(self._decoder.feed(data))
        self._body += data
        if len(self._body) > MOST:
            raise EventTooLarge(MOST)
        return ""

    def end(self) -> str:
        """Return the remaining text at the end of the body. A length stop is an ordinary end."""
        if self._decoder is None:
            return self._take(self._reader.whole(bytes(self._body)))
        return self._read(self._decoder.end()) + self._take(self._reader.end())

    def check(self) -> None:
        """Raise SummarizerError if the answer broke off or was blank."""
        if self._failed:
            raise self.error("upstream_error", "The summarizer model's answer broke off.")
        if not self._spoke:
            raise self.error("empty", "The summarizer model said nothing.")

    def _read(self, frames: Iterable[bytes]) -> str:
        return self._take(event for frame in frames for event in self._reader.read(frame))

    def _take(self, events: Iterable[Event]) -> str:
        text = ""
        for event in events:
            pieces = self._splitter.feed(event.text) if isinstance(event, Said) else []
            match event:
                case Began(model=str(model)) if model:
                    self._model = model
                case Billed(usage=usage):
                    self._tokens = usage
                case Failed():
                    self._failed = True
                case Ended(ok=ok, usage=usage):
                    self.ended, self._failed = True, self._failed or not ok
                    self._tokens = usage or self._tokens
                    pieces = self._splitter.end()
            text += "".join(piece.text for piece in pieces if piece.kind == "text")
        self._spoke = self._spoke or bool(text.strip())
        return text
