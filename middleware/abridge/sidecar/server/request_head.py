"""What the server refuses in the head of a request: what is too large, and what is ambiguous.

The parser below rejects most of what is malformed: bare line ends, folded lines, odd characters,
a Content-Length that is no number, is repeated, or stands beside Transfer-Encoding. This module
rejects what the parser accepts, and what a proxy before Abridge or an upstream behind it might read
in another way, so that one of them would take for a request what is another's body.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from abridge.caches import HOSTS, cached
from abridge.sidecar.server.refusals import (
    MAX_HEAD,
    MAX_LINE,
    head_too_large,
    invalid,
    target_too_long,
)

CHUNK_FRAMING = 16
"""Bytes of framing that a chunk of a body needs at most."""

VERSIONS = ("1.1", "1.0")

HOST = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+(?:%[\w.~%-]+)?\]|[\w.~!$&'()*+,;=%-]+)"
    rb"(?::(?:[0-5]?\d{0,4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?[ \t]*"
)
"""The host and port of RFC 3986, section 3.2. `\\w` is ASCII's: names may have underscores."""

ABSOLUTE_TARGET = re.compile(rb"https?://([^/?]+)/[^#]*", re.IGNORECASE)

SINGLE_FIELDS = (b"host", b"content-length", b"transfer-encoding")
"""Headers that a request may have only once."""

Fields = Sequence[tuple[bytes, bytes]]
"""Headers with lower-case names."""


def check_size(target: bytes, fields: Fields) -> None:
    """Raise RequestError if the target, a header, or the whole head is too long."""
    if len(target) > MAX_LINE:
        raise target_too_long()
    lengths = [len(name) + len(value) for name, value in fields]
    if len(target) + sum(lengths) > MAX_HEAD or max(lengths, default=0) > MAX_LINE:
        raise head_too_large()


def check_head(version: str, method: bytes, target: bytes, fields: Fields) -> None:
    """Raise RequestError if the head of a request can be read in more than one way."""
    found = dict(fields)
    host = found.get(b"host")
    if version not in VERSIONS:
        raise invalid("HTTP version", status=505)
    if host is None:
        if version != "1.0":
            raise invalid("Host header: HTTP/1.1 requires one")
    elif not _is_host(host):
        raise invalid("Host header")
    if len(found) != len(fields):
        _check_repeated(fields)
    if b"transfer-encoding" in found:
        _check_coding(version, found)
    if method == b"CONNECT" or not target.startswith(b"/") or b"#" in target:
        _check_target(method, target, host)


@cached(HOSTS)
def _is_host(value: bytes) -> bool:
    return HOST.fullmatch(value) is not None


def _check_repeated(fields: Fields) -> None:
    names = [name for name, _ in fields]
    for name in SINGLE_FIELDS:
        if names.count(name) > 1:
            raise invalid(f"{name.decode().title()} header: it occurs twice")


def _check_coding(version: str, found: dict[bytes, bytes]) -> None:
    """Accept `chunked` alone: what else the body is encoded in would be lost to who reads it."""
    is_chunked = found[b"transfer-encoding"].strip(b" \t").lower() == b"chunked"
    if not is_chunked or version != "1.1" or b"content-length" in found:
        raise invalid("Transfer-Encoding header")


def _check_target(method: bytes, target: bytes, host: bytes | None) -> None:
    """Check a target that does not simply begin with a slash. The host, if any, must be Host's."""
    if target == b"*" and method == b"OPTIONS":
        return
    match = ABSOLUTE_TARGET.fullmatch(target)
    named = None if match is None else match[1].lower()
    if named is None or host is None or named != host.strip(b" \t").lower() or method == b"CONNECT":
        raise invalid("request target")
