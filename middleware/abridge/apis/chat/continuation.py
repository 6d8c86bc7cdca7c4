"""Read the chunks that only continue what one choice is saying.

That is nearly every chunk. Those that are like an earlier one but for their text are recognised by
its pattern (`delta_patterns.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from abridge.apis import sse
from abridge.apis.chat.accumulator import ARGUMENTS_FIELDS, kind_of_call
from abridge.apis.chat.choice_reader import ChoiceReader, loses_fields
from abridge.apis.chat.framing import Framing, get_header, has_other_fields
from abridge.apis.chat.reasoning import get_index
from abridge.apis.delta_patterns import Accepts, DeltaPatterns
from abridge.apis.display import Display
from abridge.apis.json import loads_exact, parse_object
from abridge.core.conversation import Json
from abridge.core.events import Event
from abridge.providers.catalog import TEXT_FIELDS


class Continuation(NamedTuple):
    """More of a text, or of the arguments of a call."""

    lane: int
    field: str  # of the delta
    key: str  # under which the text stands
    text: str
    call_index: int = 0
    is_bare: bool = True
    """Nothing else is in the delta, as nearly always. Some servers repeat the role in each."""

    @property
    def is_reasoning(self) -> bool:
        return self.field in TEXT_FIELDS


class Continuations:
    """Read what continues the choices of one stream."""

    def __init__(
        self, choices: dict[int, ChoiceReader], framing: Framing, display: Display
    ) -> None:
        self.last_frame: bytes | None = None
        """The last frame with choices, or one with the same header; None if frames do not go on."""
        self._choices = choices
        self._framing = framing
        self._display = display

    def header(self) -> Json:
        """Return the header of the last chunk."""
        data = sse.frame_data(self.last_frame or b"")
        return get_header(parse_object(data or b"", loads_exact) or {})

    def find(self, chunk: Json, *, is_translated: bool) -> Continuation | None:
        """Return how a chunk continues a choice, if that is all it does."""
        found = _find_text(chunk)
        reader = None if found is None else self._choices.get(found.lane)
        if found is None or reader is None or not reader.is_continued_by(found.field):
            return None
        choice = chunk["choices"][0]
        if choice.get("logprobs") if is_translated else choice.get("finish_reason", "") is not None:
            return None
        if self._display.show_raw or not found.is_reasoning:
            return found
        return None if has_other_fields(chunk) or loses_fields(choice) else found

    def learn(
        self,
        patterns: DeltaPatterns,
        found: Continuation,
        frame: bytes,
        carried: bytes | None,
        written: bytes | None,
        *,
        accepts: Accepts | None = None,
    ) -> None:
        """Add the pattern of a frame: `carried` is its chunk once repaired or rebuilt, `written` is
        the frame in which the event went out."""
        proceed = self._proceed_call if found.field == "tool_calls" else self._proceed
        continued = partial(proceed, self._choices[found.lane], found, carried)
        patterns.learn(frame, written, found.key, found.text, continued, accepts=accepts)

    def proceed(self, found: Continuation, frame: bytes | None) -> Event:
        """Read a chunk that only continues a text."""
        return self._proceed(self._choices[found.lane], found, frame, found.text, frame)

    # Each reads the text of a chunk `like` the one that was found.

    def _proceed(
        self,
        reader: ChoiceReader,
        found: Continuation,
        like: bytes | None,
        text: str,
        frame: bytes | None,
    ) -> Event:
        self.last_frame = like
        return reader.proceed(found.field, text, frame)

    def _proceed_call(
        self,
        reader: ChoiceReader,
        found: Continuation,
        like: bytes | None,
        text: str,
        frame: bytes | None,
    ) -> Event:
        self.last_frame = like
        reader.message.append_arguments(found.call_index, found.key, text)
        return self._framing.proceed_call(reader, found.call_index, found.key, text, frame)


def _find_text(chunk: Json) -> Continuation | None:
    """Return the text of a chunk that says nothing else; None for any other chunk."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or chunk.get("usage"):
        return None
    choice = choices[0]
    if chunk.get("error") or not isinstance(choice, dict) or "message" in choice:
        return None
    delta = choice.get("delta")
    if "index" not in choice or not isinstance(delta, dict) or choice.get("finish_reason"):
        return None
    names = [name for name, value in delta.items() if value]
    is_bare = len(names) == 1
    others = names if is_bare else [name for name in names if name != "role"]
    if len(others) != 1:
        return None
    name, value = others[0], delta[others[0]]
    if name == "tool_calls":
        return _find_arguments(get_index(choice), value)
    if not isinstance(value, str):
        return None
    return Continuation(get_index(choice), name, name, value, is_bare=is_bare)


def _find_arguments(lane: int, calls: Any) -> Continuation | None:
    """Return the arguments in the fragment of a single call that tells which one it is of."""
    fragment = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(fragment, dict) or not isinstance(fragment.get("index"), int):
        return None
    kind = kind_of_call(fragment)
    payload, key = fragment.get(kind), ARGUMENTS_FIELDS[kind]
    text = payload.get(key) if isinstance(payload, dict) else None
    if not isinstance(text, str) or not text:
        return None
    return Continuation(lane, "tool_calls", key, text, fragment["index"], is_bare=False)
