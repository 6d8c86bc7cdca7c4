"""Conversations stored here: their metadata and items, as the API has them.

A conversation lives as long as its items: a request that adds to it or continues it starts their
time anew, but for reasoning, which is left to expire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import time

from abridge.apis.openai import mint_id
from abridge.apis.params import (
    check_string,
    iter_objects,
    read_object,
    require_list,
    require_object,
)
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.stored_responses.listing import PageQuery, as_listed, list_page
from abridge.stored_responses.references import (
    CONVERSATION,
    AdmitItems,
    References,
    conversation_not_found,
)
from abridge.stored_responses.repository import ConversationRecord, ResponseRepository, lookup_error
from abridge.work import Work

CONVERSATION_ID_PREFIX = "conv_"

MAX_ITEMS_AT_ONCE = 20
"""Items that a request may add (openai-openapi, `CreateConversationBody`)."""

MAX_PAIRS, MAX_KEY_CHARS, MAX_VALUE_CHARS = 16, 64, 512
"""Bounds of metadata (openai-openapi, `Metadata`)."""

TOO_LARGE_CODES: Mapping[str, str] = {
    "array too long": "array_above_max_length",
    "too many properties": "object_above_max_properties",
    "property name too long": "property_name_above_max_length",
    "string too long": "string_above_max_length",
}
"""Codes of errors, by what is wrong."""


@dataclass(slots=True, frozen=True)
class LocalConversation:
    """A conversation stored here. Methods return what clients are answered, and raise RequestError
    for what cannot be done. `admit` is told the JSON of all items of one that is to grow."""

    conversation_id: str
    record: ConversationRecord
    repository: ResponseRepository

    @classmethod
    async def create(
        cls, repository: ResponseRepository, body: Json, admit: AdmitItems, work: Work
    ) -> Json:
        metadata = _read_metadata(body)
        ids, new = await _read_items(repository, body, "", admit, work)
        record = ConversationRecord(int(time()), metadata, ids)
        created = cls(mint_id(CONVERSATION_ID_PREFIX), record, repository)
        await repository.save_conversation(created.conversation_id, record, new)
        return created.retrieve()

    def retrieve(self) -> Json:
        return {
            "id": self.conversation_id,
            "object": "conversation",
            "created_at": self.record.created_at,
            "metadata": self.record.metadata,
        }

    async def update(self, body: Json) -> Json:
        if "metadata" not in body:
            require_object(body, "metadata")
        return await self._save(replace(self.record, metadata=_read_metadata(body)))

    async def delete(self) -> Json:
        await self.repository.delete(self.conversation_id, "conversation")
        return {"id": self.conversation_id, "object": "conversation.deleted", "deleted": True}

    async def add_items(self, body: Json, admit: AdmitItems, work: Work) -> Json:
        require_list(body, "items")
        ids, new = await _read_items(self.repository, body, self.conversation_id, admit, work)
        await self.repository.extend_conversation(self.conversation_id, ids, new)
        return list_page(await self._load(ids), has_more=False)

    async def list_items(self, query: bytes) -> Json:
        """List a page of items, without reasoning that has expired."""
        ids, more = PageQuery.parse(query).select(self.record.items)
        items = await self._load(ids)
        return await Work(heavy=True).run(list_page, items, has_more=more)

    async def retrieve_item(self, item_id: str) -> Json:
        found = await self._load([item_id]) if item_id in self.record.items else []
        if not found:
            raise lookup_error(self._item_not_found(item_id), self.repository)
        return as_listed(found[0][1], item_id)

    async def delete_item(self, item_id: str) -> Json:
        if item_id not in self.record.items:
            raise self._item_not_found(item_id)
        remaining = [name for name in self.record.items if name != item_id]
        return await self._save(replace(self.record, items=remaining))

    async def _save(self, record: ConversationRecord) -> Json:
        """Store the conversation; its items live as long."""
        await self.repository.refresh(await self.repository.find_items(record.items))
        await self.repository.save_conversation(self.conversation_id, record, {})
        return replace(self, record=record).retrieve()

    async def _load(self, item_ids: Sequence[str]) -> list[tuple[str, Json]]:
        return await self.repository.load_items(
            item_ids, conversation_not_found(self.conversation_id)
        )

    def _item_not_found(self, item_id: str) -> RequestError:
        return RequestError(
            f"Item with id '{item_id}' not found in conversation '{self.conversation_id}'.",
            status=404,
        )


async def _read_items(
    repository: ResponseRepository, body: Json, conversation_id: str, admit: AdmitItems, work: Work
) -> tuple[list[str], dict[str, bytes]]:
    """Return the ids of the items that a request adds to a conversation, and those that are new."""
    items = [item for item, _ in iter_objects(body.get("items"), "items")]
    if len(items) > MAX_ITEMS_AT_ONCE:
        raise _too_large("items", "array too long", MAX_ITEMS_AT_ONCE, len(items))
    references = await work.run(
        References,
        {"input": items, CONVERSATION: conversation_id},
        resolve_all=True,
        include_returned=True,
        param="items",
    )
    await references.look_up(repository)
    added = await work.run(references.add_to_input_items, repository.create_input_items())
    await admit([*references.resolved, *added.new.values()])
    return added.ids[len(references.history_ids) :], added.new


def _read_metadata(body: Json) -> Json:
    metadata = read_object(body, "metadata")
    if len(metadata) > MAX_PAIRS:
        raise _too_large("metadata", "too many properties", MAX_PAIRS, len(metadata))
    for key, entry in metadata.items():
        param = f"metadata.{key:.{MAX_KEY_CHARS}}"
        if len(key) > MAX_KEY_CHARS:
            raise _too_large(param, "property name too long", MAX_KEY_CHARS, len(key))
        if len(check_string(entry, param)) > MAX_VALUE_CHARS:
            raise _too_large(param, "string too long", MAX_VALUE_CHARS, len(entry))
    return metadata


def _too_large(param: str, problem: str, limit: int, size: int) -> RequestError:
    return RequestError(
        f"Invalid '{param}': {problem}. The maximum is {limit}, but got {size}.",
        param=param,
        code=TOO_LARGE_CODES[problem],
    )
