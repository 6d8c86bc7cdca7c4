"""Find reasoning in a Chat Completions message, in whichever field a provider puts it.

A delta and a message have the same fields, so the same functions read both. The fields:

=====================  ===========================================================================
`reasoning_content`    DeepSeek, Moonshot, Z.ai, Qwen, xAI, SGLang, llama.cpp, LiteLLM, older vLLM
`reasoning`            vLLM, Ollama, Groq, Cerebras, OpenRouter, Together
`reasoning_details`    OpenRouter, MiniMax: a list of `reasoning.text`, `.summary`, `.encrypted`
`thinking_blocks`      LiteLLM: a list of `thinking` (with signature) and `redacted_thinking`
`content`              Mistral: a list with `thinking` chunks in it; else inline tags (apis/tags),
                       in a text or in the text chunks of a list
=====================  ===========================================================================

The plain text fields are those that the rows of `providers/catalog.py` name. Which of them hold raw
reasoning and summaries in what a client gets, `ReasoningFields` in `writer.py` decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

from abridge.apis.display import Display
from abridge.apis.json import objects, string
from abridge.core.conversation import Json
from abridge.providers.catalog import TEXT_FIELDS
from abridge.providers.learned import Observation
from abridge.providers.profile import Profile, ReasoningPlace
from abridge.stages.hidden_thinking import ThinkingFilter
from abridge.stages.tags import TagPiece, TagSplitter, may_have_tags

PART_SEPARATOR = "\n\n"
"""Stands between the parts of a summary, and wherever else one text follows another."""

REASONING_ITEM = 0
"""The number of a choice's only reasoning item."""

DEFAULT_FIELD = "reasoning_content"
"""The text field for a summary, or for reasoning that had no field of its own."""

RAW_FIELD = "reasoning"
"""The text field for raw reasoning next to a summary."""

LIST_FIELDS = ("reasoning_details", "thinking_blocks")
"""Fields that hold a list of reasoning, and with it opaque state."""

REASONING_FIELDS = (*TEXT_FIELDS, *LIST_FIELDS)

LITELLM_COPIES = "provider_specific_fields"
"""The field in which LiteLLM's client keeps, and sends back, a copy of fields unknown to it."""

ANSWER_FIELDS = ("content", "refusal", "tool_calls", "function_call", "audio")

_OPAQUE_TYPES = frozenset({"reasoning.encrypted", "redacted_thinking"})


class FoundReasoning(NamedTuple):
    """Reasoning in a delta or a message."""

    text: str
    field: str  # the field for a summary that replaces it
    native: bool = False  # it is a summary that upstream made


def find_reasoning_fields(message: Json) -> list[str]:
    """Return the names of the fields that hold readable reasoning and nothing else."""
    return [
        name
        for name in REASONING_FIELDS
        if message.get(name)
        and is_reasoning_field(name, message[name])
        and not _is_opaque_list(message[name])
    ]


def is_reasoning_field(name: str, value: Any) -> bool:
    """Return whether a field is one of reasoning, or empty; of another type it is unknown."""
    if name in TEXT_FIELDS:
        return not value or isinstance(value, str)
    return name in LIST_FIELDS and (not value or isinstance(value, list))


def find_reasoning(message: Json, *, trusts_summaries: bool = True) -> FoundReasoning | None:
    """Find the readable reasoning in a delta or a message; None if there is only opaque state.

    It counts as a native summary if nothing but summaries holds text, and summaries are trusted.
    """
    names = find_reasoning_fields(message)
    chunks = find_thinking_chunks(message.get("content"))
    if not (names or chunks):
        return None
    if len(names) == 1 and names[0] in TEXT_FIELDS and not chunks:  # the usual case
        return FoundReasoning(message[names[0]], names[0])
    found = _classify_reasoning(message, names, chunks)
    return found if trusts_summaries else found._replace(native=False)


