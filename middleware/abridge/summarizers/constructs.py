"""Replace constructs in a text that arrives in pieces.

A construct may start in one piece of text and end in a later one, so a stage buffers a partial
match until it can decide. Every construct has a maximum length, which bounds the buffer. However
the text is split, the result is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import methodcaller

from abridge.lazy_re import lazy_compile

LOOKBACK_CHARS = 1200
"""Characters before the end of the text in which to look for the start of a partial construct."""

LOOKBEHIND_CHARS = 3
"""Characters before a construct that may decide whether it is one."""


@dataclass(slots=True, frozen=True)
class Construct:
    """A construct to replace."""

    first: re.Pattern[str]  # its first character; what is around it may only be looked at
    complete: re.Pattern[str]
    partial: re.Pattern[str]  # a partial one at the end of the text so far
    replace: Callable[[re.Match[str]], str]  # makes the text for a match of `complete`


def construct(
    first: str, complete: str, partial: str, replacement: str | Callable[[re.Match[str]], str]
) -> Construct:
    """Compile a construct. All patterns ignore case, and a dot matches a line end, too. A text in
    its place is a template."""
    flags = re.IGNORECASE | re.DOTALL
    expand = methodcaller("expand", replacement)
    return Construct(
        lazy_compile(first, flags),
        lazy_compile(complete, flags),
        lazy_compile(rf"(?:{partial})\Z", flags),
        expand if isinstance(replacement, str) else replacement,
    )


def beginnings(words: Iterable[str]) -> str:
    """Return a pattern for what the words begin with."""
    return "|".join(
        sorted({re.escape(word[:size]) for word in words for size in range(1, len(word) + 1)})
    )


@dataclass(slots=True)
class ConstructStage:
    """Replace one construct in a text that arrives in pieces.

    A construct may look behind itself, at the `LOOKBEHIND_CHARS` before it.
    """

    construct: Construct
    context: str = ""  # what was before the buffer
    buffer: str = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        """Return the text decided so far, with the construct replaced; buffer the rest."""
        if not self.buffer and self.construct.first.search(text) is None:
            self.context = (self.context + text)[-LOOKBEHIND_CHARS:]
            return text
        position = len(self.context)
        text = f"{self.context}{self.buffer}{text}"
        pieces = []
        partial = None if last else self._find_partial(text, position)
        while match := self._find_complete(text, position, partial):
            pieces += [text[position : match.start()], self.construct.replace(match)]
            position = match.end()
            if partial is not None and position > partial.start():
                partial = self._find_partial(text, position)
        end = len(text) if partial is None else partial.start()
        self.buffer = text[end:]
        self.context = text[max(0, end - LOOKBEHIND_CHARS) : end]
        return "".join([*pieces, text[position:end]])

    def _find_complete(
        self, text: str, position: int, partial: re.Match[str] | None
    ) -> re.Match[str] | None:
        """Find the first complete construct, if it starts before the partial one.

        Where that starts, or after it, nothing is looked for: it will be when more text arrives, so
        that no place is looked at again with each piece.
        """
        complete = self.construct.complete
        if partial is None:
            return complete.search(text, position)
        firsts = self.construct.first.finditer(text, position, partial.start())
        matches = (complete.match(text, first.start()) for first in firsts)
        return next(filter(None, matches), None)

    def _find_partial(self, text: str, position: int) -> re.Match[str] | None:
        return self.construct.partial.search(text, max(position, len(text) - LOOKBACK_CHARS))
