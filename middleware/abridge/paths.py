"""A request's path below where the application is mounted, decoded and as it was written."""

from __future__ import annotations

from typing import cast
from urllib.parse import quote, unquote

from starlette.types import Scope

SAFE = "/:@!$&'()*+,;="  # stands in a path as it is


def path_of(scope: Scope) -> str:
    """Decoded."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def written_path(scope: Scope) -> bytes:
    """Percent-encoded, as the client did it.

    `raw_path` is optional, and forgotten by some who rewrite `path`: then `path` decides.
    """
    path, raw, root = scope["path"], scope.get("raw_path"), scope.get("root_path", "")
    if raw is None or unquote(raw.decode("latin-1")) != path:
        raw = quote(path, SAFE).encode()
    start = 0
    if path == root or path.startswith(f"{root}/"):
        for _ in root.encode():
            start += 3 if raw[start : start + 1] == b"%" else 1
    return cast(bytes, raw[start:])
