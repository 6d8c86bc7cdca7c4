"""A way in which sentences say what they are about, and the form of the title made of it.

A pattern finds a verb and its object, or what is found. It is how titles of all languages but
English are found, of which only the commonest turns are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.titles import lexicon as does
from abridge.summarizers.extractive.titles.lexicon import Lexicon
from abridge.summarizers.extractive.titles.phrases import CLAUSES, ROOM, Draft, Words

MAX_FOUND = 3  # times that a pattern is looked for in a sentence


@dataclass(frozen=True)
class Pattern:
    """It finds a `verb` and an `object`, or one of them, in small letters; where it has no group
    `object`, that is what follows."""

    found: re.Pattern[str]
    form: str  # of the title, from all groups
    kind: str
    lexicon: Lexicon | Callable[[str], str]  # or what cuts an object without spaces
    verb_of: Callable[[str], str] = str  # a verb as it stands in a title

    def read(self, text: str, lowered: str) -> Iterator[Draft]:
        """Yield the titles that a sentence gives."""
        for found in islice(self.found.finditer(lowered), MAX_FOUND):
            groups = {name: text[slice(*found.span(name))] for name in found.re.groupindex}
            if "verb" in groups:
                groups["verb"] = self.verb_of(groups["verb"])
            start = found.start("object") if "object" in groups else found.end()
            thing = groups.get("object") or text[start:]
            form = self.form.format(**groups | {"object": "{}"})
            if isinstance(self.lexicon, Lexicon):
                yield from self._cut(self.lexicon, form, thing, begins=start == 0)
            elif cut := self.lexicon(thing):
                yield Draft(self.kind, form, cut)

    def _cut(self, lexicon: Lexicon, form: str, thing: str, *, begins: bool) -> Iterator[Draft]:
        if lexicon.measures:
            thing = re.sub(lexicon.measures, "", thing)
        words = Words(thing, lexicon, "" if begins else thing)
        if words.kinds[0] & does.ASKING:
            ends = words.questions(0, ROOM)
        elif self.kind in CLAUSES:
            ends = words.clauses(0, ROOM)
        else:
            ends = words.phrases(0, ROOM)
        yield from words.drafts(self.kind, form, 0, ends)


def patterns(
    lexicon: Lexicon | Callable[[str], str],
    *rows: tuple[str, str, str],
    verbs: Callable[[str], str] = str,
) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(lazy_compile(found), form, kind, lexicon, verbs) for found, form, kind in rows
    )
