"""What upstream says of a response that it keeps, as its client was shown it."""

from __future__ import annotations

from dataclasses import dataclass

from abridge.history.responses import Elsewhere, Responses
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display
from abridge.wire.responses.again import items_again, response_again
from abridge.wire.responses.attributing import attribute_response
from abridge.wire.responses.items import is_reasoning

DELETED = ("id", "object", "deleted")


@dataclass(slots=True, frozen=True)
class Again:
    """Each method says a body anew, and returns None for one that it cannot read. `masked`:
    upstream's summaries are its reasoning. `room`: characters of reasoning that are kept where
    calls are attributed; 0 where they are not."""

    elsewhere: Elsewhere
    responses: Responses | None
    display: Display
    masked: bool
    room: int

    async def response(self, body: Json) -> Json | None:
        said = self.elsewhere
        shown = response_again(body, self.display, said.fields, said.made, masked=self.masked)
        return attribute_response(shown, self.room) if shown and self.room else shown

    async def items(self, body: Json) -> Json | None:
        """A list of items, which may have been shown in any response."""
        made: Json = {}
        if self.responses is not None:
            thoughts = filter(is_reasoning, objects(body.get("data")))
            names = await self.responses.shown_in([string(item.get("id")) for item in thoughts])
            for record in await self.responses.find(*dict.fromkeys(filter(None, names))):
                made |= record.made if isinstance(record, Elsewhere) else {}
        return items_again(body, self.display, made, masked=self.masked)

    async def deleted(self, body: Json) -> Json | None:
        return {key: body[key] for key in DELETED if key in body}
