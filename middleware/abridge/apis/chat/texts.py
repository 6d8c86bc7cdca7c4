"""Take thinking out of the texts of a message, as a server with a parser would have sent it.

What a text holds of thinking becomes the field of reasoning: of a whole message, or of deltas that
come before the rest of theirs. So whoever reads a message reads reasoning in one place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, TypeAlias

from abridge.apis.chat.chunks import ARGUMENTS_FIELDS, ChunkText
from abridge.apis.chat.errors import BROKEN_REASONS
from abridge.apis.chat.reasoning import (
    DEFAULT_FIELD,
    FoundReasoning,
    find_reasoning,
    get_delta,
    is_text_chunk,
    read_answer_text,
    read_logprobs,
)
from abridge.apis.chat.tools import call_index
from abridge.apis.display import Display
from abridge.apis.json import as_object, entries, objects, string
from abridge.apis.logprobs import ShownLogprobs
from abridge.core.conversation import Json
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import Kind, TagPiece, TagSplitter, join_alike, may_have_tags
from abridge.stages.thinking import MAX_HELD, Accepts, Splitter, accept_any

_INTERRUPTING_FIELDS = ("tool_calls", "function_call", "refusal")
"""Fields of a delta before which text goes out that was held back."""

_Place: TypeAlias = tuple[str, str | int]
"""Where a text stands: in which object and under which key, or of which kind and index its call
is."""

REFUSAL: _Place = "", "refusal"

_NESTED = (("audio", "transcript"), ("function_call", "arguments"))
"""The places of texts in objects of a delta."""

_FILTERS: Mapping[str, Callable[..., ThinkingFilter]] = {
    **dict.fromkeys(("", "audio"), partial(ThinkingFilter, may_begin_inside=False)),
    **dict.fromkeys(("function", "function_call"), JsonBlockFilter),
    "custom": BlockFilter,
}
"""What looks for thinking in texts in which it has no place."""


class ChoiceTexts:
    """Keep thinking out of the texts of one choice.

    Only its content may begin with thinking. Deltas whose text may yet be of a tag are held back,
    whatever else they say, and go out as they came once it is known to be text. Where raw reasoning
    is hidden, thinking is looked for in all of every text, and only texts are held back. What there
    is of it once reasoning has come in a field, or beside a summary of upstream's, is left out.
    """

    def __init__(self, lane: int, profile: Profile, display: Display, limit: int) -> None:
        self._lane = lane
        self._limit = limit
        self._hides_raw = display.hides_raw
        self._hidden = display.hidden
        self._content: Splitter
        if display.hides_raw:
            self._content = ThinkingFilter.for_answer(profile, limit, hidden=display.hidden)
        else:
            self._content = TagSplitter(profile.tags, prefilled=profile.prefilled)
        self._others: dict[_Place, ThinkingFilter] = {}  # of texts in which thinking has no place
        self._held: list[Json] = []  # choices
        self._has_field = display.hides_raw and display.drops_inline
        self.dropped = 0  # texts of thinking that repeat the reasoning, or stand where none may
        self._logprobs = ShownLogprobs()

    def accepts(self, found: ChunkText) -> Accepts | None:
        """Return what tells whether a text like this would go out as it is; None if none would."""
        content, is_content = self._content, found.field == "content"
        if self._hides_raw and not found.is_reasoning:
            place = found.kind, found.call_index
            looking = content if is_content else self._others.get(place)
            return None if looking is None else looking.passes
        if found.is_reasoning:
            is_apart = (self._has_field or content.passes("")) and not content.has_held_text
        elif is_content:
            is_apart = content.passes("")
        else:
            is_apart = not (content.is_inside or content.has_held_text)
        return accept_any if is_apart else None

    def split(self, choice: Json) -> list[Json]:
        """Return a choice as one or several, in order, whose deltas have no thinking in their
        texts: that is in the field of reasoning. With the last comes what was held back; where raw
        reasoning is hidden, with the log probabilities of what is shown alone."""
        if not self._hides_raw and self._content.passes(""):
            return [choice]
        finish = choice.get("finish_reason")
        choices = self._split(choice, _ending(finish) if finish else None)
        if self._hides_raw and (choice.get("logprobs") or self._logprobs.waiting):
            return self._with_logprobs(choices, choice)
        return choices

    def split_message(self, message: Json, finish: Any = "stop") -> Json:
        """Return a whole message without thinking in its texts, which is in the field of
        reasoning; `finish` is why its choice finished."""
        choice = {"delta": message, "finish_reason": "stop"}
        *before, left = map(get_delta, self._split(choice, _ending(finish)))
        for name in (DEFAULT_FIELD, "content"):
            if texts := [delta[name] for delta in before if name in delta]:
                left = {**left, name: "".join([*texts, string(left.get(name))])}
        return left

    def flush(self, *, is_cut: bool) -> list[Json]:
        """Return choices with what is still held back; if the answer breaks off, that may be
        thinking."""
        end = self._wrap({})
        split = self._split(end, "raw" if is_cut else "text")
        return [choice for choice in split if choice is not end]

    def _split(self, choice: Json, ending: Kind | None) -> list[Json]:
        """Split a choice, which may be changed where it was rebuilt. With the last one, `ending` is
        the kind of what is undecided."""
        delta = get_delta(choice)
        found, content = find_reasoning(delta), delta.get("content")
        if not isinstance(content, str | list | None):
            return [choice]  # of unknown meaning
        parts = self._split_content(delta, found, ending)
        changed = self._hides_raw and self._split_others(delta, ending)
        if not (self._hides_raw or parts) and self._content.has_held_text:
            if found is not None:
                return _list_rest(choice, None) if content else [choice]
            self._held.append(choice)
            return []
        if not (parts or changed or self._held or content):
            return [choice]
        came, self._held = [*self._held, choice], []
        thinks = any(DEFAULT_FIELD in part for part in parts)
        if not (thinks or changed) and _answer_text(parts) == _answer_text(map(get_delta, came)):
            return came
        rests = [rest for one in came[:-1] for rest in _list_rest(one, None)]
        lists_tokens = not self._hides_raw and choice.get("logprobs")
        goes_along = "content" in (parts[-1] if parts else {}) and not lists_tokens
        last = parts.pop()["content"] if goes_along else None
        return [*rests, *map(self._wrap, parts), *_list_rest(choice, last)]

    def _wrap(self, delta: Json) -> Json:
        return {"index": self._lane, "delta": delta, "finish_reason": None}

    def _with_logprobs(self, choices: list[Json], said: Json) -> list[Json]:
        """Return choices with the log probabilities of their texts, of what upstream said."""
        logprobs, deltas = self._logprobs, list(map(get_delta, choices))
        if any(find_reasoning(delta) for delta in deltas):
            logprobs.waiting.clear()
        logprobs.waiting += map(dict, read_logprobs(said, "content"))
        shown = logprobs.take(_answer_text(deltas))
        is_same = bool(deltas) and deltas[-1].get("refusal") == get_delta(said).get("refusal")
        refusal = [*read_logprobs(said, "refusal")] if is_same else []
        kept = {"content": shown or None, "refusal": refusal or None} if shown or refusal else None
        return [*choices[:-1], *({**choice, "logprobs": kept} for choice in choices[-1:])]

    # The content

    def _split_content(
        self, delta: Json, found: FoundReasoning | None, ending: Kind | None
    ) -> list[Json]:
        """Split the content of a delta into deltas with either thinking or content. Before other
        reasoning and calls, release what was held back of it."""
        content = delta.get("content")
        released: list[TagPiece] = []
        if found is not None and (found.text.strip() if self._hides_raw else found.text):
            self._has_field, released = True, self._content.note_reasoning()
        interrupted = any(map(delta.get, _INTERRUPTING_FIELDS))
        ends = bool(ending) or interrupted or len(self._held) >= MAX_HELD
        pieces: Sequence[tuple[str, Any]]
        if isinstance(content, list):
            pieces = self._split_list(content, released, ending, ends=ends)
        elif content or released or not self._content.passes(""):
            released += self._content.feed(string(content))
            pieces = join_alike(released + (self._release(ending) if ends else []))
        else:
            return []
        if not (self._hides_raw and self._has_field):
            return [{DEFAULT_FIELD if kind == "raw" else "content": text} for kind, text in pieces]
        self.dropped += any(kind == "raw" for kind, _ in pieces)
        return [{"content": text} for kind, text in pieces if kind == "text"]

    def _split_list(
        self, content: list[Any], released: list[TagPiece], ending: Kind | None, *, ends: bool
    ) -> list[tuple[str, Any]]:
        """Split a list content. What is held back of it goes out after its parts, unless no more
        can come, so that all is told in its place."""
        held = [{"type": "text", "text": text}] if (text := visible_text(released)) else []
        if ending and not self._content.has_held_text:
            pieces = [*self._content.feed(read_answer_text(content)), *self._content.end(ending)]
            raw, rest = place_pieces(content, pieces)
        else:
            raw, rest = self._split_parts(content)
            more, text = _join_pieces(self._release(ending) if ends else [])
            raw, rest = raw + more, rest + ([{"type": "text", "text": text}] if text else [])
        return [piece for piece in (("raw", raw), ("text", [*held, *rest])) if piece[1]]

    def _split_parts(self, parts: list[Any]) -> tuple[str, list[Any]]:
        raw, rest = "", list[Any]()
        for part in parts:
            if not is_text_chunk(part):
                rest.append(part)
                continue
            more, text = _join_pieces(self._content.feed(part["text"]))
            raw += more
            if text or not part["text"]:
                rest.append({**part, "text": text})
        return raw, rest

    def _release(self, ending: Kind | None) -> list[TagPiece]:
        return self._content.end(ending) if ending else self._content.interrupt()

    # Other texts

    def _split_others(self, delta: Json, ending: Kind | None) -> bool:
        """Take thinking out of the texts in which it has no place; return whether any is another
        one then. With the last comes what was held back of each."""
        changed, texts = False, _list_others(delta)
        for place, holder, key in texts:
            if (shown := self._show(place, holder[key])) != holder[key]:
                holder[key], changed = shown, True
        if ending is None:
            return changed
        places = {place: (holder, key) for place, holder, key in texts}
        for place, found in self._others.items():
            if held := self._visible(found, found.end(ending)):
                holder, key = places.get(place) or _add_text(delta, place)
                holder[key], changed = holder[key] + held, True
        return changed

    def _show(self, place: _Place, text: str) -> str:
        """Return what is shown by now of a text in which thinking has no place."""
        found = self._others.get(place)
        if found is None:
            if not text:
                return text
            new = _FILTERS[place[0]](limit=self._limit)
            found = self._others[place] = new.counting_in(self._hidden)
        return self._visible(found, found.feed(text))

    def _visible(self, found: ThinkingFilter, pieces: list[TagPiece]) -> str:
        """Return what is shown of a text, and count what is left out: there may be many texts."""
        self.dropped, found.blocks = self.dropped + found.blocks, 0
        return visible_text(pieces)


def _ending(finish: Any) -> Kind:
    """Return the kind of what is undecided in the texts of a choice that finishes so."""
    return "raw" if finish in BROKEN_REASONS else "text"


def _list_others(delta: Json) -> list[tuple[_Place, Json, str]]:
    """List the texts of a delta in which thinking has no place, by the objects that hold them."""
    content = delta.get("content")
    held: list[tuple[_Place, Any, str]] = [
        *((REFUSAL, part, "refusal") for part in entries(content)),
        (REFUSAL, delta, "refusal"),
        *(((name, key), delta.get(name), key) for name, key in _NESTED),
    ]
    for position, call in enumerate(objects(delta.get("tool_calls"))):
        index = call_index(call, position)
        held += [((kind, index), call.get(kind), key) for kind, key in ARGUMENTS_FIELDS.items()]
    return [one for one in held if isinstance(one[1], dict) and isinstance(one[1].get(one[2]), str)]


def _add_text(delta: Json, place: _Place) -> tuple[Json, str]:
    """Add an empty text to a delta; return the object that holds it, and its key there."""
    (name, key), holder = place, delta
    if isinstance(key, int):
        index, key, holder = key, ARGUMENTS_FIELDS[name], {}
        fragment = {"index": index, name: holder}
        delta["tool_calls"] = [*objects(delta.get("tool_calls")), fragment]
    elif name:
        delta[name] = holder = {**as_object(delta.get(name))}
    holder[key] = ""
    return holder, key


def _answer_text(deltas: Iterable[Json]) -> str:
    return "".join(read_answer_text(delta.get("content")) for delta in deltas)


def _list_rest(choice: Json, content: Any) -> list[Json]:
    """List a choice with another content, unless nothing is in it."""
    delta = get_delta(choice)
    rest = {**delta}
    if content or delta.get("content"):
        rest["content"] = content
    fields = [choice[key] for key in choice if key not in ("index", "delta")]
    is_empty = all(value in (None, "") for value in (*rest.values(), *fields))
    return [] if is_empty else [{**choice, "delta": rest}]


# A whole content


def is_plain(content: Any) -> bool:
    """Return whether a content is nothing, or a text of which all is the answer, whatever its
    message holds, unless the prompt's template opened a block."""
    return content is None or (isinstance(content, str) and not may_have_tags(content))


