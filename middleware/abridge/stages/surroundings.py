"""What surrounds a place in a text of Markdown: whether that is code, and where in its line."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LINE = 1000
"""So many characters of a line are remembered, and searched for a span of code."""

MAX_SPAN = 220
"""So many characters after a tag may close the span of code that it stands in."""

_FENCE = re.compile(r"^[-*+>\d.) \t]*+(`{3,}+(?=[^`\n]*+$)|~{3,}+)([^\n]*+)$", re.MULTILINE)

CONTROL_MARK = r"<[|｜][^|｜<>\s]{1,40}[|｜]>"

_START = re.compile(rf"(?:[\s\ufeff]|{CONTROL_MARK})*")
"""What may stand before a text: blanks, a mark of the byte order, control tokens."""

_RUN = re.compile("`++")

_SPAN = re.compile(r"(?<!`)(`++)(?:(?!\1(?!`)).)*?[^`]\1(?!`)")

_QUOTE = re.compile(r"(?:(?:\A|[\s(\[{=,+:])(['\"])|\\n|\.[*+]\??\)?)(?:\\n){0,4}+\Z")
"""What begins a string of code, up to its line ends; or only those, or what stands before a tag in
a regular expression."""

_QUOTE_END = re.compile(r"(?:\\n){0,4}+(['\"])")

_MAY_QUOTE = re.compile(r"(?:\\n){0,4}+\\?\Z")


class Surroundings(NamedTuple):
    """What stands before a place. To add a text twice that has no backticks does not matter."""

    line: str = ""  # the end of the text's last line, or all of it
    fence: str = ""  # the marks that opened the fence in which the place is
    is_start: bool = True  # nothing has been said yet

    def after(self, text: str) -> Surroundings:
        """Return what stands before the place after a text."""
        if not text:
            return self
        head, newline, line = text.rpartition("\n")
        is_start = self.is_start and _START.fullmatch(text) is not None
        if not newline:
            return Surroundings((self.line + line)[-MAX_LINE:], self.fence, is_start)
        fence = self._fence_after(self.line + head)
        return Surroundings(line[-MAX_LINE:], fence, is_start)

    def _fence_after(self, lines: str) -> str:
        """Return the fence that is open after whole lines."""
        fence = self.fence
        if "```" not in lines and "~~~" not in lines:
            return fence
        for marks, rest in _FENCE.findall(lines):
            if not fence:
                fence = marks
            elif marks.startswith(fence) and not rest.strip():
                fence = ""
        return fence

    @property
    def is_line_start(self) -> bool:
        return not self.line.strip()

    def is_code(self, after: str, *, at_end: bool) -> bool | None:
        """Return whether the place is in a fence, a span of code or a string of code, if so much
        comes after what stands there; None while that cannot be told."""
        if self.fence or _FENCE.match(self.line):
            return True
        if (quote := _QUOTE.search(self.line, max(0, len(self.line) - 16))) is not None:
            end = _QUOTE_END.match(after)
            if end is not None and quote[1] in (None, end[1]):
                return True
            if _MAY_QUOTE.match(after) and not at_end:
                return None
        if "`" not in self.line:
            return False
        return self._is_in_span(after, at_end=at_end)

    def _is_in_span(self, after: str, *, at_end: bool) -> bool | None:
        unclosed = _RUN.findall(_SPAN.sub("", self.line))
        rest, newline, _ = after[:MAX_SPAN].partition("\n")
        is_whole = bool(newline) or at_end or len(after) >= MAX_SPAN
        for run in _RUN.finditer(rest) if unclosed else ():
            if run.end() == len(rest) and not is_whole:
                return None
            if run[0] in unclosed:
                return True
        return False if is_whole or not unclosed else None
