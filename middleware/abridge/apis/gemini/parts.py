"""The parts of an answer, translated as they stream.

A chunk of a stream holds pieces of texts, and calls: nearly always whole ones, else pieces of one
after the other (`PartialCall`). Thoughts are one reasoning item until something else follows. A
call's signature belongs to the item before the call, or is one of its own.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from itertools import chain
from secrets import token_hex
from typing import Any, TypeAlias

from abridge.apis.display import Display
from abridge.apis.errors import UNREADABLE
from abridge.apis.gemini.messages import MADE_ID
from abridge.apis.gemini.reasoning import call_of, is_call, is_thought, signature_of, write_state
from abridge.apis.hosted_calls import describe_call
from abridge.apis.json import MAX_DEPTH, as_object, dumps, objects, string
from abridge.apis.shapes import DropCount, Shape, call_name, name, opaque_state, rebuild
from abridge.core.conversation import ItemKey, Json
from abridge.core.events import (
    FRAME_OVERHEAD,
    ContentDelta,
    ErrorDetail,
    Event,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
)
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import JsonBlockFilter, ThinkingFilter, visible_text
from abridge.stages.tags import TagPiece

TEXT_KEYS = frozenset({"text", "thought", "thoughtSignature"})
"""The keys of a text of the answer (ai.google.dev: api/caching, `Part`)."""

HOSTED_CALL_KINDS = frozenset({"toolCall", "executableCode"})
"""Parts with what Google runs itself (ai.google.dev: api/caching, `Part`)."""

LANE = 0
"""The only lane: the whole answer waits together."""


class PartReader:
    """Turn the parts of one answer into events, and keep them, at most `limit` characters."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self.item_count = 0
        self.call_ids: list[str] = []  # as clients have them
        self._salt = token_hex(8)  # for ids in an answer that has none itself
        self._hides_raw = display.hides_raw
        self._carries_text_state = display.carries_text_state
        self._text_signature = ""  # the last of the answer's texts
        self._drops = DropCount.of(display)
        self._left_out = 0  # parts that no other API has, and blocks of thinking
        self._filter = ThinkingFilter.for_answer(profile, limit) if display.hides_raw else None
        self._limit = self._room_left = limit
        self._hides_text = False  # thinking was taken out of texts
        self._hosted_calls: list[dict[str, str]] = []
        self._is_thinking = False  # the last item is open
        self._kept: list[tuple[Json, list[str]]] = []  # each part but for its text, and that
        self._partial_call: PartialCall | None = None  # the one that is open
        self._last_part: Json | None = None
        self.failure: ErrorDetail | None = None  # why the answer cannot be read

    @property
    def dropped(self) -> int:
        return self._drops.count + self._left_out

    @property
    def is_complete(self) -> bool:
        """True while everything kept fits in the limit."""
        return self._room_left >= 0

    @property
    def call_count(self) -> int:
        return len(self.call_ids)

    @property
    def item_keys(self) -> tuple[ItemKey, ...]:
        return tuple((LANE, item) for item in range(self.item_count))

    def has_open_part(self, *, streamed: bool) -> bool:
        """Return whether the last part may lack something: a text that streams may always go on."""
        if self._partial_call is not None or self._last_part is None:
            return True
        return streamed and "text" in self._last_part

    @property
    def shown_text(self) -> str | None:
        """The text of the answer; None if it is not known any more."""
        if self._hides_text or not self.is_complete:
            return None
        return "".join(
            chain.from_iterable(texts for part, texts in self._kept if not is_thought(part))
        )

    @property
    def only_hosted_calls(self) -> list[dict[str, str]]:
        """The calls that Google ran itself, if there is nothing else."""
        return [] if self.call_count or self.shown_text != "" else self._hosted_calls

    def kept_parts(self) -> list[Json]:
        """Return the answer's parts, each text in one piece."""
        return [{"text": "".join(texts), **rest} if texts else rest for rest, texts in self._kept]

    def check(self, value: object, shape: Shape) -> str:
        """Return a string; "" if it does not have its shape and reasoning is hidden."""
        return string(rebuild(value, shape, self._drops) if self._hides_raw else value)

    def read(self, part: Json, response_id: str) -> list[Event]:
        self._last_part = part
        if is_thought(part):
            self._keep_text(part, {"thought": True})
            return self._read_thought(string(part.get("text")))
        if is_call(part):
            return self._read_call_part(part, response_id)
        if isinstance(part.get("text"), str) and self._is_understood(part):
            self._keep_text(part, {})
            signature = self.check(signature_of(part), opaque_state)
            self._text_signature = signature or self._text_signature
            return self._read_text(part["text"])
        self._left_out += 1
        self._note_hosted_call(part)
        return []

    def _note_hosted_call(self, part: Json) -> None:
        for kind in part.keys() & HOSTED_CALL_KINDS:
            tool = self.check(as_object(part[kind]).get("toolType"), name)
            self._room_left -= FRAME_OVERHEAD
            if self.is_complete:
                self._hosted_calls.append(describe_call(kind, tool))

    def _is_understood(self, part: Json) -> bool:
        """Return whether a text is certain to be the answer's: where reasoning is hidden, an
        unknown key may say that it is none."""
        return not self._hides_raw or part.keys() <= TEXT_KEYS

    def end(self, response_id: str, *, is_cut: bool) -> list[Event]:
        """End the answer. If it was `cut`, so was a call that is open. The signature of an answer
        without calls follows its text, where it can be carried so."""
        calling = self._end_call(response_id, is_cut=is_cut)
        ending = [*calling, *self._end_item(), *self._end_text(abort=False)]
        if not (self._text_signature and self._carries_text_state) or self.call_count:
            return ending
        state = self._write_signature(None, self._text_signature)
        return [*ending, *state, *self._end_item()]

    def abort(self) -> list[Event]:
        """Break the answer off; what was held back may be thinking."""
        return [*self._end_item(), *self._end_text(abort=True)]

    def _keep_text(self, part: Json, kind: Json) -> None:
        """Keep a piece of a text. A signature ends its part: one without and one with a signature
        are never joined."""
        text, signature = string(part.get("text")), signature_of(part)
        self._room_left -= len(text) + len(signature)
        if not self.is_complete:
            return
        if signature:
            self._kept.append(({**kind, "thoughtSignature": signature}, [text]))
        elif text and self._kept and self._kept[-1][0] == kind and self._kept[-1][1]:
            self._kept[-1][1].append(text)
        elif text:
            self._kept.append((kind, [text]))

    def _read_thought(self, text: str) -> list[Event]:
        if not text:
            return []
        return [*self._begin_item(), ReasoningDelta(LANE, None, self.item_count - 1, text)]

    def _begin_item(self) -> list[Event]:
        if self._is_thinking:
            return []
        self._is_thinking = True
        self.item_count += 1
        return [*self._interrupt_text(), ReasoningStarted(LANE, None, self.item_count - 1)]

    def _end_item(self) -> list[Event]:
        if not self._is_thinking:
            return []
        self._is_thinking = False
        return [ReasoningEnded(LANE, None, self.item_count - 1)]

    def _read_text(self, text: str) -> list[Event]:
        if not text:  # the signature of the text before it
            return []
        pieces = [TagPiece("text", text)] if self._filter is None else self._filter.feed(text)
        return [*self._end_item(), *_text_events(pieces)]

    def _interrupt_text(self) -> list[Event]:
        """Show what was held back of a text, since reasoning or a call follows."""
        if self._filter is None:
            return []
        return _text_events([*self._filter.note_reasoning(), *self._filter.interrupt()])

    def _end_text(self, *, abort: bool) -> list[Event]:
        if self._filter is None:
            return []
        rest = self._filter.abort() if abort else self._filter.end()
        self._left_out += self._filter.blocks
        self._hides_text = self._hides_text or self._filter.blocks > 0
        self._filter.blocks = 0
        return _text_events(rest)

    def _read_call_part(self, part: Json, response_id: str) -> list[Event]:
        """Read a call, or a part of one."""
        call = call_of(part)
        if self._partial_call is None and not is_partial(call):
            return self._read_call(part, response_id)
        self._partial_call = self._partial_call or PartialCall(self._limit)
        if not self._partial_call.add(part):
            self.failure = UNREADABLE
            return []
        return [] if call.get("willContinue") else self._end_call(response_id)

    def _end_call(self, response_id: str, *, is_cut: bool = False) -> list[Event]:
        """Read the call that is open, as nothing more of it comes."""
        call, self._partial_call = self._partial_call, None
        return [] if call is None else self._read_call(call.build(), response_id, is_cut=is_cut)

    def _read_call(self, part: Json, response_id: str, *, is_cut: bool = False) -> list[Event]:
        """Read a whole call. One that was cut has arguments without an end, so that nobody runs it,
        and is not kept."""
        call, number = call_of(part), self.call_count
        arguments = self._visible_arguments(dumps(as_object(call.get("args"))).decode())
        signature = self.check(part.get("thoughtSignature"), opaque_state)
        self._room_left -= len(dumps(part))
        if self.is_complete and not is_cut:
            self._kept.append((part, []))
        given = self.check(call.get("id"), name)
        identity = given or _make_id(response_id or self._salt, number, call)
        self.call_ids.append(identity)
        signing = self._write_signature(number, signature)
        delta = ToolCallDelta(
            LANE,
            None,
            call_index=number,
            id=identity,
            name=self.check(call.get("name"), call_name),
            arguments=arguments.rstrip('"]}') if is_cut else arguments,
        )
        return [*signing, *self._end_item(), *self._interrupt_text(), delta]

    def _write_signature(self, call: int | None, signature: str) -> list[Event]:
        if not signature:
            return []
        beginning = self._begin_item()
        state = write_state(call, signature)
        return [*beginning, ProviderState(LANE, None, self.item_count - 1, state, signs=True)]

    def _visible_arguments(self, arguments: str) -> str:
        """Return a call's arguments, without thinking if that is hidden."""
        if not self._hides_raw:
            return arguments
        blocks = JsonBlockFilter(limit=self._limit)
        shown = visible_text([*blocks.feed(arguments), *blocks.end()])
        self._left_out += blocks.blocks
        return shown


