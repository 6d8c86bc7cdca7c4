"""Read the reasoning that a client sends back with a message, in any dialect's fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from abridge.turn.question import Foreign, Part, Thought
from abridge.wire.chat.dialects import PLAIN, chunk_text, thinking_chunks
from abridge.wire.chat.inline import split_inline
from abridge.wire.codec import Json, string
from abridge.wire.profiles import PROFILES


def read_thoughts(message: Json, param: str) -> list[Part]:
    """Read the reasoning of an assistant's message, inline reasoning excepted.

    Text that several fields repeat is read once, opaque state from every field that holds some.
    """
    listed = _listed(message, param)
    if any(isinstance(part, Thought) and (part.text or part.summary) for part in listed):
        return listed
    plain = next((text for name in PLAIN if (text := string(message.get(name)))), "")
    chunks = thinking_chunks(message.get("content"))
    text = plain or "\n".join(filter(str.strip, map(chunk_text, chunks)))
    return _signed([*([Thought(text, param=param)] if text.strip() else []), *listed])


def without_inline(content: Any, *, thought: bool) -> tuple[str, Any]:
    """Split inline reasoning from a content. With `has_reasoning` tags belong to the answer."""
    return ("", content) if thought else split_inline(content, PROFILES["auto"], alone=True)


def _listed(message: Json, param: str) -> list[Part]:
    """Read LiteLLM's `thinking_blocks`, or else OpenRouter's `reasoning_details`."""
    for name, read in (("thinking_blocks", _block), ("reasoning_details", _detail)):
        entries, found = message.get(name), []
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            found += read(entry if isinstance(entry, dict) else {}, f"{param}.{name}[{i}]")
        if found:
            return _signed(found)
    return []


def _block(block: Json, param: str) -> list[Part]:
    """Read a thinking block. One without a signature holds a summary: among the APIs that give
    blocks, only one that has no signatures omits it, and it shows summaries only."""
    kind, text = block.get("type"), string(block.get("thinking"))
    signature, data = string(block.get("signature")), string(block.get("data"))
    if kind == "thinking":
        if signature:
            return [Thought(text, sealed=signature, signed=True, param=param)]
        return [Thought(summary=(text,), param=param)] if text.strip() else []
    if kind == "redacted_thinking":
        return [Thought(sealed=data, param=param)] if data else []
    return [Foreign(block, param, matters=False)]


def _detail(detail: Json, param: str) -> list[Part]:
    kind, text = detail.get("type"), string(detail.get("text"))
    signature, data = string(detail.get("signature")), string(detail.get("data"))
    summary = string(detail.get("summary"))
    if kind == "reasoning.text":
        thought = Thought(text, sealed=signature, signed=bool(signature), param=param)
        return [thought] if text.strip() or signature else []
    if kind == "reasoning.summary":
        return [Thought(summary=(summary,), param=param)] if summary.strip() else []
    if kind == "reasoning.encrypted":
        return [Thought(sealed=data, param=param)] if data else []
    return [Foreign(detail, param, matters=False)]


def _signed(parts: list[Part]) -> list[Part]:
    """Join a signature that comes alone, as in LiteLLM's streams, to the text before it."""
    told: list[Part] = []
    for part in parts:
        last = told[-1] if told else None
        if _signs(part) and isinstance(last, Thought) and not last.sealed:
            text = last.text or "".join(last.summary)
            told[-1] = replace(last, text=text, summary=(), sealed=part.sealed, signed=True)
        else:
            told.append(part)
    return told


def _signs(part: Part) -> TypeGuard[Thought]:
    return isinstance(part, Thought) and part.signed and not part.text
