"""JSON as providers write it: orjson for speed, the standard library for what orjson rejects.

orjson rejects lone surrogates (deltas may split a pair), NaN and infinities, and reads integers of
more than 64 bits as floats. All of these occur on the wire and must be preserved. Numbers that a
float would change are read as `ExactNumber`, which remembers how each was spelled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, Self

import orjson

from abridge.core.conversation import Json
from abridge.errors import NestedTooDeep

_DIGIT_MASK = bytes(
    ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256)
)

_LONG_NUMBER = b"0" * 19

_SAMPLING = 6
"""To look for a long number, each sixth byte is looked at first."""

_SAMPLED_NUMBER = _LONG_NUMBER[_SAMPLING - 1 :: _SAMPLING]
"""What is seen of a long number at least, wherever it begins."""

_SLICE = 64 << 10
"""Bytes to look through at once, so that a long text holds up nothing else."""

LONGEST_NEEDLE = 64
"""Bytes that a match of a pattern in `contains` has at most."""

MAX_CALL = 4 << 20
"""Bytes that orjson parses in one call, which takes it up to 20 ms."""

_NO_VALUE_MARKS = bytes(set(range(256)) - set(b"[{,"))

_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))

_STEPS = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
"""By how much a bracket changes the depth."""

MAX_PARSED_DEPTH = 1024
"""Levels of nesting that are parsed at most, by orjson and by the standard library: how many that
would take by itself is another number on each Python."""

MAX_DEPTH = 250
"""Levels of nesting that are written at least; those that orjson writes are a few more."""

_ESCAPED = re.compile(rb"\\.", re.DOTALL)

_DIGITS = re.compile(r"[0-9]{1,19}")

_INTEGERS = re.compile(rb"(?<=[\[,])(?:\s*+-?\d++\s*+,){16,}")

_MIN_INTEGER, _MAX_INTEGER, _MAX_DIGITS = -(1 << 63), (1 << 64) - 1, 20  # what orjson writes


class ExactNumber(float):
    """A number that is written again as it was spelled: NaN, 1E400, an integer past 64 bits.

    Two of them are equal if they are spelled alike.
    """

    __slots__ = ("spelling",)

    spelling: str

    def __new__(cls, spelling: str) -> Self:
        number = super().__new__(cls, spelling)
        number.spelling = spelling
        return number

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ExactNumber):
            return self.spelling == other.spelling
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__


def loads(data: bytes) -> Any:
    """Parse. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        _check_depth(data)
        return json.loads(data)


def loads_exact(data: bytes) -> Any:
    """Parse without changing any number, for JSON that will be written again. Raises ValueError.

    Nothing that is large is parsed in one call that lasts: no other thread has its turn meanwhile.
    """
    if len(data) <= MAX_CALL and not _has_long_number(data):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    _check_depth(data)
    return json.loads(
        data,
        parse_float=ExactNumber,
        parse_int=_parse_integer,
        parse_constant=ExactNumber,
        object_hook=_give_way if len(data) > _SLICE else None,
    )


def _give_way(parsed: Json) -> Json:
    """Return an object that was parsed: whenever Python code runs, other threads may."""
    return parsed


def _check_depth(data: bytes) -> None:
    """Raise ValueError for what is nested too deep. In UTF-16 and UTF-32 it is not looked for."""
    if len(data) <= 2 * MAX_PARSED_DEPTH or b"\0" in data:
        return
    depth = 0
    for text in outside_strings(data):
        steps = map(_STEPS.__getitem__, text.translate(None, _NO_BRACKETS))
        depths = list(accumulate(steps, initial=depth))
        depth = depths[-1]
        if max(depths) > MAX_PARSED_DEPTH:
            raise ValueError("nested too deep")


def _has_long_number(data: bytes) -> bool:
    """Return whether JSON may hold a number of many digits."""
    sampled = data[::_SAMPLING].translate(_DIGIT_MASK)
    return _SAMPLED_NUMBER in sampled and _LONG_NUMBER in data.translate(_DIGIT_MASK)


