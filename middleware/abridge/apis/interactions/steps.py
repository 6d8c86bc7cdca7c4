"""The steps of an answer, read as they stream.

A step starts, gets deltas and stops, perhaps beside another one, and each of these says in events
what it says in all APIs. A step of a whole answer starts with all its content and yields the same
events. So may one of a stream, of which the deltas say the rest
(ai.google.dev: gemini-api/docs/interactions/streaming).
"""

from __future__ import annotations

from collections.abc import Mapping

from abridge.apis.display import Display
from abridge.apis.errors import read_detail
from abridge.apis.gemini.answer import GoogleAnswer, make_id
from abridge.apis.interactions.citations import ANNOTATION, is_citation, read_citations
from abridge.apis.interactions.reasoning import place_of, write_state
from abridge.apis.json import dumps, loads_exact, objects, parse_object_text, string
from abridge.apis.media import MEDIA
from abridge.apis.params import read_arguments
from abridge.apis.shapes import call_name, name, opaque_state
from abridge.core.answer import Part, PartKind
from abridge.core.conversation import Json
from abridge.core.events import (
    LANE,
    STRAY_ARGUMENTS,
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

KNOWN_KEYS: Mapping[str, frozenset[str]] = {
    "model_output": frozenset({"type", "content", "error"}),
    "text": frozenset({"type", "text", "annotations"}),
}
"""The keys of what holds a text of the answer, by its type: where thinking is hidden, another one
may say that it is none."""


class AnswerState(GoogleAnswer):
    """What the steps of one answer share."""

    def __init__(self, display: Display, limit: int) -> None:
        super().__init__(display, limit)
        self.text_length = 0  # characters of the texts that have ended
        self.has_begun = False  # to answer, or to call

    @property
    def place(self) -> int:
        """The place of what comes next."""
        return place_of(self.call_count, has_begun=self.has_begun)

    def understands(self, holder: Json) -> bool:
        """Return whether a text, or what holds one, is certain to be the answer's."""
        known = KNOWN_KEYS.get(string(holder.get("type")))
        return not self.hides_raw or known is None or holder.keys() <= known


class Step(Part):
    """A step; this is one that no other API has, as that of a tool which Google runs itself."""

    part_kind: PartKind = "other"

    def __init__(self, sent: Json, state: AnswerState) -> None:
        super().__init__(self.part_kind)
        self.type = string(sent.get("type"))
        self._sent = sent
        self._state = state
        self._has_deltas = False
        self._is_cut = False

    def start(self) -> list[Event]:
        if self.type.endswith("_call"):
            self._state.note_hosted_call(self.type, self._sent.get("name"))
        return self._state.leave_out()

    def add(self, delta: Json) -> list[Event]:
        """Take a delta."""
        self._has_deltas = True
        return self._read(delta)

    def stop(self, *, is_cut: bool = False) -> list[Event]:
        """Stop the step. One that was `cut` has no end."""
        self.is_ended, self._is_cut = True, is_cut
        return self._end()

    def to_json(self) -> Json | None:
        """Return the step as in a whole answer; None if it is not returned to upstream."""
        return None

    def _read(self, _delta: Json) -> list[Event]:
        return []

    def _end(self) -> list[Event]:
        return []

    def _keep(self, text: str) -> None:
        if self._state.keep(len(text)) and text:
            self.texts.append(text)


def as_step(part: Part) -> Json | None:
    """Return a part as a step; None if it is not returned to upstream. Some were made by stages."""
    if isinstance(part, Step):
        return part.to_json()
    content = [{"type": "text", "text": part.shown_text}]
    field = {"reasoning": "summary", "text": "content"}.get(part.kind)
    kind = "thought" if part.kind == "reasoning" else "model_output"
    return None if field is None else {"type": kind, field: content}


class ThoughtStep(Step):
    """A thought, which is a reasoning item of its own: its signature is for it alone."""

    part_kind: PartKind = "reasoning"

    def __init__(self, sent: Json, state: AnswerState) -> None:
        super().__init__(sent, state)
        self._signature = ""
        self._place = state.place
        self._has_begun = False

    def start(self) -> list[Event]:
        contents = objects(self._sent.get("summary"))
        events = [event for content in contents for event in self._read({"content": content})]
        return [*events, *self._read({"signature": self._sent.get("signature")})]

    def to_json(self) -> Json | None:
        if not self._has_begun or not self._has_deltas:
            return self._sent if self._has_begun else None
        summary = [{"type": "text", "text": self.said_text}] if self.texts else []
        written = {"type": "thought", "signature": self._signature, "summary": summary}
        return {key: value for key, value in written.items() if value}

    def _read(self, delta: Json) -> list[Event]:
        """Read a piece of the summary, or the signature. Any text in a thought is its own."""
        content = delta.get("content")
        text = string((content if isinstance(content, dict) else delta).get("text"))
        signature = string(delta.get("signature"))
        events: list[Event] = []
        self._keep(text)
        if text:
            events = [*self._begin(), ReasoningDelta(LANE, None, self.number, text, part=self)]
        elif not signature and delta.get("content"):
            self._state.leave_out()
        if signature and self._state.keep(len(signature)):
            self._signature, begun = signature, self._begin()
            events += [*begun, *self._write_state(signature)]
        return events

    def _begin(self) -> list[Event]:
        if self._has_begun:
            return []
        self._has_begun, self.number = True, self._state.item_count
        self._state.item_count += 1
        return [ReasoningStarted(LANE, None, self.number, part=self)]

    def _write_state(self, signature: str) -> list[Event]:
        shown = self._state.check(signature, opaque_state)
        state = write_state(self._place, shown)
        return [ProviderState(LANE, None, self.number, state, True, part=self)] if shown else []

    def _end(self) -> list[Event]:
        return [ReasoningEnded(LANE, None, self.number, part=self)] if self._has_begun else []


class OutputStep(Step):
    """What the model answers: texts, which are one part, and images between them."""

    part_kind: PartKind = "text"

    def __init__(self, sent: Json, state: AnswerState) -> None:
        super().__init__(sent, state)
        self._contents: list[list[str] | Json] = []  # the pieces of a text, or an image
        self._annotations: list[Json] = []
        self._has_begun = False

    def start(self) -> list[Event]:
        error = self._sent.get("error")
        if isinstance(error, dict):
            self._state.failure = self._state.hide(read_detail(self._sent))
            return []
        contents = objects(self._sent.get("content"))
        return [event for content in contents for event in self._read(content, is_new=True)]

    def to_json(self) -> Json | None:
        contents: list[Json] = [
            {"type": "text", "text": "".join(each)} if isinstance(each, list) else each
            for each in self._contents
        ]
        if self.shown is not None and self.shown_text != self.said_text:
            images = [content for content in contents if content["type"] != "text"]
            contents = [{"type": "text", "text": self.shown_text}, *images]
        return {"type": "model_output", "content": contents} if contents else None

    def _read(self, content: Json, *, is_new: bool = False) -> list[Event]:
        kind = string(content.get("type"))
        if kind in MEDIA:
            return self._read_medium(content, kind)
        if kind not in ("text", "text_annotation_delta") or not self._state.understands(content):
            return self._state.leave_out()
        self._note(objects(content.get("annotations")))
        text = string(content.get("text"))
        return self._say(text, is_new=is_new) if text else []

    def _begin(self) -> list[Event]:
        begun: list[Event] = [] if self._has_begun else [PartStarted(LANE, None, part=self)]
        self._has_begun = self._state.has_begun = True
        return begun

    def _say(self, text: str, *, is_new: bool) -> list[Event]:
        self._keep(text)
        last = self._contents[-1] if self._contents else None
        if not isinstance(last, list) or is_new:
            self._contents.append(last := [])
        if self._state.is_complete:
            last.append(text)
        return [*self._begin(), ContentDelta(LANE, None, text, part=self)]

    def _note(self, annotations: list[Json]) -> None:
        for annotation in annotations:
            known = self._state.check_object(annotation, ANNOTATION)
            if is_citation(known) and self._state.keep(len(dumps(known))):
                self._annotations.append(known)

    def _read_medium(self, content: Json, kind: str) -> list[Event]:
        image = self._state.read_image(kind, content.get("mime_type"), content.get("data"))
        if image is None:
            return []
        image.part = self
        if self._state.keep_image(image.data):
            self._contents.append(content)
        return [*self._begin(), image]

    def _end(self) -> list[Event]:
        """End the text, which its sources follow."""
        if not self._has_begun:
            return []
        before, said = self._state.text_length, self.said_text
        self._state.text_length += len(said)
        cited = read_citations(self._annotations, said if self._state.is_complete else "", before)
        return [PartEnded(LANE, None, part=self), *cited]


class CallStep(Step):
    """A call of one of the client's functions. The arguments in a stream's start are empty, and are
    used only if no delta follows."""

    part_kind: PartKind = "call"

    def __init__(self, sent: Json, state: AnswerState) -> None:
        super().__init__(sent, state)
        self.number = state.call_count
        state.call_count, state.has_begun = state.call_count + 1, True
        given = state.check(sent.get("id"), name)
        self._id = given or make_id(state.answer_id, self.number, sent)
        self._has_arguments = False

    def start(self) -> list[Event]:
        self._state.keep(len(dumps(self._sent)))
        called = self._state.check(self._sent.get("name"), call_name)
        return [
            ToolCallDelta(LANE, None, call_index=self.number, id=self._id, name=called, part=self)
        ]

    def to_json(self) -> Json | None:
        """Return the call; None if it was cut."""
        arguments = parse_object_text(self.said_text, loads_exact)
        if arguments is None:
            return None
        return {**self._sent, "id": self._id, "arguments": arguments}

    def _read(self, delta: Json) -> list[Event]:
        fragment = _said_arguments(delta)
        self._keep(fragment)
        if not fragment:
            return []
        self._has_arguments = True
        return [ToolCallDelta(LANE, None, call_index=self.number, arguments=fragment, part=self)]

    def _end(self) -> list[Event]:
        """End the call. One that was cut before it had arguments gets some without an end, so that
        nobody runs it."""
        given = "{" if self._is_cut else read_arguments(self._sent.get("arguments") or {})
        rest = [] if self._has_arguments else self._read({"arguments": given})
        return [*rest, PartEnded(LANE, None, part=self)]


TYPES: Mapping[str, type[Step]] = {
    "thought": ThoughtStep,
    "model_output": OutputStep,
    "function_call": CallStep,
}

DELTA_STEPS: Mapping[str, str] = {
    **dict.fromkeys(("thought_summary", "thought_signature"), "thought"),
    **dict.fromkeys(("text", "text_annotation_delta", *MEDIA), "model_output"),
    **dict.fromkeys(("arguments_delta", "function_call"), "function_call"),
}
"""The type of the step that a delta belongs to, by its own type."""


class AnswerSteps:
    """The steps of one answer: which there are, and which a delta is of."""

    def __init__(self, state: AnswerState) -> None:
        self._state = state
        self._by_index: dict[object, Step] = {}
        self.all: list[Step] = []

    @property
    def has_open_part(self) -> bool:
        """Return whether upstream has ended less than all that it began, or began nothing."""
        return not self.all or not all(step.is_ended for step in self.all)

    def open(self, index: object, sent: Json) -> list[Event]:
        """Open a step, in the place of one that is still open under its index."""
        previous = self._find(index)
        ending = [] if previous is None or previous.is_ended else previous.stop()
        make = TYPES.get(string(sent.get("type")), Step) if self._state.understands(sent) else Step
        step = make(sent, self._state)
        self.all.append(step)
        self._by_index[_known(index)] = step
        return [*ending, *step.start()]

    def add(self, index: object, delta: Json) -> list[Event]:
        """Take a delta. One that is not of the type of its step, or of none, belongs to one that
        upstream did not start; but any text of a thought is the thought's."""
        step, wanted = self._find(index), DELTA_STEPS.get(string(delta.get("type")), "")
        is_stray = step is None or (wanted not in ("", step.type) and type(step) is not Step)
        if is_stray and not (isinstance(step, ThoughtStep) and "text" in delta):
            return self._add_stray(index, wanted, delta)
        if step is None or (step.is_ended and step.type == "function_call"):
            return self._fail()
        return step.add(delta)

    def _add_stray(self, index: object, wanted: str, delta: Json) -> list[Event]:
        if wanted == "function_call":
            return self._fail() if _said_arguments(delta).strip() else []
        if not wanted:
            return self._state.leave_out()
        place = index if self._find(index) is None else (index, wanted)
        step = self._find(place)
        events = [] if step is not None else self.open(place, {"type": wanted})
        return [*events, *(step or self.all[-1]).add(delta)]

    def stop(self, index: object) -> list[Event] | None:
        """Stop a step; return None if none is open."""
        step = self._find(index)
        return None if step is None or step.is_ended else step.stop()

    def close_all(self, *, is_cut: bool) -> list[Event]:
        """Stop what is open, as the answer is over."""
        open_steps = [step for step in self.all if not step.is_ended]
        return [event for step in open_steps for event in step.stop(is_cut=is_cut)]

    def _find(self, index: object) -> Step | None:
        return self._by_index.get(_known(index))

    def _fail(self) -> list[Event]:
        self._state.failure = STRAY_ARGUMENTS
        return []


def _said_arguments(delta: Json) -> str:
    """Return what a delta says of a call's arguments. An empty object holds the place of others."""
    return read_arguments(delta.get("arguments") or "")


def _known(index: object) -> object:
    """Return an index under which a step can be found."""
    return index if isinstance(index, int | tuple) else None
