"""What of an upstream's response head goes to the client.

An upstream speaks to Abridge, not to what stands before it. So it gives no orders to a proxy there,
which some obey by sending a file of their own, nor to a browser, which would keep them for all that
is served at Abridge's address. All else stays as it is, including repeated headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

import httpx
from starlette.types import Scope

from abridge.apis.credentials import Header
from abridge.http.asgi import can_be_written, get_header
from abridge.http.transport import HttpResponse
from abridge.sidecar.proxy.targets import HOP_BY_HOP, end_to_end_headers

PROXY_COMMANDS = frozenset(
    {
        *(b"x-sendfile", b"x-sendfile2", b"x-lighttpd-send-file", b"x-sendfile-temporary"),
        *(b"x-reproxy-url", b"x-reproxy-file", b"surrogate-control", b"edge-control"),
    }
)
"""Orders to a proxy (Apache's mod_xsendfile, lighttpd, Perlbal, caches), besides nginx'
`X-Accel-*`."""

BROWSER_COMMANDS = frozenset(
    {
        *(b"set-cookie", b"set-cookie2", b"clear-site-data", b"alt-svc", b"refresh"),
        *(b"strict-transport-security", b"public-key-pins", b"expect-ct"),
        *(b"service-worker-allowed", b"report-to", b"reporting-endpoints", b"nel"),
    }
)
"""Orders to a browser that outlast the answer, or are about the whole site."""

DROPPED = HOP_BY_HOP | PROXY_COMMANDS | BROWSER_COMMANDS

DROPPED_PREFIX = b"x-accel-"

CROSS_ORIGIN_PREFIX = b"access-control-"
"""Leave for other sites' pages to read the answer, which is Abridge's to give."""

GUARDED_PREFIXES = (DROPPED_PREFIX, CROSS_ORIGIN_PREFIX)

STATUSES = range(200, 600)
"""Statuses that a response may have."""


class UnwritableHead(httpx.RemoteProtocolError):
    """An upstream's head cannot be written to a client."""


class ResponseHeads:
    """Passes on the heads of responses. `allowed_origins` are globs of the origins whose pages may
    read them."""

    def __init__(self, allowed_origins: Iterable[str]) -> None:
        self._origins = re.compile("|".join(map(translate, allowed_origins)) or "(?!)")

    def headers_for_client(self, scope: Scope, response: HttpResponse) -> list[Header]:
        """Return the headers that go to the client. Raises UnwritableHead."""
        passed = [
            header
            for header in end_to_end_headers(response.headers, DROPPED)
            if not header[0].startswith(GUARDED_PREFIXES) or self._may_pass(header[0], scope)
        ]
        lengths = {value for name, value in passed if name == b"content-length"}
        has_length = len(lengths) <= 1 and all(map(bytes.isdigit, lengths))
        if response.status not in STATUSES or not has_length or not can_be_written(passed):
            raise UnwritableHead("Its response headers cannot be passed on.")
        return passed

    def _may_pass(self, name: bytes, scope: Scope) -> bool:
        """Return whether a header with a guarded prefix goes to the client."""
        origin = get_header(scope["headers"], b"origin").decode("latin-1")
        return name.startswith(CROSS_ORIGIN_PREFIX) and bool(self._origins.fullmatch(origin))
