"""Tell whether upstream repeats what Abridge has put into a request.

Where reasoning is hidden, Abridge gives a model its reasoning back, which the client has never
seen. An error that quotes the request may quote that, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from abridge.apis.json import parse_object

MIN_QUOTE = 20
"""Letters and digits, one after the other, that are a quote."""

MAX_MESSAGE = 4096
"""Letters and digits of a message that is looked through. A longer one counts as a quote."""

_STEP = MIN_QUOTE // 2

_BETWEEN = re.compile(r"[\W_]+")
"""What stands between letters and digits, which may be spelled otherwise where it is quoted."""


def repeats_added(message: str, sent: bytes, given: bytes) -> bool:
    """Return whether a message repeats a text of the body that was sent to upstream, which is not
    in the one that the client gave.

    A quote has a block of half its length at a multiple of that. So only blocks are looked for in
    all of the request, and of those that are found, what stands around them.
    """
    if sent == given:
        return False
    said = _BETWEEN.sub("", message)
    if len(said) > MAX_MESSAGE:
        return True
    ours, theirs = _letters(sent), _letters(given)
    return any(quote in ours and quote not in theirs for quote in _candidates(said, ours))


def _candidates(said: str, text: str) -> Iterator[str]:
    for block in range(0, len(said) - _STEP + 1, _STEP):
        if said[block : block + _STEP] in text:
            for start in range(max(0, block - _STEP), block + 1):
                if start + MIN_QUOTE <= len(said):
                    yield said[start : start + MIN_QUOTE]


def _letters(body: bytes) -> str:
    """Return the letters and digits of the texts in a body, each text apart."""
    return "\n".join(_BETWEEN.sub("", text) for text in _texts(parse_object(body)))


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
