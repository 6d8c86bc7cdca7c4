"""Read a request's messages, and write those of one for upstream: a system prompt, then user and
assistant messages in turn.

Each message is a list of content blocks, one for each part (`parts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from abridge.apis.fields import invalid_value_error, iter_objects, require_list
from abridge.apis.json import string
from abridge.apis.messages.history import REASONING_TYPES, TOOL_RESULT
from abridge.apis.messages.parts import read_blocks, write_block
from abridge.apis.messages.system_prompt import without_billing
from abridge.apis.tools import ToolNames
from abridge.core.conversation import Json
from abridge.core.model_request import (
    INSTRUCTION_ROLES,
    Message,
    MessagePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolOutputPart,
    Unsupported,
    joined_text,
)
from abridge.providers.claude import ModelCapabilities

ROLES: Mapping[str, Role] = MappingProxyType(
    {"user": "user", "assistant": "assistant", "system": "system", "ctx": "user", "msg": "user"}
)
"""The last two are Claude Code's since 2.1.154 (vllm/entrypoints/anthropic/protocol.py)."""

NO_PARTICIPANT_NAMES = "Participants have no names with this upstream."

NO_MESSAGES = "There is nothing in it that this upstream could answer."


# Read


def read_messages(body: Json, names: ToolNames) -> Iterator[Message]:
    """Yield the messages: the system prompt, then the others.

    The results of tools in a user's message are a message of their own.
    """
    if prompt := without_billing(body.get("system")):
        yield Message("system", read_blocks(prompt, "system", names), param="system")
    messages = require_list(body.get("messages"), "messages")
    for message, param in iter_objects(messages, "messages", dotted=True):
        role = string(message.get("role"))
        if role not in ROLES:
            raise invalid_value_error(message.get("role"), f"{param}.role")
        parts = read_blocks(message.get("content"), f"{param}.content", names)
        if role == "assistant":
            yield Message("assistant", joined_text(parts), param=param)
            continue
        for is_output, run in groupby(parts, lambda part: isinstance(part, ToolOutputPart)):
            yield Message("tool" if is_output else ROLES[role], list(run), param=param)


# Write


class MessagesBuilder:
    """Take a request's messages in order; consecutive ones of one side become one message.

    Instructions at the start become the `system` prompt. Later ones stay in their place, after the
    user's message, if the model accepts that and there is such a message; otherwise they join the
    prompt, which keeps their weight and loses their place.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        capabilities: ModelCapabilities,
        param: str,
        *,
        allow_unsigned: bool = False,
    ) -> None:
        self.messages: list[Json] = []
        self.unsupported: list[Unsupported] = []
        self._capabilities = capabilities
        self._param = param
        self._allow_unsigned = allow_unsigned
        self._system_texts: list[TextPart] = []
        self._late_instructions: list[TextPart] = []
        for message in messages:
            self._add(message)
        self._end_turn("end")
        if not self.messages and self._system_texts:  # Anthropic requires a message
            self._append("user", [{"type": "text", "text": self._system_text}])
            self._system_texts = []
        if not self.messages and not self.unsupported:
            self.unsupported.append(Unsupported(self._param, NO_MESSAGES, essential=True))

    @property
    def system(self) -> str | list[Json]:
        """The system prompt: one text, or blocks where marks for a cache stand between."""
        if all(part.cache_control is None for part in self._system_texts):
            return self._system_text
        return self._write_blocks(self._system_texts, allow_reasoning=False)

    @property
    def _system_text(self) -> str:
        return "\n\n".join(part.text for part in self._system_texts)

    def _add(self, message: Message) -> None:
        if message.name:
            param = f"{message.param}.name" if message.param else self._param
            self.unsupported.append(Unsupported(param, NO_PARTICIPANT_NAMES, essential=False))
        if message.role in INSTRUCTION_ROLES:
            self._add_instructions(message)
            return
        role = "assistant" if message.role == "assistant" else "user"
        blocks = self._write_blocks(message.parts, allow_reasoning=role == "assistant")
        if blocks:
            self._end_turn(role)
            self._append(role, blocks)

    def _add_instructions(self, message: Message) -> None:
        texts = [part for part in message.parts if isinstance(part, TextPart) and part.text.strip()]
        others = [part for part in message.parts if not isinstance(part, TextPart)]
        self._write_blocks(others, allow_reasoning=False)  # to record what is unsupported
        stays_in_place = self.messages and self._capabilities.late_instructions
        (self._late_instructions if stays_in_place else self._system_texts).extend(texts)

    def _write_blocks(self, parts: Sequence[MessagePart], *, allow_reasoning: bool) -> list[Json]:
        """Write parts as blocks. Reasoning is left out unless the message is the assistant's."""
        allowed = [part for part in parts if allow_reasoning or not isinstance(part, ReasoningPart)]
        blocks = [
            write_block(part, self._param, allow_unsigned=self._allow_unsigned) for part in allowed
        ]
        self.unsupported += [block for block in blocks if isinstance(block, Unsupported)]
        return [block for block in blocks if isinstance(block, dict)]

    def _append(self, role: str, blocks: list[Json]) -> None:
        if self._last_role() == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def _end_turn(self, role: str) -> None:
        """Finish the last message before one of `role` is appended."""
        if role != "assistant" and self._last_role() == "assistant":
            self._trim_thinking()
        if role != "user" and self._last_role() == "user":  # tool results have to come first
            self.messages[-1]["content"].sort(key=lambda block: block["type"] != TOOL_RESULT)
        if role != "user" and self._late_instructions:
            if self._last_role() == "user":
                text = "\n\n".join(part.text for part in self._late_instructions)
                self.messages.append({"role": "system", "content": text})
            else:
                self._system_texts += self._late_instructions
            self._late_instructions = []

    def _trim_thinking(self) -> None:
        """Remove thinking at the end of a message: upstream refuses it if nothing follows."""
        content = self.messages[-1]["content"]
        while content and content[-1]["type"] in REASONING_TYPES:
            content.pop()
        if not content:
            self.messages.pop()

    def _last_role(self) -> str | None:
        return self.messages[-1]["role"] if self.messages else None
