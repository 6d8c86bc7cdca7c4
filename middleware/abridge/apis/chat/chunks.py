"""The chunks of a stream: what every one repeats, what nearly every one merely continues, what they
add up to, and the sources that they name.

OpenAI annotates a message with its sources: `{"type": "url_citation", "url_citation": {"url",
"title", "start_index", "end_index"}}`. OpenRouter adds the source's words as `content`, and says 0
to 0 where it knows no passage (openrouter.ai: features/web-search). Perplexity lists addresses
beside the choices, as `citations`, and more of them as `search_results` (docs.perplexity.ai:
api-reference/chat-completions-post).
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Container
from functools import partial
from typing import Any, NamedTuple

from abridge.apis import sse
from abridge.apis.chat.reasoning import LIST_FIELDS, get_index, read_chunk_text
from abridge.apis.json import as_object, dumps, entries, first_string, objects, string
from abridge.apis.obfuscation import PADDING_FIELDS, obfuscate_chunk
from abridge.apis.protocols import Keep
from abridge.apis.usage import as_count
from abridge.core.conversation import Json
from abridge.core.events import CitationDelta
from abridge.providers.catalog import TEXT_FIELDS

DONE_FRAME = b"data: [DONE]\n\n"

CHUNK_OBJECT = "chat.completion.chunk"

MAX_CHOICES = 128  # the API's upper bound on `n`

HEADER_FIELDS = (
    *("id", "object", "created", "model", "system_fingerprint", "service_tier"),
    "provider",  # OpenRouter
)
"""Fields that every chunk of a response repeats."""

_PLAIN_FIELDS = frozenset({*HEADER_FIELDS, *PADDING_FIELDS, "choices", "usage"})

STRING_FIELDS = frozenset({"refusal", *TEXT_FIELDS})

STATE_FIELD = "extra_content"
"""The field for opaque state of an answer, and of each of its calls (Gemini)."""

ARGUMENTS_FIELDS = {"function": "arguments", "custom": "input"}
"""The kinds of tool call, and the field in which each has its arguments."""

_FRAGMENT_FIELDS = frozenset({"index", *ARGUMENTS_FIELDS})
"""What a fragment of a call says of itself, not of the call."""

_BLANK = re.compile(r"\s*+")


def encode_chunk(chunk: Json, *, obfuscate: bool) -> bytes:
    """Encode a chunk that upstream did not send like this."""
    return sse.encode_frame(dumps(obfuscate_chunk(chunk) if obfuscate else chunk))


def get_header(chunk: Json) -> Json:
    """Return the fields that every chunk of a response repeats."""
    return {key: chunk[key] for key in HEADER_FIELDS if key in chunk}


def has_other_fields(chunk: Json) -> bool:
    """Return whether the chunk has fields besides its header, choices, usage and padding."""
    others = chunk.keys() - _PLAIN_FIELDS
    return bool(others) and any(chunk[key] is not None for key in others)


def kind_of_call(call: Json) -> str:
    """Return the kind of a call, or of a fragment of one.

    Some gateways send both payloads and leave the one that does not apply empty.
    """
    custom = call.get("custom")
    if not isinstance(custom, dict):
        return "function"
    applies = any(custom.values()) or not isinstance(call.get("function"), dict)
    return "custom" if applies else "function"


class CallFragment(NamedTuple):
    """What a fragment of a call says; it may say nothing of each."""

    kind: str
    id: str
    name: str
    arguments: Any  # text; some servers give an object

    @classmethod
    def read(cls, fragment: Json) -> CallFragment:
        kind = kind_of_call(fragment) if "custom" in fragment else "function"
        given, payload = fragment.get("id"), fragment.get(kind)
        identity = given if isinstance(given, str) else ""
        if not isinstance(payload, dict):
            return cls(kind, identity, "", None)
        name, arguments = payload.get("name"), payload.get(ARGUMENTS_FIELDS[kind])
        return cls(kind, identity, name if isinstance(name, str) else "", arguments)


# What merely continues


class ChunkText(NamedTuple):
    """The text of a chunk, or the arguments of a call, and where it stands."""

    lane: int
    field: str  # of the delta
    key: str  # under which the text stands
    text: str
    call_index: int = 0
    kind: str = ""  # of the call

    @property
    def is_reasoning(self) -> bool:
        return self.field in TEXT_FIELDS


def find_text(chunk: Json) -> ChunkText | None:
    """Return the text of a chunk that says nothing else; None for any other chunk."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or chunk.get("usage"):
        return None
    choice = choices[0]
    if chunk.get("error") or not isinstance(choice, dict) or "message" in choice:
        return None
    delta = choice.get("delta")
    if "index" not in choice or not isinstance(delta, dict) or choice.get("finish_reason"):
        return None
    names = [name for name in delta if name != "role" and delta[name]]
    if len(names) != 1:
        return None
    name, value = names[0], delta[names[0]]
    if name == "tool_calls":
        return _find_arguments(choice, value)
    if not isinstance(value, str):
        return None
    return ChunkText(get_index(choice), name, name, value)


