"""The header with an upstream's key: as its provider wants it, else as its API does."""

from __future__ import annotations

from typing import TypeAlias

from abridge.apis.api import UpstreamApi
from abridge.providers.profile import Profile

Header: TypeAlias = tuple[bytes, bytes]

AUTHORIZATION = "authorization"

_BEARER_PREFIX = b"Bearer "


def bearer_header(key: bytes) -> Header:
    return AUTHORIZATION.encode(), _BEARER_PREFIX + key


def credential_header(key: bytes, profile: Profile, api: UpstreamApi | None = None) -> Header:
    """Return the header for a key."""
    name = profile.key_header
    if name == AUTHORIZATION and api is not None:
        name = api.key_header
    return bearer_header(key) if name == AUTHORIZATION else (name.encode(), key)


def move_key(
    headers: list[Header], profile: Profile, api: UpstreamApi, client_api: UpstreamApi
) -> list[Header]:
    """Move a client's key, a bearer token or in the header of the client's API, to the header that
    upstream reads.

    Headers that already contain that one are returned as they are.
    """
    target, _ = credential_header(b"", profile, api)
    if any(name == target for name, _ in headers):
        return headers
    return [_move_key(header, profile, api, client_api) for header in headers]


def _move_key(
    header: Header, profile: Profile, api: UpstreamApi, client_api: UpstreamApi
) -> Header:
    name, value = header
    scheme, _, token = value.strip().partition(b" ")
    if name == AUTHORIZATION.encode():
        is_key = scheme.lower() == b"bearer"
        return credential_header(token.strip(), profile, api) if is_key else header
    is_key = name == client_api.key_header.encode()
    return credential_header(value.strip(), profile, api) if is_key else header
