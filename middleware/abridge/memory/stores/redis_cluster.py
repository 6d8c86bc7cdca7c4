"""The client of a Redis Cluster.

    redis+cluster://user:password@host:6379,host:6379

Any of the hosts tells which others there are, and which of them holds a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio.cluster import ClusterNode, RedisCluster

from abridge.memory.stores.redis_sentinel import parse_hosts

SCHEME = "redis+cluster"

DEFAULT_PORT = 6379

INVALID_ADDRESS = f"takes an address such as {SCHEME}://user:password@host:6379,host:6379"


class _ClusterClient(RedisCluster):
    async def aclose(self) -> None:
        """Close all connections, those too that asked which nodes there are."""
        await super().aclose()
        for node in self.startup_nodes:
            await node.disconnect()


def cluster_maker(
    url: str, options: dict[str, Any], connect_timeout: float
) -> tuple[Callable[[], RedisCluster], str]:
    """Return what makes a client of the cluster at an address, and its name for the log. `options`
    are those of a connection. Raises ValueError, with a message that does not repeat the address.
    """
    try:
        parsed = urlsplit(url)
    except ValueError:
        raise ValueError(INVALID_ADDRESS) from None
    if parsed.path.strip("/") or parsed.query:
        raise ValueError(INVALID_ADDRESS)
    hosts = parsed.netloc.rpartition("@")[2]
    nodes = parse_hosts(hosts, DEFAULT_PORT, INVALID_ADDRESS)
    server = "cluster of " + ", ".join(f"{host}:{port}" for host, port in nodes)
    return partial(_make_client, nodes, options, connect_timeout), server


def _make_client(
    nodes: Sequence[tuple[str, int]], options: dict[str, Any], connect_timeout: float
) -> RedisCluster:
    named = {name: options[name] for name in ("username", "password") if name in options}
    client = _ClusterClient(
        startup_nodes=[ClusterNode(host, port) for host, port in nodes],
        require_full_coverage=False,  # what the rest of it holds is still of use
        socket_connect_timeout=connect_timeout,
        protocol=2,
        retry=options["retry"],
        **named,
    )
    for connection_options in (
        client.connection_kwargs,
        *(node.connection_kwargs for node in client.startup_nodes),
    ):
        connection_options["parser_class"] = options["parser_class"]  # it takes none itself
    return client
