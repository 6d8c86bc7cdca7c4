"""What upstream says of a response that it keeps, as its client was shown it."""

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
    """Each method says a body anew, and returns None for one that it cannot read. `masked`:
    upstream's summaries are its reasoning. `attributed` is how much reasoning calls are attributed
    with at most; None where they are left alone."""

    elsewhere: Elsewhere
    responses: Responses | None
    display: Display
    masked: bool
    attributed: int | None

    async def response(self, body: Json) -> Json | None:
        said, limit = self.elsewhere, self.attributed
        again = response_again(body, self.display, said.fields, said.made, masked=self.masked)
        return again if again is None or limit is None else attribute_response(again, limit)

    async def items(self, body: Json) -> Json | None:
        """A list of items, which may have been shown in any response."""
        made = dict(self.elsewhere.made)
        if self.responses is not None:
            thoughts = filter(is_reasoning, objects(body.get("data")))
            names = await self.responses.shown_in([string(item.get("id")) for item in thoughts])
            for record in await self.responses.find(*dict.fromkeys(filter(None, names))):
                made |= record.made if isinstance(record, Elsewhere) else {}
        again = items_again(body, self.display, made, masked=self.masked)
        if again is not None and not self.display.raw:
            again["data"] = list(map(Items(0).read, again["data"]))
        return again

    async def deleted(self, body: Json) -> Json | None:
        return {key: body[key] for key in DELETED if key in body}
