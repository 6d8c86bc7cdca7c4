"""A Redis server's address, as its client takes it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from redis.asyncio.connection import ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

SAID = frozenset(["connection_class", "db", "host", "password", "path", "port", "username"])
"""What an address may say, beside how TLS is to be spoken."""

WRONG = "takes an address such as redis://user:password@host:6379/0"


def options(url: str) -> dict[str, Any]:
    """What a connection to `url` is made with. Raises ValueError, which does not repeat it. A path
    that is no number is none either: the host before it may be what stands before a password's
    slash."""
    try:
        said: dict[str, Any] = {**parse_url(url)}
        fits = all(name in SAID or name.startswith("ssl_") for name in said)
        fits = fits and (bool(said.keys() & {"db", "path"}) or urlsplit(url).path in ("", "/"))
        said |= {"protocol": 2, "retry": Retry(NoBackoff(), 0)}
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
