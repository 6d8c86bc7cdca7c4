"""Write a reasoning item: raw reasoning as its content, a summary, opaque state."""

from __future__ import annotations

from io import StringIO

from abridge.turn.events import Native, PartClosed, PartOpened, PartSaid, Sealed, Trouble
from abridge.turn.question import SIGNED
from abridge.wire.codec import Json
from abridge.wire.display import Display
from abridge.wire.envelope import Envelope
from abridge.wire.responses.composing.item import Composed, Status
from abridge.wire.responses.composing.pieces import Pieces
from abridge.wire.responses.items import raw_parts, summary_parts
from abridge.wire.responses.spoken import Spoken, part_closed, part_opened, part_said, spoken


class ComposedReasoning(Composed):
    """Writes one reasoning item."""

    def __init__(
        self, identity: str, index: int, display: Display, sealed: str | None = None
    ) -> None:
        super().__init__(identity, index)
        self.trouble: Trouble | None = None  # why the summary is missing or incomplete
        self._display = display
        self._sealed = sealed
        self._raw = StringIO()
        self._summary: list[str] = []
        self._native: tuple[int, list[str]] | None = None
        self._pieces = Pieces() if display.seal is not None else None
        self.left: list[str] = []  # opaque state beyond what one item can hold

    def added(self) -> Json:
        head = {"id": self.id, "type": "reasoning", "status": "in_progress"}
        return {**head, "summary": [], "content": []}

    def seal(self, event: Sealed) -> None:
        """Add opaque state; mark a signature as one."""
        state = SIGNED + event.data if event.signs else event.data
        if self._pieces is not None:
            self._pieces.seal(state)
        if self._sealed is None:
            self._sealed = state
        else:
            self.left.append(state)

    def think(self, text: str) -> Spoken:
        if self._pieces is not None:
            self._pieces.think(text)
        if not (self._display.raw and text):
            return
        at = self._raw_at
        if not self._raw.tell():
            part = {"type": "reasoning_text", "text": ""}
            yield "response.content_part.added", {**at, "part": part}
        self._raw.write(text)
        yield "response.reasoning_text.delta", {**at, "delta": text}

    def summarize(self, event: PartOpened | PartSaid | PartClosed) -> Spoken:
        """Write an event of one of Abridge's summary parts.

        Parts are counted from 0 in each item, however many earlier stretches had.
        """
        yield from self._end_native()
        yield from spoken(event, self._part_at)
        if isinstance(event, PartClosed):
            self._summary.append(event.text)

    def tell(self, event: Native) -> Spoken:
        """Write a piece of the native summary, which may lack the beginning or end of a part."""
        if not self._display.summary:
            return
        if event.kind == "close":
            yield from self._end_native()
            return
        if self._native is None or self._native[0] != event.part:
            yield from self._end_native()
            self._native = event.part, []
            yield from part_opened(self._part_at)
        if event.text:
            self._native[1].append(event.text)
            yield from part_said(self._part_at, event.text)

    def end(self) -> Spoken:
        yield from self._end_native()
        if text := self._raw.getvalue():
            part = {"type": "reasoning_text", "text": text}
            yield "response.reasoning_text.done", {**self._raw_at, "text": text}
            yield "response.content_part.done", {**self._raw_at, "part": part}

    def done(self, status: Status) -> Json:
        """Return the item at its end. Opaque state in the blob is not repeated beside it."""
        if blob := self._blob():
            self._sealed, self.left = blob, []
        item: Json = {
            "id": self.id,
            "type": "reasoning",
            "status": status,
            "summary": summary_parts(self._summary),
            "content": raw_parts(filter(None, [self._raw.getvalue()])),
        }
        if self._sealed is not None:
            item["encrypted_content"] = self._sealed
        if self.trouble is not None:
            item["summary_error"] = self.trouble.as_dict()
        return item

    def _blob(self) -> str:
        if self._display.seal is None or self._pieces is None or not self._pieces.told:
            return ""
        return self._display.seal(Envelope(self._pieces.items(self.id), self.id))

    def _end_native(self) -> Spoken:
        if self._native is not None:
            text = "".join(self._native[1])
            yield from part_closed(self._part_at, text)
            self._summary.append(text)
            self._native = None

    @property
    def _raw_at(self) -> Json:
        return {**self.at, "content_index": 0}

    @property
    def _part_at(self) -> Json:
        return {**self.at, "summary_index": len(self._summary)}
