"""End a text that its model was stopped in, for its length, with its last whole sentence."""

from __future__ import annotations

import re

from abridge.core.segmenter import text_size

HOLD_SIZE_PER_TOKEN = 2.0
"""Size of an answer, for each token it may have, from which on sentences are passed on whole. A
token is about 4, so that is half-way: a part of the usual length is not held up at all."""

MAX_SENTENCE = 1000
"""Characters that are held back at most."""

_ENDS = r"[.!?…][\"'”’)\]*_]*(?={after})|[。！？][”’」』）]*|\n"

_END = re.compile(_ENDS.format(after=r"\s"))

_LAST_END = re.compile(_ENDS.format(after=r"\s|\Z"))


class WholeSentences:
    """Pass on a text that arrives in pieces, from some length on in whole sentences.

    Only so can the words after the last sentence be left out if the model is stopped for length.
    """

    def __init__(self, max_tokens: int) -> None:
        self._unheld_size = max_tokens * HOLD_SIZE_PER_TOKEN
        self._has_shown = False
        self._held = ""

    def count(self, text: str) -> None:
        """Count what the model has written, its thinking included."""
        self._unheld_size -= text_size(text)

    def feed(self, text: str) -> str:
        """Return what may be shown so far."""
        self._held += text
        if self._unheld_size > 0 or len(self._held) > MAX_SENTENCE:
            return self._release(len(self._held))
        return self._release(_end_of_last(_END, self._held))

    def end(self, text: str, *, stopped: bool) -> str:
        """Return the rest: if the model was stopped, up to the last end of a sentence, unless that
        would leave nothing at all to show."""
        self._held += text
        end = _end_of_last(_LAST_END, self._held)
        whole = self._held[:end]
        if stopped and (self._has_shown or whole.strip()):
            return self._release(end)
        return self._release(len(self._held))

    def _release(self, end: int) -> str:
        shown, self._held = self._held[:end], self._held[end:]
        self._has_shown = self._has_shown or bool(shown.strip())
        return shown


def _end_of_last(pattern: re.Pattern[str], text: str) -> int:
    return max((found.end() for found in pattern.finditer(text)), default=0)
