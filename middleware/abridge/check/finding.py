"""One line of `abridge check`'s report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import click

Grade = Literal["ok", "note", "fault"]

COLOURS: dict[Grade, str] = {"ok": "green", "note": "yellow", "fault": "red"}


@dataclass(slots=True, frozen=True)
class Finding:
    about: str
    text: str
    grade: Grade = "ok"
    """`note`: may surprise; `fault`: keeps Abridge from working."""

    def __str__(self) -> str:
        return f"{click.style(f'{self.grade:6}', COLOURS[self.grade])}{self.about}: {self.text}"
