"""The header with an upstream's key: as its provider wants it, else as its API does."""

from __future__ import annotations

from typing import TypeAlias

from abridge.wire.api import UpstreamApi
from abridge.wire.profile import Profile

Header: TypeAlias = tuple[bytes, bytes]

AUTHORIZATION = "authorization"
_BEARER = b"Bearer "


def bearer(key: bytes) -> Header:
    return AUTHORIZATION.encode(), _BEARER + key


def credential(key: bytes, profile: Profile, api: UpstreamApi | None = None) -> Header:
    """Return the header for a key."""
    name = profile.key_header
    if name == AUTHORIZATION and api is not None:
        name = api.key_header
    return bearer(key) if name == AUTHORIZATION else (name.encode(), key)


def readdressed(headers: list[Header], profile: Profile, api: UpstreamApi) -> list[Header]:
    """Move a client's bearer key to the header that upstream reads.

    Headers that already contain that one are returned as they are.
    """
    place, _ = credential(b"", profile, api)
    if any(name == place for name, _ in headers):
        return headers
    return [_readdressed(header, profile, api) for header in headers]


def _readdressed(header: Header, profile: Profile, api: UpstreamApi) -> Header:
    name, value = header
    scheme, _, key = value.strip().partition(b" ")
    if name != AUTHORIZATION.encode() or scheme.lower() != b"bearer":
        return header
    return credential(key.strip(), profile, api)
