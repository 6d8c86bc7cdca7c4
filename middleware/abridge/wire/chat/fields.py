"""The fields in which a client finds raw reasoning and summaries."""

from __future__ import annotations

from abridge.wire.chat.dialects import PLAIN, without_chunks
from abridge.wire.codec import Json
from abridge.wire.display import Display


class Fields:
    """Choose fields by the display; `upstream` is the field in which upstream put its reasoning."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def summary(self, upstream: str) -> str:
        if self._display.summary_field != "auto":
            return self._display.summary_field
        return PLAIN[0] if self._display.raw else upstream or PLAIN[0]

    def raw(self, upstream: str) -> str:
        if self._display.raw_field != "auto":
            return self._display.raw_field
        aside = self._display.summary and not (self._display.plain and upstream)
        return PLAIN[1] if aside else upstream or PLAIN[0]

    def told(self, field: str, text: str) -> Json:
        told: Json = {field: text}
        if self._display.details:
            told["reasoning_details"] = [{"type": "reasoning.text", "text": text, "index": 0}]
        return told

    def detail(self, text: str, part: int) -> Json:
        index = part + 1 if self._display.raw else part
        return {"type": "reasoning.summary", "summary": text, "index": index}


def retell(said: Json, told: Json) -> Json:
    """Return a delta or a message with its reasoning replaced by these fields."""
    kept = {key: value for key, value in said.items() if key not in PLAIN}
    if isinstance(kept.get("content"), list):
        kept["content"] = without_chunks(kept["content"]) or None
    return {**{key: value for key, value in told.items() if value}, **kept}