def _classify_reasoning(message: Json, names: list[str], chunks: list[Json]) -> FoundReasoning:
    field = next((name for name in TEXT_FIELDS if name in names), "")
    details, blocks = (
        objects(message.get("reasoning_details")),
        objects(message.get("thinking_blocks")),
    )
    texts = [message[name] for name in TEXT_FIELDS if name in names]
    list_text = (
        "".join(string(entry.get("text")) for entry in details)
        or "".join(string(entry.get("thinking")) for entry in blocks)
        or "".join(map(read_chunk_text, chunks))
    )
    summary = "".join(map(_read_summary, details))
    if summary and not list_text and all(text == summary for text in texts):
        return FoundReasoning(summary, field or RAW_FIELD, native=True)
    text = next(iter(texts), "") or list_text
    return FoundReasoning(text, field or DEFAULT_FIELD)


def _read_summary(entry: Json) -> str:
    """Return the summary in an entry of `reasoning_details`; one beside a text is none."""
    return string(entry.get("summary")) if entry.get("type") == "reasoning.summary" else ""


def find_reasoning_place(message: Json) -> ReasoningPlace | None:
    """Find the place of reasoning, or of opaque state for it; inline tags are not looked for.

    A list, which may hold opaque state, takes precedence over a text field that repeats it.
    """
    for name in LIST_FIELDS:
        if message.get(name):
            return name
    if find_thinking_chunks(message.get("content")):
        return "chunks"
    for name in TEXT_FIELDS:
        if string(message.get(name)).strip():
            return name
    holders = [message, *objects(message.get("tool_calls"))]
    return "extra_content" if any(holder.get("extra_content") for holder in holders) else None


def get_delta(choice: Json) -> Json:
    """Return the delta of a choice, or the message in its place; empty if there is neither."""
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else choice.get("message")
    return delta if isinstance(delta, dict) else {}


