"""The path of a request, relative to where the application is mounted."""

from __future__ import annotations

from typing import cast
from urllib.parse import quote, unquote

from starlette.types import Scope

SAFE = "/:@!$&'()*+,;="  # characters that need no percent-encoding in a path


def path_of(scope: Scope) -> str:
    """Return the path below the mount point, percent-decoded."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def written_path(scope: Scope) -> bytes:
    """Return the path below the mount point, percent-encoded as the client encoded it.

    `raw_path` is optional in ASGI, and some applications rewrite `path` without it: if the two
    disagree, `path` decides.
    """
    path, raw, root = scope["path"], scope.get("raw_path"), scope.get("root_path", "")
    if raw is None or unquote(raw.decode("latin-1")) != path:
        raw = quote(path, SAFE).encode()
    start = 0
    if path == root or path.startswith(f"{root}/"):
        for _ in root.encode():
            start += 3 if raw[start : start + 1] == b"%" else 1
    return cast(bytes, raw[start:])
