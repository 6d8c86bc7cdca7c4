"""The other fields of a choice, besides reasoning and answer: unknown ones and a few known."""

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
"""Fields that a choice may keep, besides those that every choice has, when raw is hidden."""

_TOLD = frozenset({"role", *SPELLINGS, *ANSWER})
_SHAPE = frozenset({"index", "delta", "finish_reason"})
_SHAPE_WHOLE = frozenset({"index", "message", "finish_reason"})


@dataclass(slots=True, frozen=True)
class Beside:
    """Fields of a delta and of its choice that hold neither reasoning nor answer."""

    delta: Json
    choice: Json

    @classmethod
    def of(cls, choice: Json, delta: Json) -> Beside:
        return cls(_others(delta, _TOLD), _others(choice, _SHAPE))

    def __len__(self) -> int:
        return len(self.delta) + len(self.choice)

    def after(self, earlier: Beside | None) -> Beside:
        """Merge these with fields that were held back earlier, if any."""
        if earlier is None:
            return self
        return Beside(_joined(earlier.delta, self.delta), _joined(earlier.choice, self.choice))

    def concealed(self) -> Beside:
        """Return the known ones: any other might repeat reasoning that is hidden."""
        return Beside(
            {key: value for key, value in self.delta.items() if key in KNOWN},
            {key: value for key, value in self.choice.items() if key in KNOWN_OF_CHOICE},
        )


def is_silent(choice: Json) -> bool:
    """Return whether a choice of a stream holds nothing that could be reasoning."""
    said = any(value for key, value in said_in(choice).items() if key != "role")
    return not said and not _others(choice, _SHAPE | KNOWN_OF_CHOICE)


def conceal_choice(choice: Json) -> None:
    """Remove the fields of a whole choice that might hold reasoning, its message excepted."""
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
    """Concatenate lists, as of token ids and log probabilities; else take the later value."""
    if isinstance(earlier, list) and isinstance(later, list):
        return earlier + later
    if isinstance(earlier, dict) and isinstance(later, dict):
        lists = {key for key, value in earlier.items() if isinstance(value, list)}
        longer = {key for key in lists if isinstance(later.get(key), list)}
        return {**earlier, **later, **{key: earlier[key] + later[key] for key in longer}}
    return later
