"""Print the tables of settings as `TypedDict`s, by which type checkers know what `Settings` takes:
`python -m tests.docs.setting_dicts > middleware/abridge/config/setting_dicts.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from abridge.config.setting_types import BYTES, Table
from abridge.config.settings import Settings
from abridge.config.upstreams import UpstreamSettings

HEAD = '''\
"""The tables of settings as dictionaries: what `Settings` takes beside the tables themselves.

Made of the tables by `python -m tests.docs.setting_dicts`; after a change there, make it anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

'''


def setting_dicts() -> str:
    tables = list(dict.fromkeys(tables_of(Settings)))
    modules: dict[str, list[str]] = {}
    for table in tables[:-1]:
        modules.setdefault(table.__module__, []).append(table.__name__)
    imports = (_import(*module) for module in sorted(modules.items()))
    return HEAD + "".join(imports) + "".join(map(_typed_dict, tables))


def _import(module: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"from {module} import {names[0]}\n"
    listed = "".join(f"    {name},\n" for name in sorted(names))
    return f"from {module} import (\n{listed})\n"


def tables_of(table: type[Table]) -> Iterator[type[Table]]:
    """Yield the tables within a table, then the table."""
    for field in table.model_fields.values():
        for part in _parts(field.annotation):
            if isinstance(part, type) and issubclass(part, Table):
                yield from tables_of(part)
    yield table


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield a type and all that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _typed_dict(table: type[Table]) -> str:
    head = f'class {_name(table)}(TypedDict, total=False):\n    """See `{table.__name__}`."""\n\n'
    keys = (f"    {name}: {_key(table, name)}\n" for name in table.model_fields)
    return f"\n\n{head}{''.join(keys)}"


def _name(table: type[Table]) -> str:
    return table.__name__.removesuffix("Settings") + "SettingsDict"


def _key(table: type[Table], name: str) -> str:
    """Write the type of what a key may be given."""
    if table is UpstreamSettings and name in Settings.model_fields:  # overrides of that table
        return f"{_name(Settings.model_fields[name].annotation)}"
    field = table.model_fields[name]
    return "int | str" if BYTES in field.metadata else _write(field.annotation)


def _write(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return f"{annotation.__name__} | {_name(annotation)}"
    if annotation in (None, NoneType, Any):
        return "Any" if annotation is Any else "None"
    if origin is Literal:
        return f"Literal[{', '.join(map(_quote, args))}]"
    if origin is dict:
        return f"Mapping[{', '.join(map(_write, args))}]"
    if origin is tuple or getattr(origin, "__name__", "") == "Sequence":
        return f"Sequence[{_write(args[0])}]"
    if hasattr(annotation, "__metadata__"):
        return _write(args[0])
    if args:
        return " | ".join(map(_write, args))
    return str(annotation.__name__)


def _quote(value: str) -> str:
    return f'"{value}"'


if __name__ == "__main__":
    sys.stdout.write(setting_dicts())
