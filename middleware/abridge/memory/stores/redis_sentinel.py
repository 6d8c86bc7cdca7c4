"""Connections to the primary that Redis Sentinel names.

    redis-sentinel://user:password@host:26379,host:26379/service/0?sentinel_password=secret

User, password and database are the primary's; the query has `sentinel_username` and
`sentinel_password`, where the sentinels want those. A new connection asks the sentinels where the
primary is: so after a failure, when idle connections are closed, the new primary is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

SCHEME = "redis-sentinel"

DEFAULT_PORT = 26379

_ADDRESS = re.compile(r"[^:]+://([^/?#]*@)?([^/?#@]*)/?([^?#]*)(?:\?([^#]*))?")
"""`urlsplit` refuses several hosts of which one is in brackets, from Python 3.13 on."""

_SERVICE = re.compile(r"[A-Za-z0-9._-]+")
"""What Sentinel allows as a name."""

LOGIN_OPTIONS = {"sentinel_username": "username", "sentinel_password": "password"}

INVALID_ADDRESS = (
    f"must be an address such as {SCHEME}://user:password@host:26379,host:26379/service/0"
)


class SentinelAddress(NamedTuple):
    """The parts of an address; `primary` is one without host and port."""

    sentinels: Sequence[tuple[str, int]]
    service: str
    primary: str
    login: Mapping[str, str]  # at the sentinels

    @classmethod
    def parse(cls, url: str) -> SentinelAddress:
        """Raises ValueError, with a message that does not repeat the address."""
        address = split_address(url, INVALID_ADDRESS)
        service, _, database = address.path.partition("/")
        options = dict(parse_qsl(address.query, keep_blank_values=True))
        if not _SERVICE.fullmatch(service) or not options.keys() <= LOGIN_OPTIONS.keys():
            raise ValueError(INVALID_ADDRESS)
        return cls(
            parse_hosts(address.hosts, DEFAULT_PORT, INVALID_ADDRESS),
            service,
            f"redis://{address.login}localhost/{quote(database or '0')}",
            {LOGIN_OPTIONS[name]: value for name, value in options.items()},
        )

    @property
    def server(self) -> str:
        """The name for the log."""
        hosts = ", ".join(f"{host}:{port}" for host, port in self.sentinels)
        return f"{self.service} of {hosts}"

    def pool_maker(
        self, options: Mapping[str, Any], connect_timeout: float
    ) -> Callable[[], ConnectionPool]:
        """Return what makes a pool of connections to the primary, with these options.

        One sentinel that does not answer leaves time to ask the others.
        """
        kept = {name: value for name, value in options.items() if name not in ("host", "port")}
        patience = connect_timeout / (1 + len(self.sentinels))
        asking = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_connect_timeout": patience,
            "socket_timeout": patience,
            **self.login,
        }
        return partial(_SentinelPool, self.sentinels, self.service, asking, kept, connect_timeout)


class _SentinelPool(SentinelConnectionPool):
    def __init__(
        self,
        sentinels: Sequence[tuple[str, int]],
        service: str,
        asking: dict[str, Any],
        options: dict[str, Any],
        connect_timeout: float,
    ) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            service,
            Sentinel(sentinels, sentinel_kwargs=asking),  # type: ignore[no-untyped-call]
            socket_connect_timeout=connect_timeout,
            **options,
        )

    async def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: FBT001, FBT002 -- redis's
        """Close connections to the primary; with those in use, those to the sentinels, too."""
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                await sentinel.aclose()


class AddressParts(NamedTuple):
    """The parts of an address with several hosts."""

    login: str  # with its "@"
    hosts: str
    path: str  # without its first slash
    query: str


def split_address(url: str, invalid: str) -> AddressParts:
    """Split an address. Raises ValueError with the message `invalid`."""
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise ValueError(invalid)
    return AddressParts(*found.groups(""))


def parse_hosts(text: str, default_port: int, invalid: str) -> list[tuple[str, int]]:
    """Parse hosts and ports that commas separate. Raises ValueError with the message `invalid`."""
    hosts = []
    for each in text.split(","):
        try:
            parsed = urlsplit(f"//{each}")
            host, port = parsed.hostname, parsed.port or default_port
        except ValueError:
            raise ValueError(invalid) from None
        if not host or parsed.path or parsed.username is not None:
            raise ValueError(invalid)
        hosts.append((host, port))
    return hosts
