"""Plant canaries in what upstream sends: in random places of random shapes, known or not.

Shares no code with Abridge: what is known here, is known from the API's description.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

CANARY = "canary-4711"
SENTENCE = f"I think of {CANARY} now"
BLOCKS = (
    f"<think>{SENTENCE}</think>",
    f"<Thinking>{SENTENCE}</thinking>",
    f"[THINK]{SENTENCE}[/THINK]",
    f"<|channel|>analysis<|message|>{SENTENCE}<|end|>",
)

UNKNOWN_NAMES = ("thoughts", "reasoning_text", "thinking", "analysis", "x_trace", "raw", "cot")

NAMES = frozenset(
    {
        "id",
        "object",
        "type",
        "role",
        "model",
        "status",
        "finish_reason",
        "item_id",
        "call_id",
        "name",
        "responseId",
        "modelVersion",
        "finishReason",
    }
)
"""Keys whose values are identifiers, never sentences."""

TEXTS = frozenset({"content", "text", "delta", "refusal", "arguments"})
"""Keys of texts that are shown, in which only a block is a canary's place."""

Plant = Callable[[Random, dict[str, Any]], None]


def unknown_value(random: Random) -> Any:
    """Return a canary in a random shape."""
    part = {"type": "text", "text": SENTENCE}
    return random.choice(
        [SENTENCE, [SENTENCE], {"text": SENTENCE}, [part], {"content": [part]}, {CANARY: 1}]
    )


CALL_INPUTS = ("input", "args", "arguments")


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a value, but for the input of a call: its keys are the tool's. (Gemini
    has it in `args` or `arguments`.)"""
    if isinstance(value, dict):
        yield value
        called = [key for key in CALL_INPUTS if isinstance(value.get(key), dict)]
        value = [inner for key, inner in value.items() if key not in called]
    for inner in value:
        if isinstance(inner, dict | list):
            yield from objects_in(inner)


def add_key(random: Random, holder: dict[str, Any]) -> None:
    """Add an unknown key."""
    holder[random.choice(UNKNOWN_NAMES)] = unknown_value(random)


def say_as_name(random: Random, holder: dict[str, Any]) -> None:
    """Put a sentence where a name belongs; but types stay, which say what an object is."""
    names = sorted(holder.keys() & NAMES - {"type"})
    if names:
        holder[random.choice(names)] = SENTENCE


def say_in_block(random: Random, holder: dict[str, Any]) -> None:
    """Put a block of thinking into a text that is shown."""
    texts = sorted(key for key in holder.keys() & TEXTS if isinstance(holder[key], str))
    if texts:
        key = random.choice(texts)
        at = random.randint(0, len(holder[key]))
        holder[key] = holder[key][:at] + random.choice(BLOCKS) + holder[key][at:]


def add_element(random: Random, holder: dict[str, Any]) -> None:
    """Add an element of unknown type to a list of objects."""
    lists = [value for value in holder.values() if isinstance(value, list)]
    if lists:
        chosen = random.choice(lists)
        chosen.insert(random.randint(0, len(chosen)), {"type": "musing", "text": SENTENCE})


def replace_value(random: Random, holder: dict[str, Any]) -> None:
    """Put an object where a single value belongs."""
    scalars = sorted(key for key, value in holder.items() if isinstance(value, int | None))
    if scalars:
        holder[random.choice(scalars)] = {"text": SENTENCE}


HIDDEN_PLANTS: tuple[Plant, ...] = (add_key, say_as_name, say_in_block, add_element, replace_value)


def plant(
    random: Random, payload: dict[str, Any], plants: tuple[Plant, ...] = HIDDEN_PLANTS
) -> None:
    """Plant a canary somewhere in a payload."""
    holder = random.choice(list(objects_in(payload)))
    random.choice(plants)(random, holder)


def said(answer: bytes) -> str:
    """Return all strings of an answer, whole or streamed; those under one key are put together,
    since a text may come in pieces."""
    lines = [line.removeprefix(b"data: ") for line in answer.splitlines()]
    texts: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(b"{"):
            _add_strings(json.loads(line), "", texts)
    return answer.decode() + "\n".join("".join(pieces) for pieces in texts.values())


def _add_strings(value: Any, key: str, texts: dict[str, list[str]]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _add_strings(inner, name, texts)
    elif isinstance(value, list):
        for inner in value:
            _add_strings(inner, key, texts)
    elif isinstance(value, str):
        texts.setdefault(key, []).append(value)


def planted_everywhere(
    value: Any, texts: frozenset[str], opaque: frozenset[str] = frozenset(), key: str = ""
) -> Iterator[Any]:
    """Yield a value with a canary in it: in the place of each value in turn, and beside those of
    each object.

    Under the keys in `texts` are texts that are shown, in which only a block is a canary's place;
    what is under those in `opaque` is not looked into.
    """
    if key in opaque:
        return
    if key:
        odd = {"why": SENTENCE}
        yield from (odd, [odd], BLOCKS[0]) if key in texts else (odd, [SENTENCE], SENTENCE)
    if isinstance(value, dict):
        yield {**value, "x_trace": SENTENCE}
        for name, inner in value.items():
            for planted in planted_everywhere(inner, texts, opaque, name):
                yield {**value, name: planted}
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            for planted in planted_everywhere(inner, texts, opaque, key):
                yield [*value[:at], planted, *value[at + 1 :]]