def _text_events(pieces: list[TagPiece]) -> list[Event]:
    text = visible_text(pieces)
    return [ContentDelta(LANE, None, text)] if text else []


def _make_id(response_id: str, number: int, call: Json) -> str:
    """Return an id for a call to which the model gave none, always the same for the same answer."""
    seed = f"{response_id}/{number}/".encode(errors="surrogatepass") + dumps(call)
    return f"{MADE_ID}{blake2b(seed, digest_size=9).hexdigest()}"


# A call whose arguments stream: on Vertex AI it may come in several parts: its name, then pieces of
# its arguments, each with the JSON path of the value that it belongs to, then a part that does not
# say that more of the call will follow. A text comes in several pieces under one path (googleapis:
# google/cloud/aiplatform/v1, `FunctionCall`, `PartialArg`; js-genai, `PartialArg`).

_Step: TypeAlias = str | int

_Node: TypeAlias = "dict[_Step, _Node] | _Leaf"

_STEP = re.compile(
    r"""\.([^.\[\]]++) | \[(\d{1,9})\] | \['((?:[^'\\]|\\.)*+)'\] | \["((?:[^"\\]|\\.)*+)"\]""",
    re.VERBOSE | re.DOTALL,
)

_VALUES = ("numberValue", "boolValue")

