"""The limit on a response's summary cost, relative to the model's own tokens."""

from __future__ import annotations

from abridge.turn.part import Passage
from abridge.turn.usage import Tokens

BYTES = 4
"""Bytes of UTF-8 per token, near enough in any script. Used where usage is not reported (yet)."""


class Budget:
    """Allows summarizer calls up to a share of the model's own tokens.

    The model's tokens are estimated, since they are reported when it is too late. A call's tokens
    are estimated until they are reported. The first call is always allowed. Without `max_overhead`
    there is no limit.
    """

    def __init__(self, share: float | None) -> None:
        self._share = share
        self._own = 0
        self._reported = 0
        self._estimated: dict[int, int] = {}

    def earn(self, text: str) -> None:
        """Count text of the model's, reasoning or answer."""
        if self._share is not None:
            self._own += _bytes(text)

    def ask(self, part: int, passage: Passage) -> None:
        """Count a call's input."""
        self._estimated[part] = _bytes(passage.text) + _bytes(passage.before)

    def write(self, part: int, text: str) -> None:
        """Count a piece of a call's output."""
        if part in self._estimated:
            self._estimated[part] += _bytes(text)

    def settle(self, part: int, spent: Tokens | None) -> None:
        """Replace a finished call's estimate with its reported usage, if that is complete."""
        if spent is not None and spent.input is not None and spent.output is not None:
            self._estimated.pop(part, None)
            self._reported += spent.input + spent.output

    def allows_more(self) -> bool:
        if self._share is None:
            return True
        spent = self._reported * BYTES + sum(self._estimated.values())
        return spent <= self._share * self._own


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
