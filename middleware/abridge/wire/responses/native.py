"""Repair the summary that upstream makes itself, as it streams.

Each part gets its added, delta and done events, in this order and before the next part is added,
whichever of them upstream leaves out: Ollama neither adds nor ends parts (ollama
openai/responses.go).
"""

from __future__ import annotations

from abridge.turn.events import Native, NativeKind
from abridge.wire.codec import Json, string
from abridge.wire.responses.frames import Make, changed, frame_of
from abridge.wire.responses.items import LANE, summary_parts, texts

ADDED = "response.reasoning_summary_part.added"
DELTA = "response.reasoning_summary_text.delta"
SAID = "response.reasoning_summary_text.done"
DONE = "response.reasoning_summary_part.done"

KINDS: dict[str, NativeKind] = {ADDED: "open", DELTA: "say", SAID: "close", DONE: "close"}


class NativeSummary:
    """Repairs the summary of one item."""

    def __init__(self, number: int, identity: str, make: Make = frame_of) -> None:
        self.texts: dict[int, list[str]] = {}  # by upstream's `summary_index`
        self._number = number
        self._identity = identity
        self._make = make
        self._open: int | None = None
        self._last = ADDED

    def parts(self) -> list[Json]:
        return summary_parts("".join(said) for _, said in sorted(self.texts.items()))

    def read(self, event: Json, frame: bytes | None, *, keep: bool = True) -> list[Native] | None:
        """Read one upstream event; return None if it is out of order.

        Without `has_room` its text is passed on, but not stored.
        """
        kind, index = event["type"], event.get("summary_index")
        part = index if isinstance(index, int) else 0
        if part != index:
            frame = changed(frame, lambda event: {**event, "summary_index": part})
        if part == self._open:
            return self._go_on(kind, event, frame, keep=keep)
        if part in self.texts:
            return None
        opening = [*self.close(), *self._begin(part, frame if kind == ADDED else None)]
        if kind == ADDED:
            return opening
        return [*opening, *(self._go_on(kind, event, frame, keep=keep) or ())]

    def close(self) -> list[Native]:
        """Close the open part, if there is one."""
        if self._open is None:
            return []
        closing = [] if self._last == SAID else [self._made(SAID)]
        closing.append(self._made(DONE))
        self._open = None
        return closing

    def complete(self, item: Json) -> list[Native]:
        """Emit the parts of the finished item's summary that were not streamed."""
        said, parts = self.close(), texts(item.get("summary"))
        for index, text in enumerate(parts if any(parts) else ()):
            if index not in self.texts:
                said += self._begin(index)
                said += self._say(text)
                said += self.close()
        return said

    def _begin(self, part: int, frame: bytes | None = None) -> list[Native]:
        self._open, self._last = part, ADDED
        self.texts[part] = []
        return [self._event(ADDED, frame) if frame else self._made(ADDED)]

    def _go_on(
        self, kind: str, event: Json, frame: bytes | None, *, keep: bool
    ) -> list[Native] | None:
        """Read another event of the open part; return None if it is out of order."""
        if kind == ADDED or (kind != DONE and self._last == SAID):
            return None
        if kind == DELTA:
            self._last, text = DELTA, string(event.get("delta"))
            self.texts[self._open or 0] += [text] if keep else []
            return [self._event(DELTA, frame, text)]
        said = self._say(_whole(event)) if self._last == ADDED else []
        if kind == DONE and self._last != SAID:
            said.append(self._made(SAID))
        said.append(self._event(kind, frame))
        self._last, self._open = kind, self._open if kind == SAID else None
        return said

    def _say(self, text: str) -> list[Native]:
        self.texts[self._open or 0].append(text)
        return [self._made(DELTA)] if text else []

    def _made(self, kind: str) -> Native:
        """Make an event that upstream left out. A delta has the whole text of its part."""
        index = self._open or 0
        text = "" if kind == ADDED else "".join(self.texts[index])
        part = {"part": {"type": "summary_text", "text": text}}
        fields = {DELTA: {"delta": text}, SAID: {"text": text}}.get(kind, part)
        at = {"item_id": self._identity, "output_index": self._number, "summary_index": index}
        frame = self._make(kind, {**at, **fields})
        return self._event(kind, frame, text if kind == DELTA else "")

    def _event(self, kind: str, frame: bytes | None, text: str = "") -> Native:
        return Native(LANE, frame, self._number, self._open or 0, KINDS[kind], text)


def _whole(event: Json) -> str:
    """Return the text that a done event repeats."""
    said = [string(event.get("text")), *texts([event.get("part")])]
    return next(filter(None, said), "")
