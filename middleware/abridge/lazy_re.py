"""Regular expressions that are compiled when they are first used.

To compile one takes up to 5 ms, and a start would wait for hundreds: what looks for tags, and what
titles and cleans summaries, has them for every language and spelling, of which most traffic needs
few. A call of one costs 30 ns more, so what each sentence is searched for is compiled at once.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class LazyPattern:
    """Has each attribute of the compiled expression, from when that is first asked for."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._source)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self._compiled, name)
        return found


def lazy_compile(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile an expression on first use; a mistake in it is found only then."""
    return cast("re.Pattern[str]", LazyPattern(pattern, flags))
