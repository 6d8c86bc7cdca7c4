"""What is known of Chat Completions where raw reasoning is hidden; the rest is dropped.

What leaves this module is understood: a chunk or a completion is arranged as OpenAI does, a message
in the place of a delta becoming one, and holds the fields of `COMPLETION` only. Those are
openai-openapi's `CreateChatCompletionStreamResponse` and `CreateChatCompletionResponse`, and the
fields of providers that are named here. Log probabilities stay where their tokens are the text that
is shown. Then thinking is taken out of its texts, into a field of reasoning. The reader and the
writer keep that out as they do wherever it is not shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from abridge.apis import shapes
from abridge.apis.chat.chunks import ARGUMENTS_FIELDS, HEADER_FIELDS, MAX_CHOICES, Continuation
from abridge.apis.chat.errors import respell_error
from abridge.apis.chat.reasoning import (
    DEFAULT_FIELD,
    append_held,
    find_reasoning,
    get_index,
    read_answer_text,
    split_content,
    split_parts,
)
from abridge.apis.delta_patterns import Accepts
from abridge.apis.errors import whole_error
from abridge.apis.json import as_object, objects, string
from abridge.apis.logprobs import LOGPROBS, spells
from abridge.apis.obfuscation import PADDING_FIELDS
from abridge.core.conversation import Json
from abridge.providers.catalog import TEXT_FIELDS
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import TagPiece, join_alike

_FILE = {
    **shapes.under("hash name", shapes.text),
    "content": shapes.each(
        shapes.by_type(
            {
                "text": shapes.fields({"type": shapes.name, "text": shapes.text}),
                "image_url": shapes.fields(
                    {"type": shapes.name, "image_url": shapes.fields({"url": shapes.address})}
                ),
            }
        )
    ),
}
"""A file of the client's that OpenRouter has read (openrouter.ai: guides, PDF inputs)."""


def _annotation(value: Any, drops: shapes.DropCount) -> Any:
    is_file = as_object(value).get("type") == "file"
    file = shapes.fields({"type": shapes.name, "file": shapes.fields(_FILE)})
    return (file if is_file else shapes.ANNOTATION)(value, drops)


_TEXT_PART = shapes.fields(
    {"type": shapes.name, "text": shapes.streamed_text, "annotations": shapes.each(_annotation)}
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
            "refusal": shapes.fields({"type": shapes.name, "refusal": shapes.streamed_text}),
            "image_url": _IMAGE,
            "thinking": shapes.fields(  # docs.mistral.ai
                {
                    "type": shapes.name,
                    "thinking": shapes.either(shapes.streamed_text, shapes.each(_TEXT_PART)),
                    "closed": shapes.number,
                    "signature": shapes.opaque_state,
                }
            ),
            "reference": shapes.fields(  # docs.mistral.ai
                {"type": shapes.name, "reference_ids": shapes.each(shapes.name_or_number)}
            ),
        }
    )
)

_STATE = shapes.fields(  # ai.google.dev: thought signatures
    {"google": shapes.fields({"thought_signature": shapes.opaque_state})}
)

_FUNCTION = shapes.fields(
    {
        "name": shapes.call_name,
        "arguments": shapes.streamed_json,
    }
)

_CALL = shapes.fields(
    {
        "index": shapes.number,
        "id": shapes.name,
        "type": shapes.name,
        "function": _FUNCTION,
        "custom": shapes.fields({"name": shapes.call_name, "input": shapes.streamed_text}),
        "extra_content": _STATE,
    }
)

_AUDIO = shapes.fields(
    {
        "id": shapes.name,
        "data": shapes.opaque,
        "expires_at": shapes.number,
        "transcript": shapes.streamed_text,
    }
)

_ENTRY_HEAD = {"type": shapes.name, "index": shapes.number, "id": shapes.name}

_DETAIL_HEAD = {**_ENTRY_HEAD, "format": shapes.name, "signature": shapes.opaque_state}

_TEXT_DETAIL = shapes.fields({**_DETAIL_HEAD, "text": shapes.streamed_text})

_REASONING_DETAIL = shapes.by_type(  # openrouter.ai: reasoning tokens
    {
        "": _TEXT_DETAIL,
        "reasoning.text": _TEXT_DETAIL,
        "reasoning.summary": shapes.fields({**_DETAIL_HEAD, "summary": shapes.streamed_text}),
        "reasoning.encrypted": shapes.fields({**_DETAIL_HEAD, "data": shapes.opaque_state}),
    }
)

