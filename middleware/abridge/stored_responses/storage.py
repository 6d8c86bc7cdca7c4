"""Store an answer: here where upstream stores none, else by a note beside upstream's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from abridge.apis.display import Display
from abridge.apis.json import objects, packed, string
from abridge.apis.responses.shapes import ECHOED
from abridge.core.conversation import Json
from abridge.core.events import ResponseEnded
from abridge.stored_responses.repository import (
    InputItems,
    LocalRecord,
    ResponseRepository,
    UpstreamRecord,
)
from abridge.stored_responses.views import find_summaries
from abridge.work import Work

CHANGED_RESPONSE_FIELDS = ("reasoning", "usage", "reasoning_summary_usage")
"""Fields of a response that differ where a summary was made. What a response repeats of its request
is noted where raw reasoning is hidden, since upstream's own account of that is not shown."""


class FinishedResponse(NamedTuple):
    """A response as it was shown."""

    response: Json
    ended: ResponseEnded
    display: Display
    work: Work  # that on the answer


class StorageAction(Protocol):
    """Stores what is needed of one answer."""

    async def save(self, finished: FinishedResponse) -> None:
        """Store a finished response."""


@dataclass(slots=True, frozen=True)
class StoreLocally:
    """Store the response here."""

    repository: ResponseRepository
    upstream: str
    input_items: InputItems  # items the answer is made from
    work: Work  # that on the request

    async def save(self, finished: FinishedResponse) -> None:
        await self.save_response(finished.response, finished.work)

    async def save_input(self) -> StoreLocally:
        """Store the input alone; return what stores the response without it."""
        await self.repository.save_items(self.input_items.new)
        return replace(self, input_items=self.input_items.stored())

    async def refresh_input(self) -> None:
        """Restart the lifetime of the input, which was stored before."""
        await self.repository.refresh(await self.repository.find_items(self.input_items.ids))

    async def save_response(self, response: Json, work: Work) -> None:
        output = await work.run(_pack_output, response)
        without_output = {**response, "output": []}
        local = LocalRecord(self.upstream, without_output, self.input_items.ids, list(output))
        response_id = string(response.get("id"))
        items = {**self.input_items.new, **output}
        await self.repository.save_local(response_id, local, items, self.work)


@dataclass(slots=True, frozen=True)
class NoteUpstream:
    """Note what Abridge made of a response that upstream stores, and, where all clients share
    upstream's key, for whom it was made."""

    repository: ResponseRepository
    upstream: str
    shares_key: bool = False

    async def save(self, finished: FinishedResponse) -> None:
        response, ended, display, _ = finished
        summaries = ended.summaries.values()
        has_summary = any(summary.parts or summary.error is not None for summary in summaries)
        response_id = string(response.get("id"))
        if not response_id or response.get("store") is False:
            return
        if self.shares_key:
            items = (string(item.get("id")) for item in objects(response.get("output")))
            await self.repository.note_owner([response_id, *filter(None, items)], self.upstream)
        if not (ended.ok and (has_summary or not display.show_raw)):
            return
        names = (*CHANGED_RESPONSE_FIELDS, *(ECHOED if display.hides_raw else ()))
        fields = {key: response[key] for key in names if key in response}
        item_summaries = find_summaries(response.get("output")) if has_summary else {}
        await self.repository.save_upstream(
            response_id, UpstreamRecord(self.upstream, display.show_raw, fields, item_summaries)
        )


class StoreNothing:
    """Store nothing: whoever runs the background response does."""

    async def save(self, finished: FinishedResponse) -> None:
        """Do nothing."""


@dataclass(slots=True, frozen=True)
class ExtendConversation:
    """Append the input and the output of a finished response to a conversation stored here, and
    store the response."""

    repository: ResponseRepository
    conversation_id: str
    added_ids: Sequence[str]  # of the items that the request adds
    new_items: Mapping[str, bytes]  # those among them that were not stored before
    response: StorageAction

    async def save(self, finished: FinishedResponse) -> None:
        await self.response.save(finished)
        if finished.ended.ok:
            output = await finished.work.run(_pack_output, finished.response)
            await self.repository.extend_conversation(
                self.conversation_id, [*self.added_ids, *output], {**self.new_items, **output}
            )


def _pack_output(response: Json) -> dict[str, bytes]:
    """Return the items of a response by id, as they are stored."""
    return {string(item.get("id")): packed(item) for item in objects(response.get("output"))}
