"""The address of an upstream, and the request that it gets for a client's.

The address comes from the settings alone. The client's path, below the app's mount point, and its
query are forwarded as the client wrote them. Hop-by-hop headers are dropped in both directions; all
others are kept unchanged, including repeated ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

import httpx
from starlette.types import Scope

from abridge.apis.credentials import Header, credential_header
from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.loading import read_secret
from abridge.config.settings import UpstreamSettings
from abridge.errors import SettingsError
from abridge.http.asgi import PATH_SAFE, encoded_path, quote_non_ascii
from abridge.providers.catalog import PROFILES

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""See RFC 9110, section 7.6.1; the names listed in `Connection` are hop-by-hop as well."""

CREDENTIAL_HEADERS = frozenset({b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key"})

NOT_FORWARDED = HOP_BY_HOP | {b"host", b"content-length", b"expect"}

ABRIDGE_HEADER_PREFIX = b"x-abridge-"


def end_to_end_headers(
    headers: Iterable[Header], dropped: frozenset[bytes] = HOP_BY_HOP
) -> list[Header]:
    """Return the headers that a proxy forwards, with names in lower case."""
    forwarded: list[Header] = []
    connection_names: set[bytes] = set()
    for raw_name, value in headers:
        name = raw_name.lower()
        if name not in dropped:
            forwarded.append((name, value))
        elif name == b"connection":
            connection_names.update(token.strip().lower() for token in value.split(b","))
    return (
        [header for header in forwarded if header[0] not in connection_names]
        if connection_names
        else forwarded
    )


@lru_cache(maxsize=1024)
def _parse_url(origin: str, path: bytes) -> httpx.URL:
    """Parse a URL. Cached, as parsing takes longer than the rest of forwarding a request."""
    return httpx.URL(origin + quote(path, PATH_SAFE + "%"))


@dataclass(slots=True, frozen=True)
class UpstreamTarget:
    """One upstream to forward to."""

    name: str
    origin: str
    host: bytes
    base_path: bytes  # the path that replaces a leading `/v1` of the client's
    credential: Header | None  # replaces the client's credentials

    @classmethod
    def from_settings(cls, upstream: UpstreamSettings) -> UpstreamTarget:
        """Raises SettingsError."""
        if upstream.base_url is None:
            raise SettingsError(f"upstreams: {upstream.name!r} has no base_url to forward to")
        try:
            url = httpx.URL(upstream.base_url)
        except httpx.InvalidURL as error:
            raise SettingsError(f"upstreams: base_url of {upstream.name!r}: {error}") from None
        origin = f"{url.scheme}://{url.netloc.decode()}"
        return cls(
            upstream.name,
            origin,
            url.netloc,
            url.raw_path.rstrip(b"/"),
            _credential_header(upstream),
        )

    def build_request(self, scope: Scope, body: bytes | httpx.AsyncByteStream) -> httpx.Request:
        """Return the request to send for a client's request. Raises httpx.InvalidURL."""
        path, query = self._path(scope), scope.get("query_string", b"")
        url = _parse_url(self.origin, path)
        return httpx.Request(
            scope["method"],
            url.copy_with(query=quote_non_ascii(query).encode()) if query else url,
            headers=self._headers(scope["headers"], body),
            stream=httpx.ByteStream(body) if isinstance(body, bytes) else body,
            extensions={"target": path + b"?" + query if query else path},
        )

    def _path(self, scope: Scope) -> bytes:
        path = encoded_path(scope)
        if path == b"/v1" or path.startswith(b"/v1/"):
            path = self.base_path + path.removeprefix(b"/v1")
        return path if path.startswith(b"/") else b"/" + path

    def _headers(self, headers: list[Header], body: bytes | httpx.AsyncByteStream) -> list[Header]:
        dropped = NOT_FORWARDED if self.credential is None else NOT_FORWARDED | CREDENTIAL_HEADERS
        forwarded = [
            header
            for header in end_to_end_headers(headers, dropped)
            if not header[0].startswith(ABRIDGE_HEADER_PREFIX)
        ]
        credential = [] if self.credential is None else [self.credential]
        return [(b"host", self.host), *forwarded, *credential, *_framing_headers(headers, body)]


def _credential_header(upstream: UpstreamSettings) -> Header | None:
    """Return the header with the upstream's own key, if the settings name one."""
    if upstream.api_key_env is None:
        return None
    key = read_secret(upstream.api_key_env, "upstreams[].api_key_env").encode()
    return credential_header(key, PROFILES[upstream.profile], UPSTREAM_APIS.get(upstream.api))


def _framing_headers(headers: list[Header], body: bytes | httpx.AsyncByteStream) -> list[Header]:
    """Return the header that frames the body: the client's own, unless the body's size is known."""
    declared = [header for header in headers if header[0] == b"content-length"]
    if not isinstance(body, bytes):
        return declared or [(b"transfer-encoding", b"chunked")]
    return [(b"content-length", b"%d" % len(body))] if body or declared else []
