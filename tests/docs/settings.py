"""Print docs/settings.md, made of the settings' model and of two files beside this one:
`python -m tests.docs.settings > docs/settings.md`."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import ByteSize
from pydantic.fields import FieldInfo

from abridge.config.field_docs import unit_of
from abridge.config.reloading import needs_restart
from abridge.config.setting_types import BYTES, Table
from abridge.config.settings import Settings
from abridge.sidecar.cli.commands import serve

FOLDER = Path(__file__).parent

OPENING = (FOLDER / "settings_opening.md").read_text()

EXAMPLES: dict[str, Any] = tomllib.loads((FOLDER / "settings.toml").read_text())

SEE = {
    "server": "[Run it as a sidecar](sidecar.md), [who may reach what](access.md), "
    "[keys of Abridge's own](keys.md), [the page](page.md)",
    "upstreams": "[Names, fallbacks and limits](routing.md), [other APIs](bridges.md), "
    "[credentials](access.md)",
    "summary": "[What summaries look like](summaries.md), [what they cost](cost.md)",
    "summarizer": "[Summarizers](summarizers.md), [the styles](summaries.md#ask-for-one)",
    "review": "[Summarizers](summarizers.md)",
    "reasoning": "[Hide reasoning](hiding.md)",
    "compaction": "[Compaction](compaction.md)",
    "history": "[Conversations](conversations.md)",
    "background": "[Background responses](background.md)",
    "usage": "[What it costs](cost.md)",
    "prices": "[Keys for a team](keys.md)",
    "ledger": "[The ledger](ledger.md)",
    "limits": "[The threat model](threat-model.md)",
    "log": "[Logs and traces](logs.md)",
    "tracing": "[Logs and traces](logs.md)",
}
"""Where more is said of a table."""

TABLE_KEYS = ("summary", "reasoning", "usage", "history")
"""The tables that an upstream may override."""

NOTES = {
    "upstreams": "In the file, each upstream is a table `[[upstreams]]`. The variable "
    "`ABRIDGE_UPSTREAMS` lists all of them. The flags define one upstream that replaces those of "
    "the file.",
}


@dataclass(frozen=True)
class Section:
    """A table, and where its keys are."""

    name: str
    table: type[Table]

    @property
    def is_listed(self) -> bool:
        """There may be several of it."""
        return self.table.table_path[-1].endswith("[]")

    @property
    def prefix(self) -> str:
        return f"{self.name}[]" if self.is_listed else self.name

    @property
    def examples(self) -> dict[str, Any]:
        found: Any = EXAMPLES
        for part in self.name.split("."):
            found = found[part]
        return dict(found[0] if self.is_listed else found)


def settings_page() -> str:
    sections = list(sections_of(Settings))
    return "\n".join([OPENING, *map(_contents, sections), *map(_section, sections)]) + "\n"


def sections_of(table: type[Table], prefix: str = "") -> Iterator[Section]:
    """Yield a section for each table within a table; an upstream's own overrides have none."""
    for name, field in table.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, Table):
                yield Section(prefix + name, part)
                yield from sections_of(part, f"{prefix}{name}.")


def _contents(section: Section) -> str:
    summary = section.table.__doc__ or ""
    return f"- [`{section.name}`](#{section.name.replace('.', '')}): {_first_sentence(summary)}"


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def _section(section: Section) -> str:
    name, table = section.name, section.table
    blocks = [f"\n## {name}", *_about(table)]
    if name in NOTES:
        blocks.append(NOTES[name])
    if name in TABLE_KEYS:
        blocks.append(f"An upstream may override these keys: see `upstreams[].{name}`.")
    if name in SEE:
        blocks.append(f"More: {SEE[name]}.")
    blocks += (
        _key(section, key) for key, field in table.model_fields.items() if not _is_table(field)
    )
    return "\n\n".join(blocks)


def _about(table: type[Table]) -> Iterator[str]:
    """Yield the paragraphs that a table says of itself."""
    text = (table.__doc__ or "").partition("\n\nKeys:")[0]
    return (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _is_table(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Table)


def _key(section: Section, key: str) -> str:
    field = section.table.model_fields[key]
    meaning = " ".join((field.description or "").split())
    lines = [f"### `{section.prefix}.{key}`", "", meaning, "", f"- Default: {_default(field)}"]
    if values := list(_values(field.annotation)):
        lines.append(f"- Values: {', '.join(f'`{value}`' for value in values)}")
    if unit := unit_of(field):
        lines.append(f"- Unit: {unit}")
    lines.append(f"- Example: `{key} = {_toml(section.examples[key])}`")
    if not section.is_listed:
        variable = f"abridge.{section.name}.{key}".replace(".", "__").upper()
        lines.append(f"- Variable: `{variable.replace('__', '_', 1)}`")
    if needs_restart(f"{section.name}.{key}"):
        lines.append("- A change needs a restart")
    if flag := FLAGS.get(f"{section.prefix}.{key}"):
        lines.append(f"- Flag: `{flag}`")
    return "\n".join(lines)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default is None:
        return "not set"
    size = BYTES in field.metadata
    return f"`{_toml(_size(default) if size else default)}`{_in_words(field, default)}"


def _in_words(field: FieldInfo, default: Any) -> str:
    """Say many seconds in days."""
    days = default / 86400 if unit_of(field) == "seconds" else 0
    return f" ({days:g} days)" if days > 1 else ""


def _size(count: int) -> str:
    return ByteSize(count).human_readable().replace(".0", "")


def _values(annotation: Any) -> Iterator[str]:
    """Yield the values of a key that takes one of a few."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif args := get_args(annotation):
        yield from ("true", "false") if bool in args else ()
        for part in args:
            yield from _values(part)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            pairs = (f"{_toml_key(key)} = {_toml(inner)}" for key, inner in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
    return str(value)


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").isalnum() else f'"{key}"'


def _flags() -> Iterator[tuple[str, str]]:
    """Yield the settings that have a flag, and the flag."""
    upstream = {"upstream": "base_url", "profile": "profile", "api": "api"}
    for option in serve.params:
        name = option.name or ""
        if name in upstream:
            yield f"upstreams[].{upstream[name]}", option.opts[0]
        elif "__" in name:
            yield name.replace("__", "."), option.opts[0]


FLAGS = dict(_flags())

if __name__ == "__main__":
    sys.stdout.write(settings_page())
