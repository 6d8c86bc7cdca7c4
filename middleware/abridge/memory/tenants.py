"""Tenant identification: who sends a request, as a keyed tag.

The tag is an HMAC over the whole credential, so only the same credential gives the same tag, and no
credential can be recovered from one.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from hashlib import blake2b
from ipaddress import ip_address
from typing import Literal, TypeAlias

from starlette.types import Scope

from abridge.apis.credentials import Header, is_address_header, is_key_header
from abridge.caches import CLIENTS, cached
from abridge.memory.keys import Keyring

TenantCallable: TypeAlias = Callable[[Scope], str | None]
"""Identifies the caller, where the application that Abridge is mounted in knows it."""

FORWARDED_HEADERS = (b"forwarded", b"x-forwarded-for", b"x-real-ip")

DUMMY_KEYS = frozenset(
    b"dummy empty fake key lm-studio no-key none not-needed null ollama placeholder "
    b"sk-dummy sk-no-key-required sk-xxx token undefined unused xxx".split()
)
"""Placeholder keys that people use where a client library requires one and the server does not."""

ANONYMOUS = b"anonymous"


def tenant_tags(
    scope: Scope,
    keyring: Keyring,
    rule: str | TenantCallable,
    *,
    anonymous: bool | Literal["loopback"],
) -> dict[str, bytes] | None:
    """Return the tenant's tag under each key, by key id; None for a request without a tenant."""
    by_key = {
        key.id: tenant_tag(scope, key.tenant, rule, anonymous=anonymous) for key in keyring.keys
    }
    return {name: value for name, value in by_key.items() if value is not None} or None


def tenant_tag(
    scope: Scope, key: bytes, rule: str | TenantCallable, *, anonymous: bool | Literal["loopback"]
) -> bytes | None:
    """Return the tenant's tag, or None for a request that belongs to nobody.

    `rule` is `credential`, `header:<name>` or a callable, which alone decides. For the others,
    `anonymous` says whether all requests without a credential are one tenant.
    """
    identity = _callable_identity(scope, rule) if callable(rule) else _header_identity(scope, rule)
    if identity:
        return keyed_digest(key, *identity)
    if callable(rule):
        return None
    if anonymous is True or (anonymous == "loopback" and _is_local(scope)):
        return keyed_digest(key, ANONYMOUS, *_gateway_addresses(scope))
    return None


def _callable_identity(scope: Scope, rule: TenantCallable) -> list[bytes]:
    name: object = rule(scope)
    if not isinstance(name, str | None):
        raise TypeError(f"tenant: returned {type(name).__name__}; must return a str or None")
    return [b"named:", name.encode(errors="surrogatepass")] if name else []


def _header_identity(scope: Scope, rule: str) -> list[bytes]:
    """Return the identifying headers, names and values. A header named by the settings is trusted
    whatever its value; a credential is ignored if it is a placeholder."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if rule == "credential":
        keys = [one for one in headers if is_key_header(one[0]) and not _is_dummy(one[1])]
        return [*_parts(keys), *_gateway_addresses(scope)] if keys else []
    name = rule.removeprefix("header:").strip().lower().encode()
    return _parts(header for header in headers if header[0] == name and header[1].strip())


def _gateway_addresses(scope: Scope) -> list[bytes]:
    """Return where a gateway is told to send the key. It is part of a tenant and makes none: many
    may name the same."""
    return _parts(header for header in scope["headers"] if is_address_header(header[0]))


def _parts(headers: Iterable[Header]) -> list[bytes]:
    return [part for pair in sorted(headers) for part in pair]


def keyed_digest(key: bytes, *parts: bytes) -> bytes:
    """Return an HMAC over parts, each prefixed by its length so that no other split collides."""
    return hmac.digest(key, prefix_lengths(*parts), "sha256")


def digester(key: bytes, size: int) -> Callable[[bytes], bytes]:
    """Return what digests names with a key, to that many bytes. The key is digested once."""
    empty = blake2b(key=key, digest_size=size)

    def digest(name: bytes) -> bytes:
        made = empty.copy()
        made.update(name)
        return made.digest()

    return digest


def prefix_lengths(*parts: bytes) -> bytes:
    """Join parts, each after its length."""
    return b"".join([len(part).to_bytes(8, "big") + part for part in parts])


def _is_dummy(value: bytes) -> bool:
    token = value.strip().lower().removeprefix(b"bearer").strip()
    return not token or token in DUMMY_KEYS


def _is_local(scope: Scope) -> bool:
    """Return whether both ends of the connection are this machine and nothing was forwarded."""
    if any(name in FORWARDED_HEADERS for name, _ in scope["headers"]):
        return False
    hosts = [next(iter(scope.get(end) or ()), None) for end in ("server", "client")]
    return all(_is_loopback(str(host)) for host in hosts)


@cached(CLIENTS)
def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
