"""Reasoning in an alphabet of its own: wherever one of its letters is, reasoning is.

The letters are Yi syllables, which nothing else here uses, so that a leak is a pattern: as UTF-8,
escaped in JSON, or quoted in an address.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

FIRST, LETTERS = 0xA100, 256
"""The range of letters: each is three bytes in UTF-8, the first two of which no other has."""

LEAK = re.compile(
    rb"\xea[\x84-\x87][\x80-\xbf]"  # UTF-8
    rb"|\\u[aA]1[0-9a-fA-F]{2}"  # in JSON
    rb"|%[eE][aA]%8[4-7]%[89abAB][0-9a-fA-F]"  # in an address
)

REASONING_KEYS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"}
)


KEPT_KEYS = frozenset(
    {"type", "id", "signature", "format", "index", "effort", "summary", "data", "encrypted_content"}
)
"""Keys of reasoning whose values say something else, or are sealed."""


def sentence(random: Random, letters: int) -> str:
    """Return reasoning: words of secret letters, with full stops and a few paragraphs."""
    words: list[str] = []
    while letters > 0:
        size = random.randint(2, 9)
        words.append("".join(chr(FIRST + random.randrange(LETTERS)) for _ in range(size)))
        words[-1] += random.choice(["", "", "", ".", ".\n\n"])
        letters -= size + 1
    return " ".join(words)


def leaks(data: bytes) -> list[bytes]:
    """Return the secret letters in what a client, or a log, was given."""
    return LEAK.findall(data)


def disguise(text: str) -> str:
    """Write a text in the secret alphabet."""
    return "".join(
        chr(FIRST + ord(one) % LETTERS) if one.isalnum() and ord(one) < 128 else one for one in text
    )


def disguise_reasoning(value: Any, *, inside: bool = False) -> Any:
    """Write the reasoning in a payload of a provider in the secret alphabet, and nothing else."""
    if isinstance(value, list):
        return [disguise_reasoning(each, inside=inside) for each in value]
    if not isinstance(value, dict):
        return disguise(value) if inside and isinstance(value, str) else value
    kind = str(value.get("type", ""))
    if kind.startswith("response.reasoning_text"):
        return {
            key: disguise(each) if key in ("delta", "text") else disguise_reasoning(each)
            for key, each in value.items()
        }
    made = {}
    for key, each in value.items():
        shown = kind == "reasoning" and key == "content"
        hidden = inside or shown or (key in REASONING_KEYS and kind != "response")
        keeps = key in KEPT_KEYS
        made[key] = disguise_reasoning(each, inside=hidden and not keeps)
    return made