_THINKING_BLOCK = shapes.fields(  # LiteLLM's
    {
        **_ENTRY_HEAD,
        "thinking": shapes.streamed_text,
        "data": shapes.opaque_state,
        "signature": shapes.opaque_state,
    }
)

_SOURCE = {
    **shapes.under("title content text date last_updated publish_date snippet", shapes.text),
    **shapes.under("source site_name media query", shapes.text),
    **shapes.under("url link icon image_url origin_url", shapes.address),
    **shapes.under("id index refer", shapes.name_or_number),
    **shapes.under("score height width", shapes.number),
}
"""A page or an image that was found (docs.perplexity.ai; docs.z.ai; Alibaba Model Studio)."""

_SOURCES = shapes.each(shapes.fields(_SOURCE))

_RETRIEVED = {
    **_SOURCE,
    "filepath": shapes.text,
    "chunk_id": shapes.name_or_number,
    "filter_reason": shapes.name,
    "search_queries": shapes.each(shapes.text),
    **shapes.under("rerank_score original_search_score data_source_index", shapes.number),
}

_CONTEXT = shapes.fields(
    {
        "intent": shapes.text,
        **shapes.under("citations all_retrieved_documents", shapes.each(shapes.fields(_RETRIEVED))),
    }
)
"""Azure's own data (learn.microsoft.com: foundry/openai/references/on-your-data)."""

_EXECUTED_TOOL = shapes.fields(
    {
        "index": shapes.number,
        **shapes.under("type name", shapes.call_name),
        "arguments": shapes.json_text,
        "output": shapes.text,
        "search_results": shapes.fields(
            {"results": _SOURCES, "images": shapes.each(shapes.address)}
        ),
    }
)
"""What a tool of the server's did (console.groq.com: docs/compound)."""

_MESSAGE = shapes.fields(
    {
        "role": shapes.name,
        "name": shapes.name,
        "content": shapes.either(shapes.streamed_text, _CONTENT_PARTS),
        "refusal": shapes.streamed_text,
        "tool_calls": shapes.each(_CALL),
        "function_call": _FUNCTION,
        "audio": _AUDIO,
        "annotations": shapes.each(_annotation),
        "context": _CONTEXT,
        "end_turn": shapes.number,  # Azure
        "executed_tools": shapes.each(_EXECUTED_TOOL),
        "images": shapes.each(_IMAGE),  # OpenRouter, Gemini
        "extra_content": _STATE,
        **dict.fromkeys(TEXT_FIELDS, shapes.streamed_text),
        "reasoning_details": shapes.each(_REASONING_DETAIL),
        "thinking_blocks": shapes.each(_THINKING_BLOCK),
    }
)

_CHOICE_FIELDS = shapes.fields(
    {
        **shapes.under("index seed", shapes.number),
        "delta": _MESSAGE,
        "message": _MESSAGE,
        "finish_reason": shapes.name,
        "native_finish_reason": shapes.name,  # OpenRouter
        "stop_reason": shapes.stop_sequence,  # vLLM
        "matched_stop": shapes.stop_sequence,  # SGLang
        "error": whole_error,  # OpenRouter
        "content_filter_results": shapes.FILTER_RESULTS,  # Azure
        "content_filter_offsets": shapes.figures,
        "logprobs": shapes.fields(shapes.under("content refusal", LOGPROBS)),
    }
)


def _choice(value: Any, drops: shapes.DropCount) -> Any:
    """A choice, whose log probabilities are of just the text that it says."""
    choice = _CHOICE_FIELDS(value, drops)
    given = as_object(as_object(choice).get("logprobs"))
    said = as_object(choice.get("delta") or choice.get("message")) if given else {}
    texts = {"content": read_answer_text(said.get("content")), "refusal": said.get("refusal")}
    if not given or (
        any(given.values())
        and all(spells(objects(given[key]), string(texts[key])) for key in given)
    ):
        return choice
    drops.drop(given)
    return {**choice, "logprobs": None}


_MODERATED = shapes.fields(
    {
        **shapes.under("type model", shapes.name),
        "results": shapes.each(shapes.fields(shapes.MODERATION_RESULT)),
    }
)

_MODERATION = shapes.fields(shapes.under("input output", _MODERATED))

