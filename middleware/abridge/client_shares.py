"""A budget that clients share, and of which none may take more than its share."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

from abridge.caches import CLIENTS, cached

IPV6_HOST_BITS = 64
"""Bits of an IPv6 address that one client can choose: its network is the rest."""


class ClientShares:
    """`total` units of something, such as bytes or connections; one client may hold `share`."""

    def __init__(self, total: int = 0, share: int = 0) -> None:
        self.total = self._free = total
        self._share = share
        self._held: dict[str, int] = {}

    def resize(self, total: int, share: int) -> None:
        """Set the total and the share anew. What is held beyond them stays until it is given
        back."""
        self._free += total - self.total
        self.total, self._share = total, share

    def take(self, client: str, amount: int) -> bool:
        """Return False, and take nothing, if that is more than is free, or the client's share."""
        held = self._held.get(client, 0) + amount
        if amount > self._free or held > self._share:
            return False
        self._free -= amount
        self._held[client] = held
        return True

    def give_back(self, client: str, amount: int) -> None:
        self._free += amount
        held = self._held.pop(client, 0) - amount
        if held > 0:
            self._held[client] = held


def client_of(scope: Scope) -> str:
    """Return the name under which a request's client holds its share."""
    client = scope.get("client")
    return "" if client is None else client_name(client[0])


@cached(CLIENTS)
def client_name(address: str) -> str:
    """Return what all addresses of one client have in common.

    That is the address itself, but the network for IPv6, where a client has 2**64 addresses. What
    is no IP address, such as the empty one of a Unix socket, is a single client.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> IPV6_HOST_BITS << IPV6_HOST_BITS))
