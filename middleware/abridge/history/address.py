"""A Redis server's address, as its client takes it."""

from __future__ import annotations

import re
from typing import Any

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio.connection import ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

_VALKEY = re.compile(r"^valkey(?=s?://)")
"""Which is spoken to in the same words."""

SAID = frozenset(["connection_class", "db", "host", "password", "path", "port", "username"])
"""What an address may say, beside how TLS is to be spoken."""

OURS: dict[str, Any] = {
    "protocol": 2,
    "parser_class": _AsyncRESP2Parser,  # where hiredis is installed it would reserve any length
    "retry": Retry(NoBackoff(), 0),
}
"""What an address does not say."""

WRONG = "takes an address such as redis://user:password@host:6379/0"


def options(url: str) -> dict[str, Any]:
    """What a connection to `url` is made with. Raises ValueError, which does not repeat it."""
    try:
        said: dict[str, Any] = {**parse_url(_VALKEY.sub("redis", url))}
        fits = all(name in SAID or name.startswith("ssl_") for name in said)
        said |= OURS
        ConnectionPool(**said).make_connection()  # type: ignore[no-untyped-call]  # sends nothing
    except (TypeError, ValueError, RedisError):
        fits = False
    if not fits:
        raise ValueError(WRONG)
    return said


def server(options: dict[str, Any]) -> str:
    """Its name in the log."""
    host, port = options.get("host", "localhost"), options.get("port", 6379)
    return str(options.get("path", f"{host}:{port}"))