def _find_arguments(choice: Json, calls: Any) -> ChunkText | None:
    """Return the arguments in the fragment of a single call that tells which one it is of."""
    given = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(given, dict) or not isinstance(given.get("index"), int):
        return None
    kind, _, _, text = CallFragment.read(given)
    if not isinstance(text, str) or not text:
        return None
    lane, key = get_index(choice), ARGUMENTS_FIELDS[kind]
    return ChunkText(lane, "tool_calls", key, text, given["index"], kind)


# What chunks add up to


class _GrowingObject:
    """An object whose strings grow. Each has a buffer: in pieces they take many times more."""

    def __init__(self, fields: Json | None = None) -> None:
        self.fields = dict(fields or {})
        self.texts: defaultdict[str, bytearray] = defaultdict(bytearray)  # in UTF-8

    def fill(self, values: Json, others: Container[str] = ()) -> None:
        """Set each value that is not empty, where there is none yet; leave out others."""
        for key, value in values.items():
            if value and key not in others and not self.fields.get(key):
                self.fields[key] = value

    def as_dict(self) -> Json:
        texts = {key: text.decode(errors="surrogatepass") for key, text in self.texts.items()}
        return {**self.fields, **texts}


class ChatMessageAccumulator:
    """Add up deltas, in which each fragment of a call has its index. Past `limit` characters give
    up."""

    def __init__(self, limit: int) -> None:
        self._remaining = limit
        self._fields = _GrowingObject({"role": "assistant"})
        self._chunks: list[_GrowingObject] = []
        self._entries: dict[str, list[_GrowingObject]] = {}
        self._calls: dict[int, tuple[_GrowingObject, _GrowingObject]] = {}

    @property
    def is_complete(self) -> bool:
        """False once the limit is passed."""
        return self._remaining >= 0

    def reserve(self, size: int) -> bool:
        """Count what is kept elsewhere of the answer; return whether there is room for it."""
        self._remaining -= size
        return self.is_complete

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    @property
    def has_cut_call(self) -> bool:
        """Return whether a call is not known to be whole."""
        return self.has_calls and not (self.is_complete and not has_cut_call(self.as_dict()))

    @property
    def has_open_call(self) -> bool:
        """Return whether more of a call may come: of free text it always may."""
        texts = (called.as_dict().get("arguments", "") for _, called in self._calls.values())
        return not all(text.strip() and _is_json(text) for text in texts)

    def add(self, delta: Json) -> None:
        for name, value in delta.items():
            if not value:
                continue
            if name == "content" and (self._chunks or not isinstance(value, str)):
                self._add_content(value)
            elif name in STRING_FIELDS or name == "content":
                self._append(self._fields, name, value)
            elif name in LIST_FIELDS:
                for entry in objects(value):
                    self._add_entry(self._entries.setdefault(name, []), entry)
            elif name == "tool_calls":
                for fragment in objects(value):
                    self._add_call(fragment)
            elif name == STATE_FIELD:
                self._fields.fill({name: value})

    def keep_text(self, name: str) -> Keep:
        """Return what appends more to a text field of the message."""
        if name == "content" and self._chunks:
            return self._add_content
        return partial(self._append, self._fields, name)

    def keep_arguments(self, index: int, key: str) -> Keep:
        """Return what appends more to the arguments of a call."""
        return partial(self._append, self._calls[index][1], key)

    def as_dict(self) -> Json:
        message = self._fields.as_dict()
        if self._chunks:
            message["content"] = [_normalize_chunk(chunk.as_dict()) for chunk in self._chunks]
        for name, listed in self._entries.items():
            message[name] = [entry.as_dict() for entry in listed]
        if self._calls:
            calls = (call for _, call in sorted(self._calls.items()))
            message["tool_calls"] = [
                {**head, head["type"]: called.as_dict()}
                for head, called in ((call.as_dict(), called) for call, called in calls)
            ]
        return message

    def _append(self, growing: _GrowingObject, key: str, text: Any) -> None:
        if isinstance(text, str) and text:
            self._remaining -= len(text)
            if self._remaining >= 0:
                growing.texts[key] += text.encode(errors="surrogatepass")

    def _add_content(self, content: Any) -> None:
        """Append content. Once a list comes, the text before it becomes a text chunk of it."""
        chunks = objects([{"type": "text", "text": content}] if content else [])
        if isinstance(content, list):
            before = self._fields.texts.pop("content", bytearray()).decode(errors="surrogatepass")
            chunks = [{"type": "text", "text": before}] if before else []
            chunks += objects(content)
        for chunk in chunks:
            if not self._chunks or self._chunks[-1].fields.get("type") != chunk.get("type"):
                self._chunks.append(_GrowingObject())
            key = "thinking" if chunk.get("type") == "thinking" else "text"
            self._append(self._chunks[-1], key, read_chunk_text(chunk) or chunk.get("text"))
            self._chunks[-1].fill({name: chunk[name] for name in chunk if name != key})

    def _add_entry(self, entries: list[_GrowingObject], entry: Json) -> None:
        """Append to the last entry if this one continues it; entries of opaque state never do."""
        kind = entry.get("type"), entry.get("index")
        last = entries[-1].fields if entries else {}
        if entry.get("data") or not entries or kind != (last.get("type"), last.get("index")):
            entries.append(_GrowingObject({"type": entry.get("type")}))
        for key, value in entry.items():
            if key in ("text", "summary", "thinking"):
                self._append(entries[-1], key, value)
            else:
                entries[-1].fill({key: value})
                if key not in entries[-1].fields:
                    entries[-1].fields[key] = value

    def _add_call(self, fragment: Json) -> None:
        index, (kind, _, name, arguments) = fragment["index"], CallFragment.read(fragment)
        key = ARGUMENTS_FIELDS[kind]
        if index not in self._calls:
            called = _GrowingObject({"name": "", key: ""})
            self._calls[index] = _GrowingObject({"type": kind}), called
        call, called = self._calls[index]
        call.fill(fragment, _FRAGMENT_FIELDS)
        called.fields["name"] = called.fields["name"] or name
        self._append(called, key, arguments)


