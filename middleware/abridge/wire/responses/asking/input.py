"""Write messages as the input of a request."""

from __future__ import annotations

from collections.abc import Iterable

from abridge.turn.question import Part, Refusal, Speech, Text, Thought, ToolCall, ToolOutput, Unfit
from abridge.turn.speeches import told, untold
from abridge.wire.codec import Json
from abridge.wire.profile import Profile
from abridge.wire.responses.asking.parts import write_content
from abridge.wire.responses.items import raw_parts, summary_parts


class Input:
    """Writes the input items of one request."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._custom: set[str] = set()
        self.items: list[Json] = []
        self.unfit: list[Unfit] = []  # what the items cannot express

    def write(self, speeches: Iterable[Speech]) -> None:
        for speech in told(speeches):
            if speech.name:
                message = "This model's API has no names for those who speak."
                self.unfit.append(Unfit(f"{speech.param}.name", message, matters=False))
            if speech.role in ("assistant", "tool"):
                for part in speech.parts:
                    self.items += self._write(part)
            else:
                content = write_content(speech.parts, self.unfit)
                self.items.append({"type": "message", "role": speech.role, "content": content})

    def _write(self, part: Part) -> list[Json]:
        if isinstance(part, Thought):
            return self._thought(part)
        if isinstance(part, ToolCall):
            return [self._call(part)]
        if isinstance(part, ToolOutput):
            kind = "custom_tool_call" if part.call in self._custom else "function_call"
            output = write_content(part.parts, self.unfit)
            return [{"type": f"{kind}_output", "call_id": part.call, "output": output}]
        said: Json = {"type": "message", "role": "assistant"}
        if isinstance(part, Text):
            return [{**said, "content": part.text}] if part.text else []
        if isinstance(part, Refusal):
            return [{**said, "content": write_content([part], self.unfit)}]
        self.unfit.append(untold(part))
        return []

    def _call(self, call: ToolCall) -> Json:
        """Write a call without an item id, since that is upstream's to give."""
        said = {"call_id": call.id, "name": call.name}
        if call.custom:
            self._custom.add(call.id)
            return {"type": "custom_tool_call", **said, "input": call.arguments}
        return {"type": "function_call", **said, "arguments": call.arguments}

    def _thought(self, thought: Thought) -> list[Json]:
        """Write reasoning.

        Signed reasoning of another API becomes a summary, which is all that such APIs show. The
        signature is dropped: it means nothing here.
        """
        summary, raw = thought.summary, thought.text
        if thought.signed and raw.strip():
            summary, raw = (*summary, raw), ""
        item: Json = {"type": "reasoning", "summary": summary_parts(summary)}
        if raw.strip() and self._profile.own_reasoning:
            message = "This model's API takes no reasoning back but its own."
            self.unfit.append(Unfit(thought.param, message, matters=False))
        elif raw.strip() and self._profile.summary_is_raw:
            item |= {"summary": summary_parts([raw]), "encrypted_content": raw}
        elif raw.strip():
            item["content"] = raw_parts([raw])
        if thought.sealed and not thought.signed:
            item["encrypted_content"] = thought.sealed
        return [item] if len(item) > 2 or item["summary"] else []
