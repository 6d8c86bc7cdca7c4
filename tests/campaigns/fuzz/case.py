"""A case: one request, the answer of its upstream, and what to expect; as data that replays it.

Bytes are kept as Latin-1 text, which JSON holds without loss.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CASES = Path(__file__).parents[1] / "cases"
"""The cases that were findings once; `test_cases.py` replays each. Those in the folder `open` still
are: a campaign counts their findings as known."""


@dataclass
class Case:
    """One request.

    `world` are the arguments of `World`. `changes` name the mutations, for people. `harm` says how
    much of the answer can be expected to arrive:

    - `none`: all of it, in a legal stream; the mutations change no meaning.
    - `odd`: what a tolerant reader finds in it, if it ends well.
    - `order`: no more than that.
    - `planted`: anything; but where reasoning is hidden, what was planted must not arrive.
    - `free`: anything.
    """

    kind: str
    world: Json
    path: str
    body: str
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
    answer_headers: dict[str, str] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    whole: str | None = None  # the answer instead, if upstream is asked for no stream
    stream: bool = True
    before: list[Json] = field(default_factory=list)  # earlier turns: `headers`, `body`, `whole`
    odd: int | None = None  # the seed of a change to the body, once what it repeats is in it
    harm: str = "free"
    refusable: bool = False  # the request may be refused
    restores: bool | None = None  # whether upstream must, or must not, get the secret back
    changes: list[str] = field(default_factory=list)
    finding: str = ""  # what cases of the same finding have in common
    note: str = ""  # what went wrong

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Case:
        return cls(**json.loads(path.read_text()))


def known_findings() -> set[str]:
    return {Case.load(path).finding for path in CASES.glob("open/*.json")}


def latin(data: bytes) -> str:
    return data.decode("latin-1")
