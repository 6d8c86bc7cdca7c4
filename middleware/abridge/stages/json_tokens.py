"""Tell what is JSON in a text that should be, as the arguments of a call, and what is none.

Servers pass on what a model wrote around such a text, and within it between the tokens of JSON: a
sentence before it, a fence, a closing tag of the call (vLLM issue 10395, OpenVINO's model_server
issue 3838). What is no token is a stray: no client can read it, and it may be thinking.

What clients do read, some after a repair, is left as it is: several values in a row, as Gemini's
parallel calls and gateways write them (autogen pull 7549, hermes-agent pull 26053), a text that
breaks off, Python's dictionaries with single quotes (hermes-agent pull 1087), commas too many,
`NaN`. How deep the text is nested is only counted, so that the state stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from typing import TypeAlias

from abridge.stages.tags import Kind, TagPiece

_Run: TypeAlias = tuple[Kind, int]
"""A kind of text, and where it ends."""

MAX_WORD = 64
"""The longest word that waits for its end, and name that ends a stray, in characters."""

MAX_BLANKS = 16
"""Blanks that may stand before the colon of such a name, and after a bracket."""

_STRING_REST = {mark: re.compile(rf"(?:[^{mark}\\]++|\\.)*+", re.DOTALL) for mark in "\"'"}

_TOKENS = re.compile(
    r'(?:[\s,:{}\[\]]++|"(?:[^"\\]++|\\.)*+"'
    r"|(?:true|false|null|-?\d++(?:\.\d++)?)(?=[\s,:}\]])){1,1000}",
    re.DOTALL,
)
"""Whole tokens in a row, as all of JSON consists of. Python before 3.11.5 takes too much where the
whole is possessive, so their number is limited instead."""

_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^{}\[\]"]++', re.DOTALL)
"""All that are no brackets of these."""

_WORD = re.compile(r"""[^\s{}\[\],:"']++""")
"""What is none of the marks."""

_SCALAR = re.compile(
    r"true|false|null|[-+]?(?:NaN|Infinity)|True|False|None|undefined"
    r"|[-+]?(?:\d[\d_]*+\.?\d*|\.\d+)(?:[eE][-+]?\d*)?|0[xX][0-9a-fA-F]+"
)

_CUT_SCALAR = re.compile(
    rf"{_SCALAR.pattern}|[-+]|tr?u?|fa?l?s?|nu?l?|[-+]?(?:Na?|In?f?i?n?i?t?)|Tr?u?|Fa?l?s?|No?n?"
)

_BEGINS_VALUE = re.compile(
    rf"(?P<cut>[{{\[]\s{{0,{MAX_BLANKS}}}\Z)"
    rf"|\{{(?=\s{{0,{MAX_BLANKS}}}[\"'}}])|\[(?=\s{{0,{MAX_BLANKS}}}[\"'{{\[\]])"
)
"""What ends a stray outside any value: the beginning of an object, or of a list, but not a word in
brackets."""

_QUOTED = rf'"[^"\\\n{{}}\[\],]{{0,{MAX_WORD}}}'

_GOES_ON = re.compile(
    rf'(?P<cut>{_QUOTED}(?:"\s{{0,{MAX_BLANKS}}})?\Z)'
    rf'|{_QUOTED}"(?=\s{{0,{MAX_BLANKS}}}:)|[}}\]\n,]'
)
"""What ends a stray within a value: the next name, the end of the line or of what it stands in."""


class JsonTokens:
    """Separate the tokens of a text that arrives in pieces from its strays."""

    def __init__(self) -> None:
        self._held = ""  # what may yet become a token
        self._quote = ""  # of the open string
        self._is_stray = False
        self._depth = 0
        self._last = ""  # the last character that is shown, but for blanks
        self.strays = 0

    def end_of_string(self, text: str, start: int, end: int) -> int | None:
        """Return where the string that is open ends in a part of a text; None if it does not, or
        none is open."""
        rest = _STRING_REST[self._quote].match(text, start, end) if self._quote else None
        if rest is None or rest.end() == end or text[rest.end()] != self._quote:
            return None
        return rest.end()

    def after(self, text: str) -> JsonTokens | None:
        """Return what is to go on after a piece of which `take` would yield all, and as text; None
        after any other. Within a string nothing changes."""
        if self._held:
            return None
        if self._quote == '"' and _STRING_REST['"'].fullmatch(text) is not None:
            return self
        after = copy(self)
        taken = "".join(piece.text for piece in after.take(text) if piece.kind == "text")
        return after if taken == text else None

    def take(self, text: str) -> Iterator[TagPiece]:
        """Take more text; yield its tokens as text, and its strays as raw."""
        text, self._held, position = self._held + text, "", 0
        while position < len(text):
            found = self._next_run(text, position)
            if found is None:
                self._held = text[position:]
                return
            kind, end = found
            if kind == "text":
                self._last = text[position:end].rstrip()[-1:] or self._last
            if end > position:
                yield TagPiece(kind, text[position:end])
            position = end

    def end(self) -> Iterator[TagPiece]:
        """End the text, which may break off anywhere; yield what was held back."""
        held, self._held = self._held, ""
        if not held:
            return
        if self._quote or (not self._is_stray and _CUT_SCALAR.fullmatch(held.rstrip())):
            yield TagPiece("text", held)
            return
        self._begin_stray()
        yield TagPiece("raw", held)

    def _next_run(self, text: str, position: int) -> _Run | None:
        """Return what comes next, and where it ends; None if that cannot be told yet. Where nothing
        comes, what comes after it is of another kind."""
        if self._is_stray:
            return self._read_stray(text, position)
        return self._read_string(text, position) if self._quote else self._read(text, position)

    def _read_string(self, text: str, position: int) -> _Run | None:
        rest = _STRING_REST[self._quote].match(text, position)
        end = position if rest is None else rest.end()
        if text.startswith(self._quote, end):
            self._quote, end = "", end + 1
        return ("text", end) if end > position else None  # a backslash waits for what it escapes

    def _read_stray(self, text: str, position: int) -> _Run | None:
        found = (_GOES_ON if self._depth else _BEGINS_VALUE).search(text, position)
        if found is None:
            return "raw", len(text)
        end = found.start()
        if found["cut"] is not None:
            return ("raw", end) if end > position else None
        self._is_stray = False
        return "raw", end + (found[0] == "," and self._may_begin)

    def _read(self, text: str, position: int) -> _Run | None:
        tokens = _TOKENS.match(text, position)
        if tokens is not None:
            for bracket in _BRACKETS.sub("", tokens[0]):
                self._depth = max(0, self._depth + (1 if bracket in "{[" else -1))
            return "text", tokens.end()
        if (word := _WORD.match(text, position)) is not None:
            return self._read_word(text, word)
        mark = text[position]
        if mark == '"' or (self._depth and self._may_begin):
            self._quote = mark
            return "text", position + 1
        self._begin_stray()
        return "raw", position

    def _read_word(self, text: str, word: re.Match[str]) -> _Run | None:
        if word.end() == len(text) and len(word[0]) <= MAX_WORD:
            return None
        if _SCALAR.fullmatch(word[0]) is not None:
            return "text", word.end()
        self._begin_stray()
        return "raw", word.start()

    @property
    def _may_begin(self) -> bool:
        """A value or a name is due, within another value."""
        return self._last in ("{", "[", ",", ":")

    def _begin_stray(self) -> None:
        self.strays += 1
        self._is_stray = True
