"""What reasoning answers, by which its envelope is bound to its conversation.

That is the tool call that was made or answered last before it, by its id, or else the messages of
the user that it answers, by their text. Both are still there in the histories of clients that drop
ids of items, shorten the output of tools, or leave out the oldest turns. A call whose id is not
random, such as `call_0`, tells no conversation from another and is passed over.
"""

from __future__ import annotations

from hashlib import blake2b

from abridge.core.conversation import is_random_id

PLACE_BYTES = 16
"""Length of a place, in bytes."""


class PlaceTracker:
    """Follow a conversation, and know the place of reasoning that comes next."""

    def __init__(self) -> None:
        self._call_id = ""
        self._question = blake2b(digest_size=PLACE_BYTES)
        self._texts: list[str] = []  # of the question, yet to be digested: few places are asked for
        self._is_answered = False  # the next text of the user is not part of the same question

    def add_question(self, text: str) -> None:
        """Take a text of the user's."""
        if self._is_answered:
            self._question, self._texts = blake2b(digest_size=PLACE_BYTES), []
            self._is_answered = False
        self._texts.append(text)
        self._call_id = ""

    def add_answer(self) -> None:
        """Take something that is the assistant's, or the output of a tool."""
        self._is_answered = True

    def add_call(self, call_id: str) -> None:
        """Take a call, or its output."""
        self.add_answer()
        if is_random_id(call_id):
            self._call_id = call_id

    @property
    def place(self) -> bytes:
        return place_after_call(self._call_id) or self._place_after_question()

    def _place_after_question(self) -> bytes:
        for text in self._texts:
            encoded = text.encode(errors="surrogatepass")
            self._question.update(len(encoded).to_bytes(8, "big") + encoded)
        self._texts.clear()
        return b"user " + self._question.digest()


def place_after_call(call_id: str) -> bytes | None:
    """Return the place after a call; None if the call has no random id."""
    if not is_random_id(call_id):
        return None
    encoded = call_id.encode(errors="surrogatepass")
    return b"call " + blake2b(encoded, digest_size=PLACE_BYTES).digest()
