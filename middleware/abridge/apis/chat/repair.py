"""Repair chunks from which upstream leaves out required fields.

Gemini omits the index of tool calls, small servers the index of choices, the role and the type of
calls. xAI, Z.ai and Cerebras leave `finish_reason` out until the end, and OpenRouter repeats it
beside the usage. Strict clients ignore anything without `"object": "chat.completion.chunk"`, and
fail where another of these fields is missing.

Where raw reasoning is hidden, a message in the place of a delta becomes one, so that it is looked
through like any, and an error in another form becomes an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abridge.apis import sse
from abridge.apis.chat.accumulator import ARGUMENTS_FIELDS, kind_of_call
from abridge.apis.chat.errors import read_finish_error, respell_error
from abridge.apis.chat.framing import CHUNK_OBJECT, MAX_CHOICES
from abridge.apis.chat.reasoning import get_index
from abridge.apis.json import as_object, dumps, objects, string
from abridge.apis.openai import mint_id
from abridge.apis.shapes import DropCount
from abridge.core.conversation import Json

REQUIRED_HEADER = frozenset({"id", "created", "model"})


class ChunkRepair:
    """Repair the chunks of one response."""

    def __init__(self) -> None:
        self.needed = False  # a chunk lacked header fields, so every chunk must be checked
        self._counts_calls = False  # calls lacked their index
        self._header: Json = {}
        self._announced: set[int] = set()
        self._finished: set[int] = set()
        self._calls: dict[int, dict[str, int]] = {}

    def repair(self, chunk: Json, frame: bytes) -> tuple[Json, bytes]:
        if chunk.get("error"):
            return chunk, frame
        lacks_header = _is_header_missing(chunk)
        self.needed = self.needed or lacks_header
        if lacks_header or any(map(self._is_incomplete, objects(chunk.get("choices")))):
            chunk = self._repair_chunk(chunk)
            frame = sse.encode_frame(dumps(chunk))
        for choice in objects(chunk.get("choices")):
            lane = get_index(choice)
            self._announced.add(lane)
            if choice.get("finish_reason"):
                self._finished.add(lane)
        return chunk, frame

    def varies(self, field: str) -> bool:
        """Return whether chunks that are alike in this field may be repaired in another way: an
        index that is added counts the calls."""
        return field == "tool_calls" and self._counts_calls

    def _is_incomplete(self, choice: Json) -> bool:
        delta = choice.get("delta")
        if not isinstance(delta, dict) and "message" not in choice:
            return bool(choice.get("finish_reason"))
        if "finish_reason" not in choice or choice["finish_reason"] != self._get_finish(choice):
            return True
        if not isinstance(delta, dict):
            return False
        lacks_role = not delta.get("role") and get_index(choice) not in self._announced
        calls_complete = all(map(_is_complete_call, _get_tool_calls(delta)))
        return lacks_role or not (calls_complete and isinstance(choice.get("index"), int))

    def _get_finish(self, choice: Json) -> Any:
        """Return the finish reason that is to be said: null until the choice finishes, and once."""
        reason = choice.get("finish_reason") or None
        is_repeated = get_index(choice) in self._finished and read_finish_error(choice) is None
        return None if is_repeated else reason

    def _repair_chunk(self, chunk: Json) -> Json:
        choices = [self._repair_choice(choice) for choice in objects(chunk.get("choices"))]
        repaired = {**chunk, "choices": choices}
        if not _has_content(repaired):
            return repaired
        given = {key: repaired[key] for key in REQUIRED_HEADER if key in repaired}
        self._header = {**(self._header or _make_header()), **given}
        return {**self._header, **repaired, "object": CHUNK_OBJECT}

    def _repair_choice(self, choice: Json) -> Json:
        lane, delta, finish = get_index(choice), choice.get("delta"), self._get_finish(choice)
        if not isinstance(delta, dict):
            if not self._is_incomplete(choice):
                return choice
            delta_fields: Json = {} if "message" in choice else {"delta": {}}
            return {"index": lane, **choice, **delta_fields, "finish_reason": finish}
        if not delta.get("role") and lane not in self._announced:
            delta = {**delta, "role": "assistant"}
        if calls := _get_tool_calls(delta):
            delta = {**delta, "tool_calls": [self._complete_call(lane, call) for call in calls]}
        return {**choice, "index": lane, "delta": delta, "finish_reason": finish}

    def _complete_call(self, lane: int, call: Json) -> Json:
        """Add the type to the fragment that begins a call; and to any its index: by its id, or the
        last call's if it has none."""
        known = self._calls.setdefault(lane, {})
        if _begins_call(call) and not call.get("type"):
            call = {**call, "type": kind_of_call(call)}
        if isinstance(call.get("index"), int):
            return call
        self._counts_calls = True
        function = call.get("function")
        has_name = isinstance(function, dict) and bool(function.get("name"))
        name = string(call.get("id")) or (f"call {len(known)}" if has_name or not known else "")
        number = known.setdefault(name, len(known)) if name else len(known) - 1
        return {**call, "index": number}