def get_index(choice: Json) -> int:
    """Return the index of a choice, which some servers leave out."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def extract_reasoning(message: Json) -> Json:
    """Return all fields that hold reasoning, as upstream wrote them."""
    found = {name: message[name] for name in REASONING_FIELDS if message.get(name)}
    chunks = find_thinking_chunks(message.get("content"))
    return {**found, "content": chunks} if chunks else found


def extract_state(message: Json) -> Json:
    """Return the opaque state alone: only upstream can read it, and it wants it back."""
    found = {name: objects(message[name]) for name in LIST_FIELDS if message.get(name)}
    opaque = {name: list(filter(_is_opaque, entries)) for name, entries in found.items()}
    return {name: entries for name, entries in opaque.items() if entries}


def extract_native_summary(message: Json) -> Json:
    """Return the fields of a summary that upstream made, and its opaque state."""
    found = {name: message[name] for name in TEXT_FIELDS if message.get(name)}
    details = objects(message.get("reasoning_details"))
    entries = [entry for entry in details if _read_summary(entry) or _is_opaque(entry)]
    return {
        **found,
        **extract_state(message),
        **({"reasoning_details": entries} if entries else {}),
    }


def find_thinking_chunks(content: Any) -> list[Json]:
    """Return the chunks of a list content that hold reasoning."""
    if not isinstance(content, list):
        return []
    return [chunk for chunk in objects(content) if chunk.get("type") == "thinking"]


def read_chunk_text(chunk: Json) -> str:
    """Return the text of a thinking chunk: `thinking` is a string or a list of text chunks."""
    thinking = chunk.get("thinking")
    return string(thinking) or "".join(string(part.get("text")) for part in objects(thinking))


def is_text_chunk(chunk: Any) -> bool:
    """Return whether a chunk of a list content is text; small servers leave the type out."""
    return (
        isinstance(chunk, dict)
        and chunk.get("type") in ("text", "output_text", "", None)
        and isinstance(chunk.get("text"), str)
    )


def read_answer_text(content: Any) -> str:
    """Return the text of a content, a string or a list.

    A chunk of unknown type is left out, since it may be reasoning.
    """
    if not isinstance(content, list):
        return string(content)
    return "".join(string(chunk.get("text")) for chunk in content if is_text_chunk(chunk))


def without_thinking_chunks(content: Any) -> Any:
    """Return the content without its thinking chunks."""
    if not isinstance(content, list):
        return content
    return [chunk for chunk in content if not find_thinking_chunks([chunk])]


def without_reasoning(message: Json) -> Json:
    """Return the message without its reasoning, but with opaque state."""
    others = {key: message[key] for key in message if not is_reasoning_field(key, message[key])}
    if "content" in others:
        others["content"] = without_thinking_chunks(others["content"])
    return {**others, **extract_state(message)}


def _is_opaque(entry: Any) -> bool:
    """Return whether an entry of a list is opaque state and nothing else."""
    return (
        isinstance(entry, dict)
        and string(entry.get("type")) in _OPAQUE_TYPES
        and not (entry.get("text") or entry.get("summary") or entry.get("thinking"))
    )


def _is_opaque_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_opaque, value))


def trusts_summaries(profile: Profile, display: Display) -> bool:
    """Return whether what upstream calls a summary is taken for one: where reasoning is hidden,
    only if the profile vouches for it."""
    return profile.makes_summaries or not display.hides_raw


def replace_reasoning(message: Json, fields: Json) -> Json:
    """Return a delta or a message with its reasoning replaced by these fields."""
    others = {
        key: value
        for key, value in message.items()
        if key in LIST_FIELDS or not is_reasoning_field(key, value)
    }
    if isinstance(others.get("content"), list):
        others["content"] = without_thinking_chunks(others["content"]) or None
    return {**{key: value for key, value in fields.items() if value}, **others}


# Opaque state


class StateEntry(NamedTuple):
    """An entry of a list of reasoning."""

    text: str
    data: str  # the opaque state; empty if the entry has none
    signs: bool  # the state is a signature of the text


def read_state(message: Json) -> list[StateEntry]:
    """Read the entries of a list that holds opaque state; empty if no list does.

    `thinking_blocks` takes precedence over `reasoning_details`.
    """
    for name in reversed(LIST_FIELDS):
        if given := message.get(name):
            entries = list(map(_read_entry, objects(given)))
            if any(entry.data for entry in entries):
                return entries
    return []


def _read_entry(entry: Json) -> StateEntry:
    if string(entry.get("type")) in ("redacted_thinking", "reasoning.encrypted"):
        return StateEntry("", string(entry.get("data")), signs=False)
    text = next(filter(None, map(string, map(entry.get, ("thinking", "text", "summary")))), "")
    return StateEntry(text, string(entry.get("signature")), signs=True)


# Inline reasoning, between tags


@dataclass(slots=True)
class InlineSplit:
    """A content split into inline reasoning and the rest."""

    raw: str
    content: Any
    in_block: bool  # some of it was inside a block, if only the tags

    def is_text_of(self, contents: Iterable[Any]) -> bool:
        """Return whether this is the text of these contents, unchanged."""
        text = "".join(map(read_answer_text, contents))
        return not self.in_block and read_answer_text(self.content) == text


def split_delta(
    delta: Json, splitter: TagSplitter, *, is_last: bool, gives_up: bool = False
) -> InlineSplit | None:
    """Split the content of a choice's next delta; None if it stays as it is. With `gives_up`, text
    that is held back becomes no block any more."""
    content = delta.get("content")
    if splitter.is_answering:
        return None
    interrupted = gives_up or any(map(delta.get, ANSWER_FIELDS[1:]))
    if not (content or is_last or interrupted):
        return None
    in_block = splitter.is_inside
    raw, rest = split_content(content, splitter)
    if is_last or interrupted:
        raw, rest = append_held(raw, rest, splitter.end() if is_last else splitter.interrupt())
    in_block = bool(raw) or in_block or splitter.is_inside
    if not in_block and rest == content:
        return None
    return InlineSplit(raw, rest, in_block)


def is_plain(content: Any) -> bool:
    """Return whether a content is nothing, or a text of which all is the answer, whatever its
    message holds, unless the prompt's template opened a block."""
    return content is None or (isinstance(content, str) and not may_have_tags(content))


