"""The envelopes in which reasoning travels with a client.

An envelope holds reasoning as the client's API would have it if everything were shown, so that it
can be read the same way when it comes back. Its string form is a blob, which is written where an
API has a field for opaque state. State there that does not begin with Abridge's prefix is somebody
else's and left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from abridge.core.conversation import Json

ENVELOPE_PREFIX = "abr1."
"""Begins every blob of Abridge's."""

UNSEALED = f"{ENVELOPE_PREFIX}none"
"""Where an API requires a blob, one of Abridge's that holds nothing. Left empty, the block would be
broken to some clients: Pydantic AI returns the text of one as the user's. The block that it signs
shows a summary, or nothing."""

UNSEALED_RAW = f"{ENVELOPE_PREFIX}raw"
"""The same for a block that shows upstream's own reasoning."""


@dataclass(slots=True, frozen=True)
class Envelope:
    """Sealed reasoning, and what it is bound to, which the client must return unchanged."""

    reasoning: list[Json]  # items on Responses, keys of a message on Chat Completions
    item_id: str = ""  # id of the item that contains it
    place: bytes | None = None
    """What it is bound to: a digest of the answer that it is part of or, on Responses, of what it
    answers. None binds it to what the request ends with (see `History.next_place`)."""
    holds_answer: bool = False
    """Something of the visible answer stands in `reasoning`, too."""


SealEnvelope: TypeAlias = Callable[[Envelope], str]
"""Returns a blob, or "" if there is to be none."""

OpenEnvelope: TypeAlias = Callable[[str, str, bytes | None, str, Iterable[bytes]], Envelope | None]
"""Opens a blob, given the field that contains it, its place (None if no reasoning can be there),
the id of its item if the client sent one, and other places that it may be from, of which no more is
taken than it needs.

Returns None if the blob is to be left out, since it belongs elsewhere. Raises RequestError if it is
damaged.
"""


def is_envelope(state: object) -> bool:
    return isinstance(state, str) and state.startswith(ENVELOPE_PREFIX)