class Arrangement:
    """Arrange what one response says as OpenAI does, before it is rebuilt from what is known."""

    def __init__(self, drops: DropCount) -> None:
        self._drops = drops
        self._said: set[int] = set()  # choices of which a delta has said something

    def arrange_chunk(self, chunk: Json) -> Json:
        """Return a chunk in which what each choice says is its delta."""
        return self._arrange(chunk, self._with_delta)

    def arrange_completion(self, completion: Json) -> Json:
        """Return a whole completion in which what each choice says is its message, and each has an
        index of its own: what one says must not tell what another's text is."""
        arranged = self._arrange(completion, self._with_message)
        choices = objects(arranged.get("choices"))
        if len(set(map(get_index, choices))) < len(choices):
            numbered = [{**choice, "index": number} for number, choice in enumerate(choices)]
            arranged = {**arranged, "choices": numbered}
        return arranged

    def _arrange(self, answer: Json, arrange_choice: Callable[[Json], Json]) -> Json:
        """Arrange the choices without those that no request can ask for: each takes memory."""
        given = answer.get("choices")
        if not given or not isinstance(given, list):
            return respell_error(answer)
        asked = [choice for choice in objects(given) if 0 <= get_index(choice) < MAX_CHOICES]
        known = asked[:MAX_CHOICES]  # some may have one index
        self._drops.count += len(given) - len(known)
        return {**answer, "choices": list(map(arrange_choice, known))}

    def _with_delta(self, choice: Json) -> Json:
        """Put a message in the place of a missing delta, unless it repeats what deltas have
        said."""
        lane, delta = get_index(choice), choice.get("delta")
        is_given = isinstance(delta, dict)
        if is_given and lane not in self._said and _says_something(as_object(delta)):
            self._said.add(lane)
        if "message" not in choice:
            return choice
        others = {key: choice[key] for key in choice if key != "message"}
        if not is_given and lane not in self._said:
            return {**others, "delta": choice["message"]}
        self._drops.drop(choice["message"])
        return {**others, "delta": as_object(delta)}

    def _with_message(self, choice: Json) -> Json:
        """Put a delta in the place of a missing message."""
        if "delta" not in choice:
            return choice
        others = {key: choice[key] for key in choice if key != "delta"}
        if not isinstance(choice.get("message"), dict):
            return {**others, "message": choice["delta"]}
        self._drops.drop(choice["delta"])
        return others


def _says_something(delta: Json) -> bool:
    return any(delta[key] for key in delta if key != "role")


def _make_header() -> Json:
    return {"id": mint_id("chatcmpl-"), "created": 0, "model": ""}


def _is_header_missing(chunk: Json) -> bool:
    if not isinstance(chunk.get("choices"), list):
        return bool(chunk.get("usage")) or chunk.get("object") == CHUNK_OBJECT
    return _has_content(chunk) and not (
        chunk.get("object") == CHUNK_OBJECT and chunk.keys() >= REQUIRED_HEADER
    )


def _has_content(chunk: Json) -> bool:
    """Return whether it holds an answer or usage; Azure's filter results hold neither."""
    has_delta = any(isinstance(choice.get("delta"), dict) for choice in objects(chunk["choices"]))
    return has_delta or bool(chunk.get("usage"))


def _begins_call(fragment: Json) -> bool:
    payloads = map(as_object, map(fragment.get, ARGUMENTS_FIELDS))
    return bool(fragment.get("id")) or any(payload.get("name") for payload in payloads)


def _is_complete_call(fragment: Json) -> bool:
    has_type = bool(fragment.get("type")) or not _begins_call(fragment)
    return has_type and isinstance(fragment.get("index"), int)


def _get_tool_calls(delta: Json) -> list[Json]:
    return objects(delta.get("tool_calls"))