def split_inline(content: Any, profile: Profile, *, no_field: bool) -> tuple[str, Any]:
    """Split a whole content into reasoning and the rest.

    With `no_field` no field holds reasoning, so the prompt's template may have opened the block.
    """
    prefilled = profile.prefilled and no_field
    if content is None or (is_plain(content) and not prefilled):
        return "", content  # the usual case
    splitter = TagSplitter(profile.tags, prefilled=prefilled)
    raw, rest = split_content(content, splitter)
    return append_held(raw, rest, splitter.end())


def observe(message: Json, profile: Profile) -> Observation:
    """Return what a whole message shows of where its provider puts reasoning."""
    place, text = find_reasoning_place(message), string(message.get("content"))
    if place is not None or not text:
        return Observation(place)
    if TagSplitter(profile.tags, prefilled=profile.prefilled).has_reasoning(text):
        return Observation("tags")
    return Observation(unopened_tags=int(_has_unopened_block(text, profile)))


def _has_unopened_block(text: str, profile: Profile) -> bool:
    """Return whether a text closes a block that nothing opened, on a separate line and not in code.

    That happens when the prompt's template opens the block and no server parses it.
    """
    for tag in profile.tags[:1]:
        head, closing, rest = text.partition(tag.closing)
        on_separate_line = bool(closing) and head.endswith("\n") and rest.startswith("\n")
        return on_separate_line and tag.opening not in head and head.count("```") % 2 == 0
    return False


def split_content(content: Any, splitter: TagSplitter | ThinkingFilter) -> tuple[str, Any]:
    """Split the next content of a stream into reasoning and the rest."""
    if isinstance(content, str):
        return _join_pieces(splitter.feed(content))
    if not isinstance(content, list):
        return "", content
    reasoning, rest = "", []
    for chunk in content:
        if not is_text_chunk(chunk):
            rest.append(chunk)
            continue
        raw, text = _join_pieces(splitter.feed(chunk["text"]))
        reasoning += raw
        if text == chunk["text"]:
            rest.append(chunk)
        elif text:
            rest.append({**chunk, "text": text})
    return reasoning, rest


def split_parts(parts: list[Any], thinking: ThinkingFilter) -> tuple[str, list[Any]]:
    """Split the last parts of a content into reasoning and the rest, each part in its place.

    Parts of which no text is left are left out.
    """
    text = "".join(part["text"] for part in parts if is_text_chunk(part))
    pieces = [*thinking.feed(text), *thinking.end()]
    shown, rest = iter(_mark_shown(text, pieces)), []
    for part in parts:
        kept = "".join(compress(part["text"], shown)) if is_text_chunk(part) else None
        if kept is None or kept == part["text"]:
            rest.append(part)
        elif kept:
            rest.append({**part, "text": kept})
    return _join_pieces(pieces)[0], rest


def _mark_shown(text: str, pieces: list[TagPiece]) -> bytearray:
    """Mark the characters of a text that are shown: the pieces of it follow each other there."""
    marks, position = bytearray(len(text)), 0
    for kind, piece in pieces:
        found = piece.strip() if kind == "raw" else piece  # blanks may have been added to it
        start = text.find(found, position)
        if start >= 0:
            position = start + len(found)
            marks[start:position] = bytes([kind == "text"]) * len(found)
    return marks


def append_held(raw: str, content: Any, held: Iterable[TagPiece]) -> tuple[str, Any]:
    """Append what a splitter had held back."""
    more, text = _join_pieces(held)
    if not text:
        return raw + more, content
    if isinstance(content, list):
        return raw + more, [*content, {"type": "text", "text": text}]
    return raw + more, string(content) + text


def _join_pieces(pieces: Iterable[TagPiece]) -> tuple[str, str]:
    raw = text = ""
    for piece in pieces:
        if piece.kind == "raw":
            raw += piece.text
        else:
            text += piece.text
    return raw, text