def contains(data: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Return whether data contains a pattern, of which every match is shorter than
    `LONGEST_NEEDLE`. Fastest where that begins with a quotation mark."""
    if len(data) <= _SLICE:
        return pattern.search(data) is not None
    for start in range(0, len(data), _SLICE):
        if pattern.search(data, start, start + _SLICE + LONGEST_NEEDLE):
            return True
    return False


def count_values(data: bytes, enough: int = 0) -> int:
    """Return the number of values in JSON, or a few more: a closing bracket is not looked at. If
    there are no more than `enough`, return any number between.

    Each value follows on a bracket or a comma that is in no string, or it is the first. Those in
    strings are counted first, and left out again slice by slice, until it is few enough. In UTF-16
    and UTF-32, which only the standard library reads, strings are not told apart.
    """
    counts = [_count_marks(data[start : start + _SLICE]) for start in range(0, len(data), _SLICE)]
    total = 1 + sum(counts)
    if total <= enough or b"\0" in data:
        return total
    for count, text in zip(counts, outside_strings(data), strict=True):
        total += _count_marks(text) - count
        if total <= enough:
            break
    return total


def _count_marks(text: bytes) -> int:
    """Return how many brackets and commas there are, before which a value may stand."""
    return len(text.translate(None, _NO_VALUE_MARKS))


def outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield what of a JSON text is in no string, in pieces."""
    is_within, escape = False, b""
    for start in range(0, len(data), _SLICE):
        text = escape + data[start : start + _SLICE]
        escape = b"\\" if (len(text) - len(text.rstrip(b"\\"))) % 2 else b""
        text = _ESCAPED.sub(b"", text.removesuffix(escape))
        pieces = text.split(b'"')
        yield b"".join(pieces[is_within::2])
        is_within ^= len(pieces) % 2 == 0


def without_integers(data: bytes) -> bytes:
    """Return JSON without most of what its lists have of many integers, such as the tokens of a
    text; what else a list has stays."""
    slices = (data[start : start + _SLICE] for start in range(0, len(data), _SLICE))
    return b"".join(_INTEGERS.sub(b"", text) for text in slices)


def _parse_integer(spelling: str) -> float:
    if len(spelling) <= _MAX_DIGITS and _MIN_INTEGER <= (number := int(spelling)) <= _MAX_INTEGER:
        return number
    return ExactNumber(spelling)


def replace_invalid(text: bytes) -> bytes:
    """Return text with U+FFFD in place of what is not UTF-8, as half a character."""
    return text.decode(errors="replace").encode()


def replace_halves(text: str) -> str:
    """Return text with U+FFFD in place of halves of characters, as no JSON may have them."""
    return str.encode(text, "utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def begins_object(data: bytes) -> bool:
    """Return whether the data is a JSON object, if it is JSON at all."""
    return data.lstrip().startswith(b"{")


def parse_object(data: bytes, parse: Callable[[bytes], Any] = loads) -> Json | None:
    """Parse a JSON object; return None if `data` is anything else."""
    try:
        value = parse(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_body(body: bytes) -> tuple[Json | None, bytes]:
    """Parse a JSON object with exact numbers. Return also the bytes that it was parsed from: where
    they were not UTF-8, U+FFFD stands in the place of that."""
    parsed = parse_object(body, loads_exact)
    valid = body if parsed is not None else replace_invalid(body)
    return (parsed, body) if valid == body else (parse_object(valid, loads_exact), valid)


def parse_object_text(text: str, parse: Callable[[bytes], Any] = loads) -> Json | None:
    """Parse a JSON object that is text, as the arguments of calls are; return None for any other
    text."""
    return parse_object(text.encode(errors="surrogatepass"), parse)


def dumps(value: Any) -> bytes:
    """Serialize. Raises NestedTooDeep, and TypeError for what is no JSON."""
    try:
        return orjson.dumps(value, _spell)
    except TypeError:
        return orjson.dumps(_spell_out(value, MAX_DEPTH), _spell)


def _spell(value: Any) -> orjson.Fragment:
    if isinstance(value, ExactNumber):
        return orjson.Fragment(value.spelling)
    raise TypeError(type(value).__name__)


def _spell_out(value: Any, levels: int) -> Any:
    """Return `value` with what orjson refuses spelled out: lone surrogates, long integers.

    Raises NestedTooDeep for one of more than so many levels.
    """
    if isinstance(value, str):
        return value if _is_encodable(value) else orjson.Fragment(json.dumps(value))
    if isinstance(value, list | tuple | dict) and not levels:
        raise NestedTooDeep(MAX_DEPTH)
    if isinstance(value, list | tuple):
        return [_spell_out(entry, levels - 1) for entry in value]
    if isinstance(value, dict):
        entries = {key: _spell_out(entry, levels - 1) for key, entry in value.items()}
        return entries if all(map(_is_encodable, value)) else _spell_out_keys(entries)
    return orjson.Fragment(str(value)) if type(value) is int else value


def _spell_out_keys(entries: Json) -> orjson.Fragment:
    """Write an object, the entries of which are spelled out, and some of its keys yet to be."""
    written = (
        b"%b:%b" % (dumps(key), orjson.dumps(entry, _spell)) for key, entry in entries.items()
    )
    return orjson.Fragment(b"{%b}" % b",".join(written))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def spelled(value: Any) -> str:
    """Return the beginning of a value for a message, in which true is no Python's `True`."""
    return dumps(value).decode() if isinstance(value, bool | None) else f"{value!r:.80}"


def packed(value: Any) -> bytes:
    """Serialize for storage.

    A parsed object takes five times the memory of its JSON, and the bytes that orjson returns have
    spare room at their end, so that they are copied.
    """
    return bytes(memoryview(dumps(value)))


def string(value: Any) -> str:
    """Return `value` if it is a string, else "".

    Structured content where a string was expected is no reason to fail.
    """
    return value if isinstance(value, str) else ""


def as_integer(value: Any) -> int | None:
    """Return an integer, which a server may write as `1.0`, as Java's Gson does, or as `"1"`, as
    protobuf does with 64 bits; None for any other value."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) else None
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole else None


def first_string(fields: Json, *keys: str) -> str:
    """Return the first string under one of these keys that is not empty; "" without one."""
    return next(filter(None, map(string, map(fields.get, keys))), "")


_is_object = dict.__instancecheck__
"""Tells what is a `dict` as `isinstance` does, in a filter that takes no call of Python's."""


def objects(value: Any) -> list[Json]:
    """Return the objects in `value` if it is a list, else nothing."""
    return list(filter(_is_object, value)) if isinstance(value, list) else []


def entries(value: Any) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_object(value: Any) -> Json:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def nested_value(value: Any, path: str) -> Any:
    """Return what stands in an object under a key, dotted if nested; None without it."""
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def set_nested(body: Json, path: str, value: Any) -> None:
    """Set what stands in an object under a key, dotted if nested."""
    *holders, last = path.split(".")
    for key in holders:
        body = body.setdefault(key, {})
    body[last] = value
