"""Reasonings, and what is known of each: what a summary must say, and what it must not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN = Path(__file__).with_name("reasonings")

MANIFEST = "manifest.json"

TOOL_CALL = "\f"
"""Stands in a text where the model called a tool."""

Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True)
class Reasoning:
    """One text of a corpus."""

    name: str
    text: str
    language: str
    kind: str = ""
    manner: str = ""  # the model in whose manner it is written
    key: Patterns = ()  # what a reader must learn
    final: Patterns = ()  # what the last part must say
    never: Patterns = ()  # what was taken back, and what others told the model to do
    secret: Patterns = ()

    @property
    def turns(self) -> list[str]:
        return self.text.split(TOOL_CALL)

    @property
    def prose(self) -> str:
        """The text, with a paragraph's end where a tool was called."""
        return self.text.replace(TOOL_CALL, "\n\n")


def load(folder: Path = OWN) -> list[Reasoning]:
    """Read a folder of texts and their manifest."""
    entries = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return [_read(folder, entry) for entry in entries]


def _read(folder: Path, entry: Mapping[str, Any]) -> Reasoning:
    return Reasoning(
        name=entry["name"],
        text=(folder / entry["file"]).read_text(encoding="utf-8").strip(),
        language=entry["lang"],
        kind=entry.get("kind") or entry.get("domain", ""),
        manner=entry.get("manner") or entry.get("model", ""),
        key=_compile(entry.get("key", ()), re.IGNORECASE | re.DOTALL),
        final=_compile(entry.get("final", ()), re.IGNORECASE | re.DOTALL),
        never=_compile(entry.get("never", ()), re.DOTALL | re.MULTILINE),
        secret=_compile(entry.get("secret", ()), re.DOTALL),
    )


def _compile(patterns: Any, flags: re.RegexFlag) -> Patterns:
    return tuple(re.compile(pattern, flags) for pattern in patterns)
