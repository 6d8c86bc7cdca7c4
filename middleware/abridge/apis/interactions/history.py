"""Read the turns of a request for the Interactions API, and restore the model's own steps in them.

What the model said without a break is one turn. Each result of a call is one, and each input of the
user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby, takewhile

from abridge.apis.history import IsOurSummary, PieceHistory, read_text
from abridge.apis.interactions.reasoning import (
    MODEL_STEPS,
    is_placeholder,
    is_thought,
    signature_of,
    thought_text,
    with_signature,
)
from abridge.apis.json import dumps, objects, string
from abridge.core.conversation import Json, ToolCall, Turn


class InteractionsHistory(PieceHistory):
    """See `PieceHistory`. The items of the model's turn are its steps."""

    is_reasoning = staticmethod(is_thought)
    raw_text = staticmethod(thought_text)

    def __init__(self, body: Json) -> None:
        super().__init__(body)
        self._input_turns = list(_read_turns(objects(body.get("input"))))
        self.turns = [Turn("system", string(body.get("system_instruction"))), *self._input_turns]

    def strip(self, turn: Turn, is_our_summary: IsOurSummary) -> tuple[int, bool]:
        """See `History`. The signature of a thought stays, whatever summary came with it."""
        remaining, removed = list[Json](), 0
        for step in turn.items:
            is_ours = is_our_summary(thought_text(step))
            removed += is_ours
            if not is_ours:
                remaining.append(step)
            elif signature_of(step):
                remaining.append({key: step[key] for key in step if key != "summary"})
        turn.items[:] = remaining
        return removed, any(map(str.strip, self.raw_texts(remaining)))

    @staticmethod
    def read_joined_turn(pieces: Sequence[Json]) -> Turn:
        return _model_turn(list(pieces))

    def reasoning_states(self, turn: Turn) -> set[str]:
        """See `History`. An image that the client returned tells, too, whose signature it needs."""
        contents = [each for step in turn.items for each in objects(step.get("content"))]
        images = [string(content.get("data")) for content in contents]
        return set(filter(None, [*images, *map(signature_of, turn.items)]))

    def restore(self, turn: Turn, original: list[Json]) -> None:
        """Put the original in the place of the steps or, if the answer was edited since, its
        thoughts before them. Calls that were never signed keep their placeholder."""
        steps, is_marked = self.without_reasoning(turn.items), any(map(is_placeholder, turn.items))
        is_same = _model_turn(original).encode_canonical() == turn.encode_canonical()
        restored = original if is_same else [*filter(is_thought, original), *steps]
        turn.items[:] = with_signature(restored) if is_marked else restored

    def drop_reasoning(self, turn: Turn) -> bool:
        """See `History`. Calls that were signed must not be without a signature in the current
        turn."""
        was_signed = any(map(signature_of, turn.items))
        dropped = super().drop_reasoning(turn)
        if was_signed and id(turn) in self._current_turns:
            turn.items[:] = with_signature(turn.items)
        return dropped

    def body(self) -> Json:
        if self._input_turns:
            self._body["input"] = [step for turn in self._input_turns for step in turn.items]
        return self._body

    @cached_property
    def _current_turns(self) -> set[int]:
        """Return the turns since the user's last input, by `id()`."""
        later = takewhile(lambda turn: turn.role != "user", reversed(self._input_turns))
        return set(map(id, later))


def _read_turns(steps: list[Json]) -> Iterator[Turn]:
    for is_models, run in groupby(steps, lambda step: step.get("type") in MODEL_STEPS):
        if is_models:
            yield _model_turn(list(run))
            continue
        for step in run:
            if step.get("type") == "function_result":
                result = step.get("result")
                output = result if isinstance(result, str) else read_text(result)
                yield Turn("tool", output, answers_call=string(step.get("call_id")), items=[step])
            else:
                yield Turn("user", read_text(step.get("content")), items=[step])


def _model_turn(steps: list[Json]) -> Turn:
    """Read a turn of the model's. Its images do not tell it, since some clients do not return
    them."""
    contents = [each for step in steps for each in objects(step.get("content"))]
    return Turn(
        "assistant",
        read_text([content for content in contents if content.get("type") != "image"]),
        tuple(_read_call(step) for step in steps if step.get("type") == "function_call"),
        has_opaque_state=any(map(signature_of, steps)),
        items=steps,
    )


def _read_call(step: Json) -> ToolCall:
    arguments = dumps(step.get("arguments") or {}).decode()
    return ToolCall(string(step.get("id")), string(step.get("name")), arguments)
