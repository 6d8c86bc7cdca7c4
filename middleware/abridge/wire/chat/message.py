"""Accumulate deltas into a message, as upstream would have sent it whole."""

from __future__ import annotations

from typing import Any

from abridge.wire.chat.dialects import PLAIN, chunk_text
from abridge.wire.codec import Json, objects, string

TEXTS = frozenset({"refusal", *PLAIN})
LISTS = frozenset({"reasoning_details", "thinking_blocks"})
STATE = "extra_content"
"""The field for opaque state of an answer, and of each of its calls (Gemini)."""

ARGUMENTS = {"function": "arguments", "custom": "input"}
"""The kinds of tool call, and the field in which each has its arguments."""


class _Growing:
    """An object whose strings grow. They stay in pieces: appending to a long string copies it."""

    def __init__(self, head: Json | None = None) -> None:
        self.head = dict(head or {})
        self._pieces: dict[str, list[str]] = {}

    def grow(self, key: str, text: str) -> None:
        self._pieces.setdefault(key, []).append(text)

    def take(self, key: str) -> str:
        return "".join(self._pieces.pop(key, ()))

    def settle(self, values: Json) -> None:
        """Set each value that is not empty, where there is none yet."""
        for key, value in values.items():
            if value and not self.head.get(key):
                self.head[key] = value

    def as_dict(self) -> Json:
        return {**self.head, **{key: "".join(texts) for key, texts in self._pieces.items()}}


class Message:
    """Add up deltas. Past `limit` characters give up."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._message = _Growing({"role": "assistant"})
        self._chunks: list[_Growing] = []
        self._entries: dict[str, list[_Growing]] = {}
        self._calls: dict[int, tuple[_Growing, _Growing]] = {}
        self.whole = True  # false once the limit is passed

    @property
    def calls(self) -> bool:
        return bool(self._calls)

    def add(self, delta: Json) -> None:
        for name, value in delta.items():
            if not value:
                continue
            if name in TEXTS or name == "content":
                self.grow(name, value)
            elif name in LISTS:
                for entry in objects(value):
                    self._add_entry(self._entries.setdefault(name, []), entry)
            elif name == "tool_calls":
                for fragment in objects(value):
                    self._add_call(fragment)
            elif name == STATE:
                self._message.settle({name: value})

    def grow(self, name: str, value: Any) -> None:
        """Append to a text field of the message."""
        if name == "content" and (self._chunks or not isinstance(value, str)):
            self._add_content(value)
        else:
            self._grow(self._message, name, value)

    def as_dict(self) -> Json:
        message = self._message.as_dict()
        if self._chunks:
            message["content"] = [_spell_chunk(chunk.as_dict()) for chunk in self._chunks]
        for name, entries in self._entries.items():
            message[name] = [entry.as_dict() for entry in entries]
        if self._calls:
            calls = (call for _, call in sorted(self._calls.items()))
            message["tool_calls"] = [
                {**head, head["type"]: said.as_dict()}
                for head, said in ((call.as_dict(), said) for call, said in calls)
            ]
        return message

    def _grow(self, growing: _Growing, key: str, text: Any) -> None:
        if isinstance(text, str) and text:
            self._room -= len(text)
            self.whole = self.whole and self._room >= 0
            if self.whole:
                growing.grow(key, text)

    def _add_content(self, content: Any) -> None:
        """Append content. Once a list comes, the text before it becomes a text chunk of it."""
        chunks = objects([{"type": "text", "text": content}] if content else [])
        if isinstance(content, list):
            before = self._message.take("content")
            chunks = [{"type": "text", "text": before}] if before else []
            chunks += objects(content)
        for chunk in chunks:
            if not self._chunks or self._chunks[-1].head.get("type") != chunk.get("type"):
                self._chunks.append(_Growing())
            key = "thinking" if chunk.get("type") == "thinking" else "text"
            self._grow(self._chunks[-1], key, chunk_text(chunk) or chunk.get("text"))
            self._chunks[-1].settle({name: chunk[name] for name in chunk if name != key})

    def _add_entry(self, entries: list[_Growing], entry: Json) -> None:
        """Append to the last entry if this one continues it; entries of opaque state never do."""
        kind = entry.get("type"), entry.get("index")
        last = entries[-1].head if entries else {}
        if entry.get("data") or not entries or kind != (last.get("type"), last.get("index")):
            entries.append(_Growing({"type": entry.get("type")}))
        for key, value in entry.items():
            if key in ("text", "summary", "thinking"):
                self._grow(entries[-1], key, value)
            else:
                entries[-1].settle({key: value})
                if key not in entries[-1].head:
                    entries[-1].head[key] = value

    def _add_call(self, fragment: Json) -> None:
        index = fragment.get("index")
        number = index if isinstance(index, int) else len(self._calls)
        kind = "custom" if isinstance(fragment.get("custom"), dict) else "function"
        call, called = self._calls.setdefault(
            number, (_Growing({"type": kind}), _Growing({"name": "", ARGUMENTS[kind]: ""}))
        )
        call.settle({key: fragment[key] for key in fragment.keys() - {"index", *ARGUMENTS}})
        said = fragment.get(kind)
        if isinstance(said, dict):
            called.settle({"name": string(said.get("name"))})
            self._grow(called, ARGUMENTS[kind], said.get(ARGUMENTS[kind]))


def _spell_chunk(chunk: Json) -> Json:
    """Make a thinking chunk hold a list of text chunks, as docs.mistral.ai documents it."""
    if chunk.get("type") == "thinking":
        chunk["thinking"] = [{"type": "text", "text": string(chunk.get("thinking"))}]
    return chunk
