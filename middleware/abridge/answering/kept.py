"""Operations on a response that Abridge stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from abridge.history.responses import Responses, Stored, is_reasoning
from abridge.wire.codec import Json, loads_exactly
from abridge.wire.responses.listing import Page, listing
from abridge.wire.responses.stored import no_response


@dataclass(slots=True, frozen=True)
class Kept:
    """A response stored here; methods raise RequestError if it is gone."""

    identity: str
    stored: Stored
    responses: Responses

    async def whole(self) -> Json:
        output = [item for _, item in await self._items(self.stored.output)]
        if len(output) < len(self.stored.output):
            raise no_response(self.identity)
        return {**self.stored.response, "output": output}

    async def input_items(self, query: bytes) -> Json:
        """List the input, without reasoning that has expired."""
        names, more = Page.read(query).of(self.stored.basis)
        return listing(await self._items(names), more=more)

    async def delete(self) -> Json:
        await self.responses.forget(self.identity)
        return {"id": self.identity, "object": "response", "deleted": True}

    async def _items(self, names: Sequence[str]) -> list[tuple[str, Json]]:
        found = list(zip(names, await self.responses.items(names), strict=True))
        if any(item is None and not is_reasoning(name) for name, item in found):
            raise no_response(self.identity)
        return [(name, loads_exactly(item)) for name, item in found if item is not None]
