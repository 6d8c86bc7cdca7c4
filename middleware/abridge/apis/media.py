"""Images and files as base64, in data URLs or bare."""

from __future__ import annotations

import re

PDF_TYPE = "application/pdf"

PDF_BASE64_START = "JVBERi0"  # %PDF-

REMOTE = ("http://", "https://")
"""Beginnings of addresses from which an upstream may get a file itself."""

_DATA_URL = re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE)


def split_data_url(url: str) -> tuple[str, str]:
    """Split a data URL into media type and base64. For anything else the type is empty."""
    match = _DATA_URL.match(url)
    return (match[1].lower(), url[match.end() :]) if match is not None else ("", url)
