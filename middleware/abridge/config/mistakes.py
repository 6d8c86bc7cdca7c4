"""What is wrong with settings, in words: which key, what it got, what it takes, what was meant.

The values of unknown keys are not repeated, nor are addresses under any key: either may hold a
secret. Imported only where there is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from abridge.apis.json import spelled
from abridge.config.field_docs import unit_of
from abridge.config.sources import UPSTREAMS_VARIABLE, KeyPath, spell_key, variable_of

_KEY = re.compile(r"([a-z_]+(?:\[\d+\])?(?:\.[a-z_]+(?:\[\d+\])?)*): ")
"""The key with which a message begins that tells its own."""

_WITH_UNIT = re.compile(r"\s*[\d.,]+\s*[A-Za-z]+\s*")
"""A number with a unit, such as 30s."""

SURELY_MEANT = 0.9
"""How alike a variable is to another at least (`difflib`) that must have been meant."""

_QUOTED = re.compile(r"'([^']*)'")

ONE_OF = "must be one of "

PRIVATE_KEYS = frozenset({"base_url", "store", "credential", "forward_headers"})
"""Keys, besides `*_env`, whose values may be or have secrets, where they belong or by mistake."""

NUMBER, WHOLE_NUMBER, BOOLEAN = (
    "must be a number",
    "must be a whole number",
    "must be true or false",
)

TABLE = "must be a table"

SIZE = 'must be a number of bytes, such as 1048576 or "32MiB"'

REQUIREMENTS = {
    "float_parsing": NUMBER,
    "float_type": NUMBER,
    "int_parsing": WHOLE_NUMBER,
    "int_type": WHOLE_NUMBER,
    "int_from_float": WHOLE_NUMBER,
    "bool_parsing": BOOLEAN,
    "bool_type": BOOLEAN,
    "byte_size": SIZE,
    "byte_size_unit": SIZE,
    "string_type": "must be text",
    "tuple_type": 'must be a list, such as ["a", "b"]',
    "dict_type": TABLE,
    "model_type": TABLE,
    "model_attributes_type": TABLE,
    "extra_forbidden": "must be a table without unknown keys",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:.15g}",
    "literal_error": "must be {expected}",
    "string_pattern_mismatch": (
        "must begin with a letter or digit, and contain only letters, digits, dots, hyphens and "
        "underscores"
    ),
}
"""What a value must be, by the type of pydantic's error, with the places of its context."""

LIST_OF_TABLES = (
    "must be a list of tables: [[{0}]] above each in a file, not [{0}]; JSON such as "
    '[{{"base_url": "http://127.0.0.1:8000/v1"}}] in a variable'
)


class Mistake(NamedTuple):
    """A mistake in the settings. `meant` is the key that was probably meant."""

    path: KeyPath
    text: str
    meant: KeyPath | None = None
    is_contradiction: bool = False  # between keys each of which may be right

    def tell(self, place: str, spell: Callable[[KeyPath], str] = spell_key) -> str:
        """Return the line that says it; `spell` is how keys are spelled where it was made."""
        hint = "" if self.meant is None else f"; did you mean {spell(self.meant)}?"
        return f"{place}: {self.text}{hint}".removeprefix(": ")

    def within(self, path: KeyPath) -> Mistake:
        meant = None if self.meant is None else (*path, *self.meant)
        return self._replace(path=(*path, *self.path), meant=meant)


def split_key(line: str) -> tuple[KeyPath, str]:
    """Return the key with which a line begins, and the rest; no key if it begins with none."""
    found = _KEY.match(line)
    if found is None:
        return (), line
    parts = re.findall(r"[a-z_]+|\d+", found[1])
    return tuple(int(part) if part.isdigit() else part for part in parts), line[found.end() :]


