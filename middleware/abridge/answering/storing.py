"""Who stores an answer: Abridge, where upstream has no such thing, else upstream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from abridge.history.responses import Basis, Elsewhere, Responses, Stored
from abridge.turn.events import Ended
from abridge.wire.api import Asked
from abridge.wire.codec import Json, objects, packed, string
from abridge.wire.display import Display
from abridge.wire.responses.again import FIELDS, made_in


class Storing(Protocol):
    """Keeps what one answer makes necessary to keep."""

    def told(self, asked: Asked) -> Asked:
        """What the answer repeats, with what there is to say of its being stored."""

    async def keep(self, response: Json, ended: Ended, display: Display) -> None:
        """A response is over, and was shown like this."""


@dataclass(slots=True, frozen=True)
class Here:
    """Abridge does. `previous` is the id of the response that the request goes on from."""

    responses: Responses
    upstream: str
    basis: Basis
    previous: str

    def told(self, asked: Asked) -> Asked:
        body = {**asked.body, "previous_response_id": self.previous or None}
        return replace(asked, body=body, stored=True)

    async def keep(self, response: Json, ended: Ended, display: Display) -> None:  # noqa: ARG002
        output = {string(item.get("id")): packed(item) for item in objects(response.get("output"))}
        rest = {**response, "output": []}
        stored = Stored(self.upstream, rest, self.basis.ids, list(output))
        identity = string(response.get("id"))
        await self.responses.keep(identity, stored, {**self.basis.new, **output})


@dataclass(slots=True, frozen=True)
class There:
    """An upstream of this name does, without what Abridge made of it."""

    responses: Responses
    upstream: str

    def told(self, asked: Asked) -> Asked:
        return asked

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
