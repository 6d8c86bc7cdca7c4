"""Put the reasoning of a message into envelopes, from which a later request restores it.

The blob of a thinking block is its `signature`: clients have to return a block as they got it, so
it comes back whatever they know of it. It holds the blocks of upstream's that its block stands for,
in this API's format, and `history.py` puts them in its place.
"""

from __future__ import annotations

from io import StringIO

from abridge.apis.display import UNSEALED, Envelope, SealEnvelope
from abridge.apis.messages.tools import upstream_call_id
from abridge.apis.places import place_after_call
from abridge.core.conversation import Json
from abridge.core.events import Event, ProviderState, ReasoningDelta


class EnvelopeSealer:
    """Seal the blocks of one message; `seal` is None if nothing can be sealed.

    An envelope is bound to what its reasoning answers: the call before it in the message or, before
    the first one, what the request ends with.
    """

    def __init__(self, seal: SealEnvelope | None) -> None:
        self._seal = seal
        self._place: bytes | None = None

    @property
    def is_sealing(self) -> bool:
        return self._seal is not None

    def note_call(self, call_id: str) -> None:
        """Take a call of the message, by the id that the client gets."""
        self._place = place_after_call(upstream_call_id(call_id)) or self._place

    def seal(self, blocks: list[Json] | None) -> str:
        """Return the signature of a block that stands for these of upstream's.

        With no blocks the client's block is dropped when it comes back, as one that holds a summary
        beside the reasoning is. Return `UNSEALED` for None, and where nothing can be sealed.
        """
        if self._seal is None or blocks is None:
            return UNSEALED
        return self._seal(Envelope(blocks, place=self._place))


class EnvelopeBuilder:
    """Collect one stretch of translated reasoning, as the blocks that Anthropic would send.

    Each signature is for its own text, and opaque state is a block of its own, unless it repeats
    the text, as Ollama's does. Text that nothing signs has an empty signature. Past `limit`
    characters give up.
    """

    def __init__(self, limit: int) -> None:
        self._room_left = limit
        self._blocks: list[Json] = []
        self._text = StringIO()

    def add(self, event: Event) -> None:
        """Take an event of the stretch."""
        match event:
            case ReasoningDelta():
                self._room_left -= len(event.text)
                if self._room_left >= 0:
                    self._text.write(event.text)
            case ProviderState():
                self._room_left -= len(event.data)
                if self._room_left >= 0:
                    self._add_state(event)

    def build(self) -> list[Json] | None:
        """Return the blocks; None if there was too much to keep."""
        if self._room_left < 0:
            return None
        return [*self._blocks, *self._unsigned_block()]

    def _add_state(self, event: ProviderState) -> None:
        text = self._text.getvalue()
        if event.signs:
            self._blocks.append({"type": "thinking", "thinking": text, "signature": event.data})
        elif event.data.strip() == text.strip():
            return
        else:
            self._blocks += self._unsigned_block()
            self._blocks.append({"type": "redacted_thinking", "data": event.data})
        self._text = StringIO()

    def _unsigned_block(self) -> list[Json]:
        text = self._text.getvalue()
        return [{"type": "thinking", "thinking": text, "signature": ""}] if text.strip() else []
