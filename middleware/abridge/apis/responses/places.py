"""What reasoning answers, by which its envelope is bound to its conversation.

That is the tool call that was made or answered last before it, by its id, or else the messages of
the user that it answers, by their text. Both are still there in the histories of clients that drop
ids of items, shorten the output of tools, or leave out the oldest turns. A call whose id is not
random, such as `call_0`, tells no conversation from another and is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from abridge.apis.json import string
from abridge.core.conversation import Json, is_random_id

PLACE_BYTES = 16
"""Length of a place, in bytes."""


class PlaceTracker:
    """Follow the items of a conversation. `read_text` returns the text of a user's message."""

    def __init__(self, read_text: Callable[[Json], str]) -> None:
        self._read_text = read_text
        self._call_id = ""
        self._question = blake2b(digest_size=PLACE_BYTES)
        self._is_answered = False  # the next message of the user is not part of the same question

    def add(self, item: Json) -> None:
        if item.get("role") == "user":
            self._add_question(self._read_text(item))
            return
        self._is_answered = self._is_answered or _is_answer(item)
        call_id = string(item.get("call_id"))
        if is_random_id(call_id):
            self._call_id = call_id

    def _add_question(self, text: str) -> None:
        if self._is_answered:
            self._question, self._is_answered = blake2b(digest_size=PLACE_BYTES), False
        encoded = text.encode(errors="surrogatepass")
        self._question.update(len(encoded).to_bytes(8, "big") + encoded)
        self._call_id = ""

    @property
    def place(self) -> bytes:
        """The place of reasoning that comes next."""
        return place_after_call(self._call_id) or b"user " + self._question.digest()


def _is_answer(item: Json) -> bool:
    return item.get("role") == "assistant" or "call_id" in item or item.get("type") == "reasoning"


def place_after_call(call_id: str) -> bytes | None:
    """Return the place after a call; None if the call has no random id."""
    if not is_random_id(call_id):
        return None
    encoded = call_id.encode(errors="surrogatepass")
    return b"call " + blake2b(encoded, digest_size=PLACE_BYTES).digest()


def places_in_output(output: Iterable[object]) -> Iterator[bytes | None]:
    """Yield the place of each item of a response; None before its first call."""
    place: bytes | None = None
    for item in output:
        yield place
        if isinstance(item, dict):
            place = place_after_call(string(item.get("call_id"))) or place
