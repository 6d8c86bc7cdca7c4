"""Images and files as base64, in data URLs or bare."""

from __future__ import annotations

PDF_TYPE = "application/pdf"

PDF_BASE64_START = "JVBERi0"  # %PDF-

REMOTE = ("http://", "https://")
"""Beginnings of addresses from which an upstream may get a file itself."""

_SCHEME, _BASE64 = "data:", ";base64"


def write_data_url(media_type: str, data: str) -> str:
    return f"{_SCHEME}{media_type}{_BASE64},{data}"


def split_data_url(url: str) -> tuple[str, str]:
    """Split a data URL into media type and base64. For anything else the type is empty."""
    head, comma, data = url.partition(",")
    scheme, described = head[: len(_SCHEME)].lower(), head[len(_SCHEME) :].lower()
    if not (comma and scheme == _SCHEME and described.endswith(_BASE64)):
        return "", url
    return described.partition(";")[0], data
