"""A model's answer, each piece of its reasoning marked with the conversation it belongs to."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

TOOL = "look"
LABEL = re.compile(r"raw\[(\w+)/(\w+)/(\d+):(\w+)\]")


class Label(NamedTuple):
    """Stands in every text, signature and seal; `piece` tells the pieces of one answer apart."""

    tenant: str
    conversation: str
    serial: int
    piece: str

    def __str__(self) -> str:
        return f"{self.tenant}/{self.conversation}/{self.serial}:{self.piece}"


def labels(text: str) -> Counter[Label]:
    """All that a text holds, and how often."""
    found = (match.groups() for match in LABEL.finditer(text))
    return Counter(Label(who, what, int(number), piece) for who, what, number, piece in found)


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Script:
    """One answer. `serial` numbers all that an upstream gave; `round` those since the user's last
    words. With `thinks` false the model did not think this time."""

    tenant: str
    conversation: str
    serial: int
    round: int = 0
    thinks: bool = True
    text: str = ""
    calls: tuple[Call, ...] = field(default=())

    def label(self, piece: str) -> str:
        return f"raw[{Label(self.tenant, self.conversation, self.serial, piece)}]"

    def reasoning_text(self, piece: str = "t") -> str:
        """Nobody may trim it, re-encode it or take it apart."""
        if not self.thinks:
            return ""
        return f"\nI go by {self.label(piece)}: “é”, 1 < 2 &\\n, <b>so</b>.\n\n  On.\n"

    def sealed(self, piece: str, prefix: str = "gAAAAAB") -> str:
        """Opaque state."""
        return f"{prefix}{self.label(piece)}=="
