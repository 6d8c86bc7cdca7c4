"""Headers with credentials: those that clients send, and the one with an upstream's key, as its
provider wants it, else as its API does."""

from __future__ import annotations

from typing import TypeAlias

from abridge.apis.api import UpstreamApi
from abridge.providers.profile import Profile

Header: TypeAlias = tuple[bytes, bytes]

AUTHORIZATION = "authorization"

_BEARER_PREFIX = b"Bearer "

CREDENTIAL_HEADERS = frozenset({b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key"})

GATEWAY_PREFIXES = (b"x-litellm-", b"helicone-", b"x-portkey-", b"cf-aig-")
"""Prefixes of the headers by which clients direct a gateway (docs of LiteLLM, Helicone, Portkey and
Cloudflare AI Gateway). Whose key it is called with may do that."""

_KEYS = frozenset({b"auth", b"authorization", b"key", b"token", b"secret", b"password"})

_ADDRESSES = frozenset({b"host", b"url", b"base"})

_NOT_SECRET = frozenset({b"cache"})  # as in `cf-aig-cache-key`


def is_key_header(name: bytes) -> bool:
    """Return whether a request header holds a key, by its name in lower case."""
    return name in CREDENTIAL_HEADERS or not _KEYS.isdisjoint(_gateway_words(name))


def is_address_header(name: bytes) -> bool:
    """Return whether a request header tells a gateway where to send its client's key."""
    return not _ADDRESSES.isdisjoint(_gateway_words(name))


def _gateway_words(name: bytes) -> frozenset[bytes]:
    """Return the words of the name of a gateway's header, none if it can be no secret."""
    if not name.startswith(GATEWAY_PREFIXES):
        return frozenset()
    words = frozenset(name.split(b"-"))
    return frozenset() if words & _NOT_SECRET else words


def bearer_header(key: bytes) -> Header:
    return AUTHORIZATION.encode(), _BEARER_PREFIX + key


def credential_header(key: bytes, profile: Profile, api: UpstreamApi | None = None) -> Header:
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
