"""Read the messages of a Chat Completions request as turns, and change their reasoning.

An answer's message is recorded as a turn, too, to remember its reasoning by. Abridge's envelopes
are put into messages and taken out of them here: their blobs are entries of a list of reasoning, as
other opaque state is. Which list is a setting, since some clients keep the one and some the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any

from abridge.apis.chat.chunks import STATE_FIELD, ChatMessageAccumulator
from abridge.apis.chat.messages import move_reasoning, split_leading_inline, write_details
from abridge.apis.chat.reasoning import (
    ANSWER_FIELDS,
    LIST_FIELDS,
    LITELLM_COPIES,
    REASONING_FIELDS,
    REASONING_ITEM,
    extract_native_summary,
    extract_state,
    find_reasoning,
    find_thinking_chunks,
    read_answer_text,
    read_chunk_text,
    trusts_summaries,
    without_thinking_chunks,
)
from abridge.apis.chat.texts import is_plain, split_inline, split_thinking
from abridge.apis.display import Display, ListField
from abridge.apis.history import History, IsOurSummary, Placement, strip_content
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.json import as_object, dumps, entries, objects, string
from abridge.apis.opaque_state import find_states
from abridge.core.conversation import Json, RecordedTurn, ToolCall, Turn, encode_sorted
from abridge.core.envelope import Envelope, OpenEnvelope, SealEnvelope, is_envelope
from abridge.core.model_request import ReasoningPart
from abridge.core.places import PLACE_BYTES
from abridge.providers.catalog import TEXT_FIELDS
from abridge.providers.profile import Profile
from abridge.stages.sealing import Sealing

ABRIDGE_FIELDS = ("summary_error", HOSTED_CALLS)
"""Fields that Abridge adds to a message besides reasoning."""

_NAMES = frozenset({*ABRIDGE_FIELDS, *REASONING_FIELDS, LITELLM_COPIES})

_TURN_NAMES = _NAMES | {STATE_FIELD, "tool_calls"}

_BLOB_FIELDS = (*LIST_FIELDS, "content")

ENTRY_TEXT_KEYS = ("summary", "text", "thinking")
"""Keys under which an entry of a list of reasoning may hold readable text."""


class ChatHistory(History):
    """See `History`. Each message is a turn."""

    def __init__(self, body: Json) -> None:
        super().__init__(body)
        self.turns = [read_turn(message) for message in objects(body.get("messages"))]

    def strip(self, turn: Turn, is_our_summary: IsOurSummary) -> tuple[int, bool]:
        message = turn.items[0]
        if _is_bare(message):
            return 0, False
        removed = sum([message.pop(name, None) is not None for name in ABRIDGE_FIELDS])
        for fields in _with_copies(message):
            removed += _strip_summaries(fields, is_our_summary)
        content, inline = message.get("content"), False
        if not is_plain(content):
            rest, inline = _strip_content(content, is_our_summary)
            if rest != content:
                message["content"] = rest
                turn.text = read_answer(message)
                removed += 1
        found = find_reasoning(message)
        return removed, inline or (found is not None and bool(found.text.strip()))

    def open_envelopes(self, turn: Turn, open_envelope: OpenEnvelope) -> None:
        """Replace a message's reasoning by what its envelope holds, which is all of it.

        If no blob opens, only opaque state is left: the text next to a blob is a summary, and a
        signature means nothing without the text it signs.
        """
        message = turn.items[0]
        content = message.get("content")
        blobs = take_blobs(message)
        if not blobs:
            return
        if not is_plain(content):
            turn.text = read_answer(message)
        param = f"messages[{self._message_indexes[id(message)]}]"
        place = message_place(turn) if turn.role == "assistant" else None
        envelopes = [open_envelope(blob, f"{param}.{path}", place, "", ()) for path, blob in blobs]
        found = next(filter(None, envelopes), None)
        for fields in _with_copies(message)[1:]:
            _pop_all(fields, REASONING_FIELDS)
        self.restore(turn, found.reasoning if found is not None else [extract_state(message)])
        turn.from_envelope = found is not None

    def reasoning_texts(self, turn: Turn) -> tuple[str, ...]:
        """Inline reasoning before the answer counts as such, too."""
        message = turn.items[0]
        found, content = find_reasoning(message), message.get("content")
        inline = "" if is_plain(content) else split_leading_inline(content)[0]
        texts = [string(message.get(name)) for name in TEXT_FIELDS]
        return tuple(filter(None, [*texts, found.text if found is not None else "", inline]))

    def reasoning_states(self, turn: Turn) -> set[str]:
        message = turn.items[0]
        if not turn.has_opaque_state and _NAMES.isdisjoint(message):
            return set()  # the usual case
        return set(find_states(_collect_original(message)))

    def calls(self, turn: Turn) -> list[Json]:
        return objects(turn.items[0].get("tool_calls"))

    def restore(self, turn: Turn, original: list[Json]) -> None:
        message, turn.is_plain = turn.items[0], False
        _pop_all(message, REASONING_FIELDS)
        for fields in original:
            content = _rejoin_content(turn, fields["content"]) if "content" in fields else None
            message.update({key: fields[key] for key in fields if key not in ANSWER_FIELDS})
            if content is not None:
                message["content"] = content
            _restore_call_state(message, fields)

    def drop_reasoning(self, turn: Turn) -> bool:
        message, content = turn.items[0], turn.items[0].get("content")
        removed = sum(_pop_all(fields, REASONING_FIELDS) for fields in _with_copies(message))
        removed += sum(_pop_all(holder, [STATE_FIELD]) for holder in list_state_holders(message))
        rest = without_content_reasoning(content)
        if rest != content:
            message["content"] = rest or None
        return bool(removed) or rest != content

    def place_reasoning(self, turn: Turn, profile: Profile) -> Placement:
        if profile.returns.place == "nothing":
            return "dropped" if self.drop_reasoning(turn) else "unchanged"
        if _is_bare(turn.items[0]) and not profile.returns.required_even_empty:
            return "unchanged"
        return "moved" if move_reasoning(turn.items[0], profile) else "unchanged"

    @cached_property
    def _message_indexes(self) -> dict[int, int]:
        """The index of each message, as the client counts them, by the identity of its object."""
        return {id(message): number for number, message in enumerate(self._body["messages"])}


def _is_bare(message: Json) -> bool:
    """Return whether a message has no place for reasoning, as most of a long conversation: none of
    its fields, and a text in which no tag begins."""
    return _NAMES.isdisjoint(message) and is_plain(message.get("content"))


def _with_copies(message: Json) -> list[Json]:
    """Return the objects that may hold fields of reasoning: the message, LiteLLM's copy of them."""
    copies = message.get(LITELLM_COPIES)
    return [message, copies] if isinstance(copies, dict) else [message]