def has_cut_call(message: Json) -> bool:
    """Return whether a call of a message lacks some of its arguments. One without any has none, as
    some servers say it; of free text nobody can tell."""
    calls = [as_object(call.get("function")) for call in objects(message.get("tool_calls"))]
    calls.append(as_object(message.get("function_call")))
    return not all(_is_json(string(call.get("arguments"))) for call in calls)


def _is_json(text: str) -> bool:
    """Return whether a text is JSON: one value, or those of calls that a server does not tell
    apart, one after the other."""
    decoder, position = json.JSONDecoder(), 0
    while (blank := _BLANK.match(text, position)) is not None and blank.end() < len(text):
        try:
            _, position = decoder.raw_decode(text, blank.end())
        except (ValueError, RecursionError):
            return False
    return True


def _normalize_chunk(chunk: Json) -> Json:
    """Make a thinking chunk hold a list of text chunks, as docs.mistral.ai documents it."""
    if chunk.get("type") == "thinking":
        chunk["thinking"] = [{"type": "text", "text": string(chunk.get("thinking"))}]
    return chunk


# The sources of an answer


def read_annotations(message: Json, lane: int) -> list[CitationDelta]:
    """Read the sources that a message or a delta names. Some gateways write them flat."""
    read = [
        _read_annotation({**annotation, **as_object(annotation.get(kind))}, lane)
        for annotation in objects(message.get("annotations"))
        if (kind := string(annotation.get("type"))).endswith("_citation")
    ]
    return [citation for citation in read if citation.source]


def _read_annotation(fields: Json, lane: int) -> CitationDelta:
    return CitationDelta(
        lane,
        None,
        url=string(fields.get("url")),
        file_id=string(fields.get("file_id")),
        title=first_string(fields, "title", "filename"),
        quote=string(fields.get("content")),
        passage=read_passage(fields.get("start_index"), fields.get("end_index")),
    )


def read_passage(start: Any, end: Any) -> tuple[int, int] | None:
    """Read a passage; None for an empty one at the beginning, as for one that is none."""
    first, after = as_count(start), as_count(end)
    return (first, after) if first is not None and after and first <= after else None


def read_listed(body: Json, lane: int) -> list[CitationDelta]:
    """Read the sources that are listed beside the choices, of a chunk or of a completion."""
    listed, found = body.get("citations"), objects(body.get("search_results"))
    titles = {string(result.get("url")): string(result.get("title")) for result in found}
    urls = [url for url in entries(listed) if isinstance(url, str)]
    return [
        CitationDelta(lane, None, url=url, title=titles.get(url, ""))
        for url in filter(None, urls or titles)
    ]


def write_annotation(citation: CitationDelta, moved: int) -> Json:
    """Write a source. The passage begins so many characters later in the client's text.

    There is no other type, and strict clients refuse any (AI SDK): a file's id stands in the place
    of the address.
    """
    start, end = citation.passage_after(-moved, sys.maxsize)
    fields = {"url": citation.source, "title": citation.title}
    quote = {"content": citation.quote} if citation.quote else {}
    place = {"start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": {**fields, **place, **quote}}
