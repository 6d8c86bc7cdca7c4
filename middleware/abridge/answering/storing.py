"""Store an answer: here where upstream stores none, else by a note beside upstream's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from abridge.history.responses import Basis, Elsewhere, Responses, Stored
from abridge.turn.events import Ended
from abridge.wire.codec import Json, objects, packed, string
from abridge.wire.display import Display
from abridge.wire.responses.again import FIELDS, made_in


class Storing(Protocol):
    """Stores what is needed of one answer."""

    async def keep(self, response: Json, ended: Ended, display: Display) -> None:
        """Store a finished response, as it was shown."""


@dataclass(slots=True, frozen=True)
class Here:
    """Store the response here."""

    responses: Responses
    upstream: str
    basis: Basis  # items the answer is made from

    async def keep(self, response: Json, ended: Ended, display: Display) -> None:  # noqa: ARG002
        output = {string(item.get("id")): packed(item) for item in objects(response.get("output"))}
        rest = {**response, "output": []}
        stored = Stored(self.upstream, rest, self.basis.ids, list(output))
        identity = string(response.get("id"))
        await self.responses.keep(identity, stored, {**self.basis.new, **output})


@dataclass(slots=True, frozen=True)
class There:
    """Note what Abridge made of a response that upstream stores."""

    responses: Responses
    upstream: str

    async def keep(self, response: Json, ended: Ended, display: Display) -> None:
        summaries = ended.summaries.values()
        ours = any(summary.parts or summary.trouble is not None for summary in summaries)
        identity = string(response.get("id"))
        if not (identity and ended.ok and (ours or not display.raw)):
            return
        if response.get("store") is False:
            return
        fields = {key: response[key] for key in FIELDS if key in response}
        made = made_in(response.get("output")) if ours else {}
        await self.responses.note(identity, Elsewhere(self.upstream, display.raw, fields, made))