def _pop_all(fields: Json, names: Iterable[str]) -> int:
    """Remove fields; return how many of them said something."""
    return sum([bool(fields.pop(name, None)) for name in names])


def _strip_summaries(message: Json, is_our_summary: IsOurSummary) -> int:
    """Remove Abridge's summaries from the fields of reasoning; return how many."""
    removed = 0
    for name in TEXT_FIELDS:
        if (text := message.get(name)) and is_our_summary(string(text)):
            del message[name]
            removed += 1
    for name in LIST_FIELDS:
        if isinstance(message.get(name), list):
            rest = [entry for entry in message[name] if not _holds_summary(entry, is_our_summary)]
            removed += len(message[name]) - len(rest)
            message[name] = rest
            if not rest:
                del message[name]
    return removed


def _rejoin_content(turn: Turn, original: Any) -> Any:
    """Return the original content, with its reasoning, around the answer as it is now.

    A turn that is identified by its calls may have a different text by now.
    """
    answer = without_content_reasoning(turn.items[0].get("content"))
    if not turn.calls or flatten_content(without_thinking_chunks(original)).endswith(
        flatten_content(answer)
    ):
        return original
    if chunks := find_thinking_chunks(original):
        text = [{"type": "text", "text": answer}] if isinstance(answer, str) else answer
        return [*chunks, *objects(text)]
    before = string(original)
    return before.removesuffix(without_content_reasoning(before)) + string(answer)


def _restore_call_state(message: Json, original: Json) -> None:
    """Restore the opaque state of the calls; calls with the same id, or none, get it in order."""
    stateful = deque(objects(original.get("tool_calls")))
    for call in objects(message.get("tool_calls")) if stateful else ():
        if stateful and stateful[0]["id"] == call.get("id"):
            call[STATE_FIELD] = stateful.popleft()[STATE_FIELD]


