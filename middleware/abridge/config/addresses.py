"""Addresses of upstreams that are mistaken: without the version in their path, or Abridge's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from abridge.config.settings import Settings
from abridge.http.hosts import is_loopback_name
from abridge.providers.profile import GOOGLES

VERSIONS = ("/v1", "/v1beta")
"""Paths below which model servers have their API; the second is Google's."""

ROOT_HOSTS = frozenset({"api.deepseek.com", "api.perplexity.ai"})
"""Hosts that have it at the root (https://api-docs.deepseek.com,
https://docs.perplexity.ai/api-reference)."""

ANY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 -- compared with, not listened on

_VERSION = re.compile(r"/v\d++\w*+(?=/|$)")


def suggest_version(base_url: str, api: str = "same") -> str | None:
    """Return an address with the version that it probably lacks, None if it has one."""
    if _VERSION.search(urlsplit(base_url).path):
        return None
    return base_url + VERSIONS[api in GOOGLES]


def other_addresses(base_url: str) -> list[str]:
    """Return where the API may be, if it is not at this address: with a version, without it, or
    below another path."""
    mounted = without_version(base_url)
    origin = urlunsplit(urlsplit(base_url)._replace(path=""))
    versioned = [base_url + version for version in VERSIONS] if mounted == base_url else [mounted]
    others = dict.fromkeys([*versioned, origin + VERSIONS[0]])
    return [address for address in others if address != base_url]


def without_version(base_url: str) -> str:
    """Return an address up to the version."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=_VERSION.split(parts.path)[0]))


def find_unversioned(settings: Settings) -> Iterator[str]:
    """Yield a line for each address that has no path at all."""
    tables = [
        (f"upstreams[{index}].base_url", upstream.base_url, upstream.api)
        for index, upstream in enumerate(settings.upstreams)
    ]
    tables.append(("summarizer.base_url", settings.summarizer.base_url, settings.summarizer.api))
    tables.append(("review.base_url", settings.review.base_url, "same"))
    for key, base_url, api in tables:
        parts = urlsplit(base_url or "")
        if base_url is None or parts.path or parts.hostname in ROOT_HOSTS:
            continue
        yield (
            f"{key}: is {base_url}, without a path, but most servers have their API below "
            f"{VERSIONS[api in GOOGLES]}; if it answers 404, set {suggest_version(base_url, api)}"
        )


def find_own_addresses(settings: Settings) -> Iterator[str]:
    """Yield a line for each upstream that is the server of these settings itself."""
    server = settings.server
    ports = {server.port, server.admin_port} - {None, 0}
    for index, upstream in enumerate(settings.upstreams):
        parts = urlsplit(upstream.base_url or "")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if port in ports and _is_same_host(parts.hostname or "", server.host):
            yield (
                f"upstreams[{index}].base_url: is Abridge's own address, {server.host}:{port}; "
                "must be the model server's address, or change server.port"
            )


def _is_same_host(host: str, listening: str) -> bool:
    listening = listening.casefold()
    if listening in ANY_ADDRESS:
        return host in ANY_ADDRESS or is_loopback_name(host)
    names = {host, listening}
    return len(names) == 1 or ("localhost" in names and all(map(is_loopback_name, names)))
