"""Read the turns of a request for Gemini, and restore the model's own parts in them.

A call to which the model gave no id has one that Abridge made: by that, conversations are told
apart that are alike in everything else. It is taken out last, when `body` is asked for.

A content of the model's is one turn. A content of the user's may be several: each result of a call,
then the user's own parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from abridge.apis.api import Placement
from abridge.apis.display import OpenEnvelope
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
from abridge.apis.json import as_object, dumps, objects, string
from abridge.core.conversation import ItemKey, Json, RecordedTurn, ToolCall, Turn
from abridge.providers.profile import Profile

WITH_IDS = ("functionCall", "functionResponse")
"""The kinds of parts that have the id of a call."""


class GeminiHistory:
    """See `History`."""

    def __init__(self, body: Json) -> None:
        self._body = body
        instruction = as_object(body.get("systemInstruction"))
        self.turns = [Turn("system", _read_text(objects(instruction.get("parts"))))]
        for content in objects(body.get("contents")):
            self.turns += _read_turns(content)

    def strip(self, turn: Turn, is_summary: Callable[[str], bool]) -> tuple[int, bool]:
        parts = objects(turn.items[0].get("parts"))
        remaining = [part for part in parts if not is_summary(thought_text(part))]
        if len(remaining) < len(parts):
            turn.items[0]["parts"] = remaining
        return len(parts) - len(remaining), any(thought_text(part).strip() for part in remaining)

    # No client speaks this API, so there is neither an attribution nor an envelope.

    def strip_attribution(self, _turn: Turn) -> int:
        return 0

    def open_envelopes(self, _turn: Turn, _open_envelope: OpenEnvelope) -> bool:
        return False

    def reasoning_texts(self, turn: Turn) -> tuple[str, ...]:
        parts = objects(turn.items[0].get("parts"))
        texts = [text for text in map(thought_text, parts) if text]
        return tuple(dict.fromkeys(["".join(texts), *texts])) if texts else ()

    def reasoning_states(self, turn: Turn) -> set[str]:
        return set(filter(None, map(signature_of, objects(turn.items[0].get("parts")))))

    def restore(self, turn: Turn, original: list[Json]) -> None:
        """Put the original in the place of the parts, or, if the answer was edited since, its
        thoughts before them. Its signatures go to the calls that they were made for."""
        content = turn.items[0]
        parts = list(map(_without_made_id, _answer(objects(content.get("parts")))))
        signed = _sign_calls(filter(is_call, parts), filter(is_call, original))
        if _is_same_answer(original, parts):
            calls = iter(signed)
            content["parts"] = [next(calls) if is_call(part) else part for part in original]
            return
        calls = iter(signed)
        answer = (next(calls) if is_call(part) else part for part in parts)
        content["parts"] = [*filter(is_thought, original), *answer]

    def drop_reasoning(self, turn: Turn) -> bool:
        """See `History`. Calls that were signed must not be without a signature in the current
        turn."""
        content = turn.items[0] if turn.items else {}
        parts = objects(content.get("parts"))
        remaining = [_unsigned(part) for part in _answer(parts)]
        if remaining == parts:
            return False
        content["parts"] = remaining
        was_signed = any(map(signature_of, filter(is_call, parts)))
        contents = objects(self._body.get("contents"))
        if was_signed and any(step is content for step in current_steps(contents)):
            mark_unsigned(content)
        return True

    def place_reasoning(self, _turn: Turn, _profile: Profile) -> Placement:
        """Return "unchanged": there is only one place."""
        return "unchanged"

    def next_place(self) -> None:
        return None

    def body(self, *, is_sent: bool = True) -> Json:  # noqa: ARG002 -- Messages needs it
        for content in objects(self._body.get("contents")):
            parts = objects(content.get("parts"))
            if any(map(_has_made_id, parts)):
                content["parts"] = list(map(_without_made_id, parts))
        return self._body


def record_turn(
    parts: list[Json], keys: tuple[ItemKey, ...], call_ids: Sequence[str] = ()
) -> list[RecordedTurn]:
    """Return the turn that an answer's parts make, with the ids of its calls as clients have them.

    Where there are thoughts or signatures, the original is the whole answer, since signatures
    belong to single parts of it: Google asks for the parts as they were (ai.google.dev:
    gemini-api/docs/thinking).
    """
    if not parts:
        return []
    reasons = any(is_thought(part) or signature_of(part) for part in parts)
    turn = _model_turn({}, _answer(parts))
    if call_ids:
        turn.calls = tuple(map(_with_id, turn.calls, call_ids))
    original = parts if reasons else []
    return [RecordedTurn(turn, "".join(map(thought_text, parts)), original, keys)]


def _read_turns(content: Json) -> Iterator[Turn]:
    parts = objects(content.get("parts"))
    if content.get("role") == "model":
        yield _model_turn(content, _answer(parts))
        return
    results = [part for part in parts if isinstance(part.get("functionResponse"), dict)]
    for part in results:
        result = part["functionResponse"]
        output, name = _text_of_json(result.get("response")), string(result.get("name"))
        call = string(result.get("id")) or name
        former = Turn("tool", output, answers_call=name) if _has_made_id(part) else None
        yield Turn("tool", output, answers_call=call, items=[part], former=former)
    if not results:
        yield Turn("user", _read_text(parts), items=[content])


def _model_turn(content: Json, answer: list[Json]) -> Turn:
    parts, has_made_ids = objects(content.get("parts")), any(map(_has_made_id, answer))
    return Turn(
        role="assistant",
        text=_read_text([part for part in answer if not is_call(part)]),
        calls=tuple(map(_read_call, filter(is_call, answer))),
        has_opaque_state=any(map(signature_of, parts)),
        items=[content],
        former=_model_turn({}, list(map(_without_made_id, answer))) if has_made_ids else None,
    )


def _answer(parts: list[Json]) -> list[Json]:
    """Return the parts without thoughts."""
    return [part for part in parts if not is_thought(part)]


def _is_same_answer(original: list[Json], current: list[Json]) -> bool:
    before, now = _model_turn({}, _answer(original)), _model_turn({}, current)
    return before.encode_canonical() == now.encode_canonical()


def _sign_calls(calls: Iterable[Json], originals: Iterable[Json]) -> list[Json]:
    """Return the calls, each as it was if it was signed."""
    return [
        original if original is not None and signature_of(original) else call
        for call, original in zip_longest(calls, originals)
        if call is not None
    ]


def _with_id(call: ToolCall, identity: str) -> ToolCall:
    return ToolCall(identity, call.name, call.arguments)


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
