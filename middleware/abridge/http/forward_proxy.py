"""The forward proxy that the environment names for an address.

`HTTPS_PROXY` and `HTTP_PROXY`, in capitals or not, name a proxy by the scheme of the address;
`NO_PROXY` names hosts that are reached directly, with all names below them, ports, networks
(`10.0.0.0/8`), or `*`. Loopback is always reached directly.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from abridge.http.hosts import is_loopback_name

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """A proxy: its address without credentials, and its credentials as `user:password`."""

    url: str
    credentials: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """What it is sent with a request."""
        if not self.credentials:
            return {}
        return {"Proxy-Authorization": f"Basic {b64encode(self.credentials.encode()).decode()}"}


def find_proxy(address: str, environ: Mapping[str, str] = os.environ) -> ForwardProxy | None:
    """Return the proxy for an address, None if it is reached directly. Raises ValueError, with a
    message that does not repeat the variable's value, which may hold a password."""
    target = urlsplit(address)
    name = f"{target.scheme}_proxy"
    value = _variable(environ, name)
    if not value or is_loopback_name(target.hostname or "") or _is_exempt(target, environ):
        return None
    if (proxy := _parse(value)) is None:
        raise ValueError(f"{name.upper()}: must be an address such as http://proxy:3128")
    return proxy


def _parse(value: str) -> ForwardProxy | None:
    try:
        url = urlsplit(value if "://" in value else f"http://{value}")
        port = url.port or DEFAULT_PORTS["http"]
    except ValueError:
        return None
    if url.scheme != "http" or not url.hostname:
        return None
    if url.path.strip("/") or url.query or url.fragment:  # the host may be part of the credentials
        return None
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    credentials = unquote(f"{url.username}:{url.password or ''}") if url.username else ""
    return ForwardProxy(f"http://{host}:{port}", credentials)


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper(), "")


def _is_exempt(target: SplitResult, environ: Mapping[str, str]) -> bool:
    entries = (entry.strip().lower() for entry in _variable(environ, "no_proxy").split(","))
    port = target.port or DEFAULT_PORTS.get(target.scheme)
    return any(_covers(entry, target.hostname or "", port) for entry in entries if entry)


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Return whether an entry of NO_PROXY is meant for a host."""
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:  # one of them is a name
        pass
    name, _, only_port = entry.partition(":")
    name = name.removeprefix("*").removeprefix(".")
    if only_port and only_port != str(port):
        return False
    return host == name or host.endswith(f".{name}")
