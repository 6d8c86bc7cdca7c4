"""The names by which clients address a server, against DNS rebinding.

A web site can make its own name point to an address of the reader's machine or network; the browser
then takes what answers there for a part of that site. The request's Host still has the site's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address

from abridge.caches import HOSTS, cached

LOCAL_NAMES = ("localhost", "*.localhost")
"""Names that no DNS server is asked for."""


@cached(HOSTS)
def is_allowed_host(value: bytes, globs: Sequence[str]) -> bool:
    """Return whether a Host header has an IP address, a local name, or one that `globs` match.

    DNS can make neither of the first two point elsewhere.
    """
    host = _host_name(value.decode("latin-1").lower())
    allowed = (*LOCAL_NAMES, *map(str.lower, globs))
    return _is_address(host) or any(fnmatchcase(host, glob) for glob in allowed)


def is_loopback_name(host: str) -> bool:
    """Return whether a server that listens on this host is reached from its own machine alone."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _host_name(value: str) -> str:
    """Return the host of a Host header, without its port and final dot."""
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.partition(":")[0].removesuffix(".")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
