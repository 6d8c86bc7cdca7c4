"""Attribute reasoning to the tool calls of a whole message.

A message does not show the order of reasoning and calls, so all of its reasoning is attributed to
its first call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat

from abridge.turn.attribution import RAW, REDACTED, SUMMARY, Attribution, Attributor, Part
from abridge.wire.attribution import attributed
from abridge.wire.chat.dialects import find
from abridge.wire.chat.entries import entries
from abridge.wire.chat.fields import Fields
from abridge.wire.chat.shown import BETWEEN_PARTS
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display

NOTHING: Attribution[int] = Attribution()


def attribute_message(
    message: Json,
    display: Display | None = None,
    summary: Sequence[str] = (),
    limit: int = sys.maxsize,
) -> Json:
    """Return the message with its calls attributed.

    Without a display to say what its texts are, two that differ are taken for raw reasoning and
    summary. `summary` are the parts of a summary that Abridge made.
    """
    turn: Attributor[int] = Attributor(limit)
    for place, said in enumerate(_thoughts(message, display, summary)):
        if said.kind == REDACTED:
            turn.redact()
        else:
            turn.think(said.kind, said.text, part=place)
    return spread(message, map(turn.call, range(len(objects(message.get("tool_calls"))))))


def each_choice(said: Json, change: Callable[[Json], Json]) -> Json:
    """Return a chunk or a completion with `change` applied to its choices."""
    choices = said.get("choices")
    if not isinstance(choices, list):
        return said
    changed = [change(choice) if isinstance(choice, dict) else choice for choice in choices]
    return {**said, "choices": changed}


def spread(message: Json, told: Iterable[Attribution[int]]) -> Json:
    """Return the message with these attributions added to its calls, in their order."""
    calls = objects(message.get("tool_calls"))
    if not calls or len(calls) < len(message["tool_calls"]):
        return message
    ids = [string(call.get("id")) for call in calls]
    said = [
        attributed(call, led.parts, ids[led.ref] if led.ref is not None else "")
        for call, led in zip(calls, chain(told, repeat(NOTHING)), strict=False)
    ]
    return {**message, "tool_calls": said}


def _thoughts(message: Json, display: Display | None, summary: Sequence[str]) -> Iterator[Part]:
    """Return a message's reasoning, in parts if it has them.

    Its lists take precedence over its texts: they keep the parts apart.
    """
    listed = entries(message)
    bearing = {entry.kind for entry in listed if entry.text.strip()}
    for part in _plain(message, display):
        if part.kind in bearing:
            continue
        known = part.kind == SUMMARY and part.text == BETWEEN_PARTS.join(summary)
        yield from (Part(SUMMARY, text) for text in summary) if known else [part]
    for entry in listed:
        if entry.text:
            yield Part(entry.kind, entry.text)


def _plain(message: Json, display: Display | None) -> Iterator[Part]:
    """Return the reasoning's text, as raw or summary."""
    found = find(message)
    if found is None:
        return
    raw, summary = _both(message, display)
    if found.native or (display is not None and not display.raw):
        yield Part(SUMMARY, found.text)
    elif raw and summary:
        yield Part(RAW, raw)
        yield Part(SUMMARY, summary)
    else:
        yield Part(RAW, found.text)


def _both(message: Json, display: Display | None) -> tuple[str, str]:
    """Return raw reasoning and the summary next to it, both empty unless a message shows both."""
    fields = Fields(display or Display())
    raw, summary = string(message.get(fields.raw(""))), string(message.get(fields.summary("")))
    makes = display is None or not display.plain
    return (raw, summary) if makes and raw != summary else ("", "")
