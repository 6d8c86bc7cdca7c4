"""What a client has seen of one streamed response, as its events told it."""

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
        """Empty where it has none."""
        found = _TITLE.match(self.text)
        return found[1] if found else ""

    @property
    def body(self) -> str:
        return _TITLE.sub("", self.text, count=1) if self.title else self.text


@dataclass
class Scene:
    """Times are in seconds since the request; None is not yet. Usage comes with a good end."""

    thinking: str = ""
    parts: list[Part] = field(default_factory=list)
    answer: str = ""
    usage: Json | None = None
    first_summary: float | None = None
    thought_until: float | None = None

    def see(self, event: Json, now: float) -> None:
        """Take in the next event of a Responses stream."""
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
    """Where a scene is shown, as it goes on, and once more when it is over."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, scene: Scene) -> None: ...

    def finish(self, scene: Scene) -> None: ...
