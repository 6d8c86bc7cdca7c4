"""Tenant identification: who sends a request, as a keyed tag.

The tag is an HMAC over the whole credential, so only the same credential gives the same tag, and no
credential can be recovered from one.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Literal, TypeAlias

from starlette.types import Scope

from abridge.history.keys import Keyring

Named: TypeAlias = Callable[[Scope], str | None]
"""Identifies the caller, where the application that Abridge is mounted in knows it."""

CREDENTIALS = (b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key")
FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")

DUMMIES = frozenset(
    b"dummy empty fake key lm-studio no-key none not-needed null ollama placeholder "
    b"sk-dummy sk-no-key-required sk-xxx token undefined unused xxx".split()
)
"""Placeholder keys that people use where a client library requires one and the server does not."""

ANONYMOUS = b"anonymous"


def tags(
    scope: Scope, keyring: Keyring, rule: str | Named, *, anonymous: bool | Literal["loopback"]
) -> dict[str, bytes] | None:
    """Return the tenant's tag under each key, by key id; None for a request without a tenant."""
    told = {key.id: tag(scope, key.tenant, rule, anonymous=anonymous) for key in keyring.keys}
    return {name: one for name, one in told.items() if one is not None} or None


def tag(
    scope: Scope, key: bytes, rule: str | Named, *, anonymous: bool | Literal["loopback"]
) -> bytes | None:
    """Return the tenant's tag, or None for a request that belongs to nobody.

    `rule` is `credential`, `header:<name>` or a callable, which alone decides. For the others,
    `anonymous` says whether all requests without a credential are one tenant.
    """
    given = _named(scope, rule) if callable(rule) else _given(scope, rule)
    if given:
        return keyed(key, *given)
    if callable(rule):
        return None
    if anonymous is True or (anonymous == "loopback" and _is_local(scope)):
        return keyed(key, ANONYMOUS)
    return None


def _named(scope: Scope, rule: Named) -> list[bytes]:
    name = rule(scope)
    return [b"named:", name.encode(errors="surrogatepass")] if name else []


def _given(scope: Scope, rule: str) -> list[bytes]:
    """Return the identifying headers, names and values. A header named by the settings is trusted
    whatever its value; a credential is ignored if it is a placeholder."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    name = rule.removeprefix("header:").strip().lower().encode()
    names, none = (CREDENTIALS, _is_dummy) if rule == "credential" else ((name,), _is_blank)
    found = sorted((key, value) for key, value in headers if key in names and not none(value))
    return [part for pair in found for part in pair]


def keyed(key: bytes, *parts: bytes) -> bytes:
    """Return an HMAC over parts, each prefixed by its length so that no other split collides."""
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.digest(key, message, "sha256")


def _is_blank(value: bytes) -> bool:
    return not value.strip()


def _is_dummy(value: bytes) -> bool:
    bare = value.strip().lower().removeprefix(b"bearer").strip()
    return not bare or bare in DUMMIES


def _is_local(scope: Scope) -> bool:
    """Return whether both ends of the connection are this machine and nothing was forwarded."""
    if any(name in FORWARDED for name, _ in scope["headers"]):
        return False
    return all(_is_loopback(scope.get(end)) for end in ("server", "client"))


def _is_loopback(end: Iterable[object] | None) -> bool:
    host = next(iter(end), None) if end is not None else None
    try:
        return ip_address(str(host)).is_loopback
    except ValueError:
        return False
