"""Thinking that stands in the texts of items: what the stage that takes it out means for items.

Servers without a reasoning parser answer with `<think>…</think>` in `output_text`: transformers
(huggingface/transformers cli/serving/response.py), vLLM, llama.cpp. `stages/thinking.py` makes
reasoning of it, before its message. `ShownItems` gives each reasoning that it makes an item, counts
the items after that anew, and has whatever repeats a text repeat what was shown of it: the ends of
a text and of its item, and the response. An item that came whole goes through the stage as the
events in which it would have streamed.

Where raw reasoning is hidden, thinking is looked for in messages, refusals and what calls are sent,
of any server. Else it is at the beginning of messages, if the profile says so
(`inline_on_responses`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

from abridge.apis.display import Display
from abridge.apis.frames import change_frame
from abridge.apis.json import objects
from abridge.apis.logprobs import without_logprobs
from abridge.apis.openai import mint_id
from abridge.apis.responses.items import (
    ITEM_ADDED,
    ITEM_DONE,
    REASONING,
    Content,
    OutputEntry,
    OutputItem,
    OutputItems,
    ResponseState,
    StreamedPart,
    contents_of,
    event_text,
    with_contents,
    with_event_text,
    without_content,
)
from abridge.apis.responses.reasoning import (
    is_reasoning,
    make_reasoning,
    raw_text,
    summary_text,
)
from abridge.apis.staged import note_shown
from abridge.core.answer import Part
from abridge.core.conversation import Json
from abridge.core.events import (
    LANE,
    Beside,
    Event,
    NativeSummary,
    PartEnded,
    PartStarted,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
    said_text,
)
from abridge.core.hidden import HiddenCount
from abridge.providers.profile import Profile
from abridge.stages.tags import TagSplitter, may_have_tags
from abridge.stages.thinking import Thinking

REASONING_EVENTS = (ReasoningStarted, ReasoningDelta, NativeSummary, ReasoningEnded)
"""Events that say which reasoning item they are about."""

BROKEN_STATUSES = ("failed", "cancelled")

CLIENT_ROLES = ("user", "system", "developer")
"""Roles of messages that the client wrote, not the model."""

CLIENT_OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Types of items with which a client begins another response."""


def expects_thinking(profile: Profile, display: Display) -> bool:
    """Return whether texts are to be looked through."""
    return display.hides_raw or profile.inline_on_responses


