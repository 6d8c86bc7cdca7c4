"""Reasoning that travels with the client, sealed.

A blob holds it in the spelling of the client's own API, as that client would have it had everything
been shown: so what comes back is read as if it had. It is written where an API has a place for
opaque state, and whoever made that state, what does not begin as ours does is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from abridge.errors import RequestError
from abridge.turn.conversation import Turn
from abridge.wire.codec import Json

PREFIX = "abr1."
"""Begins every blob of ours."""

DAMAGED = "invalid_encrypted_content"
"""The code of the refusal of one that does not open."""


@dataclass(slots=True, frozen=True)
class Envelope:
    """`reasoning`: items on Responses, keys of a message on Chat Completions. `item` is the id of
    the item it stands in; `calls` are the ids of the calls said with it, `text` the text, where
    those are known by then. What the client sends of them must be the same."""

    reasoning: list[Json]
    item: str = ""
    calls: tuple[str, ...] | None = None
    text: str | None = None

    def fits(self, turn: Turn, item: str = "") -> bool:
        """Whether it is this turn's, and stood in this item; clients may leave out an item's id."""
        calls = tuple(call.id for call in turn.calls)
        return (
            turn.role == "assistant"
            and (not item or item == self.item)
            and (self.calls is None or self.calls == calls)
            and (self.text is None or self.text == turn.text)
        )


Seal: TypeAlias = Callable[[Envelope], str]
"""Makes a blob; empty where there is to be none."""

Open: TypeAlias = Callable[[str, str, Turn, str], Envelope | None]
"""Opens the blob that stands in a field, of a turn, in the item of this id, if in one. None where
it is to be left out: it belongs elsewhere, or the turn is another by now. Raises RequestError for
one that is damaged."""


def damaged(param: str) -> RequestError:
    """That what begins as ours cannot be opened."""
    return RequestError(
        f"The encrypted content in {param} could not be verified.",
        param=param,
        code=DAMAGED,
    )


def is_ours(state: object) -> bool:
    return isinstance(state, str) and state.startswith(PREFIX)