_PIECES = ("args", "partialArgs", "willContinue")


def is_partial(call: Json) -> bool:
    """Return whether a call comes in parts, of which this is the first."""
    return bool(call.get("willContinue") or call.get("partialArgs"))


class PartialCall:
    """One call, of at most `limit` characters."""

    def __init__(self, limit: int) -> None:
        self._room_left = limit
        self._part: Json = {}  # all of it but for its arguments
        self._arguments: dict[_Step, _Node] = {}

    @property
    def has_begun(self) -> bool:
        return bool(self._part)

    def add(self, part: Json) -> bool:
        """Add a part of the call. Return False if it cannot be read, or begins another call."""
        call = call_of(part)
        if not self.has_begun:
            head = {key: value for key, value in call.items() if key not in _PIECES}
            self._part = {**part, "functionCall": head}
        elif call.get("name"):
            return False
        if signature := signature_of(part):
            self._part.setdefault("thoughtSignature", signature)
        for key, value in as_object(call.get("args")).items():
            self._arguments[key] = _Leaf(value)
        return all(map(self._add_argument, objects(call.get("partialArgs"))))

    def build(self) -> Json:
        """Return the part that holds the call whole."""
        call = {**self._part["functionCall"], "args": _build(self._arguments)}
        return {**self._part, "functionCall": call}

    def _add_argument(self, argument: Json) -> bool:
        path, text = string(argument.get("jsonPath")), argument.get("stringValue")
        self._room_left -= len(path) + len(string(text))
        steps = read_path(path)
        if not (steps and isinstance(steps[0], str)) or self._room_left < 0:
            return False
        node = self._arguments
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if not _fits(step, node):
                return False
            if following is None:
                return _set_leaf(node, step, argument)
            inner = node.setdefault(step, {})
            if not isinstance(inner, dict):
                return False
            node = inner
        return True


