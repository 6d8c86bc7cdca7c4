"""Write a message's content for either of OpenAI's APIs: a string, or a list of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from abridge.turn.question import Part, Text, Unfit
from abridge.turn.speeches import untold
from abridge.wire.codec import Json

Writers: TypeAlias = Mapping[type, Callable[[Any], Json | None]]
"""An API's writer for each kind of part, which returns None for a part that it cannot express."""


def write_content(parts: Sequence[Part], writers: Writers, unfit: list[Unfit]) -> str | list[Json]:
    """Return a string if that is enough, else a list; add inexpressible parts to `unsupported`."""
    if all(isinstance(part, Text) for part in parts) and len(parts) < 2:
        return "".join(part.text for part in parts if isinstance(part, Text))
    content = []
    for part in parts:
        spelled = writers[type(part)](part) if type(part) in writers else None
        if spelled is None:
            unfit.append(untold(part))
        else:
            content.append(spelled)
    return content
