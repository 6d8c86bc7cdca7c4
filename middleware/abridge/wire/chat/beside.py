"""What stands beside reasoning and answer in a choice: the keys nobody knows, and a few we do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.wire.chat.dialects import ANSWER, KNOWN, SPELLINGS, said_in
from abridge.wire.codec import Json

KNOWN_OF_CHOICE = frozenset(
    {
        "native_finish_reason",  # OpenRouter
        "stop_reason",  # vLLM
        "matched_stop",  # SGLang
        "error",  # OpenRouter
        "content_filter_results",  # Azure
        "content_filter_offsets",
    }
)
"""What a choice may still hold, beside what every choice holds, once its reasoning is hidden."""

_TOLD = frozenset({"role", *SPELLINGS, *ANSWER})
_SHAPE = frozenset({"index", "delta", "finish_reason"})
_SHAPE_WHOLE = frozenset({"index", "message", "finish_reason"})


@dataclass(slots=True, frozen=True)
class Beside:
    """Keys of a delta and of its choice."""

    delta: Json
    choice: Json

    @classmethod
    def of(cls, choice: Json, delta: Json) -> Beside:
        return cls(_others(delta, _TOLD), _others(choice, _SHAPE))

    def __len__(self) -> int:
        return len(self.delta) + len(self.choice)

    def after(self, earlier: Beside | None) -> Beside:
        """Both, where something was kept back earlier."""
        if earlier is None:
            return self
        return Beside(_joined(earlier.delta, self.delta), _joined(earlier.choice, self.choice))

    def concealed(self) -> Beside:
        """What may stay beside hidden reasoning: nobody knows whether the rest repeats it."""
        return Beside(
            {key: value for key, value in self.delta.items() if key in KNOWN},
            {key: value for key, value in self.choice.items() if key in KNOWN_OF_CHOICE},
        )


def is_silent(choice: Json) -> bool:
    """Whether a choice of a stream says nothing that could be reasoning."""
    said = any(value for key, value in said_in(choice).items() if key != "role")
    return not said and not _others(choice, _SHAPE | KNOWN_OF_CHOICE)


def conceal_choice(choice: Json) -> None:
    """Leave of a whole choice what says no reasoning; its message is the caller's."""
    for key in choice.keys() - _SHAPE_WHOLE - KNOWN_OF_CHOICE:
        if key == "logprobs":
            choice[key] = None
        else:
            del choice[key]


def _others(said: Json, known: frozenset[str]) -> Json:
    return {key: value for key, value in said.items() if key not in known and value is not None}


def _joined(earlier: Json, later: Json) -> Json:
    return {**earlier, **{key: _join(earlier.get(key), later[key]) for key in later}}


def _join(earlier: Any, later: Any) -> Any:
    """Lists go on, as token ids and log probabilities do; of all else the later counts."""
    if isinstance(earlier, list) and isinstance(later, list):
        return earlier + later
    if isinstance(earlier, dict) and isinstance(later, dict):
        lists = {key for key, value in earlier.items() if isinstance(value, list)}
        longer = {key for key in lists if isinstance(later.get(key), list)}
        return {**earlier, **later, **{key: earlier[key] + later[key] for key in longer}}
    return later
