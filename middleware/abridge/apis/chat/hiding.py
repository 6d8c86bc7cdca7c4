"""Rebuild what upstream sends from known keys, where raw reasoning is hidden.

What leaves this module is understood: a chunk or a completion holds known fields only
(openai-openapi, `CreateChatCompletionStreamResponse` and `CreateChatCompletionResponse`, and those
of providers that are named below), reasoning stands in the fields of reasoning, and no text has
thinking in it. The reader and the writer then keep reasoning out as they do wherever it is not
shown.
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.apis import shapes
from abridge.apis.chat.accumulator import ARGUMENTS_FIELDS
from abridge.apis.chat.inline import append_held, split_content
from abridge.apis.chat.reasoning import DEFAULT_FIELD, find_reasoning, get_index
from abridge.apis.json import as_object, objects, string
from abridge.apis.openai import rebuild_error
from abridge.apis.shapes import Rebuilding, rebuild
from abridge.apis.thinking import ArgumentsFilter, ThinkingFilter
from abridge.core.conversation import Json
from abridge.providers.catalog import TEXT_FIELDS
from abridge.providers.profile import Profile

LEGACY = -1
"""The index of the call in `function_call`."""

_URL_CITATION = {
    "url": shapes.address,
    "title": shapes.text,
    "start_index": shapes.number,
    "end_index": shapes.number,
}

_ANNOTATION = shapes.by_type(
    {
        "url_citation": shapes.fields(
            {"type": shapes.name, "url_citation": shapes.fields(_URL_CITATION)}
        )
    }
)

_TEXT_PART = shapes.fields(
    {"type": shapes.name, "text": shapes.text, "annotations": shapes.each(_ANNOTATION)}
)

_IMAGE = shapes.fields(
    {
        "type": shapes.name,
        "index": shapes.number,
        "image_url": shapes.either(
            shapes.address, shapes.fields({"url": shapes.address, "detail": shapes.name})
        ),
    }
)

_CONTENT_PARTS = shapes.each(
    shapes.by_type(
        {
            "": _TEXT_PART,  # small servers leave the type out
            "text": _TEXT_PART,
            "output_text": _TEXT_PART,
            "refusal": shapes.fields({"type": shapes.name, "refusal": shapes.text}),
            "image_url": _IMAGE,
            "thinking": shapes.fields(  # docs.mistral.ai
                {
                    "type": shapes.name,
                    "thinking": shapes.either(shapes.text, shapes.each(_TEXT_PART)),
                    "closed": shapes.number,
                    "signature": shapes.opaque,
                }
            ),
            "reference": shapes.fields(  # docs.mistral.ai
                {"type": shapes.name, "reference_ids": shapes.each(shapes.name_or_number)}
            ),
        }
    )
)

_STATE = shapes.fields(  # ai.google.dev: thought signatures
    {"google": shapes.fields({"thought_signature": shapes.opaque})}
)

_FUNCTION = shapes.fields(
    {"name": shapes.name, "arguments": shapes.either(shapes.text, shapes.anything)}
)

_CALL = shapes.fields(
    {
        "index": shapes.number,
        "id": shapes.name,
        "type": shapes.name,
        "function": _FUNCTION,
        "custom": shapes.fields({"name": shapes.name, "input": shapes.text}),
        "extra_content": _STATE,
    }
)

_AUDIO = shapes.fields(
    {
        "id": shapes.name,
        "data": shapes.opaque,
        "expires_at": shapes.number,
        "transcript": shapes.text,
    }
)

_ENTRY_HEAD = {"type": shapes.name, "index": shapes.number, "id": shapes.name}

_REASONING_DETAIL = shapes.fields(  # openrouter.ai: reasoning tokens
    {
        **_ENTRY_HEAD,
        "format": shapes.name,
        "text": shapes.text,
        "summary": shapes.text,
        "data": shapes.opaque,
        "signature": shapes.opaque,
    }
)

_THINKING_BLOCK = shapes.fields(  # LiteLLM's
    {
        **_ENTRY_HEAD,
        "thinking": shapes.text,
        "data": shapes.opaque,
        "signature": shapes.opaque,
    }
)

_MESSAGE = shapes.fields(
    {
        "role": shapes.name,
        "name": shapes.name,
        "content": shapes.either(shapes.text, _CONTENT_PARTS),
        "refusal": shapes.text,
        "tool_calls": shapes.each(_CALL),
        "function_call": _FUNCTION,
        "audio": _AUDIO,
        "annotations": shapes.each(_ANNOTATION),
        "images": shapes.each(_IMAGE),  # OpenRouter, Gemini
        "extra_content": _STATE,
        **dict.fromkeys(TEXT_FIELDS, shapes.text),
        "reasoning_details": shapes.each(_REASONING_DETAIL),
        "thinking_blocks": shapes.each(_THINKING_BLOCK),
    }
)

_FILTER_RESULT = shapes.fields(
    {"filtered": shapes.number, "detected": shapes.number, "severity": shapes.name}
)

_FILTER_RESULTS = shapes.fields(  # learn.microsoft.com: foundry/openai, content filtering
    dict.fromkeys(
        (
            *("hate", "self_harm", "sexual", "violence", "profanity", "jailbreak"),
            *("protected_material_text", "protected_material_code", "indirect_attack"),
        ),
        _FILTER_RESULT,
    )
)

_CHOICE = shapes.fields(
    {
        "index": shapes.number,
        "delta": _MESSAGE,
        "message": _MESSAGE,
        "finish_reason": shapes.name,
        "native_finish_reason": shapes.name,  # OpenRouter
        "stop_reason": shapes.name_or_number,  # vLLM
        "matched_stop": shapes.name_or_number,  # SGLang
        "error": rebuild_error,  # OpenRouter
        "content_filter_results": _FILTER_RESULTS,  # Azure
        "content_filter_offsets": shapes.figures,
        "logprobs": shapes.nothing,
    }
)

_COMPLETION = shapes.fields(
    {
        "id": shapes.name,
        "object": shapes.name,
        "created": shapes.number,
        "model": shapes.name,
        "system_fingerprint": shapes.name,
        "service_tier": shapes.name,
        "provider": shapes.name,  # OpenRouter
        "choices": shapes.each(_CHOICE),
        "usage": shapes.figures,
        "error": rebuild_error,
        "prompt_filter_results": shapes.each(  # Azure
            shapes.fields(
                {"prompt_index": shapes.number, "content_filter_results": _FILTER_RESULTS}
            )
        ),
        "x_groq": shapes.fields({"id": shapes.name, "usage": shapes.figures}),
    }
)


class KnownAnswer:
    """Rebuild one answer, streamed or whole. At most `limit` characters of each text are held."""

    def __init__(self, profile: Profile, limit: int) -> None:
        self._profile = profile
        self._limit = limit
        self._rebuilding = Rebuilding()
        self._choices: dict[int, ShownTexts] = {}

    @property
    def dropped(self) -> int:
        """The number of values that were left out."""
        return self._rebuilding.dropped

    def rebuild_chunk(self, chunk: Json) -> Json:
        """Rebuild a chunk. Thinking in its texts is still there."""
        return self._rebuild(chunk, "delta", "message")

    def rebuild_completion(self, completion: Json) -> Json:
        """Rebuild a whole completion. Thinking in its texts is still there."""
        return self._rebuild(completion, "message", "delta")

    def _rebuild(self, answer: Json, name: str, other: str) -> Json:
        """Rebuild an answer. Each choice has its message under `name`, else under `other`."""
        rebuilt: Json = rebuild(answer, _COMPLETION, self._rebuilding)
        for choice in objects(rebuilt.get("choices")):
            if isinstance(choice.get(name), dict) and other in choice:
                self._rebuilding.leave_out(choice.pop(other))
        return rebuilt

    def passes(self, choice: Json) -> bool:
        """Return whether `split` would leave alone a choice whose delta holds one text."""
        texts, delta = self._choices.get(get_index(choice)), as_object(choice.get("delta"))
        return texts is not None and texts.passes(delta)

    def split(self, choice: Json, message: Json, *, is_last: bool) -> Json:
        """Return a message or a delta of a choice without thinking in its texts: that is in the
        field of reasoning. If there was none, that is the same object."""
        texts = self._texts(get_index(choice))
        dropped = texts.dropped
        split = texts.split(message, is_last=is_last)
        self._rebuilding.dropped += texts.dropped - dropped
        return split

    def flush(self) -> list[Json]:
        """Return choices with what is still held back, as the answer breaks off."""
        flushed = {lane: texts.split({}, is_last=True) for lane, texts in self._choices.items()}
        return [{"index": lane, "delta": delta} for lane, delta in flushed.items() if delta]

    def _texts(self, lane: int) -> ShownTexts:
        if lane not in self._choices:
            self._choices[lane] = ShownTexts(self._profile, self._limit)
        return self._choices[lane]


class ShownTexts:
    """Keep thinking out of the texts of one choice."""

    def __init__(self, profile: Profile, limit: int) -> None:
        self._limit = limit
        self._content = ThinkingFilter.for_answer(profile, limit)
        self._refusal = ThinkingFilter(may_begin_inside=False, limit=limit)
        self._arguments: dict[tuple[int, str], ArgumentsFilter] = {}
        self._has_field = False
        self._repeated = 0

    @property
    def dropped(self) -> int:
        """The number of texts of thinking that repeat the reasoning, or stand where none may."""
        calls = sum(arguments.blocks for arguments in self._arguments.values())
        return self._repeated + self._refusal.blocks + calls

    def passes(self, delta: Json) -> bool:
        """Return whether a delta with one text has nothing to split."""
        content = delta.get("content")
        if not content:
            return self._has_field
        return isinstance(content, str) and self._content.passes(content)

    def split(self, message: Json, *, is_last: bool) -> Json:
        """Return a delta or a message without thinking in its texts, which is in its field of
        reasoning."""
        found = find_reasoning(message)
        has_text = found is not None and bool(found.text.strip())
        raw, content = self._split_content(message, has_text=has_text, is_last=is_last)
        self._has_field = self._has_field or has_text
        split = {**message, **self._split_refusal(message, is_last=is_last)}
        if content != message.get("content"):
            split["content"] = content
        if raw and self._has_field:
            self._repeated += 1
        elif raw:
            split[DEFAULT_FIELD] = raw
        split.update(self._split_calls(message, is_last=is_last))
        return message if split == message else split

    def _split_content(self, message: Json, *, has_text: bool, is_last: bool) -> tuple[str, Any]:
        """Split the content; before other reasoning and calls, release what was held back of it."""
        before = self._content.note_reasoning() if has_text else []
        raw, rest = split_content(message.get("content"), self._content)
        held = "".join(piece.text for piece in before)
        if held:
            rest = (
                [{"type": "text", "text": held}, *rest] if isinstance(rest, list) else held + rest
            )
        if is_last:
            return append_held(raw, rest, self._content.end())
        interrupted = any(message.get(key) for key in ("tool_calls", "function_call", "refusal"))
        return append_held(raw, rest, self._content.interrupt()) if interrupted else (raw, rest)

    def _split_refusal(self, message: Json, *, is_last: bool) -> Json:
        given = string(message.get("refusal"))
        pieces = self._refusal.feed(given) + (self._refusal.end() if is_last else [])
        shown = "".join(piece.text for piece in pieces if piece.kind == "text")
        return {} if shown == given else {"refusal": shown}

    # Calls

    def _split_calls(self, message: Json, *, is_last: bool) -> Json:
        """Return the changed fields of calls; with the last, what was held back of any."""
        calls = [
            self._split_call(call, call.get("index", position))
            for position, call in enumerate(objects(message.get("tool_calls")))
        ]
        legacy = message.get("function_call")
        fields: Json = {"tool_calls": calls} if calls else {}
        if isinstance(legacy, dict):
            fields["function_call"] = self._split_call({"function": legacy}, LEGACY)["function"]
        return self._release_arguments(fields) if is_last else fields

    def _split_call(self, call: Json, index: Any) -> Json:
        for kind, name in ARGUMENTS_FIELDS.items():
            payload = call.get(kind)
            if isinstance(payload, dict) and isinstance(text := payload.get(name), str):
                shown = self._filter(index, kind).feed(text)
                call = {**call, kind: {**payload, name: shown}}
        return call

    def _filter(self, index: Any, kind: str) -> ArgumentsFilter:
        key = index if isinstance(index, int) else 0, kind
        if key not in self._arguments:
            self._arguments[key] = ArgumentsFilter(self._limit)
        return self._arguments[key]

    def _release_arguments(self, fields: Json) -> Json:
        for (index, kind), arguments in self._arguments.items():
            if not (held := arguments.end()):
                continue
            name = ARGUMENTS_FIELDS[kind]
            if index == LEGACY:
                call = fields.setdefault("function_call", {})
                call[name] = string(call.get(name)) + held
                continue
            calls = fields.setdefault("tool_calls", [])
            matching = (call for at, call in enumerate(calls) if call.get("index", at) == index)
            call = next(matching, None)
            if call is None:
                calls.append({"index": index, kind: {name: held}})
            else:
                call[kind] = {**as_object(call.get(kind)), name: call[kind][name] + held}
        return fields


def split_thinking(message: Json, profile: Profile) -> tuple[str, Any]:
    """Split the content of a whole message into thinking and the rest."""
    found, content = find_reasoning(message), message.get("content")
    thinking = ThinkingFilter.for_answer(profile, sys.maxsize)
    if found is not None and found.text.strip():
        thinking.note_reasoning()
    return append_held(*split_content(content, thinking), thinking.end())
