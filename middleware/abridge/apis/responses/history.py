"""Read the input of a Responses request as turns, and change what upstream gets of it.

A turn of the assistant is reasoning and text, and a call ends it. So each call is a turn of its
own, whether or not the client still returns the reasoning between two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, ClassVar

from abridge.apis.history import (
    ClientPieceHistory,
    IsOurSummary,
    Placement,
    in_tags,
    is_tagged,
    kind_of,
    read_text,
    strip_content,
)
from abridge.apis.json import entries, first_string, objects, string
from abridge.apis.openai import is_minted
from abridge.apis.responses.items import OutputEntry
from abridge.apis.responses.reasoning import (
    as_sent,
    call_id_of,
    is_reasoning,
    is_tool_call,
    raw_text,
    summary_text,
)
from abridge.apis.responses.texts import begins_with_thinking
from abridge.core.conversation import Json, RecordedTurn, ToolCall, Turn, encode_sorted
from abridge.core.envelope import OpenEnvelope, is_envelope
from abridge.core.events import LANE, PART_SEPARATOR
from abridge.core.places import PlaceTracker, place_after_call
from abridge.providers.profile import Profile
from abridge.stages.tags import may_have_tags

ABRIDGE_FIELDS = ("summary_error",)
"""Fields that Abridge adds to an item beside its summary."""

ENCRYPTED_CONTENT = "encrypted_content"

_EMPTY_ITEM_FIELDS = frozenset({"id", "type", "status", *ABRIDGE_FIELDS})
"""Fields of an item that say nothing on their own."""

TRANSLATED_TYPES = ("reasoning", "message", "function_call", "custom_tool_call")
"""Types of items that clients of another API are shown."""


class ResponsesHistory(ClientPieceHistory):
    """Read and change the turns of one request. See `ClientPieceHistory`."""

    separator = PART_SEPARATOR
    order: ClassVar[Mapping[str, int]] = {"reasoning": 0, "message": 1, "": 2}
    is_reasoning = staticmethod(is_reasoning)
    raw_text = staticmethod(raw_text)

    def __init__(self, body: Json, *, is_translated: bool = False) -> None:
        super().__init__(body, is_translated=is_translated)
        self._emptied: dict[int, set[str]] = {}  # ids of reasoning items, by `id()` of their turn
        input_value = body.get("input")
        items = objects(input_value)
        items = items if len(items) == len(entries(input_value)) else []
        self._read = read_joined_turns if is_translated else read_turns
        self._input_turns = list(self._read(items))
        self._items = items or [{"role": "user", "content": input_value}]
        previous = string(body.get("previous_response_id"))
        other_input: list[Turn] = []
        if not self._input_turns:
            other_items = objects(input_value if isinstance(input_value, list) else [input_value])
            other_input.append(Turn("user", _content_text(input_value), items=other_items))
        self.turns = [
            *([Turn("previous", previous)] if previous else []),
            Turn("system", _content_text(body.get("instructions"))),
            *other_input,
            *self._input_turns,
        ]

    @staticmethod
    def read_turns(pieces: Sequence[Json]) -> Iterator[Turn]:
        return read_turns(pieces)

    @staticmethod
    def read_joined_turn(pieces: Sequence[Json]) -> Turn:
        """Return the turn that the client has of these items."""
        shown = [item for item in pieces if kind_of(item) in TRANSLATED_TYPES]
        return next(read_joined_turns(shown), Turn("assistant"))

    @staticmethod
    def as_sent(pieces: Iterable[Json]) -> list[Json]:
        return list(map(as_sent, pieces))

    @staticmethod
    def says_anything(reasoning: Sequence[Json]) -> bool:
        return any(raw_text(item).strip() or item.get(ENCRYPTED_CONTENT) for item in reasoning)

    def strip(self, turn: Turn, is_our_summary: IsOurSummary) -> tuple[int, bool]:
        removed_count, remaining, text_is_stripped = 0, [], False
        for item in turn.items:
            removed = _strip_item(item, is_our_summary) if is_reasoning(item) else 0
            if item.get("role") == "assistant" and _strip_message(item, is_our_summary):
                removed, text_is_stripped = 1, True
            removed_count += removed
            if not removed or any(map(item.get, ("summary", "content", "encrypted_content"))):
                remaining.append(item)
            else:
                self._emptied.setdefault(id(turn), set()).update(_upstream_ids([item]))
        turn.items[:] = remaining
        if text_is_stripped:
            turn.text = next(self._read(remaining), Turn("assistant")).text
        return removed_count, bool(self.raw_texts(remaining))

    def calls(self, turn: Turn) -> Iterable[Json]:
        return filter(is_tool_call, turn.items)

    def _open_piece(self, piece: Json, turn: Turn, open_envelope: OpenEnvelope) -> list[Json]:
        """Replace an item with a blob by the items in its envelope.

        An item whose blob does not open loses its summary too, which is Abridge's. In an item that
        is not reasoning a blob belongs to no turn.
        """
        if not is_envelope(piece.get(ENCRYPTED_CONTENT)):
            return [piece]
        index, (places, _) = self._input_indexes.get(id(piece)), self._places
        param = "input" if index is None else f"input[{index}]"
        place = places.get(id(piece)) if is_reasoning(piece) else None
        others = self._places_ahead(turn) if place is not None else ()
        blob, identity = piece.pop(ENCRYPTED_CONTENT), string(piece.get("id"))
        found = open_envelope(blob, f"{param}.{ENCRYPTED_CONTENT}", place, identity, others)
        if found is not None:
            return self._take_opened(found, turn, place)
        bare = {**piece, "summary": []} if is_reasoning(piece) else piece
        return [bare] if any(bare[key] for key in bare.keys() - _EMPTY_ITEM_FIELDS) else []

    def reasoning_texts(self, turn: Turn) -> tuple[str, ...]:
        """Return also the whole summary of a turn."""
        summary = "".join(map(summary_text, filter(is_reasoning, turn.items)))
        return (*super().reasoning_texts(turn), summary)

    def reasoning_states(self, turn: Turn) -> set[str]:
        ids = _upstream_ids(filter(is_reasoning, turn.items))
        return {*super().reasoning_states(turn), *ids, *self._emptied.get(id(turn), ())}

    def drop_reasoning(self, turn: Turn) -> bool:
        """Remove the reasoning, and the ids of the turn's other items.

        By such an id OpenAI knows that reasoning came first, and refuses the item ("provided
        without its required 'reasoning' item").
        """
        dropped = super().drop_reasoning(turn)
        if dropped:
            turn.items[:] = [{key: item[key] for key in item if key != "id"} for item in turn.items]
        return dropped

    def place_reasoning(self, turn: Turn, profile: Profile) -> Placement:
        """Put reasoning into messages, for servers that have it there, and leave out what is in the
        clear for those that refuse it: else there is one place."""
        if not any(map(is_reasoning, turn.items)):
            return "unchanged"
        if profile.rejects_clear_reasoning:
            placed = list(_without_clear_reasoning(turn.items))
        else:
            placed = list(put_into_tags(turn.items, profile)) if takes_tags(profile) else turn.items
        if placed == turn.items:
            return "unchanged"
        turn.items[:] = placed
        return "dropped" if profile.rejects_clear_reasoning else "moved"

    def body(self) -> Json:
        if self._input_turns:
            self._body["input"] = [item for turn in self._input_turns for item in turn.items]
        return self._body

    @cached_property
    def _input_indexes(self) -> dict[int, int]:
        """Return the index of each item in the client's input, by `id()`."""
        return {id(item): number for number, item in enumerate(self._body["input"])}

    @cached_property
    def _places(self) -> tuple[dict[int, bytes], bytes]:
        """Return the place of each item with an envelope, by `id()`, before any is opened, and that
        of what comes next."""
        tracker, places = ItemPlaces(), dict[int, bytes]()
        for item in self._items:
            if is_envelope(item.get(ENCRYPTED_CONTENT)):
                places[id(item)] = tracker.place
            tracker.add(item)
        return places, tracker.place


def read_turns(items: Sequence[Json]) -> Iterator[Turn]:
    pending, texts = list[Json](), list[str]()
    for item in items:
        kind, role = string(item.get("type")), string(item.get("role"))
        is_message = role == "assistant" and kind != "reasoning"
        is_called = not is_message and kind.endswith("_call")
        if not (is_message or is_called or kind == "reasoning"):
            if pending:
                yield _assistant_turn(pending, texts)
                pending, texts = [], []
            yield _other_turn(item, kind, role)
            continue
        pending.append(item)
        if is_message and not is_tagged(content := item.get("content")):
            texts.append(_content_text(content))
        elif is_called:
            yield _assistant_turn(pending, texts, _read_call(item))
            pending, texts = [], []
    if pending:
        yield _assistant_turn(pending, texts)


def record_output(output: Sequence[OutputEntry], *, joined: bool) -> list[RecordedTurn]:
    """Return the turns of a response, `joined` for a client of another API."""
    pieces = [
        (None if number is None else (LANE, number), item)
        for number, item in output
        if isinstance(item, dict)
    ]
    return ResponsesHistory.record(pieces, joined=joined)


def _upstream_ids(items: Iterable[Json]) -> Iterator[str]:
    """Yield the ids of items, but for those that Abridge made."""
    ids = (string(item.get("id")) for item in items)
    return (identity for identity in ids if identity and not is_minted(identity))


def _strip_item(item: Json, is_our_summary: IsOurSummary) -> int:
    removed_count = sum([item.pop(mark, None) is not None for mark in ABRIDGE_FIELDS])
    for name in ("summary", "content"):
        parts = item.get(name)
        if not parts or not isinstance(parts, list):
            continue
        remaining = [part for part in parts if not _is_our_part(part, is_our_summary)]
        if len(remaining) < len(parts):
            item[name] = remaining
            removed_count += len(parts) - len(remaining)
    return removed_count


def _strip_message(item: Json, is_our_summary: IsOurSummary) -> bool:
    """Take summaries in tags out of a message; return True if there were any. One that is nothing
    but empty tags is of reasoning that was hidden: pydantic-ai writes it so."""
    content = item.get("content")
    is_alone = is_tagged(content)
    rest = strip_content(
        content, lambda text: (is_alone and not text.strip()) or is_our_summary(text)
    )
    if rest == content:
        return False
    is_blank = isinstance(rest, str) and not rest.strip()
    item["content"] = "" if is_blank else rest
    return True


def _is_our_part(part: Any, is_our_summary: IsOurSummary) -> bool:
    return isinstance(part, dict) and is_our_summary(string(part.get("text")))


def _assistant_turn(items: list[Json], texts: list[str], *calls: ToolCall) -> Turn:
    text = "".join(texts)
    is_message = bool(text) and len(items) == 1 and not calls
    is_plain = is_message and ENCRYPTED_CONTENT not in items[0] and not may_have_tags(text)
    return Turn("assistant", text, calls, is_plain=is_plain, items=items)


def _read_call(item: Json) -> ToolCall:
    """Read a call under the id that its output refers to."""
    fields = ("arguments", "input", "action", "operation")
    arguments = next((item[name] for name in fields if name in item), None)
    text = arguments if isinstance(arguments, str) else encode_sorted(arguments)
    return ToolCall(call_id_of(item), first_string(item, "name", "type"), text)


def _other_turn(item: Json, kind: str, role: str) -> Turn:
    if "output" in item:
        call = string(item.get("call_id"))
        return Turn("tool", _content_text(item["output"]), answers_call=call, items=[item])
    text = _content_text(item.get("content")) if role else encode_sorted(item)
    return Turn(role or kind, text, items=[item])


_content_text = partial(read_text, other_key="refusal")


def read_joined_turns(items: Sequence[Json]) -> Iterator[Turn]:
    """Yield the turns that the items make, consecutive turns of the assistant as one."""
    for is_answer, run in groupby(read_turns(items), lambda turn: turn.role == "assistant"):
        if is_answer:
            yield _join_turns(list(run))
        else:
            yield from run


def _join_turns(assistant_turns: list[Turn]) -> Turn:
    items = [item for turn in assistant_turns for item in turn.items]
    return Turn(
        "assistant",
        text=PART_SEPARATOR.join(turn.text for turn in assistant_turns if turn.text),
        calls=tuple(call for turn in assistant_turns for call in turn.calls),
        items=items,
    )


# Places, by which the envelopes of items are bound to their conversation


class ItemPlaces(PlaceTracker):
    """Follow the items of a conversation."""

    def add(self, item: Json) -> None:
        if item.get("role") == "user":
            self.add_question(_content_text(item.get("content")))
        elif "call_id" in item:
            self.add_call(string(item.get("call_id")))
        elif item.get("role") == "assistant" or item.get("type") == "reasoning":
            self.add_answer()


def places_in_output(output: Iterable[object]) -> Iterator[bytes | None]:
    """Yield the place of each item of a response; None before its first call."""
    place: bytes | None = None
    for item in output:
        yield place
        if isinstance(item, dict):
            place = place_after_call(string(item.get("call_id"))) or place


# Into tags


def _without_clear_reasoning(items: Iterable[Json]) -> Iterator[Json]:
    """Yield the items of a turn without raw reasoning, which is another model's."""
    for item in items:
        if not (is_reasoning(item) and raw_text(item)):
            yield item
        elif item.get("summary") or item.get(ENCRYPTED_CONTENT):
            yield {key: item[key] for key in item if key != "content"}


def takes_tags(profile: Profile) -> bool:
    """Return whether a server has reasoning in its messages, and wants it back there."""
    return profile.inline_on_responses and profile.returns.place == "tags"


def put_into_tags(items: Sequence[Json], profile: Profile) -> Iterator[Json]:
    """Yield the items of a turn, with reasoning at the beginning of the message after it, or in a
    message of its own if there is none. Reasoning that the message repeats is said once."""
    tagged = ""
    for item in items:
        raw = "" if item.get("encrypted_content") else raw_text(item) if is_reasoning(item) else ""
        if raw.strip():
            tagged += in_tags(raw.removeprefix("\n").removesuffix("\n"), profile)
            continue
        if tagged and item.get("role") == "assistant":
            yield _begin_with(tagged, item, profile)
        else:
            yield from ([_message(tagged), item] if tagged else [item])
        tagged = ""
    if tagged:
        yield _message(tagged)


def _message(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def _begin_with(tagged: str, item: Json, profile: Profile) -> Json:
    if begins_with_thinking({"type": "message", **item}, profile):
        return item
    return {**item, "content": _prefix(tagged, item.get("content"))}


def _prefix(tagged: str, content: Any) -> Any:
    if not isinstance(content, list):
        return tagged + string(content)
    first, *rest = content or [{}]
    if isinstance(first, dict) and isinstance(first.get("text"), str):
        return [{**first, "text": tagged + first["text"]}, *rest]
    return [{"type": "output_text", "text": tagged, "annotations": []}, *content]
