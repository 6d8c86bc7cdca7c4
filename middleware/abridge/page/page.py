"""The page's routes and their protection.

Anyone who can reach the port may open the page, as they may read the metrics. Another web site,
open in the browser of such a person, may not: cross-origin reads are forbidden, and a request over
loopback must address a loopback name or an IP address, against DNS rebinding. The page finds its
own requests in the journal by the request id it sent with them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from importlib.resources import files
from ipaddress import IPv4Address, IPv6Address, ip_address
from time import time

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from abridge.apis.json import dumps
from abridge.page.journal import Journal

MEDIA_TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

NOT_LOCAL = "This page is for this machine: open it as http://127.0.0.1 or http://localhost.\n"

Handler = Callable[[Request], Awaitable[Response]]


class Page:
    """The page; `summarizer` is the kind in the settings, so that it can say what an extract is."""

    def __init__(self, summarizer: str) -> None:
        self.journal = Journal()
        self._summarizer = summarizer
        self._files = {
            file.name: file.read_bytes()
            for file in files("abridge.page").joinpath("files").iterdir()
            if file.is_file()
        }

    def routes(self) -> list[Route]:
        return [
            Route("/abridge", _guard(self._page)),
            Route("/abridge/", _guard(self._redirect_slash)),
            Route("/abridge/page/{file}", _guard(self._file)),
            Route("/abridge/exchanges", _guard(self._exchanges)),
        ]

    async def _page(self, _: Request) -> Response:
        return self._serve_file("page.html")

    async def _redirect_slash(self, _: Request) -> Response:
        return RedirectResponse("../abridge")

    async def _file(self, request: Request) -> Response:
        return self._serve_file(request.path_params["file"])

    def _serve_file(self, name: str) -> Response:
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", status_code=404)
        media_type = MEDIA_TYPES[name.rpartition(".")[2]]
        return Response(
            self._files[name], media_type=media_type, headers={"cache-control": "no-cache"}
        )

    async def _exchanges(self, request: Request) -> Response:
        listing = {
            "now": time(),
            "summarizer": self._summarizer,
            "exchanges": self.journal.newest_first(request.query_params.get("id")),
        }
        headers = {"cache-control": "no-store"}
        return Response(dumps(listing), media_type="application/json", headers=headers)


def _guard(handler: Handler) -> Handler:
    @wraps(handler)
    async def guarded(request: Request) -> Response:
        if _is_loopback_request(request) and not _has_local_host(request):
            response: Response = PlainTextResponse(NOT_LOCAL, status_code=403)
        else:
            response = await handler(request)
        response.headers.update(SECURITY_HEADERS)
        return response

    return guarded


def _is_loopback_request(request: Request) -> bool:
    server = request.scope.get("server")
    address = _parse_address(server[0]) if server else None
    return address is not None and address.is_loopback


def _has_local_host(request: Request) -> bool:
    """Check the Host header: an IP address, or a name under `.localhost`.

    Neither can be made to point elsewhere by DNS.
    """
    value = request.headers.get("host", "").lower()
    host = value[1:].partition("]")[0] if value.startswith("[") else value.partition(":")[0]
    return _parse_address(host) is not None or f".{host.removesuffix('.')}".endswith(".localhost")


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address; an IPv4-mapped IPv6 address, as a dual-stack socket reports it, becomes
    IPv4."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
