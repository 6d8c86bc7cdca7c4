"""Repair the summary that upstream makes of a reasoning item.

Each part gets its added, delta and done events, in this order and before the next part is added,
whichever of them upstream leaves out: Ollama neither adds nor ends parts (ollama
openai/responses.go).
"""

from __future__ import annotations

from abridge.apis.frames import MakeFrame, change_frame, encode_event
from abridge.apis.json import string
from abridge.apis.responses.reasoning import (
    LANE,
    SUMMARY_PART_ADDED,
    SUMMARY_PART_DONE,
    SUMMARY_TEXT_DELTA,
    SUMMARY_TEXT_DONE,
    part_texts,
    summary_fields,
    summary_parts,
)
from abridge.core.conversation import Json
from abridge.core.events import NativeStage, NativeSummary

NATIVE_STAGES: dict[str, NativeStage] = {
    SUMMARY_PART_ADDED: "added",
    SUMMARY_TEXT_DELTA: "delta",
    SUMMARY_TEXT_DONE: "done",
    SUMMARY_PART_DONE: "done",
}


class NativeSummaryRepair:
    """Repair the summary that upstream makes of one item."""

    def __init__(
        self, output_index: int, item_id: str, make_frame: MakeFrame = encode_event
    ) -> None:
        self.texts: dict[int, list[str]] = {}  # by upstream's `summary_index`
        self._output_index = output_index
        self._item_id = item_id
        self._make_frame = make_frame
        self._open_part: int | None = None
        self._last_type = SUMMARY_PART_ADDED

    def summary_parts(self) -> list[Json]:
        return summary_parts("".join(deltas) for _, deltas in sorted(self.texts.items()))

    def read(
        self, event: Json, frame: bytes | None, *, has_room: bool = True
    ) -> list[NativeSummary] | None:
        """Read one upstream event; return None if it is out of order.

        Without `has_room` its text is passed on, but not stored.
        """
        kind, index = event["type"], event.get("summary_index")
        part = index if isinstance(index, int) else 0
        if part != index:
            frame = change_frame(frame, lambda event: {**event, "summary_index": part})
        if part == self._open_part:
            return self._continue_part(kind, event, frame, has_room=has_room)
        if part in self.texts:
            return None
        opening = [
            *self.close(),
            *self._add_part(part, frame if kind == SUMMARY_PART_ADDED else None),
        ]
        if kind == SUMMARY_PART_ADDED:
            return opening
        return [*opening, *(self._continue_part(kind, event, frame, has_room=has_room) or ())]

    def proceed(self, text: str, frame: bytes | None, *, has_room: bool) -> NativeSummary:
        """Read more text of the open part, after a delta of it."""
        part = self._open_part or 0
        if has_room:
            self.texts[part].append(text)
        return NativeSummary(LANE, frame, self._output_index, part, "delta", text)

    def close(self) -> list[NativeSummary]:
        """Close the open part, if there is one."""
        if self._open_part is None:
            return []
        closing = []
        if self._last_type != SUMMARY_TEXT_DONE:
            closing.append(self._make_missing(SUMMARY_TEXT_DONE))
        closing.append(self._make_missing(SUMMARY_PART_DONE))
        self._open_part = None
        return closing

    def finish(self, item: Json) -> list[NativeSummary]:
        """Emit the parts of the finished item's summary that were not streamed."""
        events, parts = self.close(), part_texts(item.get("summary"))
        for index, text in enumerate(parts if any(parts) else ()):
            if index not in self.texts:
                events += self._add_part(index)
                events += self._add_text(text)
                events += self.close()
        return events

    def _add_part(self, part: int, frame: bytes | None = None) -> list[NativeSummary]:
        self._open_part, self._last_type = part, SUMMARY_PART_ADDED
        self.texts[part] = []
        return [
            self._make_event(SUMMARY_PART_ADDED, frame)
            if frame
            else self._make_missing(SUMMARY_PART_ADDED)
        ]

    def _continue_part(
        self, kind: str, event: Json, frame: bytes | None, *, has_room: bool
    ) -> list[NativeSummary] | None:
        """Read another event of the open part; return None if it is out of order."""
        if kind == SUMMARY_PART_ADDED or (
            kind != SUMMARY_PART_DONE and self._last_type == SUMMARY_TEXT_DONE
        ):
            return None
        if kind == SUMMARY_TEXT_DELTA:
            self._last_type, text = SUMMARY_TEXT_DELTA, string(event.get("delta"))
            self.texts[self._open_part or 0] += [text] if has_room else []
            return [self._make_event(SUMMARY_TEXT_DELTA, frame, text)]
        events = self._add_text(_done_text(event)) if self._last_type == SUMMARY_PART_ADDED else []
        if kind == SUMMARY_PART_DONE and self._last_type != SUMMARY_TEXT_DONE:
            events.append(self._make_missing(SUMMARY_TEXT_DONE))
        events.append(self._make_event(kind, frame))
        self._last_type = kind
        if kind == SUMMARY_PART_DONE:
            self._open_part = None
        return events

    def _add_text(self, text: str) -> list[NativeSummary]:
        self.texts[self._open_part or 0].append(text)
        return [self._make_missing(SUMMARY_TEXT_DELTA)] if text else []

    def _make_missing(self, kind: str) -> NativeSummary:
        """Make an event that upstream left out. A delta has the whole text of its part."""
        index = self._open_part or 0
        text = "" if kind == SUMMARY_PART_ADDED else "".join(self.texts[index])
        address = {
            "item_id": self._item_id,
            "output_index": self._output_index,
            "summary_index": index,
        }
        frame = self._make_frame(kind, {**address, **summary_fields(kind, text)})
        return self._make_event(kind, frame, text if kind == SUMMARY_TEXT_DELTA else "")

    def _make_event(self, kind: str, frame: bytes | None, text: str = "") -> NativeSummary:
        return NativeSummary(
            LANE, frame, self._output_index, self._open_part or 0, NATIVE_STAGES[kind], text
        )


def _done_text(event: Json) -> str:
    """Return the text that a done event repeats."""
    texts = [string(event.get("text")), *part_texts([event.get("part")])]
    return next(filter(None, texts), "")
