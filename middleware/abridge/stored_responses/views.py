"""Stored responses as their client is shown them.

A response stored here was stored as it was shown. Of one that upstream stores, its raw reasoning is
hidden where the client must not see it, and what Abridge had added is added again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from abridge.apis.display import Display
from abridge.apis.json import as_object, objects, string
from abridge.apis.responses.reasoning import (
    as_shown,
    is_raw_summary,
    is_reasoning,
    rename_raw_summary,
    rename_raw_summary_in_response,
    summary_is_raw,
    without_raw_content,
)
from abridge.apis.responses.shapes import DELETED, ECHOED, ITEM_LIST, ResponsesRebuilder
from abridge.apis.responses.texts import hide_thinking
from abridge.apis.responses.tools import ItemAttributor, attribute_response
from abridge.apis.responses.writer import snapshot
from abridge.apis.shapes import DropCount
from abridge.core.conversation import Json
from abridge.core.events import NO_SUMMARY
from abridge.errors import RequestError
from abridge.providers.profile import Profile
from abridge.stored_responses.listing import PageQuery, list_page
from abridge.stored_responses.repository import LocalRecord, ResponseRepository, UpstreamRecord
from abridge.work import Work

CHANGED_ITEM_FIELDS = ("summary", "summary_error")
"""Fields of a reasoning item that differ."""

ShownSummaries = Mapping[str, Any]
"""Summary fields that reasoning items were shown with, by item id."""


@dataclass(slots=True, frozen=True)
class LocalView:
    """A response stored here; methods raise RequestError if it is gone."""

    response_id: str
    record: LocalRecord
    repository: ResponseRepository

    async def whole_response(self) -> Json:
        output = [item for _, item in await self._load_items(self.record.output)]
        if len(output) < len(self.record.output):
            raise response_not_found(self.response_id)
        return {**self.record.response, "output": output}

    async def input_items(self, query: bytes) -> Json:
        """List the input, without reasoning that has expired."""
        item_ids, more = PageQuery.parse(query).select(self.record.basis)
        items = await self._load_items(item_ids)
        return await Work(heavy=True).run(list_page, items, has_more=more)

    async def delete(self) -> Json:
        await self.repository.delete(self.response_id)
        return {"id": self.response_id, "object": "response", "deleted": True}

    async def _load_items(self, item_ids: Sequence[str]) -> list[tuple[str, Json]]:
        return await self.repository.load_items(item_ids, response_not_found(self.response_id))


@dataclass(slots=True, frozen=True)
class UpstreamView:
    """The client's view of a response that upstream stores.

    Each method rewrites a body, and returns None if it cannot be read.
    """

    record: UpstreamRecord
    repository: ResponseRepository | None
    display: Display
    profile: Profile | None  # upstream's; None if the response is as its client was shown it
    attribution_limit: int | None  # characters of reasoning per call; None: no attribution
    drops: DropCount = field(default_factory=DropCount)  # what was not understood

    async def rewrite_response(self, body: Json) -> Json | None:
        view = await Work(heavy=True).run(self.response_as_shown, body)
        limit = self.attribution_limit
        return view if view is None or limit is None else attribute_response(view, limit)

    async def rewrite_items(self, body: Json) -> Json | None:
        """Rewrite a list of items, each of which may have been shown in any response."""
        summaries = self.record.made
        if self.repository is not None:
            summaries = await _find_summaries(objects(body.get("data")), self.repository)
        view = await Work(heavy=True).run(self.items_as_shown, body, summaries)
        if view is not None and not self.display.show_raw:
            view["data"] = list(map(ItemAttributor(0).attribute, view["data"]))
        return view

    async def rewrite_deleted(self, body: Json) -> Json | None:
        deleted: Json = DELETED(body, self.drops)
        return deleted

    def response_as_shown(self, response: Json) -> Json | None:
        """Return upstream's response as its client was shown it; None if it cannot be read."""
        if not isinstance(response.get("output"), list):
            return None
        display, profile, fields = self.display, self.profile, self.record.fields
        response = rename_raw_summary_in_response(response, always=self._summary_is_raw)
        if profile is not None and display.hides_raw:
            response = ResponsesRebuilder({}, self.drops).rebuild_response(response)
            output = hide_thinking(response["output"], profile, display.hidden, is_output=True)
            response = {**response, "output": output}
        style = as_object(response.get("reasoning")).get("summary")
        shown = snapshot(response, replace(display, style=style))
        if not display.show_summary:
            return {**shown, **{key: fields[key] for key in ECHOED if key in fields}}
        output = [_with_summary(item, self.record.made) for item in shown["output"]]
        return {**shown, **fields, "output": output}

    def items_as_shown(self, body: Json, summaries: ShownSummaries) -> Json | None:
        """Return a list of items as they were shown; None if it cannot be read."""
        if not isinstance(body.get("data"), list):
            return None
        display, profile, is_raw = self.display, self.profile, self._summary_is_raw
        if profile is not None and display.hides_raw:
            body = ITEM_LIST(body, self.drops)
            data = hide_thinking(body["data"], profile, display.hidden, is_output=False)
            body = {**body, "data": data}
        shown = [_item_as_shown(item, display, is_raw=is_raw) for item in body["data"]]
        if display.show_summary:
            shown = [_with_summary(item, summaries) for item in shown]
        return {**body, "data": shown}

    @property
    def _summary_is_raw(self) -> bool:
        return self.profile is not None and summary_is_raw(self.profile, self.display)


def find_summaries(items: Any) -> Json:
    """Return the summary fields of reasoning items, which upstream's own may lack, by item id."""
    summaries = {
        string(item.get("id")): {key: item[key] for key in CHANGED_ITEM_FIELDS if item.get(key)}
        for item in filter(is_reasoning, objects(items))
    }
    return {item_id: fields for item_id, fields in summaries.items() if item_id and fields}


def _item_as_shown(item: Any, display: Display, *, is_raw: bool) -> Any:
    """Return an item of a list as it was shown. Items of a response go through `snapshot`."""
    if is_raw or is_raw_summary(item):
        item = rename_raw_summary(item)
    if is_reasoning(item):
        return as_shown(item, NO_SUMMARY, display)
    return without_raw_content(item, display)


def _with_summary(item: Any, summaries: ShownSummaries) -> Any:
    return {**item, **summaries.get(string(item.get("id")), {})} if is_reasoning(item) else item


async def _find_summaries(items: list[Json], repository: ResponseRepository) -> Json:
    """Find the summaries of reasoning items, in all of the tenant's responses."""
    reasoning_ids = [string(item.get("id")) for item in items if is_reasoning(item)]
    response_ids = await repository.find_showing(reasoning_ids)
    unique_ids = list(dict.fromkeys(response_ids))
    records = dict(zip(unique_ids, await repository.find(*unique_ids), strict=True))
    summaries: Json = {}
    for reasoning_id, response_id in zip(reasoning_ids, response_ids, strict=True):
        record = records[response_id]
        if isinstance(record, UpstreamRecord) and reasoning_id in record.made:
            summaries[reasoning_id] = record.made[reasoning_id]
    return summaries


def response_not_found(response_id: str) -> RequestError:
    return RequestError(f"Response with id '{response_id}' not found.", status=404)