def _holds_summary(entry: Any, is_our_summary: IsOurSummary) -> bool:
    texts = map(as_object(entry).get, ENTRY_TEXT_KEYS)
    return any(map(is_our_summary, map(string, texts)))


def _strip_content(content: Any, is_our_summary: IsOurSummary) -> tuple[Any, bool]:
    """Remove a summary of Abridge's that a client put inline or into a thinking chunk.

    Returns the content, and true if it holds inline reasoning that is not Abridge's.
    """
    content = strip_content(content, is_our_summary)
    if isinstance(content, list):
        content = [chunk for chunk in content if not _is_summary_chunk(chunk, is_our_summary)]
    inline, answer = split_leading_inline(content)
    return (answer, False) if is_our_summary(inline) else (content, bool(inline.strip()))


def _is_summary_chunk(chunk: Any, is_our_summary: IsOurSummary) -> bool:
    is_thinking = as_object(chunk).get("type") == "thinking"
    return is_thinking and is_our_summary(read_chunk_text(chunk))


# Envelopes, opened


def message_place(turn: Turn) -> bytes:
    """Return what an envelope in a message is bound to: its text, and the ids of its calls."""
    answer = dumps([turn.text, *(call.id for call in turn.calls)])
    return blake2b(answer, digest_size=PLACE_BYTES).digest()


def take_blobs(message: Json) -> list[tuple[str, str]]:
    """Remove Abridge's blobs from a message, and from LiteLLM's copy of its fields.

    Return each with its path.
    """
    if _is_bare(message):
        return []
    taken = _take_from_lists(message)
    for fields in _with_copies(message)[1:]:
        taken += [(f"{LITELLM_COPIES}.{path}", blob) for path, blob in _take_from_lists(fields)]
    return taken


def _take_from_lists(fields: Json) -> list[tuple[str, str]]:
    taken: list[tuple[str, str]] = []
    for name in filter(fields.get, _BLOB_FIELDS):
        given = entries(fields[name])
        blobs = [position for position, entry in enumerate(given) if _is_blob(entry)]
        taken += [(f"{name}[{position}].data", given[position]["data"]) for position in blobs]
        if len(blobs) == len(given) > 0:
            del fields[name]
        elif blobs:
            fields[name] = [entry for entry in given if not _is_blob(entry)]
    return taken


def _is_blob(entry: Any) -> bool:
    return is_envelope(as_object(entry).get("data"))


# Turns


def read_turn(message: Json) -> Turn:
    """Read a message as a turn. Only an assistant's can hold reasoning."""
    role, content = string(message.get("role")), message.get("content")
    if role != "assistant":
        answers = string(message.get("tool_call_id"))
        return Turn(role, flatten_content(content), answers_call=answers, items=[message])
    if _TURN_NAMES.isdisjoint(message) and is_plain(content):
        text = content or string(message.get("refusal"))
        return Turn(role, text, is_plain=True, items=[message])
    holders = list_state_holders(message)
    return Turn(
        role,
        read_answer(message),
        calls=tuple(map(_read_call, holders[1:])),
        has_opaque_state=any(holder.get(STATE_FIELD) for holder in holders),
        items=[message],
    )


def read_answer(message: Json) -> str:
    """Return a message's answer. Inline reasoning before it is none of it, unless a field holds the
    reasoning."""
    content = message.get("content")
    if not is_plain(content):
        is_inline = find_reasoning(message) is None
        content = flatten_content(split_leading_inline(content)[1] if is_inline else content)
    return content or string(message.get("refusal"))


def flatten_content(content: Any) -> str:
    """Return a content as text, with chunks of other types as JSON; thinking is left out."""
    if isinstance(content, str):
        return content
    others = [
        encode_sorted(chunk)
        for chunk in objects(content)
        if "text" not in chunk and chunk.get("type") != "thinking"
    ]
    return "\n".join([read_answer_text(content), *others])


def _read_call(call: Json) -> ToolCall:
    function = as_object(call.get("function") or call.get("custom"))
    arguments = function.get("arguments", function.get("input"))
    return ToolCall(string(call.get("id")), string(function.get("name")), string(arguments))


def without_content_reasoning(content: Any) -> Any:
    """Return a content without thinking chunks and inline reasoning."""
    return split_leading_inline(without_thinking_chunks(content))[1]


def list_state_holders(message: Json) -> list[Json]:
    """Return the objects that may hold opaque state in `extra_content`: the message, its calls."""
    return [message, *objects(message.get("tool_calls"))]