COMPLETION = shapes.fields(
    {
        "id": shapes.name,
        "object": shapes.name,
        "created": shapes.number,
        "model": shapes.proper_name,
        "system_fingerprint": shapes.name,
        "service_tier": shapes.name,
        "provider": shapes.proper_name,  # OpenRouter
        "request_id": shapes.name,
        "choices": shapes.each(_choice),
        "usage": shapes.figures,
        **shapes.under("time_info sla_metrics", shapes.figures),  # Cerebras, Z.ai
        "usage_breakdown": partial(shapes.figures, names=("model",)),  # Groq
        "metadata": shapes.fields({"weight_version": shapes.name}),  # SGLang
        "moderation": _MODERATION,
        "error": whole_error,
        # docs.perplexity.ai; xAI
        "citations": shapes.each(shapes.either(shapes.address, shapes.fields(_SOURCE))),
        **shapes.under("search_results images web_search", _SOURCES),
        "related_questions": shapes.each(shapes.text),
        "search_info": shapes.fields({"search_results": _SOURCES}),  # Alibaba
        "prompt_filter_results": shapes.each(  # Azure
            shapes.fields(
                {"prompt_index": shapes.number, "content_filter_results": shapes.FILTER_RESULTS}
            )
        ),
        **dict.fromkeys(PADDING_FIELDS, shapes.unused),
        "x_groq": shapes.fields(
            {"id": shapes.name, "usage": shapes.figures, "seed": shapes.number}
        ),
    }
)
"""A chunk, or a whole completion."""


# An answer of what is known


class CompletionRebuilder:
    """Rebuild one answer, streamed or whole. Thinking in its texts is still there."""

    def __init__(self, drops: shapes.DropCount | None = None) -> None:
        self.drops = drops or shapes.DropCount()
        self._said: set[int] = set()  # choices of which a delta has said something

    def rebuild_chunk(self, chunk: Json) -> Json | None:
        """Rebuild a chunk that is arranged; None if nothing is left of it."""
        rebuilt = self.rebuild_completion(chunk)
        says = rebuilt.get("choices") or any(rebuilt[key] for key in rebuilt.keys() - HEADER_FIELDS)
        return rebuilt if says else None

    def rebuild_completion(self, completion: Json) -> Json:
        """Rebuild a whole completion that is arranged."""
        rebuilt: Json = shapes.rebuild(completion, COMPLETION, self.drops)
        return rebuilt

    def arrange_chunk(self, chunk: Json) -> Json:
        """Return a chunk in which what each choice says is its delta."""
        return self._arrange(chunk, self._with_delta)

    def arrange_completion(self, completion: Json) -> Json:
        """Return a whole completion in which what each choice says is its message, and each has an
        index of its own: what one says must not tell what another's text is."""
        arranged = self._arrange(completion, self._with_message)
        choices = objects(arranged.get("choices"))
        if len(set(map(get_index, choices))) < len(choices):
            numbered = [{**choice, "index": number} for number, choice in enumerate(choices)]
            arranged = {**arranged, "choices": numbered}
        return arranged

    def _arrange(self, answer: Json, arrange_choice: Callable[[Json], Json]) -> Json:
        """Arrange the choices without those that no request can ask for: each takes memory."""
        given = answer.get("choices")
        if not given or not isinstance(given, list):
            return respell_error(answer)
        asked = [choice for choice in objects(given) if 0 <= get_index(choice) < MAX_CHOICES]
        known = asked[:MAX_CHOICES]  # some may have one index
        self.drops.count += len(given) - len(known)
        return {**answer, "choices": list(map(arrange_choice, known))}

    def _with_delta(self, choice: Json) -> Json:
        """Put a message in the place of a missing delta, unless it repeats what deltas have
        said."""
        lane, delta = get_index(choice), choice.get("delta")
        is_given = isinstance(delta, dict)
        if is_given and lane not in self._said and _says_something(as_object(delta)):
            self._said.add(lane)
        if "message" not in choice:
            return choice
        others = {key: choice[key] for key in choice if key != "message"}
        if not is_given and lane not in self._said:
            return {**others, "delta": choice["message"]}
        self.drops.drop(choice["message"])
        return {**others, "delta": as_object(delta)}

    def _with_message(self, choice: Json) -> Json:
        """Put a delta in the place of a missing message."""
        if "delta" not in choice:
            return choice
        others = {key: choice[key] for key in choice if key != "delta"}
        if not isinstance(choice.get("message"), dict):
            return {**others, "message": choice["delta"]}
        self.drops.drop(choice["delta"])
        return others


