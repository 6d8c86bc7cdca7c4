"""Rebuild what upstream sends from known keys, where raw reasoning is hidden.

What leaves this module is understood: a chunk or a completion holds the fields of `shapes.py` only,
reasoning stands in the fields of reasoning, and no text has thinking in it. The reader and the
writer then keep reasoning out as they do wherever it is not shown.
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.apis.chat.accumulator import ARGUMENTS_FIELDS
from abridge.apis.chat.framing import HEADER_FIELDS
from abridge.apis.chat.inline import append_held, split_content, split_parts
from abridge.apis.chat.reasoning import DEFAULT_FIELD, find_reasoning, get_index
from abridge.apis.chat.repair import Arrangement
from abridge.apis.chat.shapes import COMPLETION
from abridge.apis.delta_patterns import Accepts
from abridge.apis.json import as_object, objects, string
from abridge.apis.shapes import DropCount, rebuild
from abridge.core.conversation import Json
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import TagPiece, join_alike


class CompletionRebuilder:
    """Rebuild one answer, streamed or whole. At most `limit` characters of each text are held."""

    def __init__(self, profile: Profile, limit: int, *, drops_inline: bool = False) -> None:
        self._profile = profile
        self._limit = limit
        self._drops_inline = drops_inline
        self._drops = DropCount()
        self.arrangement = Arrangement(self._drops)
        self._choices: dict[int, ChoiceTexts] = {}

    @property
    def dropped(self) -> int:
        """The number of values that were left out."""
        texts = sum(texts.dropped for texts in self._choices.values())
        return self._drops.count + texts

    def rebuild_chunk(self, chunk: Json) -> Json | None:
        """Rebuild a chunk; None if nothing is left of it. Thinking in its texts is still there."""
        rebuilt = self.rebuild_completion(chunk)
        says = rebuilt.get("choices") or any(rebuilt[key] for key in rebuilt.keys() - HEADER_FIELDS)
        return rebuilt if says else None

    def rebuild_completion(self, completion: Json) -> Json:
        """Rebuild a whole completion. Thinking in its texts is still there."""
        rebuilt: Json = rebuild(completion, COMPLETION, self._drops)
        return rebuilt

    def passes(self, choice: Json) -> bool:
        """Return whether a choice whose delta holds one text has nothing to split."""
        texts, delta = self._choices.get(get_index(choice)), as_object(choice.get("delta"))
        return texts is not None and texts.passes(delta)

    def content_filter(self, lane: int) -> Accepts:
        """Return what tells whether a text of a choice's answer has nothing to split."""
        return self._texts(lane).passes_content

    def split_delta(self, choice: Json, delta: Json, *, is_last: bool) -> list[Json]:
        """Return a delta of a choice as deltas without thinking in their texts, which is in the
        field of reasoning. If there was none, that is the same object."""
        return self._texts(get_index(choice)).split(delta, is_last=is_last)

    def split_message(self, choice: Json, message: Json) -> Json:
        """Return a message without thinking in its texts, which is in the field of reasoning."""
        deltas = self._texts(get_index(choice)).split(message, is_last=True)
        whole = deltas[-1]
        for name in (DEFAULT_FIELD, "content"):
            if texts := [text for delta in deltas[:-1] if (text := delta.get(name))]:
                whole = {**whole, name: "".join([*texts, string(whole.get(name))])}
        return whole

    def flush(self, *, is_cut: bool) -> list[Json]:
        """Return choices with what is still held back; if the answer breaks off, that may be
        thinking."""
        return [
            {"index": lane, "delta": delta, "finish_reason": None}
            for lane, texts in self._choices.items()
            for delta in (texts.abort() if is_cut else texts.split({}, is_last=True))
            if delta
        ]

    def _texts(self, lane: int) -> ChoiceTexts:
        if lane not in self._choices:
            texts = ChoiceTexts(self._profile, self._limit, drops_inline=self._drops_inline)
            self._choices[lane] = texts
        return self._choices[lane]


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

    @property
    def passes_content(self) -> Accepts:
        """What tells whether a text of the answer has nothing to split."""
        return self._content.passes

    def passes(self, delta: Json) -> bool:
        """Return whether a delta with one text has nothing to split."""
        content = delta.get("content")
        if not content:
            return self._has_field
        return isinstance(content, str) and self._content.passes(content)

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

    def abort(self) -> list[Json]:
        """Return deltas with what was held back, as the answer breaks off."""
        self._is_cut = True
        return self.split({}, is_last=True)

    def _split_content(
        self, message: Json, *, has_text: bool, is_last: bool
    ) -> list[tuple[str, Any]]:
        """Split the content into pairs of thinking and content, one of which is empty unless the
        content is a list. Before other reasoning and calls, release what was held back of it."""
        content = message.get("content")
        pieces = self._content.note_reasoning() if has_text else []
        interrupted = any(message.get(key) for key in ("tool_calls", "function_call", "refusal"))
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
