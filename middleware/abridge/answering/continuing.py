"""What a request says by reference, put in its place: a conversation that goes on, single items.

Over a bridge that is all it refers to: upstream has no such thing. An upstream that speaks the
client's own API keeps responses itself, but cannot know those of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from abridge.answering.storing import Here, Storing, There
from abridge.errors import RequestError
from abridge.exchange.request import Request
from abridge.history.responses import Basis, Responses, Stored, is_reasoning
from abridge.history.visit import Visit
from abridge.wire.api import Asked
from abridge.wire.asking.require import a_list
from abridge.wire.codec import Json, loads_exactly, packed, string
from abridge.wire.mint import is_minted
from abridge.wire.responses.stored import (
    given,
    is_same,
    named_by,
    no_item,
    no_previous,
    own_id,
    prefix_of,
)

PREVIOUS = "previous_response_id"

_PLACE = re.compile(r"\binput\[(\d+)\]([\w.\[\]]*)")


@dataclass(slots=True, frozen=True)
class Continued:
    """What became of a request. `previous` is the id of the response that it goes on from; `before`
    are the items that stand before its own by now. `storing` stores its answer, if that is to be
    stored."""

    storing: Storing | None = None
    previous: str = ""
    before: int = 0

    def told(self, asked: Asked) -> Asked:
        """What the answer repeats, over a bridge."""
        body = {**asked.body, PREVIOUS: self.previous or None}
        return replace(asked, body=body, stored=self.storing is not None)

    def as_asked(self, error: RequestError) -> RequestError:
        """The error, with the client's own items where the client has them."""
        if not (self.before and error.param):
            return error
        message, param = (_PLACE.sub(self._place, text) for text in (str(error), error.param))
        return RequestError(
            message, status=error.status, kind=error.kind, param=param, code=error.code
        )

    def _place(self, found: re.Match[str]) -> str:
        place = int(found[1]) - self.before
        return f"input[{place}]{found[2]}" if place >= 0 else PREVIOUS


class Continuing:
    """`limit` bounds what a request may come to, in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def go_on(self, request: Request, visit: Visit, *, crosses: bool) -> Continued:
        """Make a request say itself what it refers to. Raises RequestError for what is not
        there."""
        responses = Responses.of(visit.past, visit.whose.tags if visit.whose is not None else None)
        if not request.api.stores or (crosses and responses is None):
            return Continued()
        wanted = request.data.get("store") in (None, True)
        told = _Told(request.data, everything=crosses)
        await told.look_up(responses, own=crosses and wanted)
        if told.size + len(request.clear) > self._limit:
            raise _too_large(self._limit)
        request.taken.keep(told.size)
        storing = None
        if responses is not None and wanted:
            storing = _storing(responses, told, visit, crosses=crosses)
        before = told.write() if told else None
        request.changed = before is not None or request.changed
        return Continued(storing, told.previous, before or 0)


class _Told:
    """What one request refers to: `everything`, or only what is ours by its id."""

    def __init__(self, body: Json, *, everything: bool) -> None:
        previous, items = string(body.get(PREVIOUS)), given(body)
        self.previous = previous if everything or is_minted(previous) else ""
        self._body = body
        self._given = [(named_by(item), item) for item in items]
        if not everything:
            self._given = [(name if is_minted(name) else "", item) for name, item in self._given]
        self._history: list[str] = []
        self._items: dict[str, bytes] = {}

    async def look_up(self, responses: Responses | None, *, own: bool) -> None:
        """With `own`, items of ours that the client sends back itself, too. Raises RequestError for
        what is not there."""
        if responses is not None:
            await self._fetch(responses, own=own)
        elif self.previous:
            raise no_previous(self.previous)
        for place, (name, _) in enumerate(self._given):
            if name and name not in self._items:
                raise no_item(name, place)

    async def _fetch(self, responses: Responses, *, own: bool) -> None:
        if self.previous:
            (record,) = await responses.find(self.previous)
            if not isinstance(record, Stored):
                raise no_previous(self.previous)
            self._history = [*record.basis, *record.output]
        asked = (name or (own_id(item) if own else "") for name, item in self._given)
        names = list(dict.fromkeys([*self._history, *filter(None, asked)]))
        found = zip(names, await responses.items(names), strict=True)
        self._items = {name: item for name, item in found if item is not None}
        if any(name not in self._items and not is_reasoning(name) for name in self._history):
            raise no_previous(self.previous)
        await responses.refresh(self._items)

    @property
    def size(self) -> int:
        """What all of it comes to, in bytes."""
        names = [*self._history, *(name for name, _ in self._given)]
        return sum(len(self._items.get(name, b"")) for name in names)

    def basis(self, basis: Basis) -> Basis:
        """Say what the answer is made from. A client may send back an item of ours as it was, which
        is then known, or another under its id."""
        for name in self._history:
            if name in self._items:
                basis.know(name)
        for name, item in self._given:
            if not isinstance(item, dict):
                continue  # which is refused where the request is read
            known = name or own_id(item)
            kept = self._items.get(known)
            unchanged = kept is not None and (name or is_same(loads_exactly(kept), item))
            if not (unchanged and basis.know(known)):
                said = loads_exactly(kept) if name and kept is not None else item
                basis.add(prefix_of(said), packed(said))
        return basis

    def __bool__(self) -> bool:
        return bool(self.previous) or any(name for name, _ in self._given)

    def write(self) -> int:
        """Put it all in its place; return how many items then stand before the client's own."""
        if self._body.get("input") is not None and not self._given:
            a_list(self._body["input"], "input")
        history = [self._items[name] for name in self._history if name in self._items]
        said = [loads_exactly(self._items[name]) if name else item for name, item in self._given]
        self._body["input"] = [*map(loads_exactly, history), *said]
        if self.previous:
            del self._body[PREVIOUS]
        return len(history)


def _storing(responses: Responses, told: _Told, visit: Visit, *, crosses: bool) -> Storing:
    upstream = visit.route.upstream.name
    if crosses:
        return Here(responses, upstream, told.basis(responses.basis()))
    return There(responses, upstream)


def _too_large(limit: int) -> RequestError:
    return RequestError(
        f"The conversation is larger than {limit} bytes.", status=413, code="request_too_large"
    )