class ShownItems:
    """Take the thinking out of the items of one response, and tell what is left of them."""

    def __init__(self, profile: Profile, output: OutputItems) -> None:
        self._state, display = output.state, output.state.display
        self._new_thinking = partial(
            Thinking,
            profile,
            self._state.limit,
            hides_raw=display.hides_raw,
            drops_inline=display.drops_inline,
            by_message=True,
        )
        self.thinking = self._new_thinking(count(-1, -1), hidden=display.hidden)
        self._output = output
        self._made: dict[Part, OutputItem] = {}
        """The reasoning items that were made, by the parts of the messages after them."""
        self._numbers: dict[Part, int] = {}
        """The indexes of items as they go out."""

    def take(self, events: Sequence[Event]) -> list[Event]:
        """Take events in their order; return those that they become."""
        return self._place_all(self.thinking.take(events))

    def finish(self) -> list[Event]:
        """End the message that is open."""
        return self._place_all(self.thinking.leave())

    def break_off(self) -> list[Event]:
        """Return what is held of the texts, as the answer breaks off."""
        return self._place_all(self.thinking.break_off())

    # Events

    def _note(self, event: Event) -> None:
        """Note what is shown of a part, and count reasoning as its item is."""
        part = event.part
        if part is None:
            return
        if part.shown is not None and not (isinstance(part, StreamedPart) and part.truncated):
            note_shown(event)
        is_numbered = part.kind == "reasoning" and self._state.carries_frames
        if is_numbered and isinstance(event, REASONING_EVENTS):
            event.item = self._number(part.whole)

    def _number(self, part: Part) -> int:
        return self._numbers.setdefault(part, len(self._numbers))

    def _place_all(self, events: Sequence[Event]) -> list[Event]:
        return [placed for event in events for placed in self._place(event)]

    def _place(self, event: Event) -> list[Event]:
        part = event.part
        if part is not None and part.whole.kind == "text":
            made = self._made.get(part.whole)
            is_beside = isinstance(event, Beside) and made is not None and made.is_open
            if part.kind == "reasoning" or is_beside:
                return self._place_made(event, part)
        self._note(event)
        if part is not None and self._state.carries_frames:
            event.frame = self._frame(event, part)
            if event.frame is None and isinstance(event, ToolCallDelta):
                return []
        return [event]

    def _place_made(self, event: Event, part: Part) -> list[Event]:
        """Place an event of reasoning that was made, as of an item of upstream's."""
        if isinstance(event, ReasoningStarted):
            number = self._number(part) if self._state.carries_frames else part.number
            added = make_reasoning(mint_id("rs_"), "in_progress")
            item = OutputItem(number, added, self._state)
            self._made[part.whole] = item
            frame = self._state.frame_of(item.event(ITEM_ADDED, added))
            started = ReasoningStarted(LANE, frame, number, part=item.part)
            return [started, *item.contents.add(REASONING, "")]
        item = self._made[part.whole]
        if isinstance(event, ReasoningDelta):
            return item.contents.add(REASONING, event.text)
        if isinstance(event, Beside):  # as another delta of the reasoning
            place = {"item_id": item.id, "output_index": item.output_index, "content_index": 0}
            named = {**place, "type": REASONING.delta_type, "delta": ""}
            frame = change_frame(event.frame, lambda sent: without_logprobs({**sent, **named}))
            return [ReasoningDelta(LANE, frame, item.output_index, "", part=item.part)]
        rest = item.contents.close()
        item.is_open, item.done = False, item.snapshot("completed")
        frame = self._state.frame_of(item.event(ITEM_DONE, item.done))
        return [*rest, ReasoningEnded(LANE, frame, item.output_index, part=item.part)]

    # Frames

    def _frame(self, event: Event, part: Part) -> bytes | None:
        """Return the frame in which an event goes out, whatever its own said of its text."""
        if event.frame is None:
            return self._new_frame(event, part)
        number, is_beside = self._number(part.whole), isinstance(event, Beside)
        is_changed_end = isinstance(event, PartEnded) and not self._is_shown_whole(part)
        if not (is_beside or is_changed_end) and number == part.number:
            return event.frame

        def change(sent: Json) -> Json:
            if is_beside:
                sent = without_logprobs({**sent, "delta": ""})
            elif is_changed_end:
                sent = self._show_end(part, sent)
            return {**sent, "output_index": number}

        return change_frame(event.frame, change)

    def _new_frame(self, event: Event, part: Part) -> bytes | None:
        """Make the frame of a delta that says another text than upstream's did."""
        said, item = said_text(event), self._output.get(part.number)
        if item is None or not (said and isinstance(part, StreamedPart)):
            return None
        event_type, fields = part.content_kind.build_event("delta", said)
        place = {**part.address, "output_index": self._number(part.whole)}
        beside = part.content_kind.extra_fields("delta", item.added)
        return self._state.make_frame(event_type, {**place, **beside, **fields})

    def _is_shown_whole(self, part: Part) -> bool:
        """Return whether all of what was streamed of a part is shown, and that is all of it."""
        if isinstance(part, StreamedPart):
            is_settled = not (part.is_mismatched or part.truncated)
            return is_settled and part.shown_text == part.said_text
        item = self._output.get(part.number)
        return item is None or all(map(self._is_shown_whole, item.contents.parts))

    def _show_end(self, part: Part, event: Json) -> Json:
        """Return the event that ends a part, or an item, with what is shown of it."""
        if isinstance(part, StreamedPart):
            text = event_text(event, part.content_kind) or ""
            shown = self._show_text(part, text)
            if shown == text:
                return event
            return without_logprobs(with_event_text(event, part.content_kind, shown))
        item = self._output.get(part.number)
        return event if item is None else {**event, "item": self._show_item(item, event["item"])}

    # Whole items

    def show_output(self, entries: Sequence[OutputEntry]) -> list[OutputEntry]:
        """Return the items of the final response as they are shown, with the reasoning items that
        were made."""
        shown, unseen = list[OutputEntry](), dict(self._made)
        for number, entry in entries:
            item = self._output.get(number)
            if not isinstance(entry, dict):
                shown.append((number, entry))
            elif item is None:
                raw, left = split_item(entry, self.thinking)
                if raw:
                    shown.append((None, make_reasoning(mint_id("rs_"), "completed", raw)))
                shown.append((None, left))
            else:
                if (made := unseen.pop(item.part, None)) is not None:
                    shown.append((made.output_index, made.done))
                shown.append((self._numbers.get(item.part, number), self._show_item(item, entry)))
        cut = [(made.output_index, made.snapshot("incomplete")) for made in unseen.values()]
        return [*shown, *cut]

    def show_whole(self, response: Json) -> Json:
        """Return a response that is not streamed, as it is shown."""
        if response.get("status") in BROKEN_STATUSES:
            self.thinking.break_off()
        entries = self.show_output([(None, entry) for entry in response["output"]])
        return {**response, "output": [entry for _, entry in entries]}

    def show_unfinished(self, output: Sequence[Any]) -> list[Any]:
        """Return the items of a response that goes on, without thinking."""
        return [
            self._split_again(entry, None)[1] if isinstance(entry, dict) else entry
            for entry in output
        ]

    def _show_item(self, item: OutputItem, entry: Json) -> Json:
        """Return an item that was streamed, as it is shown."""
        contents, parts = contents_of(entry, item.type), item.contents.parts
        if [kind for kind, _ in contents] != [part.content_kind for part in parts]:
            return self._split_again(entry, item.part)[1]
        texts = [
            (kind, self._show_text(part, text or ""))
            for (kind, text), part in zip(contents, parts, strict=True)
        ]
        return _with_texts(entry, item.type, contents, texts)

    def _show_text(self, part: StreamedPart, text: str) -> str:
        """Return what is shown of a text that upstream repeats. If it was not streamed so, it is
        looked through by itself."""
        if text == part.said_text and not part.is_mismatched:
            return part.shown_text
        item = self._output.get(part.number)
        if item is None:
            return ""
        entry = with_contents(without_content(item.added), item.type, [(part.content_kind, text)])
        left = self._split_again(entry, part.whole)[1]
        return "".join(shown or "" for _, shown in contents_of(left, item.type))

    def _split_again(self, entry: Json, part: Part | None) -> tuple[str, Json]:
        """Split what was streamed in another way. What is hidden of it counts once."""
        has_reasoned = self.thinking.had_reasoned_before(part)
        again = self._new_thinking(count(-1, -1), hidden=Counter(), has_reasoned=has_reasoned)
        return split_item(entry, again)


