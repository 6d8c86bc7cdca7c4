"""deploy/Dockerfile, read as far as it goes: its instructions, and what they say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"

_FLAG = re.compile(r"--([a-z-]+)=(\S+)\s+")


class Instruction(NamedTuple):
    """`RUN`, `COPY` and so on; `flags` are those that begin with two dashes."""

    name: str
    arguments: str
    flags: dict[str, str]

    @property
    def words(self) -> list[str]:
        """The exec form's words, or those between blanks."""
        return (
            json.loads(self.arguments)
            if self.arguments.startswith("[")
            else shlex.split(self.arguments)
        )


def instructions() -> list[Instruction]:
    return list(_read(DOCKERFILE.read_text()))


def image() -> dict[str, Instruction]:
    """The last of each kind, of which the image takes its settings."""
    return {instruction.name: instruction for instruction in instructions()}


def environment() -> dict[str, str]:
    """The image's, as far as it does not build on what was there."""
    variables = image()["ENV"].words
    return dict(word.split("=", 1) for word in variables if "$" not in word)


def health() -> list[str]:
    """The command that asks after a container's health."""
    return json.loads(image()["HEALTHCHECK"].arguments.removeprefix("CMD "))


def _read(text: str) -> Iterator[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, arguments = line.split(maxsplit=1)
            flags = {}
            while flag := _FLAG.match(arguments):
                flags[flag[1]] = flag[2]
                arguments = arguments[flag.end() :]
            yield Instruction(name, arguments, flags)
