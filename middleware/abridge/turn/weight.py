"""The size of an event in memory."""

from __future__ import annotations

from abridge.turn.events import Event, Said

FRAME = 150
"""Bytes that a frame takes beside its texts; an event in memory takes about as much."""

TEXTS = ("text", "refusal", "arguments", "data")


def said(event: Event) -> int:
    """Count the characters of an event's texts, plus a fixed size for each log probability."""
    size = sum(len(getattr(event, name, "")) for name in TEXTS)
    return size + FRAME * len(event.logprobs) if isinstance(event, Said) else size


def weight(event: Event) -> int:
    """Return the bytes that an event occupies while it waits.

    That is the size of its frame. For a translated event, which has none, it is the estimated size
    of a frame with the same texts.
    """
    if event.frame is not None:
        return len(event.frame)
    size = said(event)
    return size and size + FRAME