def read_path(path: str) -> list[_Step]:
    """Return the names and indexes of which a path consists; nothing if it cannot be read."""
    steps: list[_Step] = []
    position, end = 1, len(path)
    while path[:1] == "$" and position < end and len(steps) < MAX_DEPTH:
        found = _STEP.match(path, position)
        step = None if found is None else _read_step(found)
        if found is None or step is None:
            return []
        steps.append(step)
        position = found.end()
    return steps if position == end else []


def _read_step(found: re.Match[str]) -> _Step | None:
    name, index, single, double = found.groups()
    if index is not None:
        return int(index)
    if name is not None:
        return str(name)
    quoted = double if single is None else single.replace("\\'", "'").replace('"', '\\"')
    try:
        return string(json.loads(f'"{quoted}"'))
    except ValueError:
        return None


class _Leaf:
    """A value, or the pieces of a text."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.pieces = [value] if isinstance(value, str) else None

    def build(self) -> Any:
        return self.value if self.pieces is None else "".join(self.pieces)


def _fits(step: _Step, node: dict[_Step, _Node]) -> bool:
    """Return whether a value may stand there: a name in an object, the next index in a list."""
    if not node:
        return step == 0 or isinstance(step, str)
    is_list = isinstance(next(iter(node)), int)
    if isinstance(step, int):
        return is_list and step <= len(node)
    return not is_list


def _set_leaf(node: dict[_Step, _Node], step: _Step, argument: Json) -> bool:
    text, known = argument.get("stringValue"), node.get(step)
    if isinstance(text, str):
        if isinstance(known, _Leaf) and known.pieces is not None:
            known.pieces.append(text)
        else:
            node[step] = _Leaf(text)
        return not isinstance(known, dict)
    values = [argument[key] for key in _VALUES if key in argument]
    values += [None] if "nullValue" in argument else []
    if values:
        node[step] = _Leaf(values[0])
    return not (values and isinstance(known, dict))


def _build(node: _Node) -> Any:
    if isinstance(node, _Leaf):
        return node.build()
    built = {step: _build(inner) for step, inner in node.items()}
    return list(built.values()) if 0 in built else built
