"""Log probabilities of tokens, which both of OpenAI's APIs write alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from abridge.wire.codec import Json, objects, string


def spelled(entries: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return the valid entries with all their fields; the deltas of Responses leave some out.

    An entry without a token or a probability is invalid.
    """
    return [
        {**_whole(entry), "top_logprobs": list(map(_whole, _told(entry.get("top_logprobs"))))}
        for entry in _told(list(entries))
    ]


def _told(entries: Any) -> list[Json]:
    return [entry for entry in objects(entries) if _is_told(entry)]


def _is_told(entry: Json) -> bool:
    return isinstance(entry.get("token"), str) and isinstance(entry.get("logprob"), int | float)


def _whole(entry: Mapping[str, Any]) -> Json:
    given = entry.get("bytes")
    if isinstance(given, list) and all(isinstance(byte, int) for byte in given):
        return dict(entry)
    return {**entry, "bytes": list(string(entry.get("token")).encode(errors="surrogatepass"))}
