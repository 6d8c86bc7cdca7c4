"""Resolve a request's references: `previous_response_id` and item references.

For an upstream with another API than the client's, all references are resolved here: it has no
stored responses. An upstream with the same API resolves its own, but cannot know Abridge's ids.
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
    """Result of resolving a request's references."""

    storing: Storing | None = None  # stores the answer, if it is to be stored
    previous: str = ""  # id of the response that the request continues
    before: int = 0  # items now standing before the client's own

    def told(self, asked: Asked) -> Asked:
        """Return the echo of a translated request, with the client's `previous_response_id`."""
        body = {**asked.body, PREVIOUS: self.previous or None}
        return replace(asked, body=body, stored=self.storing is not None)

    def as_asked(self, error: RequestError) -> RequestError:
        """Return the error with indexes into `input` as the client counts them."""
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
    """Resolve references; `limit` bounds the resolved request, in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def go_on(self, request: Request, visit: Visit, *, crosses: bool) -> Continued:
        """Replace the request's references by the items they stand for. Raises RequestError for
        missing ones."""
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
    """References of one request: all if `resolve_all`, else only those to Abridge's own ids."""

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
        """Load what is referred to. Raises RequestError for anything missing.

        With `include_returned`, load Abridge's stored items that the client sends back in full,
        too.
        """
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
        """Bytes of all resolved items."""
        names = [*self._history, *(name for name, _ in self._given)]
        return sum(len(self._items.get(name, b"")) for name in names)

    def basis(self, basis: Basis) -> Basis:
        """Add the items that the answer is made from, and return them.

        An item with Abridge's id that the client sends back is the stored one if it is unchanged;
        otherwise it is stored as a new item.
        """
        for name in self._history:
            if name in self._items:
                basis.know(name)
        for name, item in self._given:
            if not isinstance(item, dict):
                continue  # rejected when the request is read
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
        """Put the resolved items into `input`; return how many stand before the client's own."""
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
