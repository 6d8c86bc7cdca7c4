"""What a connection remembers of its responses, so that the next request need only add to them.

The latest response of each stream is remembered, as OpenAI's WebSocket mode has it, in memory and
no longer than the connection lasts: this needs no store, and holds for `store: false` as well. A
response that says of itself that it is stored is continued by its id, as over HTTP. One that cannot
be remembered is not found when it is to be continued; clients then send their whole conversation.
"""

from __future__ import annotations

from dataclasses import dataclass

from abridge.apis.json import dumps, objects, packed, string
from abridge.apis.responses.messages import read_input_items
from abridge.apis.responses.reasoning import is_reasoning
from abridge.client_shares import ClientShares
from abridge.core.conversation import Json
from abridge.stored_responses.references import PREVIOUS_RESPONSE_ID
from abridge.websocket.events import Create

REMEMBERED_BYTES = 128 << 20
"""Bytes of conversations that all connections remember together; one client gets its share."""


@dataclass(slots=True, frozen=True)
class Conversation:
    """A conversation: the JSON of its items, which follow on a response that is stored."""

    items: tuple[bytes, ...] = ()
    stored_before: str = ""  # id of that response, if there is one

    @property
    def size(self) -> int:
        return sum(map(len, self.items))

    def followed_by(self, items: tuple[bytes, ...]) -> Conversation:
        return Conversation(self.items + items, self.stored_before)


def with_input(create: Create, before: Conversation | None) -> Conversation:
    """Return the conversation of a request, with what was remembered of it."""
    if before is None:
        before = Conversation((), string(create.fields.get(PREVIOUS_RESPONSE_ID)))
    return before.followed_by(tuple(map(packed, read_input_items(create.fields))))


def with_output(conversation: Conversation, output: object) -> Conversation:
    """Return the conversation with the items of a response's output.

    Reasoning that upstream keeps itself, and gave no state of, is left out: upstream stores nothing
    of it for HTTP, and OpenAI refuses its id ("Items are not persisted when `store` is set to
    false"), and then the ids of what came after it.
    """
    items = objects(output)
    kept = [
        item
        for item in items
        if not is_reasoning(item) or item.get("encrypted_content") or item.get("content")
    ]
    if len(kept) < len(items):
        kept = [{key: item[key] for key in item if key != "id"} for item in kept]
    return conversation.followed_by(tuple(map(packed, kept)))


def write_body(create: Create, conversation: Conversation, *, continued: bool) -> bytes:
    """Write a request's body, with all of its conversation if it continues one."""
    if not continued:
        return dumps(create.fields)
    left_out = ("input", PREVIOUS_RESPONSE_ID)
    fields: Json = {key: value for key, value in create.fields.items() if key not in left_out}
    if conversation.stored_before:
        fields[PREVIOUS_RESPONSE_ID] = conversation.stored_before
    return b'{"input":[%b],%b' % (b",".join(conversation.items), dumps(fields)[1:])


class Conversations:
    """The conversations of one connection: the latest of each stream, by its response's id.

    `shares` is what all connections have, in bytes; one of more than `limit` bytes is not kept,
    since it could not be sent again.
    """

    def __init__(self, shares: ClientShares, client: str, limit: int) -> None:
        self._shares = shares
        self._client = client
        self._limit = limit
        self._latest: dict[str | None, tuple[str, Conversation]] = {}

    def find(self, response_id: str) -> Conversation | None:
        if not response_id:
            return None
        return next(
            (conversation for name, conversation in self._latest.values() if name == response_id),
            None,
        )

    def remember(self, stream_id: str | None, response_id: str, conversation: Conversation) -> None:
        """Remember a response in the place of the one before it, if there is room."""
        self.forget(stream_id)
        fits = conversation.size <= self._limit
        if response_id and fits and self._shares.take(self._client, conversation.size):
            self._latest[stream_id] = (response_id, conversation)

    def forget(self, stream_id: str | None) -> None:
        if before := self._latest.pop(stream_id, None):
            self._shares.give_back(self._client, before[1].size)

    def close(self) -> None:
        for stream_id in list(self._latest):
            self.forget(stream_id)
