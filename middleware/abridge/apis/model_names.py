"""Names of models: those that clients say, those that upstream wants, and the way back.

A rule gives a name of upstream's to the names of clients that a glob matches. Where upstream's name
holds `{}`, that stands for what the glob's `*` matched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from abridge.apis.json import as_object, dumps, outside_strings, string
from abridge.core.conversation import Json

MATCHED = "{}"
"""Stands in upstream's name for what the glob's `*` matched."""

KEY = b'"model'
"""Begins the key: `model`, or Gemini's `modelVersion`."""

MAX_NAME_CHARS = 256
"""The longest name of a model, in characters. It is compared with globs, repeated in every frame of
a translated answer, and stands in paths."""

MAX_KEYS_CHECKED = 16
"""Keys with the name in one JSON text, in any place, that are looked at."""

_WILDCARDS = re.compile(r"[*?\[]")

HOLDERS = ("response", "message", "interaction")
"""The keys of an event that holds an answer, as `response.created`, `message_start` and
`interaction.created` do (the APIs' references)."""

_HOLDER = re.compile(rb'[^{]*\{[^{}\[\]]*"(?:%b)"\s*:\s*\{' % "|".join(HOLDERS).encode())
"""The beginning of such an event."""


_QUIET = frozenset(
    {
        *("ping", "message_start", "response.created", "response.queued", "response.in_progress"),
        *("interaction.created", "interaction.status_update"),
    }
)
"""Types of events before an answer's first piece."""


@dataclass(slots=True, frozen=True)
class ModelRenames:
    """An upstream's rules in order: globs of clients' names, each with a name of upstream's."""

    rules: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, table: Mapping[str, str]) -> ModelRenames:
        """Raises ValueError for a rule that cannot be applied; the message begins with its glob."""
        for glob, name in table.items():
            if problem := _find_problem(glob, name):
                raise ValueError(f"{glob!r}: {problem}")
        return cls(tuple(table.items()))

    def __bool__(self) -> bool:
        return bool(self.rules)

    def to_upstream(self, name: str) -> str:
        """Return upstream's name for a client's: by the first rule that matches, else the same. An
        empty one is no name."""
        for glob, target in self.rules if name else ():
            if fnmatchcase(name, glob):
                matched = _matched(name, glob) if MATCHED in target else ""
                return target.replace(MATCHED, matched)
        return name

    def to_client(self, name: str) -> tuple[str, ...]:
        """Return the names by which clients may call a model of upstream's; those that the rules
        tell, else its own if that leads to it."""
        told = dict.fromkeys(self._told_names(name))
        known = tuple(told) or (name,)
        return tuple(each for each in known if self.to_upstream(each) == name)

    def _told_names(self, name: str) -> Iterator[str]:
        for glob, target in self.rules:
            if MATCHED in target:
                head, tail = target.split(MATCHED)
                fits = len(name) >= len(head) + len(tail)
                if fits and name.startswith(head) and name.endswith(tail):
                    told = glob.replace("*", name[len(head) : len(name) - len(tail)])
                else:
                    continue
            elif target == name and not _WILDCARDS.search(glob):
                told = glob
            else:
                continue
            if self.to_upstream(told) == name:
                yield told


def _find_problem(glob: str, name: str) -> str:
    """Return what is wrong with a rule, or nothing."""
    if not glob or not name:
        return "both names must be given"
    if MATCHED not in name:
        return ""
    if name.count(MATCHED) > 1:
        return f"{MATCHED} can stand once in {name!r}"
    if _WILDCARDS.findall(glob) != ["*"]:
        return f"must hold one * and no other wildcard, for which {MATCHED} stands in {name!r}"
    return ""


def _matched(name: str, glob: str) -> str:
    head, tail = glob.split("*")
    return name[len(head) : len(name) - len(tail)]


class AnsweredNames:
    """Puts clients' names of models in the place of upstream's, in the JSON of answers.

    A name is replaced only where an answer says which model gave it: `model` of the answer itself,
    or of the `response`, `message` or `interaction` that an event holds, or Gemini's
    `modelVersion`. All other bytes stay as they are.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names`: clients' names by upstream's."""
        self._spelled = {
            spelling: dumps(client)
            for upstream, client in names.items()
            for spelling in _spellings(upstream)
        }
        alternatives = b"|".join(map(re.escape, self._spelled))
        self._key = re.compile(rb'"model(?:Version)?"\s*+:\s*+(%b)' % alternatives)

    def replace_in_lines(self, lines: bytes) -> bytes:
        """Replace the names in the lines of a stream of events, each of which is one JSON text."""
        if KEY not in lines:
            return lines
        return b"".join(map(self.replace_in_text, lines.splitlines(keepends=True)))

    def replace_in_text(self, text: bytes) -> bytes:
        """Replace the name in one JSON text, before which anything without brackets may stand."""
        at, checked = text.find(KEY), 0
        while at >= 0 and checked < MAX_KEYS_CHECKED:
            if (key := self._key.match(text, at)) is not None:
                if _names_answer(text[:at]):
                    return text[: key.start(1)] + self._spelled[key.group(1)] + text[key.end() :]
                checked += 1
            at = text.find(KEY, at + len(KEY))
        return text


def answered_model(said: Json) -> str:
    """Return the model that an answer, or an event of one, says it is from; empty without a name.
    Azure's first chunk has an empty one."""
    for holder in (said, *(as_object(said.get(key)) for key in HOLDERS)):
        name = holder.get("model") or holder.get("modelVersion")
        if isinstance(name, str) and name.strip():
            return name
    return ""


def says_something(event: Json) -> bool:
    """Return whether an event of any API says a piece of an answer."""
    kind = string(event.get("type") or event.get("event_type"))
    return bool(event.get("choices") or event.get("candidates") or (kind and kind not in _QUIET))


def _spellings(name: str) -> tuple[bytes, ...]:
    """Return the ways in which servers write a name as JSON: some escape what is not ASCII, some a
    slash (PHP)."""
    plain, escaped = dumps(name), json.dumps(name).encode()
    spellings = (plain, escaped, plain.replace(b"/", b"\\/"), escaped.replace(b"/", b"\\/"))
    return tuple(dict.fromkeys(spellings))


def _names_answer(before: bytes) -> bool:
    """Return whether a key of a JSON text is one of the answer's own, by what stands before it: the
    brackets that are open there."""
    if before.endswith(b"\\"):  # within the name of another key
        return False
    if before.count(b"{") == 1 and b"[" not in before and b"}" not in before:
        return True
    depth = 0
    for text in outside_strings(before):
        depth += sum(map(text.count, (b"{", b"["))) - sum(map(text.count, (b"}", b"]")))
    return depth == 1 or (depth == 2 and _HOLDER.match(before) is not None)