def find_mistakes(error: ValidationError, table: type[BaseModel]) -> list[Mistake]:
    """Return all mistakes that validation found in a table, each once."""
    by_key: dict[KeyPath, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        by_key.setdefault(_key_path(detail["loc"], table), []).append(detail)
    outer = {path[:-1] for path in by_key if path and isinstance(path[-1], int)}
    return [
        mistake
        for path, details in by_key.items()
        if path not in outer  # a list with a wrong entry counts as too short
        for mistake in _describe(path, details, table)
    ]


def explain(error: ValidationError, table: type[BaseModel], path: KeyPath) -> str:
    """Return a line for each mistake, beginning with its key; `path` is the table's own."""
    found = [mistake.within(path) for mistake in find_mistakes(error, table)]
    return "\n".join(mistake.tell(spell_key(mistake.path)) for mistake in found)


def find_all_mistakes(
    error: ValidationError, table: type[BaseModel], values: Mapping[str, Any]
) -> list[Mistake]:
    """Like `find_mistakes` of all settings, and those in the tables of upstreams, which validation
    does not come to where there are others."""
    found = find_mistakes(error, table)
    if not any(mistake.is_contradiction for mistake in found):
        found += _mistakes_of_upstreams(table, values)
    return found


def _mistakes_of_upstreams(table: type[BaseModel], values: Mapping[str, Any]) -> Iterator[Mistake]:
    upstreams = values.get("upstreams")
    for index, upstream in enumerate(upstreams if isinstance(upstreams, list | tuple) else ()):
        for name, own in upstream.items() if isinstance(upstream, Mapping) else ():
            field = table.model_fields.get(name)
            general = None if field is None else _table_of(field)
            if general is None or not isinstance(own, Mapping):
                continue
            try:
                general.model_validate(own)
            except ValidationError as error:
                for mistake in find_mistakes(error, general):
                    yield mistake.within(("upstreams", index, name))


def explain_strays(
    names: Iterable[str], table: type[BaseModel], values: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a line for each of these variables that must have been meant for a setting. Those that
    a setting names hold secrets."""
    known: dict[str, KeyPath] = {UPSTREAMS_VARIABLE: ("upstreams",)}
    for path in _keys_of_tables(table):
        known.setdefault(variable_of(path[:1]), path)
        known[variable_of(path).replace("__", "_")] = path
    secrets = set(_named_variables(values))
    for name in names:
        near = get_close_matches(name.upper(), known, 1, SURELY_MEANT)
        if near and name.removesuffix("_FILE") not in secrets:
            meant = variable_of(known[near[0]])
            why = "two underscores separate a table from its key; "
            if meant == UPSTREAMS_VARIABLE:
                why = ""
            yield f"{name}: there is no such variable; {why}did you mean {meant}?"


def _named_variables(values: Any) -> Iterator[str]:
    """Yield the variables that settings name."""
    for key, value in values.items() if isinstance(values, Mapping) else ():
        if key.endswith("_env") and isinstance(value, str):
            yield value
        for inner in value if isinstance(value, list | tuple) else (value,):
            yield from _named_variables(inner)


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant."""
    names, said = list(known), word.lower().replace("-", "_")
    near = get_close_matches(said, names, 1)
    within = [name for name in names if len(said) > 2 and (said in name or name in said)]
    return next(iter([*near, *within]), None)


def _describe(path: KeyPath, details: list[ErrorDetails], table: type[BaseModel]) -> list[Mistake]:
    first = details[0]
    if first["type"] == "extra_forbidden":
        return [Mistake(path, "there is no such setting", _meant(path, table))]
    if first["type"] == "value_error":
        lines = first["msg"].removeprefix("Value error, ").splitlines()
        told = [_tell(path, line, first["input"]) for line in lines]
        return told if path else [mistake._replace(is_contradiction=True) for mistake in told]
    field = _field(path, table)
    texts = dict.fromkeys(_requirement(detail, path, field) for detail in details)
    text = ", or ".join(
        [next(iter(texts)), *(each.removeprefix("must be ") for each in list(texts)[1:])]
    )
    return [_tell(path, text, first["input"])]


def _tell(path: KeyPath, text: str, value: Any) -> Mistake:
    """Return a mistake with the value that the key got, unless the message names a key itself."""
    inner, text = split_key(text)
    if inner:
        return Mistake((*path, *inner), text)
    hint = _hint(text, value)
    if not path or _may_be_secret(path, value):
        return Mistake(path, f"{text}{hint}")
    return Mistake(path, f"got {spelled(value)}; {text}{hint}")


def _may_be_secret(path: KeyPath, value: Any) -> bool:
    key = [part for part in path if isinstance(part, str)][-1]
    is_private = key in PRIVATE_KEYS or key.endswith("_env")
    return is_private or "://" in str(value) or isinstance(value, Mapping | BaseModel)


def _hint(text: str, value: Any) -> str:
    """Return the question whether one of the values that a message lists was meant."""
    if not isinstance(value, str):
        return ""
    listed = (
        text.removeprefix(ONE_OF).split(", ") if text.startswith(ONE_OF) else _QUOTED.findall(text)
    )
    near = get_close_matches(value.lower(), listed, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _requirement(detail: ErrorDetails, path: KeyPath, field: FieldInfo | None) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "tuple_type" and field is not None and _table_of(field) is not None:
        return LIST_OF_TABLES.format(spell_key(path))
    if kind == "tuple_type" and isinstance(value, str) and not _may_be_secret(path, value):
        words = '", "'.join(word.strip() for word in f"{value:.40}".split(","))
        return f'must be a list, such as ["{words}"]'
    if kind not in REQUIREMENTS:
        return detail["msg"].replace("Input should be", "must be")
    text = REQUIREMENTS[kind].format(**detail.get("ctx", {}))
    if text in (NUMBER, WHOLE_NUMBER):
        unit = unit_of(field) if field is not None else None
        text = f"{text} of {unit}" if unit else text
        if isinstance(value, str) and _WITH_UNIT.fullmatch(value):
            return f"{text}, without a unit"
    return text


def _key_path(loc: Sequence[str | int], table: type[BaseModel]) -> KeyPath:
    """Return the way to the key at fault, without what pydantic adds for the parts of a type."""
    path: KeyPath = ()
    inner: type[BaseModel] | None = table
    for part in loc:
        if isinstance(part, str):
            if inner is None:
                break
            field = inner.model_fields.get(part)
            inner = None if field is None else _table_of(field)
        path += (part,)
    return path


def _table_at(path: KeyPath, table: type[BaseModel]) -> type[BaseModel] | None:
    """Return the table that a key holds, None if it holds none."""
    inner: type[BaseModel] | None = table
    for part in path:
        if inner is not None and isinstance(part, str):
            field = inner.model_fields.get(part)
            inner = None if field is None else _table_of(field)
    return inner


def _field(path: KeyPath, table: type[BaseModel]) -> FieldInfo | None:
    names = [end for end, part in enumerate(path) if isinstance(part, str)]
    if not names:
        return None
    parent = _table_at(path[: names[-1]], table)
    return None if parent is None else parent.model_fields.get(str(path[names[-1]]))


def _meant(path: KeyPath, table: type[BaseModel]) -> KeyPath | None:
    """Return the key that was probably meant: one that is spelled alike, or of another table."""
    *parents, key = path
    siblings = _table_at(tuple(parents), table)
    if siblings is not None and (name := closest(str(key), siblings.model_fields)):
        return (*parents, name)
    return next((known for known in _keys_of_tables(table) if known[-1] == key), None)


def _keys_of_tables(table: type[BaseModel]) -> Iterator[KeyPath]:
    for name, field in table.model_fields.items():
        inner = _table_of(field)
        if inner is not None and not get_args(field.annotation):
            yield from ((name, key) for key in inner.model_fields)


def _table_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table that a field holds, itself or in a list."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None
