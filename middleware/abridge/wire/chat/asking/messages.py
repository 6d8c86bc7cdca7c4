"""Write the messages of a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from abridge.turn.question import (
    Audio,
    File,
    Image,
    Part,
    Refusal,
    Speech,
    Text,
    Thought,
    ToolCall,
    ToolOutput,
    Unfit,
)
from abridge.turn.speeches import told, untold
from abridge.wire.chat.asking.parts import write_content
from abridge.wire.chat.asking.returning import lost, returned
from abridge.wire.chat.asking.tools import spell_call
from abridge.wire.codec import Json
from abridge.wire.profile import Profile

INSTRUCTING = ("system", "developer")


class Messages:
    """Write the messages of one request."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._shown: list[Part] = []  # from tools, for a user message after theirs
        self.messages: list[Json] = []
        self.unfit: list[Unfit] = []  # parts that these messages cannot hold

    def write(self, speeches: Iterable[Speech]) -> None:
        ordered = told(speeches)
        if "developer" not in self._profile.knows:
            ordered = _under_one_system(ordered)
        for speech in ordered:
            if speech.role != "tool":
                self._show()
            self._write(speech)
        self._show()
        if not self.messages:  # there was reasoning alone, which no message can carry
            self.messages.append({"role": "user", "content": ""})

    def _write(self, speech: Speech) -> None:
        if speech.role == "assistant":
            self._answer(speech)
        elif speech.role == "tool":
            for part in speech.parts:
                self._output(part)
        else:
            role = "system" if speech.role in INSTRUCTING else speech.role
            role = speech.role if "developer" in self._profile.knows else role
            name = {"name": speech.name} if speech.name else {}
            content = write_content(speech.parts, self.unfit)
            self.messages.append({"role": role, **name, "content": content})

    def _answer(self, speech: Speech) -> None:
        """Write all consecutive parts as one message: parallel calls share the reasoning before."""
        parts = speech.parts
        texts, refusals = _texts(parts, Text), _texts(parts, Refusal)
        if "refusals" not in self._profile.knows:
            texts, refusals = [*texts, *refusals], []
        message: Json = {"role": "assistant", "content": "\n\n".join(texts) or None}
        if refusals:
            message["refusal"] = "\n\n".join(refusals)
        if calls := [part for part in parts if isinstance(part, ToolCall)]:
            native = "custom_tools" in self._profile.knows
            message["tool_calls"] = [spell_call(call, native=native) for call in calls]
        for part in parts:
            if isinstance(part, Audio) and part.id:
                message["audio"] = {"id": part.id}
            elif isinstance(part, Audio | Image | File):
                self.unfit.append(untold(part))
        thoughts = [part for part in parts if isinstance(part, Thought)]
        self.unfit += lost(thoughts, self._profile)
        self.messages.append(returned(message, thoughts, self._profile))

    def _output(self, part: Part) -> None:
        """Write a tool's message, which holds only text: its images and files go into a message of
        the user's after the last tool message."""
        if not isinstance(part, ToolOutput):
            self.unfit.append(untold(part))
            return
        texts = [said for said in part.parts if isinstance(said, Text)]
        shown = [said for said in part.parts if not isinstance(said, Text)]
        if shown:
            texts = texts or [Text("See the next message.")]
            self._shown += [Text(f"From the tool call {part.call}:"), *shown]
        content = write_content(texts, self.unfit)
        self.messages.append({"role": "tool", "tool_call_id": part.call, "content": content})

    def _show(self) -> None:
        if self._shown:
            content = write_content(self._shown, self.unfit)
            self.messages.append({"role": "user", "content": content})
            self._shown = []


def _under_one_system(speeches: list[Speech]) -> list[Speech]:
    """Merge the leading instructions: chat templates take one system message, at the start."""
    leading = list(takewhile(lambda speech: speech.role in INSTRUCTING, speeches))
    if len(leading) < 2:
        return speeches
    parts = [part for speech in leading for part in speech.parts]
    others = [part for part in parts if not isinstance(part, Text)]
    whole = Speech("system", [Text("\n\n".join(_texts(parts, Text))), *others])
    return [whole, *speeches[len(leading) :]]


def _texts(parts: Sequence[Part], kind: type[Text | Refusal]) -> list[str]:
    return [part.text for part in parts if isinstance(part, kind)]
