"""Request paths: how servers may read one, and which pass unread where reasoning is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import unquote

API_BASE = "/v1"
"""Base path of OpenAI's APIs."""

MODELS_PATH = "/models"
"""End of the path that lists models; one of them follows after a slash."""


class UnreadPaths(NamedTuple):
    """Paths below an API's base whose answers hold no reasoning."""

    method: str
    globs: Sequence[str]
    reason: str


IMAGE_PATHS = UnreadPaths(
    "POST", ("/images/generations", "/images/edits", "/images/variations"), "images"
)
"""Of these answers only what is understood passes (`images.py`)."""

UNREAD_PATHS = (
    UnreadPaths("GET", ("/models", "/models/*", "/api/tags"), "names and describes models"),
    UnreadPaths("GET", ("/health", "/health/*", "/healthz", "/livez"), "a probe"),
    UnreadPaths("GET", ("/readyz", "/ready", "/ping"), "a probe"),
    UnreadPaths("GET", ("/version", "/api/version"), "a version"),
    UnreadPaths("GET", ("/metrics",), "numbers"),
    UnreadPaths("GET", ("/docs", "/redoc", "/openapi.json"), "describes the server"),
    UnreadPaths("POST", ("/embeddings", "/rerank", "/score", "/classify"), "numbers"),
    UnreadPaths("POST", ("/moderations",), "categories and scores"),
    UnreadPaths("POST", ("/tokenize", "/detokenize"), "the client's own text, in tokens or back"),
    IMAGE_PATHS,
    UnreadPaths("POST", ("/audio/speech",), "the client's own text, spoken"),
    UnreadPaths("POST", ("/audio/transcriptions", "/audio/translations"), "the client's own audio"),
    UnreadPaths("POST", ("/files",), "describes what the client uploads"),
)
"""The paths that pass where reasoning is hidden.

Not among them: `/slots` and `/props` of llama.cpp, which show what other requests generated;
content of files, where batches write their answers; anything that a model answers."""

SHARED_PATHS = (UnreadPaths("GET", ("/models", "/models/*"), "names and describes models"),)
"""The paths that pass where clients share a key, besides the endpoints that Abridge reads."""

OVERRIDING_HEADERS = frozenset(
    {
        *(b"x-http-method-override", b"x-http-method", b"x-method-override"),
        *(b"x-original-url", b"x-rewrite-url"),
    }
)
"""Headers whose method or path some servers take for that of the request (Express' method-override,
Symfony, IIS)."""

_AMBIGUOUS = re.compile(r"[%\\;?#\x00-\x20\x7f]")
"""Characters that some servers decode once more, cut a path at, or take for a slash."""


@dataclass(slots=True, frozen=True)
class OpenPaths:
    """The paths that pass unread. `path` is decoded, `raw_path` as the client wrote it; a path that
    any server would take for one that is not open is not."""

    bases: frozenset[str] = frozenset({"", API_BASE})  # what the paths of `rows` may stand below
    globs: Sequence[str] = ()  # the settings' own, for every method
    rows: tuple[UnreadPaths, ...] = UNREAD_PATHS

    def include(self, method: str, path: str, raw_path: str) -> bool:
        readings = _plain_readings(path, raw_path)
        return bool(readings) and all(
            self._is_opened(reading) or self._is_unread(method, reading, self.rows)
            for reading in readings
        )

    def lead_to_images(self, method: str, path: str, raw_path: str) -> bool:
        """Return whether a server may read a path as that of images, which the settings do not open
        themselves."""
        return method == IMAGE_PATHS.method and any(
            self._is_unread(method, reading, (IMAGE_PATHS,)) and not self._is_opened(reading)
            for reading in _plain_readings(path, raw_path)
        )

    def include_socket(self, path: str, raw_path: str) -> bool:
        """Return whether WebSockets to a path pass, which the settings alone can say."""
        readings = _plain_readings(path, raw_path)
        return bool(readings) and all(map(self._is_opened, readings))

    def lead_to(self, endpoint: str, path: str, raw_path: str) -> bool:
        """Return whether all servers read a path as that of an endpoint, or of what is below it, at
        one of the bases."""
        readings = _plain_readings(path, raw_path)
        return len(readings) == 1 and any(
            f"{reading}/".startswith(f"{base.rstrip('/')}{endpoint}/")
            for reading in readings
            for base in self.bases
        )

    def _is_opened(self, path: str) -> bool:
        return any(fnmatchcase(path, glob) for glob in self.globs)

    def _is_unread(self, method: str, path: str, rows: Iterable[UnreadPaths]) -> bool:
        method = "GET" if method == "HEAD" else method
        is_preflight = method == "OPTIONS"  # a browser asks so for leave to use another method
        below = [path.removeprefix(base) for base in self.bases if path.startswith(f"{base}/")]
        return any(
            (is_preflight or row.method == method) and fnmatchcase(rest, glob)
            for row in rows
            for glob in row.globs
            for rest in below
        )


def model_in_path(path: str) -> str | None:
    """Return the model that a decoded path names, as `/v1/models/org/name` does; None if it names
    none. A model's name may have slashes."""
    return path.partition(MODELS_PATH + "/")[2].strip("/") or None


def normalized_paths(path: str, raw_path: str) -> tuple[str, str]:
    """Return a path as servers that merge slashes and resolve dots read it: after they have decoded
    it, and before."""
    return _normalize(path.split("/")), _normalize(map(unquote, raw_path.split("/")))


def all_read_alike(path: str, raw_path: str) -> bool:
    return len(_plain_readings(path, raw_path)) == 1


def _plain_readings(path: str, raw_path: str) -> frozenset[str]:
    """Return all readings of a path, that of servers that resolve no dots among them; none if it is
    ambiguous beyond that."""
    if _AMBIGUOUS.search(path):
        return frozenset()
    unresolved = "/" + "/".join(filter(None, path.split("/")))
    return frozenset({unresolved, *normalized_paths(path, raw_path)})


def _normalize(segments: Iterable[str]) -> str:
    resolved: list[str] = []
    for segment in segments:
        if segment == "..":
            del resolved[-1:]
        elif segment not in ("", "."):
            resolved.append(segment)
    return "/" + "/".join(resolved)
