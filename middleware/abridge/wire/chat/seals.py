"""Read provider state in a delta or a message: signatures of reasoning, and encrypted reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from abridge.turn.events import Event, Native, Raw, Sealed
from abridge.wire.chat.dialects import LISTS
from abridge.wire.codec import Json, objects, string


class Seal(NamedTuple):
    """An entry of a list of reasoning."""

    text: str
    data: str  # the opaque state; empty if the entry has none
    signs: bool  # the state is a signature of the text


def seals(said: Json) -> list[Seal]:
    """Read the entries of a list that holds opaque state; empty if no list does.

    `thinking_blocks` takes precedence over `reasoning_details`.
    """
    found = ([_seal(entry) for entry in objects(said.get(name))] for name in reversed(LISTS))
    return next((entries for entries in found if any(entry.data for entry in entries)), [])


def _seal(entry: Json) -> Seal:
    if string(entry.get("type")) in ("redacted_thinking", "reasoning.encrypted"):
        return Seal("", string(entry.get("data")), signs=False)
    text = next(filter(None, map(string, map(entry.get, ("thinking", "text", "summary")))), "")
    return Seal(text, string(entry.get("signature")), signs=True)


def with_seals(events: list[Event], entries: list[Seal], lane: int, item: int) -> list[Event]:
    """Insert opaque state into a choice's events, each after the reasoning it belongs to."""
    place = next((n for n, event in enumerate(events) if isinstance(event, Raw | Native)), None)
    if place is None:
        return [*_told(entries, None, lane, item), *events]
    said = events[place]
    parted = _text_of(said) == "".join(entry.text for entry in entries)
    whole = [] if parted else [said]
    told = _told(entries, said if parted else None, lane, item)
    return [*events[:place], *whole, *told, *events[place + 1 :]]


def _told(entries: list[Seal], said: Event | None, lane: int, item: int) -> Iterator[Event]:
    """Make events of the state; with `event`, which holds the text of all entries, split that by
    entry, each followed by its state."""
    for entry in entries:
        if isinstance(said, Raw | Native) and entry.text:
            yield replace(said, text=entry.text)
        if entry.data:
            yield Sealed(lane, None, item, entry.data, entry.signs)


def _text_of(event: Event) -> str:
    return event.text if isinstance(event, Raw | Native) else ""
