"""Addresses of Redis servers, parsed into options of the Redis client."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio.connection import ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

_VALKEY = re.compile(r"^valkey(?=s?://)")
"""Valkey speaks the same protocol; the client knows only the `redis` schemes."""

SAID = frozenset(["connection_class", "db", "host", "password", "path", "port", "username"])
"""Options an address may set, besides those of TLS (`ssl_*`)."""

OURS: dict[str, Any] = {
    "protocol": 2,
    "parser_class": _AsyncRESP2Parser,  # hiredis would allocate any announced length
    "retry": Retry(NoBackoff(), 0),
}
"""Options that are the same for every address."""

WRONG = "takes an address such as redis://user:password@host:6379/0"


def options(url: str) -> dict[str, Any]:
    """Parse an address into the options of a connection. Raise ValueError, with a message that does
    not repeat the address. A path that is no database number is invalid: what looks like the host
    may be the start of a password that contains a slash."""
    try:
        said: dict[str, Any] = {**parse_url(_VALKEY.sub("redis", url))}
        fits = all(name in SAID or name.startswith("ssl_") for name in said)
        fits = fits and (bool(said.keys() & {"db", "path"}) or urlsplit(url).path in ("", "/"))
        said |= OURS
        ConnectionPool(**said).make_connection()  # type: ignore[no-untyped-call]  # sends nothing
    except (TypeError, ValueError, RedisError):
        fits = False
    if not fits:
        raise ValueError(WRONG)
    return said


def server(options: dict[str, Any]) -> str:
    """Return the server's name for the log."""
    host, port = options.get("host", "localhost"), options.get("port", 6379)
    return str(options.get("path", f"{host}:{port}"))
