"""Read the turns of a request for Gemini, and restore the model's own parts in them.

A call to which the model gave no id has one that Abridge made: by that, conversations are told
apart that are alike in everything else. It is taken out last, when `body` is asked for.

A content of the model's is one turn. A content of the user's may be several: each result of a call,
then the user's own parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from abridge.apis.gemini.messages import MADE_ID
from abridge.apis.gemini.reasoning import (
    call_of,
    current_steps,
    is_call,
    is_thought,
    mark_unsigned,
    signature_of,
    thought_text,
)
from abridge.apis.history import IsOurSummary, PieceHistory
from abridge.apis.json import as_object, dumps, objects, string
from abridge.core.conversation import ItemKey, Json, RecordedTurn, ToolCall, Turn

WITH_IDS = ("functionCall", "functionResponse")
"""The kinds of parts that have the id of a call."""


class GeminiHistory(PieceHistory):
    """See `PieceHistory`. The items of the model's turn are the parts of its content themselves."""

    is_reasoning = staticmethod(is_thought)
    raw_text = staticmethod(thought_text)

    def __init__(self, body: Json) -> None:
        super().__init__(body)
        instruction = as_object(body.get("systemInstruction"))
        self.turns = [Turn("system", _read_text(objects(instruction.get("parts"))))]
        for content in objects(body.get("contents")):
            self.turns += _read_turns(content)

    def strip(self, turn: Turn, is_our_summary: IsOurSummary) -> tuple[int, bool]:
        remaining = [part for part in turn.items if not is_our_summary(thought_text(part))]
        removed, turn.items[:] = len(turn.items) - len(remaining), remaining
        return removed, any(map(str.strip, self.raw_texts(remaining)))

    @staticmethod
    def read_joined_turn(pieces: Sequence[Json]) -> Turn:
        return _model_turn(list(pieces))

    @classmethod
    def original_of(cls, answer: Sequence[Json]) -> list[Json]:
        """See `PieceHistory`. Signatures belong to single parts: Google asks for the parts as they
        were (ai.google.dev: gemini-api/docs/thinking)."""
        is_signed = any(map(signature_of, answer))
        return list(answer) if is_signed else super().original_of(answer)

    def reasoning_states(self, turn: Turn) -> set[str]:
        """See `History`. An image that the client returned tells, too, whose signature it needs."""
        images = [string(as_object(part.get("inlineData")).get("data")) for part in turn.items]
        return set(filter(None, [*images, *map(signature_of, turn.items)]))

    def restore(self, turn: Turn, original: list[Json]) -> None:
        """Put the original in the place of the parts, or, if the answer was edited since, its
        thoughts before them. Its signatures go to the calls that they were made for."""
        parts = list(map(_without_made_id, self.without_reasoning(turn.items)))
        calls = iter(_sign_calls(filter(is_call, parts), filter(is_call, original)))
        is_same = _model_turn(original).encode_canonical() == _model_turn(parts).encode_canonical()
        restored = original if is_same else [*filter(is_thought, original), *parts]
        turn.items[:] = [next(calls) if is_call(part) else part for part in restored]

    def drop_reasoning(self, turn: Turn) -> bool:
        """See `History`. Calls that were signed must not be without a signature in the current
        turn."""
        was_signed = any(map(signature_of, filter(is_call, turn.items)))
        remaining = [_unsigned(part) for part in self.without_reasoning(turn.items)]
        if remaining == turn.items:
            return False
        turn.items[:] = remaining
        steps = current_steps(objects(self._body.get("contents")))
        for step in steps if was_signed else ():
            if step.get("parts") is turn.items:
                mark_unsigned(step)
        return True

    def body(self) -> Json:
        for content in objects(self._body.get("contents")):
            parts = objects(content.get("parts"))
            if any(map(_has_made_id, parts)):
                content["parts"] = list(map(_without_made_id, parts))
        return self._body


def record_turn(
    parts: list[Json], keys: tuple[ItemKey, ...], call_ids: Sequence[str] = ()
) -> list[RecordedTurn]:
    """Return the turn that an answer's parts make, with the ids of its calls as clients have
    them."""
    recorded = GeminiHistory.record_joined_turn(parts, keys)
    for turn in [one.turn for one in recorded if call_ids]:
        called = zip(turn.calls, call_ids, strict=False)
        turn.calls = tuple(replace(call, id=identity) for call, identity in called)
    return recorded


def _read_turns(content: Json) -> Iterator[Turn]:
    parts = objects(content.get("parts"))
    if content.get("role") == "model":
        yield _model_turn(content["parts"] if parts == content.get("parts") else parts)
        return
    results = [part for part in parts if isinstance(part.get("functionResponse"), dict)]
    for part in results:
        result = part["functionResponse"]
        output, name = _text_of_json(result.get("response")), string(result.get("name"))
        call = string(result.get("id")) or name
        yield Turn("tool", output, answers_call=call, items=[part])
    if not results:
        yield Turn("user", _read_text(parts), items=[content])


def _model_turn(parts: list[Json]) -> Turn:
    """Read a turn of the model's. Its images do not tell it, since some clients do not return
    them."""
    answer = GeminiHistory.without_reasoning(parts)
    return Turn(
        role="assistant",
        text=_read_text([part for part in answer if not (is_call(part) or "inlineData" in part)]),
        calls=tuple(map(_read_call, filter(is_call, answer))),
        has_opaque_state=any(map(signature_of, parts)),
        items=parts,
    )


def _sign_calls(calls: Iterable[Json], originals: Iterable[Json]) -> list[Json]:
    """Return the calls, each as it was if it was signed."""
    return [
        original if original is not None and signature_of(original) else call
        for call, original in zip_longest(calls, originals)
        if call is not None
    ]


def _has_made_id(part: Json) -> bool:
    """Return whether a call, or the result of one, has an id that Abridge made."""
    return any(string(as_object(part.get(kind)).get("id")).startswith(MADE_ID) for kind in WITH_IDS)


def _without_made_id(part: Json) -> Json:
    if not _has_made_id(part):
        return part
    return {
        key: {name: value[name] for name in value if name != "id"} if key in WITH_IDS else value
        for key, value in part.items()
    }


def _unsigned(part: Json) -> Json:
    """Return a part without a signature of the model's."""
    if not signature_of(part):
        return part
    return {key: value for key, value in part.items() if key != "thoughtSignature"}


def _read_call(part: Json) -> ToolCall:
    call = call_of(part)
    return ToolCall(
        string(call.get("id")), string(call.get("name")), _text_of_json(call.get("args") or {})
    )


def _read_text(parts: list[Json]) -> str:
    """Return the text of parts; parts without text as JSON."""
    texts = "".join(string(part.get("text")) for part in parts)
    others = [_text_of_json(part) for part in parts if "text" not in part]
    return "\n".join([texts, *others])


def _text_of_json(value: object) -> str:
    return dumps(value).decode()