def split_item(entry: Json, thinking: Thinking) -> tuple[str, Json]:
    """Send an item of which all is known through the stage. Return what it makes reasoning of, and
    what it leaves."""
    unstreamed = ResponseState(Display(), sys.maxsize, carries_frames=False)
    item = OutputItem(0, without_content(entry), unstreamed)
    contents = contents_of(entry, item.type)
    events = thinking.take(
        [
            PartStarted(LANE, None, part=item.part),
            *item.contents.finish(entry),
            *item.native.finish(entry),
            PartEnded(LANE, None, part=item.part),
        ]
    )
    if item.is_reasoning:
        return "", entry
    for event in events:
        note_shown(event)
    parts = iter(item.contents.parts)
    texts = [(kind, next(parts).shown_text if text else "") for kind, text in contents]
    raw = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    return raw, _with_texts(entry, item.type, contents, texts)


def _with_texts(
    entry: Json, item_type: str, contents: list[Content], texts: list[tuple[Any, str]]
) -> Json:
    """Return an item with these texts in the place of its own."""
    if texts == [(kind, text or "") for kind, text in contents]:
        return entry
    changed = with_contents(entry, item_type, texts)
    return _without_passages(changed) if item_type == "message" else changed


def _without_passages(message: Json) -> Json:
    """Return a message whose texts were changed without the places that its annotations name, and
    without log probabilities."""
    content = [
        {**part, "annotations": [_without_place(each) for each in objects(part["annotations"])]}
        if isinstance(part.get("annotations"), list)
        else part
        for part in map(without_logprobs, objects(message.get("content")))
    ]
    return {**message, "content": content}


def _without_place(annotation: Json) -> Json:
    places = annotation.keys() & {"start_index", "end_index", "index"}
    return {**annotation, **dict.fromkeys(places, 0)}


# Stored responses


def hide_thinking(
    items: Sequence[Any], profile: Profile, hidden: HiddenCount, *, is_output: bool
) -> list[Any]:
    """Return items of a stored response, or of its input, without the thinking in what the model
    wrote, which is counted. An input has items of several responses, and may be listed from its
    end."""
    follows = _follow_reasoning(items)
    if not is_output:
        listed_first = reversed(_follow_reasoning(items[::-1]))
        follows = [either or other for either, other in zip(follows, listed_first, strict=True)]
    return [
        _hide_in_item(item, profile, hidden, has_reasoned=after)
        for item, after in zip(items, follows, strict=True)
    ]


def _follow_reasoning(items: Sequence[Any]) -> list[bool]:
    """Return for each item whether reasoning came before it in the same response."""
    found, follows = False, []
    for item in items:
        if is_reasoning(item):
            found = found or bool((raw_text(item) + summary_text(item)).strip())
        elif isinstance(item, dict) and _is_from_client(item):
            found = False
        follows.append(found)
    return follows


def _is_from_client(item: Json) -> bool:
    return item.get("role") in CLIENT_ROLES or item.get("type") in CLIENT_OUTPUTS


def _hide_in_item(item: Any, profile: Profile, hidden: HiddenCount, *, has_reasoned: bool) -> Any:
    if not isinstance(item, dict) or item.get("role") in CLIENT_ROLES:
        return item
    thinking = Thinking(
        profile,
        sys.maxsize,
        count(),
        hides_raw=True,
        drops_inline=False,
        hidden=hidden,
        by_message=True,
        has_reasoned=has_reasoned,
    )
    item, content = {"type": "message", **item}, item.get("content")
    if isinstance(content, str) and item["type"] == "message":
        part = {"type": "output_text", "text": content}
        left = split_item({"type": "message", "content": [part]}, thinking)[1]
        return {**item, "content": left["content"][0]["text"]}
    return split_item(item, thinking)[1]


def begins_with_thinking(item: Any, profile: Profile) -> bool:
    """Return whether the text of a message begins with a closed block of thinking."""
    if not isinstance(item, dict) or item.get("type") != "message":
        return False
    text = "".join(text or "" for _, text in contents_of(item, "message")[:1])
    splitter = TagSplitter(profile.tags)
    pieces = splitter.feed(text) if may_have_tags(text) else []
    return any(piece.kind == "raw" for piece in pieces) and not splitter.is_inside
