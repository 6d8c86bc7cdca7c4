"""Put a call together whose arguments stream.

On Vertex AI a call may come in several parts: its name, then pieces of its arguments, each with the
JSON path of the value that it belongs to, then a part that does not say that more of the call will
follow. A text comes in several pieces under one path (googleapis: google/cloud/aiplatform/v1,
`FunctionCall`, `PartialArg`; js-genai, `PartialArg`).
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from abridge.apis.gemini.reasoning import call_of, signature_of
from abridge.apis.json import MAX_DEPTH, as_object, objects, string
from abridge.core.conversation import Json

_Step: TypeAlias = str | int

_Node: TypeAlias = "dict[_Step, _Node] | _Leaf"

_STEP = re.compile(
    r"""\.([^.\[\]]++) | \[(\d{1,9})\] | \['((?:[^'\\]|\\.)*+)'\] | \["((?:[^"\\]|\\.)*+)"\]""",
    re.VERBOSE | re.DOTALL,
)

_VALUES = ("numberValue", "boolValue")

_PIECES = ("args", "partialArgs", "willContinue")


def is_partial(call: Json) -> bool:
    """Return whether a call comes in parts, of which this is the first."""
    return bool(call.get("willContinue") or call.get("partialArgs"))


class PartialCall:
    """One call, of at most `limit` characters."""

    def __init__(self, limit: int) -> None:
        self._room_left = limit
        self._part: Json = {}  # all of it but for its arguments
        self._arguments: dict[_Step, _Node] = {}

    @property
    def has_begun(self) -> bool:
        return bool(self._part)

    def add(self, part: Json) -> bool:
        """Add a part of the call. Return False if it cannot be read, or begins another call."""
        call = call_of(part)
        if not self.has_begun:
            head = {key: value for key, value in call.items() if key not in _PIECES}
            self._part = {**part, "functionCall": head}
        elif call.get("name"):
            return False
        if signature := signature_of(part):
            self._part.setdefault("thoughtSignature", signature)
        for name, value in as_object(call.get("args")).items():
            self._arguments[name] = _Leaf(value)
        return all(map(self._add_argument, objects(call.get("partialArgs"))))

    def build(self) -> Json:
        """Return the part that holds the call whole."""
        call = {**self._part["functionCall"], "args": _build(self._arguments)}
        return {**self._part, "functionCall": call}

    def _add_argument(self, argument: Json) -> bool:
        path, text = string(argument.get("jsonPath")), argument.get("stringValue")
        self._room_left -= len(path) + len(string(text))
        steps = read_path(path)
        if not (steps and isinstance(steps[0], str)) or self._room_left < 0:
            return False
        node = self._arguments
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if not _fits(step, node):
                return False
            if following is None:
                return _set_leaf(node, step, argument)
            inner = node.setdefault(step, {})
            if not isinstance(inner, dict):
                return False
            node = inner
        return True


def read_path(path: str) -> list[_Step]:
    """Return the names and indexes of which a path consists; nothing if it cannot be read."""
    steps: list[_Step] = []
    position, end = 1, len(path)
    while path[:1] == "$" and position < end and len(steps) < MAX_DEPTH:
        found = _STEP.match(path, position)
        step = None if found is None else _read_step(found)
        if found is None or step is None:
            return []
        steps.append(step)
        position = found.end()
    return steps if position == end else []


def _read_step(found: re.Match[str]) -> _Step | None:
    name, index, single, double = found.groups()
    if index is not None:
        return int(index)
    if name is not None:
        return str(name)
    quoted = double if single is None else single.replace("\\'", "'").replace('"', '\\"')
    try:
        return string(json.loads(f'"{quoted}"'))
    except ValueError:
        return None


class _Leaf:
    """A value, or the pieces of a text."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.pieces = [value] if isinstance(value, str) else None

    def build(self) -> Any:
        return self.value if self.pieces is None else "".join(self.pieces)


def _fits(step: _Step, node: dict[_Step, _Node]) -> bool:
    """Return whether a value may stand there: a name in an object, the next index in a list."""
    if not node:
        return step == 0 or isinstance(step, str)
    is_list = isinstance(next(iter(node)), int)
    if isinstance(step, int):
        return is_list and step <= len(node)
    return not is_list


def _set_leaf(node: dict[_Step, _Node], step: _Step, argument: Json) -> bool:
    text, known = argument.get("stringValue"), node.get(step)
    if isinstance(text, str):
        if isinstance(known, _Leaf) and known.pieces is not None:
            known.pieces.append(text)
        else:
            node[step] = _Leaf(text)
        return not isinstance(known, dict)
    values = [argument[key] for key in _VALUES if key in argument]
    values += [None] if "nullValue" in argument else []
    if values:
        node[step] = _Leaf(values[0])
    return not (values and isinstance(known, dict))


def _build(node: _Node) -> Any:
    if isinstance(node, _Leaf):
        return node.build()
    built = {step: _build(inner) for step, inner in node.items()}
    return list(built.values()) if 0 in built else built
