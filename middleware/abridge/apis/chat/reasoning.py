"""Find reasoning in a Chat Completions message, in whichever field a provider puts it.

A delta and a message have the same fields, so the same functions read both. The fields:

=====================  ===========================================================================
`reasoning_content`    DeepSeek, Moonshot, Z.ai, Qwen, xAI, SGLang, llama.cpp, LiteLLM, older vLLM
`reasoning`            vLLM, Ollama, Groq, Cerebras, OpenRouter, Together
`reasoning_details`    OpenRouter, MiniMax: a list of `reasoning.text`, `.summary`, `.encrypted`
`thinking_blocks`      LiteLLM: a list of `thinking` (with signature) and `redacted_thinking`
`content`              Mistral: a list with `thinking` chunks in it; else tags (stages/tags.py),
                       in a text or in the text chunks of a list
=====================  ===========================================================================

The plain text fields are those that the rows of `providers/catalog.py` name. Which of them hold raw
reasoning and summaries in what a client gets, `ReasoningFields` in `writer.py` decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from abridge.apis.display import Display
from abridge.apis.json import as_integer, as_object, first_string, nested_value, objects, string
from abridge.core.answer import AttributionKind
from abridge.core.conversation import Json
from abridge.core.envelope import is_envelope
from abridge.providers.catalog import TEXT_FIELDS
from abridge.providers.learned import Observation
from abridge.providers.profile import Profile, ReasoningPlace
from abridge.stages.attribution import RAW, REDACTED, SUMMARY
from abridge.stages.tags import TagSplitter

REASONING_ITEM = 0
"""The number of a choice's only reasoning item."""

DEFAULT_FIELD = "reasoning_content"
"""The text field for a summary, or for reasoning that had no field of its own."""

RAW_FIELD = "reasoning"
"""The text field for raw reasoning next to a summary."""

LIST_FIELDS = ("reasoning_details", "thinking_blocks")
"""Fields that hold a list of reasoning, and with it opaque state."""

REASONING_FIELDS = (*TEXT_FIELDS, *LIST_FIELDS)

_REASONING_NAMES = frozenset(REASONING_FIELDS)

LITELLM_COPIES = "provider_specific_fields"
"""The field in which LiteLLM's client keeps, and sends back, a copy of fields unknown to it."""

ANSWER_FIELDS = ("content", "refusal", "tool_calls", "function_call", "audio")

IMAGES = "images"
"""The field of a message with the images of the answer (openrouter.ai: docs, image generation)."""

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
    if _REASONING_NAMES.isdisjoint(message) and not isinstance(message.get("content"), list):
        return None  # the usual case of an answer
    names = find_reasoning_fields(message)
    chunks = find_thinking_chunks(message.get("content"))
    if not (names or chunks):
        return None
    if len(names) == 1 and names[0] in TEXT_FIELDS and not chunks:  # that of reasoning
        return FoundReasoning(message[names[0]], names[0])
    found = _classify_reasoning(message, names, chunks)
    return found if trusts_summaries else found._replace(native=False)


def _classify_reasoning(message: Json, names: list[str], chunks: list[Json]) -> FoundReasoning:
    field = next((name for name in TEXT_FIELDS if name in names), "")
    details, blocks = (objects(message.get(name)) for name in LIST_FIELDS)
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
    return delta if isinstance(delta, dict) else as_object(choice.get("message"))


def get_index(choice: Json) -> int:
    """Return the index of a choice, which some servers leave out."""
    return as_integer(choice.get("index")) or 0


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
    listed = {"reasoning_details": entries} if entries else {}
    return {**found, **extract_state(message), **listed}


def find_thinking_chunks(content: Any) -> list[Json]:
    """Return the chunks of a list content that hold reasoning."""
    return [chunk for chunk in objects(content) if chunk.get("type") == "thinking"]


def read_chunk_text(chunk: Json) -> str:
    """Return the text of a thinking chunk: `thinking` is a string or a list of text chunks."""
    thinking = chunk.get("thinking")
    return string(thinking) or "".join(string(part.get("text")) for part in objects(thinking))


def is_text_chunk(chunk: Any) -> bool:
    """Return whether a chunk of a list content is text; small servers leave the type out."""
    is_text = isinstance(as_object(chunk).get("text"), str)
    return is_text and chunk.get("type") in ("text", "output_text", "", None)


def read_image(chunk: Json) -> Json:
    """Return the address of an image, which may stand alone, with what is said of it."""
    image = chunk.get("image_url")
    return image if isinstance(image, dict) else {"url": image}


def read_answer_text(content: Any) -> str:
    """Return the text of a content, a string or a list.

    A chunk of unknown type is left out, since it may be reasoning.
    """
    if not isinstance(content, list):
        return string(content)
    return "".join(string(chunk.get("text")) for chunk in content if is_text_chunk(chunk))


def read_logprobs(choice: Json, name: str) -> Sequence[Mapping[str, Any]]:
    """Return the log probabilities of a text of a choice."""
    return objects(nested_value(choice, f"logprobs.{name}")) or ()


def without_thinking_chunks(content: Any) -> Any:
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
    says = any(map(as_object(entry).get, ("text", "summary", "thinking")))
    return not says and string(as_object(entry).get("type")) in _OPAQUE_TYPES


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


# The entries of lists, which keep the parts of a text apart, and opaque state


ENTRY_KINDS: dict[str, tuple[AttributionKind, str]] = {
    "reasoning.text": (RAW, "text"),
    "reasoning.summary": (SUMMARY, "summary"),
    "reasoning.encrypted": (REDACTED, "data"),
    "thinking": (RAW, "thinking"),
    "redacted_thinking": (REDACTED, "data"),
}
"""Types of entries: the kind of reasoning, and the key of its text."""


class ReasoningEntry(NamedTuple):
    """An entry of a list of reasoning."""

    kind: AttributionKind
    text: str
    data: str  # opaque state: a signature of the text, or what stands for hidden reasoning
    part: Hashable  # in a stream, entries with the same value are pieces of one

    @property
    def signs(self) -> bool:
        """The state is a signature of the text."""
        return self.kind != REDACTED

    @property
    def tells_hidden(self) -> bool:
        """It stands for hidden reasoning: not so a blob of Abridge's, which holds all of it."""
        return self.kind == REDACTED and bool(self.data) and not is_envelope(self.data)


def read_entries(message: Json) -> list[ReasoningEntry]:
    """Read the entries of a delta or a message, from the first list that has any of known types."""
    lists = (filter(_is_known, objects(message.get(name))) for name in LIST_FIELDS)
    return next(filter(None, (list(map(_read_entry, known)) for known in lists)), [])


def read_state(message: Json) -> list[ReasoningEntry]:
    """Read the entries of a list that holds opaque state; empty if no list does.

    `thinking_blocks` takes precedence over `reasoning_details`.
    """
    for name in reversed(LIST_FIELDS):
        if given := message.get(name):
            entries = list(map(_read_entry, objects(given)))
            if any(entry.data for entry in entries):
                return entries
    return []


def _is_known(entry: Json) -> bool:
    return string(entry.get("type")) in ENTRY_KINDS


def _read_entry(entry: Json) -> ReasoningEntry:
    entry_type, index = string(entry.get("type")), entry.get("index")
    kind, key = ENTRY_KINDS.get(entry_type, (RAW, ""))
    part = entry_type, index if isinstance(index, int) else None
    if kind == REDACTED:
        return ReasoningEntry(kind, "", string(entry.get(key)), part)
    text = first_string(entry, key, "thinking", "text", "summary")
    return ReasoningEntry(kind, text, string(entry.get("signature")), part)


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
