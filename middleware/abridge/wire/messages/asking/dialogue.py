"""Writes messages: a system prompt, then alternating user and assistant messages."""

from __future__ import annotations

from collections.abc import Sequence

from abridge.turn.question import Part, Speech, Text, Thought, Unfit
from abridge.wire.codec import Json
from abridge.wire.messages.asking.content import spell
from abridge.wire.messages.asking.models import Ways
from abridge.wire.messages.conversation import REASONING, RESULT

INSTRUCTING = ("system", "developer")
NAMED = "Participants have no names with this upstream."
NOTHING = "There is nothing in it that this upstream could answer."


class Dialogue:
    """Takes a request's messages in order; consecutive ones of one side become one message.

    Instructions at the start become the `system` prompt. Later ones stay in their place, after the
    user's message, if the model accepts that and there is such a message; otherwise they join the
    prompt, which keeps their weight and loses their place.
    """

    def __init__(
        self, speeches: Sequence[Speech], ways: Ways, where: str, *, unsigned: bool = False
    ) -> None:
        self.messages: list[Json] = []
        self.unfit: list[Unfit] = []
        self._ways = ways
        self._where = where
        self._unsigned = unsigned
        self._system: list[str] = []
        self._later: list[str] = []
        for speech in speeches:
            self._add(speech)
        self._end_turn("end")
        if not self.messages and self._system:  # Anthropic requires a message
            self._say("user", [{"type": "text", "text": self.system}])
            self._system = []
        if not self.messages and not self.unfit:
            self.unfit.append(Unfit(self._where, NOTHING, matters=True))

    @property
    def system(self) -> str:
        return "\n\n".join(self._system)

    def _add(self, speech: Speech) -> None:
        if speech.name:
            where = f"{speech.param}.name" if speech.param else self._where
            self.unfit.append(Unfit(where, NAMED, matters=False))
        if speech.role in INSTRUCTING:
            self._instruct(speech)
            return
        role = "assistant" if speech.role == "assistant" else "user"
        blocks = self._blocks(speech.parts, thinks=role == "assistant")
        if blocks:
            self._end_turn(role)
            self._say(role, blocks)

    def _instruct(self, speech: Speech) -> None:
        texts = [part.text for part in speech.parts if isinstance(part, Text) and part.text.strip()]
        others = [part for part in speech.parts if not isinstance(part, Text)]
        self._blocks(others, thinks=False)  # to record what is unsupported
        stays = self.messages and self._ways.interjects
        (self._later if stays else self._system).extend(texts)

    def _blocks(self, parts: Sequence[Part], *, thinks: bool) -> list[Json]:
        """Write parts as blocks. Reasoning is left out unless the message is the assistant's."""
        said = [part for part in parts if thinks or not isinstance(part, Thought)]
        blocks = [spell(part, self._where, unsigned=self._unsigned) for part in said]
        self.unfit += [block for block in blocks if isinstance(block, Unfit)]
        return [block for block in blocks if isinstance(block, dict)]

    def _say(self, role: str, blocks: list[Json]) -> None:
        if self._speaker() == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def _end_turn(self, role: str) -> None:
        """Finish the last message before one of `role` is appended."""
        if role != "assistant" and self._speaker() == "assistant":
            self._trim()
        if role != "user" and self._speaker() == "user":  # tool results have to come first
            self.messages[-1]["content"].sort(key=lambda block: block["type"] != RESULT)
        if role != "user" and self._later:
            if self._speaker() == "user":
                self.messages.append({"role": "system", "content": "\n\n".join(self._later)})
            else:
                self._system += self._later
            self._later = []

    def _trim(self) -> None:
        """Remove thinking at the end of a message: upstream refuses it if nothing follows."""
        content = self.messages[-1]["content"]
        while content and content[-1]["type"] in REASONING:
            content.pop()
        if not content:
            self.messages.pop()

    def _speaker(self) -> str | None:
        return self.messages[-1]["role"] if self.messages else None
