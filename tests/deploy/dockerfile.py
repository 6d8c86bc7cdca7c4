"""Parse deploy/Dockerfile."""

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
    """An instruction such as `RUN` or `COPY`; `flags` are its `--name=value` options."""

    name: str
    arguments: str
    flags: dict[str, str]

    @property
    def words(self) -> list[str]:
        """Return the words of the exec form, or else of the shell form."""
        return (
            json.loads(self.arguments)
            if self.arguments.startswith("[")
            else shlex.split(self.arguments)
        )


def instructions() -> list[Instruction]:
    return list(_read(DOCKERFILE.read_text()))


def image() -> dict[str, Instruction]:
    """Return the last instruction of each kind: the one that the image uses."""
    return {instruction.name: instruction for instruction in instructions()}


def environment() -> dict[str, str]:
    """Return the image's variables, less those that extend another's value."""
    variables = image()["ENV"].words
    return dict(word.split("=", 1) for word in variables if "$" not in word)


def health() -> list[str]:
    """Return the command of the health check."""
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
