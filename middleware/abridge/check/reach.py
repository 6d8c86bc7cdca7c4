"""Check that a server can be reached, and list its models."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from abridge.check.finding import Finding
from abridge.check.place import Place, cause, pieces
from abridge.wire.codec import objects, read_object, string

SHOWN = 3
"""Model names printed."""


@dataclass(slots=True, frozen=True)
class Reached:
    finding: Finding
    models: list[str] | None = None  # None: the server returned no list

    @property
    def there(self) -> bool:
        return self.finding.grade != "fault"


async def reach(place: Place, about: str) -> Reached:
    """Request the list of models: nothing is cheaper, and nearly every server has one."""
    where = place.base_url
    try:
        async with place.asked("/models") as response:
            body = b"".join([piece async for piece in pieces(response)])
    except httpx.TransportError as error:
        return Reached(Finding(about, f"{where} {cause(error)}", "fault"))
    if response.status_code == 200:
        return _listed(about, where, body)
    return Reached(_refused(about, place, response.status_code))


def _listed(about: str, where: str, body: bytes) -> Reached:
    listing = read_object(body) or {}
    models = [string(model.get("id")) for model in objects(listing.get("data"))]
    named = ", ".join(models[:SHOWN]) + (", …" if len(models) > SHOWN else "")
    text = f"{where} answers; models: {named or 'none listed'}"
    return Reached(Finding(about, text), models)


def _refused(about: str, place: Place, status: int) -> Finding:
    where = place.base_url
    if status in (401, 403) and place.headers:
        return Finding(about, f"{where} refuses the key ({status})", "fault")
    if status in (401, 403):
        return Finding(about, f"{where} answers, and wants a credential ({status})", "note")
    if status >= 500:
        return Finding(about, f"{where} answers with status {status}", "fault")
    return Finding(about, f"{where} answers, but lists no models ({status})")