def split_inline(content: Any, profile: Profile) -> tuple[str, Any]:
    """Split a whole content into reasoning and the rest, where no field holds reasoning."""
    if content is None or (is_plain(content) and not profile.prefilled):
        return "", content  # the usual case
    return _split_whole(content, TagSplitter(profile.tags, prefilled=profile.prefilled))


def split_thinking(message: Json, profile: Profile) -> tuple[str, Any]:
    """Split the content of a whole message into thinking and the rest."""
    found, thinking = find_reasoning(message), ThinkingFilter.for_answer(profile, sys.maxsize)
    if found is not None and found.text.strip():
        thinking.note_reasoning()
    return _split_whole(message.get("content"), thinking)


def _split_whole(content: Any, splitter: Splitter) -> tuple[str, Any]:
    return place_pieces(content, [*splitter.feed(read_answer_text(content)), *splitter.end()])


def place_pieces(content: Any, pieces: Iterable[TagPiece]) -> tuple[str, Any]:
    """Return the reasoning in a content, of whose text these are the pieces, and the rest of it:
    each part of a list in its place, but for those of which no text is left."""
    pieces = list(pieces)
    raw, text = _join_pieces(pieces)
    said = read_answer_text(content)
    if text == said:
        return raw, content
    if not isinstance(content, list):
        return raw, text
    marks = _mark_shown(said, pieces)
    if "".join(compress(said, marks)) != text:
        marks = _mark_first(said, text)
    shown, rest = iter(marks), list[Any]()
    for part in content:
        kept = "".join(compress(part["text"], shown)) if is_text_chunk(part) else None
        if kept is None or kept == part["text"]:
            rest.append(part)
        elif kept:
            rest.append({**part, "text": kept})
    return raw, rest


def _mark_shown(text: str, pieces: list[TagPiece]) -> bytearray:
    """Mark the characters of a text that are shown: the pieces of it follow each other there, and
    tags may stand within one."""
    marks, position = bytearray(len(text)), 0
    for kind, piece in pieces:
        found = piece.strip() if kind == "raw" else piece  # blanks may have been added to it
        start = text.find(found, position)
        for run in [found] if start >= 0 else found:
            if (start := text.find(run, position)) < 0:
                break
            position = start + len(run)
            marks[start:position] = bytes([kind == "text"]) * len(run)
    return marks


def _mark_first(text: str, shown: str) -> bytearray:
    """Mark the first characters of a text that make up what is shown, where pieces of it stand
    elsewhere, too."""
    marks, position = bytearray(len(text)), -1
    for character in shown:
        if (position := text.find(character, position + 1)) < 0:
            break
        marks[position] = True
    return marks


def _join_pieces(pieces: Iterable[TagPiece]) -> tuple[str, str]:
    """Return the text of the pieces of reasoning, and that of the others."""
    kinds: dict[str, list[str]] = {"raw": [], "text": []}
    for kind, text in pieces:
        kinds[kind].append(text)
    return "".join(kinds["raw"]), "".join(kinds["text"])
