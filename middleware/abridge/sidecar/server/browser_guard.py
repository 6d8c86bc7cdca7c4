"""Keep other web sites out, which may have a visitor's browser send requests to a local server.

A browser does so for any site: it sends forms and plain text unasked, and for the rest asks the
server first, which model servers commonly allow to all. So refused are requests that address
another host than this one, that another site had sent, and that bring no JSON to an endpoint that
takes nothing else. Clients that are no browsers notice none of it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping
from fnmatch import translate

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.registry import find_api
from abridge.apis.responses.api import RESPONSES
from abridge.caches import CONTENT_TYPES, cached
from abridge.config.tables import ServerSettings
from abridge.errors import RequestError
from abridge.http.asgi import request_paths
from abridge.http.hosts import is_allowed_host
from abridge.pipeline.answers.error_writer import refuse
from abridge.sidecar.server.http_protocol import CountRefusal

WRONG_HOST = RequestError(
    "This server does not have the name in the Host header. The setting server.allowed_hosts "
    "lists its names.",
    status=421,
    param="host",
    code="misdirected_request",
)

OTHER_SITE = RequestError(
    "Requests from other web sites are refused. The setting server.allowed_origins lists the "
    "sites that are allowed.",
    status=403,
    param="origin",
    code="cross_site_request",
)

NO_JSON = RequestError(
    "The request body must be JSON, with the header Content-Type: application/json.",
    status=415,
    param="content-type",
    code="unsupported_content_type",
)


class BrowserGuard:
    """Refuse what browsers send for other sites, and pass all else on to `app`.

    Pages of `server.allowed_origins` may send requests and read the answers. `count_refusal` is
    called with the error code of what is refused.
    """

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, count_refusal: CountRefusal = lambda _: None
    ) -> None:
        self._hosts = settings.served_hosts
        self._origins = re.compile("|".join(map(translate, settings.allowed_origins)) or r"(?!)")
        self._count_refusal = count_refusal
        self._inner, self._app = app, self._without_origin
        if settings.allowed_origins:
            self._app = CORSMiddleware(
                self._app,
                allow_origin_regex=self._origins.pattern,
                allow_methods=["*"],
                allow_headers=["*"],
                expose_headers=["*"],
            )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        headers = dict(scope.get("headers", ()))
        refusal = None if scope["type"] == "lifespan" else self._find_refusal(scope, headers)
        if refusal is not None:
            return self._refuse(refusal, scope, receive, send)
        app = self._app if b"origin" in headers else self._inner
        return app(scope, receive, send)

    def _without_origin(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Call the app without an origin: upstream would judge it by a list of its own."""
        headers = [header for header in scope["headers"] if header[0] != b"origin"]
        return self._inner({**scope, "headers": headers}, receive, send)

    async def _refuse(
        self, refusal: RequestError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._count_refusal(refusal.code or "")
        api = find_api(*request_paths(scope)) or RESPONSES
        await refuse(refusal, api, scope, receive, send)

    def _find_refusal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> RequestError | None:
        host = headers.get(b"host")  # every browser sends it; HTTP/1.0, as of some probes, has none
        if host is not None and not is_allowed_host(host, self._hosts):
            return WRONG_HOST
        if scope["type"] == "websocket":
            return OTHER_SITE if self._is_from_other_origin(headers) else None
        is_from_browser = b"origin" in headers or b"sec-fetch-site" in headers
        if is_from_browser and self._is_from_other_site(scope["method"], headers):
            return OTHER_SITE
        if scope["method"] == "POST" and not _is_json(headers.get(b"content-type", b"")):
            return NO_JSON if find_api(*request_paths(scope)) else None
        return None

    def _is_from_other_site(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether another site's page sent a request.

        Browsers say so, but not to a plain http address that is not local; there the origin that
        they name with each request that could do harm is not the server's own. A link to the page
        is no such request.
        """
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin", b"").decode("latin-1")
        if site and not (origin and self._origins.fullmatch(origin)):
            return site == b"cross-site" and not (method == "GET" and _is_link(headers))
        return self._is_from_other_origin(headers)

    def _is_from_other_origin(self, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a page that is neither this server's own nor a listed one sent a request.
        Over WebSocket this alone counts: every server on this machine is of the same site."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not origin or self._origins.fullmatch(origin):
            return False
        host = headers.get(b"host", b"").decode("latin-1")
        return origin.partition("://")[2].lower() != host.lower()


def _is_link(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a browser shows the answer by itself, and to nobody else."""
    mode, destination = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
    return (mode, destination) == (b"navigate", b"document")


@cached(CONTENT_TYPES)
def _is_json(content_type: bytes) -> bool:
    kind = content_type.split(b";")[0].strip().lower()
    return kind == b"application/json" or (
        kind.startswith(b"application/") and kind.endswith(b"+json")
    )
