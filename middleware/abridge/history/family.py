"""Which models are one, though they go by several names.

A snapshot replaces another under the same alias, and a gateway knows a model by a longer name than
its maker: reasoning of the one is of use to the other.
"""

from __future__ import annotations

import re

TAGS = frozenset({"latest", "free", "nitro", "floor", "exacto", "online", "extended", "cloud"})
"""Tags that say where or how a model runs, as OpenRouter and Ollama write them after a colon. What
any other says may be its size: `gpt-oss:20b`."""

_DATE = re.compile(
    r"[-@](?!1024)(?:20\d\d-[01]\d-[0-3]\d|20\d\d[01]\d[0-3]\d|[01]\d-20\d\d"
    r"|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|2[3-9](?:0[1-9]|1[0-2])|latest)(?![a-z0-9.])"
)
"""As a part of its own: `2025-08-07`, `20250807`, `08-2025`; `0807` for a month and a day, `2508`
for a year and a month (1024 is a size); or the alias of whichever is the latest."""


def family(model: str) -> str:
    """A model's name in lower case, without provider path, tag and date.

    The path is all before the last slash, unless what follows does not begin as names do: of
    `/models/gpt-oss/20b`, or of an absolute path, all is needed. A tag goes if it is one of `TAGS`,
    a date wherever it stands. Everything else may tell two models apart, and stays: a name kept too
    long loses a model's reasoning when it is renamed, one cut too short would give it to another.
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
