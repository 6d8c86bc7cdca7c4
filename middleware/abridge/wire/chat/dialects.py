"""Where providers put reasoning in a Chat Completions message.

A delta and a message have the same keys, so one reading serves both. The spellings:

=====================  ===========================================================================
`reasoning_content`    DeepSeek, Moonshot, Z.ai, Qwen, xAI, SGLang, llama.cpp, LiteLLM, older vLLM
`reasoning`            vLLM, Ollama, Groq, Cerebras, OpenRouter, Together
`reasoning_details`    OpenRouter, MiniMax: a list of `reasoning.text`, `.summary`, `.encrypted`
`thinking_blocks`      LiteLLM: a list of `thinking` (with signature) and `redacted_thinking`
`content`              Mistral: a list with `thinking` chunks in it; else inline tags (wire/think)
=====================  ===========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.wire.codec import Json, objects, string

PLAIN = ("reasoning_content", "reasoning")
SPELLINGS = (*PLAIN, "reasoning_details", "thinking_blocks")
ANSWER = ("content", "refusal", "tool_calls", "function_call", "audio")
KNOWN = frozenset({"role", "name", "annotations", *ANSWER})
"""What a message may still hold once its reasoning is hidden."""

_OPAQUE = frozenset({"reasoning.encrypted", "redacted_thinking"})


@dataclass(slots=True, frozen=True)
class Found:
    """Reasoning in a delta or a message. `field` is where a summary goes in its place; `native`:
    it is a summary that upstream made."""

    text: str
    field: str
    native: bool = False


def spellings(said: Json) -> list[str]:
    """The fields of `said` that hold reasoning and nothing else."""
    return [name for name in SPELLINGS if said.get(name) and not _is_opaque(said[name])]


def find(said: Json) -> Found | None:
    """The reasoning in `said`, or None. Opaque state alone is none: there is nothing to read."""
    bearing = spellings(said)
    chunks = thinking_chunks(said.get("content"))
    if not (bearing or chunks):
        return None
    field = next((name for name in PLAIN if name in bearing), "")
    details, blocks = objects(said.get("reasoning_details")), objects(said.get("thinking_blocks"))
    summary = "".join(string(entry.get("summary")) for entry in details)
    detailed = "".join(string(entry.get("text")) for entry in details)
    if summary and not detailed and string(said.get(field)) in ("", summary):
        return Found(summary, field or "reasoning", native=True)
    text = (
        string(said.get(field))
        or detailed
        or "".join(string(entry.get("thinking")) for entry in blocks)
        or "".join(map(chunk_text, chunks))
    )
    return Found(text, field or PLAIN[0])


def thinking_chunks(content: Any) -> list[Json]:
    """Those of a list-valued content that hold reasoning."""
    return [chunk for chunk in objects(content) if chunk.get("type") == "thinking"]


def chunk_text(chunk: Json) -> str:
    """A chunk's text: `thinking` is a string or a list of text chunks."""
    thinking = chunk.get("thinking")
    return string(thinking) or "".join(string(part.get("text")) for part in objects(thinking))


def answer_text(content: Any) -> str:
    """The text in a message's content, a string or a list of chunks."""
    return string(content) or "".join(
        string(chunk.get("text")) for chunk in objects(content) if chunk.get("type") != "thinking"
    )


def without_chunks(content: Any) -> Any:
    """The content without its reasoning."""
    if not isinstance(content, list):
        return content
    chunks = thinking_chunks(content)
    return [chunk for chunk in content if chunk not in chunks]


def conceal(message: Json) -> Json:
    """A message without its reasoning, made of known keys only.

    Opaque state stays: upstream alone can read it, and wants it back.
    """
    kept: Json = {key: value for key, value in message.items() if key in KNOWN}
    if "content" in kept:
        kept["content"] = without_chunks(kept["content"])
    for name in ("reasoning_details", "thinking_blocks"):
        opaque = [entry for entry in objects(message.get(name)) if entry.get("type") in _OPAQUE]
        if opaque:
            kept[name] = opaque
    return kept


def _is_opaque(value: Any) -> bool:
    """Whether it is a list of nothing but opaque state."""
    entries = objects(value)
    whole = isinstance(value, list) and len(entries) == len(value)
    return whole and all(entry.get("type") in _OPAQUE for entry in entries)
