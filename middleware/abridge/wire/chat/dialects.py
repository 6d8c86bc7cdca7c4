"""Find reasoning in a Chat Completions message, in whichever field a provider puts it.

A delta and a message have the same fields, so the same functions read both. The fields:

=====================  ===========================================================================
`reasoning_content`    DeepSeek, Moonshot, Z.ai, Qwen, xAI, SGLang, llama.cpp, LiteLLM, older vLLM
`reasoning`            vLLM, Ollama, Groq, Cerebras, OpenRouter, Together
`reasoning_details`    OpenRouter, MiniMax: a list of `reasoning.text`, `.summary`, `.encrypted`
`thinking_blocks`      LiteLLM: a list of `thinking` (with signature) and `redacted_thinking`
`content`              Mistral: a list with `thinking` chunks in it; else inline tags (apis/tags)
=====================  ===========================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

from abridge.wire.codec import Json, objects, string
from abridge.wire.profile import Place

PLAIN = ("reasoning_content", "reasoning")
LISTS = ("reasoning_details", "thinking_blocks")
SPELLINGS = (*PLAIN, *LISTS)
COPIES = "provider_specific_fields"
"""The field in which LiteLLM's client keeps, and sends back, a copy of fields unknown to it."""

ANSWER = ("content", "refusal", "tool_calls", "function_call", "audio")
KNOWN = frozenset({"role", "name", "annotations", *ANSWER})
"""Fields that a message may keep when raw reasoning is hidden."""

_OPAQUE = frozenset({"reasoning.encrypted", "redacted_thinking"})


class Found(NamedTuple):
    """Reasoning in a delta or a message."""

    text: str
    field: str  # the field for a summary that replaces it
    native: bool = False  # it is a summary that upstream made


def spellings(said: Json) -> list[str]:
    """Return the names of the fields that hold readable reasoning and nothing else."""
    return [name for name in SPELLINGS if said.get(name) and not _is_sealed(said[name])]


def find(said: Json) -> Found | None:
    """Find the readable reasoning in a delta or a message; None if there is only opaque state.

    It counts as a native summary if nothing but summaries holds text.
    """
    bearing = spellings(said)
    chunks = thinking_chunks(said.get("content"))
    if not (bearing or chunks):
        return None
    if len(bearing) == 1 and bearing[0] in PLAIN and not chunks:  # the usual case
        return Found(string(said[bearing[0]]), bearing[0])
    return _tell_which(said, bearing, chunks)


def _tell_which(said: Json, bearing: list[str], chunks: list[Json]) -> Found:
    field = next((name for name in PLAIN if name in bearing), "")
    details, blocks = objects(said.get("reasoning_details")), objects(said.get("thinking_blocks"))
    plain = [said[name] for name in PLAIN if said.get(name)]
    elsewhere = (
        "".join(string(entry.get("text")) for entry in details)
        or "".join(string(entry.get("thinking")) for entry in blocks)
        or "".join(map(chunk_text, chunks))
    )
    summary = "".join(string(entry.get("summary")) for entry in details)
    if summary and not elsewhere and all(text == summary for text in plain):
        return Found(summary, field or "reasoning", native=True)
    text = next((text for text in plain if isinstance(text, str)), "") or elsewhere
    return Found(text, field or PLAIN[0])


def place_in(said: Json) -> Place | None:
    """Find the place of reasoning, or of opaque state for it; inline tags are not looked for.

    A list, which may hold opaque state, takes precedence over a text field that repeats it.
    """
    if said.get("reasoning_details"):
        return "reasoning_details"
    if said.get("thinking_blocks"):
        return "thinking_blocks"
    if thinking_chunks(said.get("content")):
        return "chunks"
    if string(said.get("reasoning_content")).strip():
        return "reasoning_content"
    if string(said.get("reasoning")).strip():
        return "reasoning"
    holders = [said, *objects(said.get("tool_calls"))]
    return "extra_content" if any(holder.get("extra_content") for holder in holders) else None


def said_in(choice: Json) -> Json:
    """Return the delta of a choice, or the message in its place; empty if there is neither."""
    said = choice.get("delta")
    said = said if isinstance(said, dict) else choice.get("message")
    return said if isinstance(said, dict) else {}


def thought(said: Json) -> Json:
    """Return all fields that hold reasoning, as upstream wrote them."""
    found = {name: said[name] for name in SPELLINGS if said.get(name)}
    chunks = thinking_chunks(said.get("content"))
    return {**found, "content": chunks} if chunks else found


def sealed(said: Json) -> Json:
    """Return the opaque state alone: only upstream can read it, and it wants it back."""
    found = {name: objects(said[name]) for name in LISTS if said.get(name)}
    kept = {name: list(filter(_is_opaque, entries)) for name, entries in found.items()}
    return {name: entries for name, entries in kept.items() if entries}


def native_summary(said: Json) -> Json:
    """Return the fields of a summary that upstream made, and its opaque state."""
    found = {name: said[name] for name in PLAIN if said.get(name)}
    details = objects(said.get("reasoning_details"))
    kept = [entry for entry in details if string(entry.get("summary")) or _is_opaque(entry)]
    return {**found, **sealed(said), **({"reasoning_details": kept} if kept else {})}


def thinking_chunks(content: Any) -> list[Json]:
    """Return the chunks of a list content that hold reasoning."""
    if not isinstance(content, list):
        return []
    return [chunk for chunk in objects(content) if chunk.get("type") == "thinking"]


def chunk_text(chunk: Json) -> str:
    """Return the text of a thinking chunk: `thinking` is a string or a list of text chunks."""
    thinking = chunk.get("thinking")
    return string(thinking) or "".join(string(part.get("text")) for part in objects(thinking))


def answer_text(content: Any) -> str:
    """Return the text of a content, a string or a list; a chunk of unknown type may be reasoning,
    so it is left out."""
    return string(content) or "".join(
        string(chunk.get("text"))
        for chunk in objects(content)
        if chunk.get("type") in ("text", "output_text", None)
    )


def without_chunks(content: Any) -> Any:
    """Return the content without its thinking chunks."""
    if not isinstance(content, list):
        return content
    return [chunk for chunk in content if not thinking_chunks([chunk])]


def conceal(message: Json) -> Json:
    """Return the message without its reasoning: only known fields, and opaque state."""
    kept: Json = {key: value for key, value in message.items() if key in KNOWN}
    if "content" in kept:
        kept["content"] = without_chunks(kept["content"])
    return {**kept, **sealed(message)}


def _is_opaque(entry: Any) -> bool:
    """Return whether an entry of a list is opaque state and nothing else."""
    return (
        isinstance(entry, dict)
        and string(entry.get("type")) in _OPAQUE
        and not any(entry.get(key) for key in ("text", "summary", "thinking"))
    )


def _is_sealed(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_opaque, value))