def _says_something(delta: Json) -> bool:
    return any(delta[key] for key in delta if key != "role")


# Thinking in texts


class ChoiceTexts:
    """Keep thinking out of the texts of one choice. With `drops_inline`, or once reasoning has come
    in a field, what there is of it in a text is left out."""

    def __init__(self, profile: Profile, limit: int, *, drops_inline: bool = False) -> None:
        self._limit = limit
        self._content = ThinkingFilter.for_answer(profile, limit)
        self._refusal = ThinkingFilter(may_begin_inside=False, limit=limit)
        self._transcript = ThinkingFilter(may_begin_inside=False, limit=limit)
        self._arguments: dict[tuple[int | None, str], BlockFilter] = {}
        self._has_field = drops_inline
        self._is_cut = False  # the answer breaks off
        self._repeated = 0

    @property
    def dropped(self) -> int:
        """The number of texts of thinking that repeat the reasoning, or stand where none may."""
        calls = sum(arguments.blocks for arguments in self._arguments.values())
        return self._repeated + self._refusal.blocks + self._transcript.blocks + calls

    def passes(self, found: Continuation) -> bool:
        """Return whether a text has nothing to split."""
        if found.is_reasoning:
            return self._has_field
        accepts = self.accepts(found)
        return accepts is not None and accepts(found.text)

    def accepts(self, found: Continuation) -> Accepts | None:
        """Return what tells whether a text like this has nothing to split; None for reasoning, and
        for the arguments of a call before there were any."""
        if found.field == "content":
            return self._content.passes
        arguments = self._arguments.get((found.call_index, found.kind))
        return None if arguments is None else arguments.passes

    def split_message(self, message: Json) -> Json:
        """Return a whole message without thinking in its texts, which is in the field of
        reasoning."""
        *before, whole = self.split(message, is_last=True)
        for name in (DEFAULT_FIELD, "content"):
            if texts := [text for delta in before if (text := delta.get(name))]:
                whole = {**whole, name: "".join([*texts, string(whole.get(name))])}
        return whole

    def split(self, message: Json, *, is_last: bool) -> list[Json]:
        """Return a delta or a message as one or several, in order, whose texts have no thinking in
        them: that is in the field of reasoning. With the last, return what was held back."""
        found = find_reasoning(message)
        has_text = found is not None and bool(found.text.strip())
        contents = self._split_content(message, has_text=has_text, is_last=is_last)
        if self._has_field or has_text:
            self._has_field = True
            self._repeated += any(raw for raw, _ in contents)
            texts = [("", content) for _, content in contents if content is not None]
            contents = texts or [("", None)]
        first = [{DEFAULT_FIELD: raw} if raw else {"content": text} for raw, text in contents[:-1]]
        raw, content = contents[-1]
        last = {**message, **self._split_others(message, is_last=is_last)}
        if content != message.get("content"):
            last["content"] = content or None
        if raw:
            last[DEFAULT_FIELD] = raw
        last.update(self._split_calls(message, is_last=is_last))
        return [*first, message if last == message else last]

    def flush(self, *, is_cut: bool) -> list[Json]:
        """Return deltas with what is still held back; if the answer breaks off, that may be
        thinking."""
        self._is_cut = is_cut
        return list(filter(None, self.split({}, is_last=True)))

    def _split_content(
        self, message: Json, *, has_text: bool, is_last: bool
    ) -> list[tuple[str, Any]]:
        """Split the content into pairs of thinking and content, one of which is empty unless the
        content is a list. Before other reasoning and calls, release what was held back of it."""
        content = message.get("content")
        pieces = self._content.note_reasoning() if has_text else []
        interrupted = any(map(message.get, ("tool_calls", "function_call", "refusal")))
        if isinstance(content, list):
            parts = [self._split_part(part, is_last=is_last) for part in content]
            held = [{"type": "text", "text": text}] if (text := visible_text(pieces)) else []
            if is_last and not self._content.has_held_text:
                raw, rest = split_parts(parts, self._content)
                return [(raw, [*held, *rest])]
            raw, rest = split_content(parts, self._content)
            ending = self._release_content(is_last=is_last, interrupted=interrupted)
            return [append_held(raw, [*held, *rest], ending)]
        pieces += self._content.feed(string(content))
        pieces += self._release_content(is_last=is_last, interrupted=interrupted)
        split = [(text, None) if kind == "raw" else ("", text) for kind, text in join_alike(pieces)]
        return split or [("", content and None)]

    def _split_part(self, part: Json, *, is_last: bool) -> Json:
        """Return a part of a list content; that of a refusal without thinking."""
        if not isinstance(part.get("refusal"), str):
            return part
        return {
            **part,
            "refusal": self._feed_visible(self._refusal, part["refusal"], is_last=is_last),
        }

    def _release_content(self, *, is_last: bool, interrupted: bool) -> list[TagPiece]:
        if is_last:
            return self._end(self._content)
        return self._content.interrupt() if interrupted else []

    def _split_others(self, message: Json, *, is_last: bool) -> Json:
        """Return the other texts that are changed: of a refusal, and of what is spoken."""
        changed: Json = {}
        given, audio = string(message.get("refusal")), as_object(message.get("audio"))
        if (refusal := self._feed_visible(self._refusal, given, is_last=is_last)) != given:
            changed["refusal"] = refusal
        given = string(audio.get("transcript"))
        if (transcript := self._feed_visible(self._transcript, given, is_last=is_last)) != given:
            changed["audio"] = {**audio, "transcript": transcript}
        return changed

    def _feed_visible(self, thinking: ThinkingFilter, text: str, *, is_last: bool) -> str:
        """Return what is shown by now of a text in which thinking has no place."""
        if not (text or is_last):
            return text
        return visible_text(thinking.feed(text) + (self._end(thinking) if is_last else []))

    def _end(self, thinking: ThinkingFilter) -> list[TagPiece]:
        return thinking.abort() if self._is_cut else thinking.end()

    # Calls

    def _split_calls(self, message: Json, *, is_last: bool) -> Json:
        """Return the changed fields of calls; with the last, what was held back of any."""
        calls = [
            self._split_call(call, _call_index(call, position))
            for position, call in enumerate(objects(message.get("tool_calls")))
        ]
        legacy = message.get("function_call")
        fields: Json = {"tool_calls": calls} if calls else {}
        if isinstance(legacy, dict):
            fields["function_call"] = self._split_call({"function": legacy}, None)["function"]
        return self._release_arguments(fields) if is_last else fields

    def _split_call(self, call: Json, index: int | None) -> Json:
        """Split the arguments of a call; `index` is None for that of `function_call`."""
        for kind, name in ARGUMENTS_FIELDS.items():
            payload = call.get(kind)
            if isinstance(payload, dict) and isinstance(text := payload.get(name), str):
                pieces = self._filter(index, kind).feed(text)
                call = {**call, kind: {**payload, name: visible_text(pieces)}}
        return call

    def _filter(self, index: int | None, kind: str) -> BlockFilter:
        key = index, kind
        if key not in self._arguments:
            new_filter = JsonBlockFilter if kind == "function" else BlockFilter
            self._arguments[key] = new_filter(limit=self._limit)
        return self._arguments[key]

    def _release_arguments(self, fields: Json) -> Json:
        """Return the changed fields with the arguments that were held back."""
        for (index, kind), arguments in self._arguments.items():
            if not (held := visible_text(self._end(arguments))):
                continue
            name = ARGUMENTS_FIELDS[kind]
            if index is None:
                call = fields.setdefault("function_call", {})
                call[name] = string(call.get(name)) + held
                continue
            calls = fields.setdefault("tool_calls", [])
            at = [_call_index(call, position) for position, call in enumerate(calls)]
            if index not in at:
                calls.append({"index": index, kind: {name: held}})
                continue
            call = calls[at.index(index)]
            payload = as_object(call.get(kind))
            call[kind] = {**payload, name: string(payload.get(name)) + held}
        return fields


def _call_index(call: Json, position: int) -> int:
    """Return the index of a call, or its position if it has none."""
    index = call.get("index")
    return index if isinstance(index, int) else position


def split_thinking(message: Json, profile: Profile) -> tuple[str, Any]:
    """Split the content of a whole message into thinking and the rest."""
    found, content = find_reasoning(message), message.get("content")
    thinking = ThinkingFilter.for_answer(profile, sys.maxsize)
    if found is not None and found.text.strip():
        thinking.note_reasoning()
    if isinstance(content, list):
        return split_parts(content, thinking)
    return append_held(*split_content(content, thinking), thinking.end())
