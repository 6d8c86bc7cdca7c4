"""Images and files as base64, in data URLs or bare."""

from __future__ import annotations

from abridge.core.events import ErrorDetail

PDF_TYPE = "application/pdf"

PDF_BASE64_START = "JVBERi0"  # %PDF-

REMOTE = ("http://", "https://")
"""Beginnings of addresses on the web, from which an upstream may get a file itself."""

MEDIA = {"image": "an image", "audio": "audio", "video": "a video", "document": "a document"}
"""What an answer may hold beside text, by the first half of its media type, or by its type."""

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


def unrepresentable(kind: str) -> ErrorDetail:
    """Return why an answer fails that holds what the client's API has no form for: without it, it
    would be another one."""
    words = f"The answer contains {MEDIA[kind]}, which this API cannot represent."
    return ErrorDetail("upstream_error", words)
