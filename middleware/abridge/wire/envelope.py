"""Envelopes: sealed reasoning that travels with the client.

An envelope's string form is a blob. It holds reasoning as the client's API would have it if
everything were shown, so that it can be read the same way when it comes back. It is written where
an API has a field for opaque state. State there that does not begin with Abridge's prefix is
somebody else's and left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from abridge.errors import RequestError
from abridge.turn.conversation import Turn
from abridge.wire.codec import Json

PREFIX = "abr1."
"""Begins every blob of Abridge's."""

DAMAGED = "invalid_encrypted_content"
"""Error code for a blob that cannot be opened."""


@dataclass(slots=True, frozen=True)
class Envelope:
    """Sealed reasoning and the turn it belongs to, which the client must return unchanged."""

    reasoning: list[Json]  # items on Responses, keys of a message on Chat Completions
    item: str = ""  # id of the item that contains it
    calls: tuple[str, ...] | None = None  # ids of the turn's calls, if known when it was sealed
    text: str | None = None  # text of the turn, if known when it was sealed

    def fits(self, turn: Turn, item: str = "") -> bool:
        """Return True if it belongs to this turn and item; clients may leave out the item's id."""
        calls = tuple(call.id for call in turn.calls)
        return (
            turn.role == "assistant"
            and (not item or item == self.item)
            and (self.calls is None or self.calls == calls)
            and (self.text is None or self.text == turn.text)
        )


Seal: TypeAlias = Callable[[Envelope], str]
"""Returns a blob, or "" if there is to be none."""

Open: TypeAlias = Callable[[str, str, Turn, str], Envelope | None]
"""Opens a blob, given the field that contains it, its turn, and the id of its item if any.

Returns None if the blob is to be left out, since it belongs elsewhere or the turn was changed.
Raises RequestError if it is damaged.
"""


def damaged(param: str) -> RequestError:
    """Return the error for a blob of Abridge's that cannot be opened."""
    return RequestError(
        f"The encrypted content in {param} could not be verified.",
        param=param,
        code=DAMAGED,
    )


def is_ours(state: object) -> bool:
    return isinstance(state, str) and state.startswith(PREFIX)
