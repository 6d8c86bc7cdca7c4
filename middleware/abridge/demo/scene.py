"""The progress of one streamed response, as its client sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol, Self

from abridge.wire.codec import Json

_TITLE = re.compile(r"\*\*(.+?)\*\*\s*")


@dataclass
class Part:
    """A part of the summary, which may still grow."""

    text: str = ""
    closed: bool = False

    @property
    def title(self) -> str:
        """The bold title, or an empty string."""
        found = _TITLE.match(self.text)
        return found[1] if found else ""

    @property
    def body(self) -> str:
        return _TITLE.sub("", self.text, count=1) if self.title else self.text


@dataclass
class Scene:
    """The state of one response. Times are in seconds since the request; None means not yet."""

    thinking: str = ""
    parts: list[Part] = field(default_factory=list)
    answer: str = ""
    usage: Json | None = None  # set when the response completes
    first_summary: float | None = None
    thought_until: float | None = None

    def see(self, event: Json, now: float) -> None:
        """Apply the next event of a Responses stream."""
        match event["type"]:
            case "response.reasoning_text.delta":
                self.thinking += event["delta"]
            case "response.reasoning_text.done":
                self.thought_until = now
            case "response.reasoning_summary_part.added":
                self.parts.append(Part())
            case "response.reasoning_summary_text.delta":
                self.parts[-1].text += event["delta"]
                self.first_summary = now if self.first_summary is None else self.first_summary
            case "response.reasoning_summary_part.done":
                self.parts[-1].closed = True
            case "response.output_text.delta":
                self.answer += event["delta"]
            case "response.completed":
                self.usage = event["response"].get("usage")


class View(Protocol):
    """Shows the progress of a response while it runs, and once more when it has ended."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, scene: Scene) -> None: ...

    def finish(self, scene: Scene) -> None: ...
