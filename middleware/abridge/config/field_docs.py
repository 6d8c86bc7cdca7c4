"""The documentation of a table's keys: the texts beside them in the source.

pydantic can read them, too (`use_attribute_docstrings`), but parses the source for it, which on
Python 3.11 takes a tenth of the time in which `abridge serve` starts.
"""

from __future__ import annotations

import inspect
import re
import sys
from itertools import chain
from textwrap import indent
from typing import Any, get_args

from annotated_types import Unit
from pydantic import BaseModel
from pydantic.fields import FieldInfo

KEYS = "Keys:"

_FIELD = re.compile(
    r'^    (\w+): .*\n(?:     .*\n|    [)\]].*\n)*    """([\s\S]*?)"""', re.MULTILINE
)
"""A field and the text after it; lines between are indented further, or close a bracket."""


def document(table: type[BaseModel]) -> None:
    """Give each field its description, and have `help` list them all."""
    texts = _texts(table)
    for name, field in table.model_fields.items():
        field.description = texts.get(name, field.description)
    described = (_describe(name, field) for name, field in table.model_fields.items())
    table.__doc__ = "\n\n".join([inspect.cleandoc(table.__doc__ or ""), KEYS, *described])


def add_descriptions(schema: dict[str, Any], table: type[BaseModel]) -> None:
    """Add what `document` found to a table's JSON Schema."""
    schema["description"] = (table.__doc__ or "").partition(f"\n\n{KEYS}")[0]
    for name, described in schema.get("properties", {}).items():
        described["description"] = table.model_fields[name].description


def _describe(name: str, field: FieldInfo) -> str:
    default, unit = field.get_default(call_default_factory=True), unit_of(field)
    head = name if isinstance(default, BaseModel) else f"{name} = {default!r}"
    head += f", in {unit}" if unit else ""
    return f"{head}\n{indent(field.description or '', '    ')}"


def unit_of(field: FieldInfo) -> str | None:
    """Return the unit of a field's values. The last that its type names counts."""
    of_parts = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    units = [mark.unit for mark in chain(*of_parts, field.metadata) if isinstance(mark, Unit)]
    return units[-1] if units else None


def _texts(table: type[BaseModel]) -> dict[str, str]:
    """Return the texts after the fields of a class, by field; none without the source."""
    try:
        source = inspect.getsource(sys.modules[table.__module__])
    except (KeyError, OSError, TypeError):
        return {}
    body = source.partition(f"\nclass {table.__name__}(")[2].partition("\nclass ")[0]
    return {name: inspect.cleandoc(text) for name, text in _FIELD.findall(body)}
