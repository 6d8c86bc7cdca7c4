"""Write a message. Text and refusal are content parts of their own."""

from __future__ import annotations

from io import StringIO
from typing import Literal

from abridge.turn.events import Refused, Said
from abridge.wire.codec import Json
from abridge.wire.logprobs import spelled
from abridge.wire.responses.composing.item import Composed, Status
from abridge.wire.responses.spoken import Spoken

_Kind = Literal["output_text", "refusal"]


class _Content:
    """Writes one content part."""

    def __init__(self, kind: _Kind, at: Json) -> None:
        self.kind = kind
        self.at = at
        self._said = StringIO()
        self._logprobs: list[Json] = []

    def part(self) -> Json:
        if self.kind == "refusal":
            return {"type": "refusal", "refusal": self._text}
        return {
            "type": "output_text",
            "text": self._text,
            "annotations": [],
            "logprobs": self._logprobs,
        }

    def say(self, text: str, logprobs: list[Json]) -> Spoken:
        self._said.write(text)
        self._logprobs += logprobs
        more = {} if self.kind == "refusal" else {"logprobs": logprobs}
        yield f"response.{self.kind}.delta", {**self.at, "delta": text, **more}

    def end(self) -> Spoken:
        refusal = self.kind == "refusal"
        whole = (
            {"refusal": self._text} if refusal else {"text": self._text, "logprobs": self._logprobs}
        )
        yield f"response.{self.kind}.done", {**self.at, **whole}
        yield "response.content_part.done", {**self.at, "part": self.part()}

    @property
    def _text(self) -> str:
        return self._said.getvalue()


class ComposedMessage(Composed):
    """Writes one message."""

    def __init__(self, identity: str, index: int, number: int) -> None:
        super().__init__(identity, index)
        self.number = number  # among upstream's messages
        self._parts: list[_Content] = []

    def added(self) -> Json:
        return self._item("in_progress", [])

    def say(self, event: Said) -> Spoken:
        refused = isinstance(event, Refused)
        kind: _Kind = "refusal" if refused else "output_text"
        if not self._parts or self._parts[-1].kind != kind:
            yield from self.end()
            part = _Content(kind, {**self.at, "content_index": len(self._parts)})
            self._parts.append(part)
            yield "response.content_part.added", {**part.at, "part": part.part()}
        text = event.refusal if isinstance(event, Refused) else event.text
        yield from self._parts[-1].say(text, spelled(event.logprobs))

    def end(self) -> Spoken:
        if self._parts:
            yield from self._parts[-1].end()

    def done(self, status: Status) -> Json:
        return self._item(status, [part.part() for part in self._parts])

    def _item(self, status: str, content: list[Json]) -> Json:
        head = {"id": self.id, "type": "message", "status": status, "role": "assistant"}
        return {**head, "content": content}
