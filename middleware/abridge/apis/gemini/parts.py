"""The parts of an answer, translated as they stream.

A chunk of a stream holds pieces of texts, and calls: nearly always whole ones, else pieces of one
after the other (`PartialCall`). Thoughts are one reasoning item until something else follows. A
call's signature belongs to the item before the call, or is one of its own.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from secrets import token_hex
from typing import Any, TypeAlias

from abridge.apis.display import Display
from abridge.apis.errors import UNREADABLE
from abridge.apis.gemini.answer import GoogleAnswer, make_id
from abridge.apis.gemini.reasoning import call_of, is_call, is_thought, signature_of, write_state
from abridge.apis.json import MAX_DEPTH, as_object, dumps, objects, string
from abridge.apis.shapes import call_name, name, opaque_state
from abridge.core.answer import Part, PartKind
from abridge.core.conversation import Json
from abridge.core.events import (
    LANE,
    ContentDelta,
    Event,
    PartEnded,
    PartStarted,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
)

TEXT_KEYS = frozenset({"text", "thought", "thoughtSignature"})
"""The keys of a text of the answer (ai.google.dev: api/caching, `Part`)."""

HOSTED_CALL_KINDS = frozenset({"toolCall", "executableCode"})
"""Parts with what Google runs itself (ai.google.dev: api/caching, `Part`)."""


class SentPart(Part):
    """A part that is returned to upstream as it sent it: a call, or an image."""

    def __init__(self, kind: PartKind, number: int, sent: Json) -> None:
        super().__init__(kind, number)
        self._sent = sent

    def to_json(self) -> list[Json]:
        """Return the part of the answer that it is, or those of which it consists."""
        return [self._sent]


class TextRun(SentPart):
    """Thoughts, or text of the answer, that came without a break, in pieces. `sent` is what they
    have in common."""

    def __init__(self, kind: PartKind, number: int, sent: Json) -> None:
        super().__init__(kind, number, sent)
        self.signatures: dict[int, str] = {}
        """Those of single pieces, by their place among the texts."""

    def to_json(self) -> list[Json]:
        """See `SentPart`. A signature ends its part: a piece without and one with a signature are
        never joined, unless a stage has changed the text, so that no piece of it is as it was."""
        if self.shown is not None and self.shown_text != self.said_text:
            return [self._write(self.shown, next(reversed(self.signatures.values()), ""))]
        runs = groupby(enumerate(self.texts), lambda piece: self.signatures.get(piece[0], ""))
        return [self._write([text for _, text in run], signature) for signature, run in runs]

    def _write(self, texts: list[str], signature: str) -> Json:
        signed = {"thoughtSignature": signature} if signature else {}
        return {"text": "".join(texts), **self._sent, **signed}


class AnswerParts(GoogleAnswer):
    """The parts of one answer."""

    def __init__(self, display: Display, limit: int) -> None:
        super().__init__(display, limit)
        self.all: list[SentPart] = []
        self.call_ids: list[str] = []  # as clients have them
        self._salt = token_hex(8)  # for ids in an answer that has none itself
        self._carries_text_state = display.seal is not None and not display.ends_with_text
        self._text_signature = ""  # the last of the answer's texts
        self._limit = limit
        self._open: TextRun | None = None
        self._partial_call: PartialCall | None = None  # the one that is open
        self._last_part: Json | None = None

    def has_open_part(self, *, streamed: bool) -> bool:
        """Return whether the last part may lack something: a text that streams may always go on."""
        if self._partial_call is not None or self._last_part is None:
            return True
        return streamed and "text" in self._last_part

    @property
    def said_text(self) -> str | None:
        """The text of the answer; None if it is not known any more."""
        if not self.is_complete:
            return None
        return "".join(part.said_text for part in self.all if part.kind == "text")

    def read(self, part: Json) -> list[Event]:
        self._last_part = part
        if is_thought(part):
            return self._read_text("reasoning", {"thought": True}, part)
        if is_call(part):
            return self._read_call_part(part)
        if isinstance(part.get("text"), str) and self._is_understood(part):
            signature = self.check(signature_of(part), opaque_state)
            self._text_signature = signature or self._text_signature
            return self._read_text("text", {}, part)
        if isinstance(part.get("inlineData"), dict):
            return self._read_medium(part, part["inlineData"])
        for kind in part.keys() & HOSTED_CALL_KINDS:
            self.note_hosted_call(kind, as_object(part[kind]).get("toolType"))
        return self.leave_out()

    def end(self, *, is_cut: bool) -> list[Event]:
        """End the answer. If it was `cut`, so was a call that is open. The signature of an answer
        without calls follows its text, where it can be carried so."""
        events = [*self._end_call(is_cut=is_cut), *self._end_run()]
        if self._text_signature and self._carries_text_state and not self.call_count:
            events += [*self._write_signature(None, self._text_signature), *self._end_run()]
        return events

    def _is_understood(self, part: Json) -> bool:
        """Return whether a text is certain to be the answer's: where reasoning is hidden, an
        unknown key may say that it is none."""
        return not self.hides_raw or part.keys() <= TEXT_KEYS

    def _read_medium(self, sent: Json, medium: Json) -> list[Event]:
        image = self.read_image("", medium.get("mimeType"), medium.get("data"))
        if image is None:
            return []
        part = image.part = SentPart("other", 0, sent)
        if self.keep_image(image.data):
            self.all.append(part)
        return [*self._end_run(), image]

    # Thoughts and texts

    def _read_text(self, kind: PartKind, common: Json, part: Json) -> list[Event]:
        """Read a piece of thoughts or of text. One without words signs what is before it, and ends
        nothing."""
        text, signature = string(part.get("text")), signature_of(part)
        if not (text or signature):
            return []
        goes_on = self._open is not None and self._open.kind == kind
        run, events = self._run_of(kind if text or goes_on else "other", common)
        if self.keep(len(text) + len(signature)):
            run.signatures |= {len(run.texts): signature} if signature else {}
            run.texts.append(text)
        if text and kind == "text":
            events.append(ContentDelta(LANE, None, text, part=run))
        elif text:
            events.append(ReasoningDelta(LANE, None, run.number, text, part=run))
        return events

    def _run_of(self, kind: PartKind, common: Json) -> tuple[TextRun, list[Event]]:
        """Return the run that goes on, or a new one, and the events that begin it. A signature
        alone, which is kind `other`, is a run of its own and leaves the open one open."""
        if self._open is not None and self._open.kind == kind:
            return self._open, []
        run = TextRun(kind, self.item_count, common)
        self.all.append(run)
        if kind == "other":
            return run, []
        events, self._open = self._end_run(), run
        if kind == "text":
            return run, [*events, PartStarted(LANE, None, part=run)]
        self.item_count += 1
        return run, [*events, ReasoningStarted(LANE, None, run.number, part=run)]

    def _end_run(self) -> list[Event]:
        run, self._open = self._open, None
        if run is None:
            return []
        if run.kind == "text":
            return [PartEnded(LANE, None, part=run)]
        return [ReasoningEnded(LANE, None, run.number, part=run)]

    def _write_signature(self, call: int | None, signature: str) -> list[Event]:
        if not signature:
            return []
        run, events = self._run_of("reasoning", {"thought": True})
        state = write_state(call, signature)
        return [*events, ProviderState(LANE, None, run.number, state, signs=True, part=run)]

    # Calls

    def _read_call_part(self, part: Json) -> list[Event]:
        """Read a call, or a part of one."""
        call = call_of(part)
        if self._partial_call is None and not is_partial(call):
            return self._read_call(part)
        self._partial_call = self._partial_call or PartialCall(self._limit)
        if not self._partial_call.add(part):
            self.failure = UNREADABLE
            return []
        return [] if call.get("willContinue") else self._end_call()

    def _end_call(self, *, is_cut: bool = False) -> list[Event]:
        """Read the call that is open, as nothing more of it comes."""
        call, self._partial_call = self._partial_call, None
        return [] if call is None else self._read_call(call.build(), is_cut=is_cut)

    def _read_call(self, sent: Json, *, is_cut: bool = False) -> list[Event]:
        """Read a whole call. One that was cut has arguments without an end, so that nobody runs it,
        and is not kept."""
        call, part = call_of(sent), SentPart("call", self.call_count, sent)
        if self.keep(len(dumps(sent))) and not is_cut:
            self.all.append(part)
        given = self.check(call.get("id"), name)
        identity = given or make_id(self.answer_id or self._salt, part.number, call)
        self.call_ids.append(identity)
        self.call_count += 1
        signature = self.check(sent.get("thoughtSignature"), opaque_state)
        signing = self._write_signature(part.number, signature)
        arguments = dumps(as_object(call.get("args"))).decode()
        delta = ToolCallDelta(
            LANE,
            None,
            call_index=part.number,
            id=identity,
            name=self.check(call.get("name"), call_name),
            arguments=arguments.rstrip('"]}') if is_cut else arguments,
            part=part,
        )
        return [*signing, *self._end_run(), delta, PartEnded(LANE, None, part=part)]


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

    def add(self, part: Json) -> bool:
        """Add a part of the call. Return False if it cannot be read, or begins another call."""
        call = call_of(part)
        if not self._part:
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
