"""Write a request's messages as steps: the user's input, the model's, and the results of calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from abridge.apis.gemini.messages import GoogleConversation, Medium
from abridge.apis.interactions.reasoning import MODEL_STEPS, place_of, read_state, with_signature
from abridge.apis.tools import parse_arguments
from abridge.core.conversation import Json
from abridge.core.model_request import MessagePart, ReasoningPart, ToolCallPart, ToolOutputPart

MEDIA_TYPES = ("image", "audio", "video")
"""The types of contents that are the first half of their media types; any other is a document."""


class InteractionsConversationBuilder(GoogleConversation):
    """See `GoogleConversation`. A message is as many steps as it needs."""

    def _sign_current_turn(self) -> None:
        kinds = [step["type"] for step in self.contents]
        start = len(kinds) - kinds[::-1].index("user_input") if "user_input" in kinds else 0
        run, current = list[Json](), list[Json]()
        for step in self.contents[start:]:
            if step["type"] in MODEL_STEPS:
                run.append(step)
            else:
                current += [*with_signature(run), step]
                run = []
        self.contents[start:] = [*current, *with_signature(run)]

    def _answer(self, parts: Sequence[MessagePart]) -> None:
        """Write what the assistant said, each thought at its place. Those without a signature say
        nothing to the model."""
        reasoning = [part for part in parts if isinstance(part, ReasoningPart)]
        thoughts = [(state, part.text) for part in reasoning if (state := read_state(part.state))]
        if not thoughts:
            for each in reasoning:
                self._leave_out_foreign(each)
        waiting = deque(sorted(thoughts, key=lambda thought: thought[0][0]))
        calls, has_begun = 0, False
        for part in parts:
            if isinstance(part, ReasoningPart):
                continue
            is_call = isinstance(part, ToolCallPart)
            place = place_of(calls, has_begun=has_begun or is_call)
            while waiting and waiting[0][0][0] <= place:
                self.contents.append(_write_thought(*waiting.popleft()))
            if isinstance(part, ToolCallPart):
                self.contents.append(self._write_call(part))
            else:
                self._say(self._write(part))
            calls, has_begun = calls + is_call, True
        self.contents += [_write_thought(*thought) for thought in waiting]

    def _say(self, content: list[Json]) -> None:
        """Add contents to those of which the answer consists just now, or to new ones."""
        last = self.contents[-1] if self.contents else {}
        if content and last.get("type") == "model_output":
            last["content"] += content
        elif content:
            self.contents.append({"type": "model_output", "content": content})

    def _ask(self, parts: Sequence[MessagePart]) -> None:
        if content := [each for part in parts for each in self._write(part)]:
            self.contents.append({"type": "user_input", "content": content})

    def _write_text(self, text: str) -> Json:
        return {"type": "text", "text": text}

    def _write_medium(self, medium: Medium) -> Json:
        kind = medium.type.partition("/")[0]
        return {
            "type": kind if kind in MEDIA_TYPES else "document",
            **({"data": medium.data} if medium.data else {"uri": medium.uri}),
            **({"mime_type": medium.type} if medium.type else {}),
        }

    def _write_call(self, call: ToolCallPart) -> Json:
        arguments = parse_arguments(call, "arguments")
        return {"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments}

    def _write_result(self, output: ToolOutputPart, text: str, media: list[Json]) -> list[Json]:
        """See `GoogleConversation`. It is a step; what follows it is not."""
        inside = media if self._capabilities.media_in_results else []
        texts = [self._write_text(text)] if text else []
        self.contents.append(
            {
                "type": "function_result",
                "call_id": output.call_id,
                "name": self._name_of(output),
                "result": [*texts, *inside] if inside else text,
                **({"is_error": True} if output.failed else {}),
            }
        )
        return [] if inside else media


def _write_thought(state: tuple[int, str], text: str) -> Json:
    _, signature = state
    summary = {"summary": [{"type": "text", "text": text}]} if text.strip() else {}
    return {"type": "thought", "signature": signature, **summary}
