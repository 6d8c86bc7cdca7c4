"""Model families: different names of what is, for returned reasoning, the same model.

A snapshot replaces another under the same alias, and a gateway has a longer name for a model than
its maker; reasoning of the one is usable by the other.
"""

from __future__ import annotations

import re

TAGS = frozenset({"latest", "free", "nitro", "floor", "exacto", "online", "extended", "cloud"})
"""Tags after a colon that say where or how a model runs, as OpenRouter and Ollama write them. Any
other tag may be a size: `gpt-oss:20b`."""

_DATE = re.compile(
    r"[-@](?!1024)(?:20\d\d-[01]\d-[0-3]\d|20\d\d[01]\d[0-3]\d|[01]\d-20\d\d"
    r"|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|2[3-9](?:0[1-9]|1[0-2])|latest)(?![a-z0-9.])"
)
"""A date as a component of its own: `2025-08-07`, `20250807`, `08-2025`; `0807` for month and day,
`2508` for year and month (1024 is a size); or `latest`."""


def family(model: str) -> str:
    """Return a model's name in lower case, without provider path, tag and date.

    The path is everything before the last slash, unless what follows does not begin with a letter
    (`/models/gpt-oss/20b`) or the path is absolute or relative to a directory: then all of it is
    kept. A tag is removed if it is one of `TAGS`, a date wherever it stands. Everything else may
    distinguish two models and stays: a name kept too long loses a model's reasoning when the model
    is renamed, one cut too short would give it to another model.
    """
    name = model.strip().lower().rstrip("/")
    last = name.rpartition("/")[2]
    if last[:1].isalpha() and not name.startswith(("/", ".", "~")):
        name = last
    parts = name.split(":")
    while len(parts) > 1 + (not parts[0]) and parts[-1] in TAGS:
        parts.pop()
    name = ":".join(parts)
    return _DATE.sub("", name) or name
