"""The client of a Redis Cluster.

    redis+cluster://user:password@host:6379,host:6379

Any of the hosts tells which others there are, and which of them holds a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from redis.asyncio.cluster import ClusterNode, RedisCluster

from abridge.memory.stores.redis_sentinel import parse_hosts, split_address

SCHEME = "redis+cluster"

DEFAULT_PORT = 6379

Hosts: TypeAlias = Sequence[tuple[str, int]]
"""Hosts, each with its port."""

INVALID_ADDRESS = f"must be an address such as {SCHEME}://user:password@host:6379,host:6379"


class ClusterClient(RedisCluster):
    """Finds the cluster at any of `hosts`, or of the servers that were `known` before.

    After a failure it is replaced: redis-py keeps each connection that it could not open, and once
    it knows a cluster, forgets the hosts that led there.
    """

    def __init__(
        self, hosts: Hosts, options: Mapping[str, Any], patience: float, known: Hosts = ()
    ) -> None:
        self._hosts, self._options, self._patience, self._known = hosts, options, patience, known
        nodes = dict.fromkeys([*hosts, *known])
        each = patience / (1 + len(nodes))  # one that does not answer leaves time to ask others
        super().__init__(
            startup_nodes=[ClusterNode(host, port) for host, port in nodes],
            require_full_coverage=False,  # what the rest of it holds is still of use
            socket_connect_timeout=each,
            socket_timeout=each,
            protocol=2,
            retry=options["retry"],
            **{name: options[name] for name in ("username", "password") if name in options},
        )
        for connection_options in (
            self.connection_kwargs,
            *(node.connection_kwargs for node in self.startup_nodes),
        ):
            connection_options["parser_class"] = options["parser_class"]  # it takes none itself

    def renewed(self) -> ClusterClient:
        """Return a new client, which asks those that are known, too, which nodes there are."""
        known = [(node.host, int(node.port)) for node in self.get_nodes()] or self._known
        return ClusterClient(self._hosts, self._options, self._patience, known)

    async def aclose(self) -> None:
        """Close all connections, those too that asked which nodes there are."""
        await super().aclose()
        for node in self.startup_nodes:
            await node.disconnect()


def cluster_maker(
    url: str, options: Mapping[str, Any], patience: float
) -> tuple[Callable[[], ClusterClient], str]:
    """Return what makes a client of the cluster at an address, and its name for the log. `options`
    are those of a connection; `patience` is how long it may take to find the cluster. Raises
    ValueError, with a message that does not repeat the address."""
    address = split_address(url, INVALID_ADDRESS)
    if address.path or address.query:
        raise ValueError(INVALID_ADDRESS)
    nodes = parse_hosts(address.hosts, DEFAULT_PORT, INVALID_ADDRESS)
    server = "cluster of " + ", ".join(f"{host}:{port}" for host, port in nodes)
    return partial(ClusterClient, nodes, options, patience), server
