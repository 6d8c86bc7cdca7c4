"""Rewrite upstream's answers about stored responses to what the client was shown."""

from __future__ import annotations

from dataclasses import dataclass

from abridge.history.responses import Elsewhere, Responses
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display
from abridge.wire.responses.again import items_again, response_again
from abridge.wire.responses.attributing import Items, attribute_response
from abridge.wire.responses.items import is_reasoning

DELETED = ("id", "object", "deleted")


@dataclass(slots=True, frozen=True)
class Again:
    """The client's view of a response that upstream stores.

    Each method rewrites a body, and returns None if it cannot be read.
    """

    elsewhere: Elsewhere
    responses: Responses | None
    display: Display
    masked: bool  # upstream's "summaries" are raw reasoning
    attributed: int | None  # characters of reasoning per call; None: no attribution

    async def response(self, body: Json) -> Json | None:
        said, limit = self.elsewhere, self.attributed
        again = response_again(body, self.display, said.fields, said.made, masked=self.masked)
        return again if again is None or limit is None else attribute_response(again, limit)

    async def items(self, body: Json) -> Json | None:
        """Rewrite a list of items, each of which may have been shown in any response."""
        made = self.elsewhere.made
        if self.responses is not None:
            made = await _made(objects(body.get("data")), self.responses)
        again = items_again(body, self.display, made, masked=self.masked)
        if again is not None and not self.display.raw:
            again["data"] = list(map(Items(0).read, again["data"]))
        return again

    async def deleted(self, body: Json) -> Json | None:
        return {key: body[key] for key in DELETED if key in body}


async def _made(items: list[Json], responses: Responses) -> Json:
    """Find the summaries of reasoning items, in all of the tenant's responses."""
    thoughts = [string(item.get("id")) for item in items if is_reasoning(item)]
    names = await responses.shown_in(thoughts)
    different = list(dict.fromkeys(names))
    records = dict(zip(different, await responses.find(*different), strict=True))
    made: Json = {}
    for thought, name in zip(thoughts, names, strict=True):
        record = records[name]
        if isinstance(record, Elsewhere) and thought in record.made:
            made[thought] = record.made[thought]
    return made
