"""The kinds of content that items stream: content parts, and the arguments of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as having
from typing import Literal, TypeAlias

from abridge.wire.codec import Json, objects, string

Stage: TypeAlias = Literal["opened", "delta", "said", "closed"]

OPENED = "response.content_part.added"
CLOSED = "response.content_part.done"


@dataclass(slots=True, frozen=True)
class Spelling:
    """One kind of content: its event types and fields."""

    kind: str  # the `type` of a part, and the middle of event types: `response.{name}.delta`
    field: str  # has the whole text, in a part or in the item
    wrapped: bool = True  # else all the content of its item, without events for a part
    beside: Json = having(default_factory=dict)  # other fields of a part

    @property
    def delta(self) -> str:
        return f"response.{self.kind}.delta"

    @property
    def said(self) -> str:
        return f"response.{self.kind}.done"

    def event(self, stage: Stage, text: str) -> tuple[str, Json]:
        """Return the type of an event, and the fields with its text."""
        if stage == "delta":
            return self.delta, {"delta": text}
        if stage == "said":
            return self.said, {self.field: text}
        return OPENED if stage == "opened" else CLOSED, {"part": self.part(text)}

    def near(self, stage: Stage, item: Json) -> Json:
        """Return the other fields that an event of this item has."""
        if self is TEXT and stage in ("delta", "said"):
            return {"logprobs": []}
        if self is ARGUMENTS and stage == "said":
            return {"name": string(item.get("name"))}
        return {}

    def part(self, text: str) -> Json:
        return {"type": self.kind, self.field: text, **self.beside}


TEXT = Spelling(
    "output_text",
    "text",
    beside={"annotations": [], "logprobs": []},
)
REFUSAL = Spelling("refusal", "refusal")
REASONING = Spelling("reasoning_text", "text")
ARGUMENTS = Spelling("function_call_arguments", "arguments", wrapped=False)
INPUT = Spelling("custom_tool_call_input", "input", wrapped=False)

SAYS: Mapping[str, tuple[Spelling, ...]] = {
    "message": (TEXT, REFUSAL),
    "reasoning": (REASONING,),
    "function_call": (ARGUMENTS,),
    "custom_tool_call": (INPUT,),
}
"""The kinds of content that an item can have, by its type."""

LOOSE = ("text", "")
"""Types that some servers give to parts of output text."""

STAGES: Mapping[str, Stage] = {
    OPENED: "opened",
    CLOSED: "closed",
    **{spelling.delta: "delta" for said in SAYS.values() for spelling in said},
    **{spelling.said: "said" for said in SAYS.values() for spelling in said},
}


def spelling_in(event: Json, kind: str) -> Spelling | None:
    """Return the kind of content an event streams, if an item of this type can have it.

    All parts of a reasoning item are reasoning, whatever upstream calls them.
    """
    name, part = event.get("type"), event.get("part")
    for spelling in SAYS.get(kind, ()):
        if name in (spelling.delta, spelling.said):
            return spelling
        if name in (OPENED, CLOSED) and _spells(part, spelling):
            return spelling
    return None


def says_reasoning(event: Json) -> bool:
    part = event.get("part")
    kind = part.get("type") if isinstance(part, dict) else ""
    return kind == REASONING.kind or event["type"] in (REASONING.delta, REASONING.said)


def text_in(event: Json, spelling: Spelling) -> str:
    """Return the text of an event: a delta, or all of a part."""
    part = event.get("part")
    if isinstance(part, dict):
        return string(part.get(spelling.field))
    return string(event.get("delta" if event["type"] == spelling.delta else spelling.field))


def spoken_in(item: Json, kind: str) -> list[tuple[Spelling, str]]:
    """Return the content of an item of this type, part by part."""
    said = SAYS.get(kind, ())
    if said and not said[0].wrapped:
        return [(said[0], string(item.get(said[0].field)))]
    return [
        (spelling, string(part.get(spelling.field)))
        for part in objects(item.get("content"))
        for spelling in said
        if _spells(part, spelling)
    ]


def unsaid(item: Json) -> Json:
    """Return the item as it is at its beginning, without content."""
    said = SAYS.get(string(item.get("type")), ())
    if not said:
        return item
    return {**item, "content": []} if said[0].wrapped else {**item, said[0].field: ""}


def respelled(item: Json, kind: str, texts: list[tuple[Spelling, str]]) -> Json:
    """Return the item with this content."""
    if texts and not texts[0][0].wrapped:
        return {**item, texts[0][0].field: texts[0][1]}
    left, content = list(texts), list[Json]()
    for part in objects(item.get("content")):
        spelling = next((each for each in SAYS.get(kind, ()) if _spells(part, each)), None)
        if spelling is None:
            content.append(part)
        elif left and left[0][0] is spelling:
            content.append({**part, spelling.field: left.pop(0)[1]})
    return {**item, "content": [*content, *(spelling.part(text) for spelling, text in left)]}


def _spells(part: object, spelling: Spelling) -> bool:
    if not isinstance(part, dict) or not spelling.wrapped:
        return False
    kind = string(part.get("type"))
    return spelling is REASONING or kind == spelling.kind or (spelling is TEXT and kind in LOOSE)