def record_turn(message: Json, lane: int, profile: Profile, display: Display) -> RecordedTurn:
    """Record an answer's message.

    Where raw reasoning is hidden the turn's text is without any thinking, as the client gets it.
    """
    turn, content = read_turn(message), message.get("content")
    original = _collect_original(message)
    found = find_reasoning(message, trusts_summaries=trusts_summaries(profile, display))
    rest, raw = content, ""
    if display.hides_raw:
        raw, rest = split_thinking(message, profile)
    elif found is None:
        raw, rest = split_inline(content, profile)
    if found is not None and not found.native:
        raw = found.text
    if rest != content:
        turn.text = flatten_content(rest)
    if rest != content or find_thinking_chunks(content):
        original["content"] = content
    has_reasoning = bool(raw.strip() or original)
    return RecordedTurn(turn, raw, [original] if has_reasoning else [], ((lane, REASONING_ITEM),))


def _collect_original(message: Json) -> Json:
    """Return the fields to restore later: reasoning and opaque state, that of calls by call id."""
    original = {
        name: message[name] for name in (*REASONING_FIELDS, STATE_FIELD) if message.get(name)
    }
    calls = [
        {"id": call.get("id"), STATE_FIELD: call[STATE_FIELD]}
        for call in objects(message.get("tool_calls"))
        if call.get(STATE_FIELD)
    ]
    return {**original, "tool_calls": calls} if calls else original


# Envelopes, made


ENVELOPE_FORMAT = "unknown"
"""OpenRouter's word for a format without a name. Its AI SDK provider drops an entry of any format
that it does not know (OpenRouterTeam/ai-sdk-provider, src/schemas/format.ts)."""

_ENTRY_SHAPES: Mapping[ListField, Json] = {
    "reasoning_details": {"type": "reasoning.encrypted", "format": ENVELOPE_FORMAT},
    "thinking_blocks": {"type": "redacted_thinking"},
}


def make_entry(blob: str, name: ListField, index: int) -> Json:
    return {**_ENTRY_SHAPES[name], "data": blob, "index": index}


def make_envelope(turn: RecordedTurn) -> Envelope:
    """Make the envelope of an answer's message.

    It is bound to the message's text and calls, which the client may not change.
    """
    holds_answer = any("content" in fields for fields in turn.original)
    return Envelope(turn.original, place=message_place(turn.turn), holds_answer=holds_answer)


def list_visible_entries(turn: RecordedTurn, display: Display) -> list[Any]:
    """Return the entries of upstream's that are visible to the client, of the list for blobs."""
    original: Json = {}
    for fields in turn.original:
        original |= fields
    visible = original if display.show_raw else extract_native_summary(original)
    return entries(visible.get(display.envelope_field))


def next_index(listed: list[Any]) -> int:
    """Return the first index free after a list's entries. One without an index counts by its
    position."""
    given = (as_object(entry).get("index") for entry in listed)
    return max([len(listed), *(index + 1 for index in given if isinstance(index, int))])


class ChatSealing(Sealing):
    """Seal the reasoning of a choice that is translated, bound to the message that it is part of.

    Past `limit` characters of either give up: nothing is sealed then.
    """

    def __init__(self, seal: SealEnvelope, limit: int) -> None:
        super().__init__(seal, write_pieces, limit)
        self._answer = ChatMessageAccumulator(limit)

    def add_content(self, text: str) -> None:
        self._answer.add({"content": text})

    def add_answer(self, delta: Json) -> None:
        self._answer.add({key: delta[key] for key in ANSWER_FIELDS if key in delta})

    def seal_all(self) -> str:
        """Return the blob; nothing if the client was shown all that there was, or that was too much
        to keep."""
        entries = self.collected()
        if entries is None or not (self.is_needed and self._answer.is_complete):
            return ""
        details = [{**entry, "index": index} for index, entry in enumerate(entries)]
        place = message_place(read_turn(self._answer.as_dict()))
        return self.seal([{"reasoning_details": details}], place=place)


def write_pieces(pieces: Iterable[ReasoningPart]) -> Iterator[Json]:
    """Write pieces as entries of `reasoning_details`."""
    for piece in pieces:
        yield from ({"type": "reasoning.summary", "summary": part} for part in piece.summary)
        yield from write_details(piece)
