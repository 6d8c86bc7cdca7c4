"""A model's answer, whose reasoning is labelled with its conversation."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

TOOL = "look"
LABEL = re.compile(r"raw=(\w+)/(\w+)/(\d+):(\w+)=")


class Label(NamedTuple):
    """A label in every text, signature and seal; `piece` distinguishes those of one answer.

    It is in the alphabet of base64, as signatures and seals are.
    """

    tenant: str
    conversation: str
    serial: int
    piece: str

    def __str__(self) -> str:
        return f"{self.tenant}/{self.conversation}/{self.serial}:{self.piece}"


def labels(text: str) -> Counter[Label]:
    """Count the labels in a text."""
    found = (match.groups() for match in LABEL.finditer(text))
    return Counter(Label(who, what, int(number), piece) for who, what, number, piece in found)


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Script:
    """One answer. `serial` numbers all of an upstream's, `round` those since the last user message.

    With `thinks` false it has no reasoning.
    """

    tenant: str
    conversation: str
    serial: int
    round: int = 0
    thinks: bool = True
    text: str = ""
    calls: tuple[Call, ...] = field(default=())

    def label(self, piece: str) -> str:
        return f"raw={Label(self.tenant, self.conversation, self.serial, piece)}="

    def reasoning_text(self, piece: str = "t") -> str:
        """Return a text that trimming, re-encoding or splitting would change."""
        if not self.thinks:
            return ""
        return f"\nI go by {self.label(piece)}: “é”, 1 < 2 &\\n, <b>so</b>.\n\n  On.\n"

    def sealed(self, piece: str, prefix: str = "gAAAAAB") -> str:
        """Return opaque state."""
        return f"{prefix}{self.label(piece)}=="
