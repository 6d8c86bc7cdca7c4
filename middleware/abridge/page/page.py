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

from abridge.page.journal import Journal
from abridge.wire.codec import dumps

TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

ELSEWHERE = "This page is for this machine: open it as http://127.0.0.1 or http://localhost.\n"

Answer = Callable[[Request], Awaitable[Response]]


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
            Route("/abridge", _guarded(self._page)),
            Route("/abridge/", _guarded(self._without_slash)),
            Route("/abridge/page/{file}", _guarded(self._file)),
            Route("/abridge/exchanges", _guarded(self._exchanges)),
        ]

    async def _page(self, _: Request) -> Response:
        return self._stored("page.html")

    async def _without_slash(self, _: Request) -> Response:
        return RedirectResponse("../abridge")

    async def _file(self, request: Request) -> Response:
        return self._stored(request.path_params["file"])

    def _stored(self, name: str) -> Response:
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", status_code=404)
        kind = TYPES[name.rpartition(".")[2]]
        return Response(self._files[name], media_type=kind, headers={"cache-control": "no-cache"})

    async def _exchanges(self, request: Request) -> Response:
        told = {
            "now": time(),
            "summarizer": self._summarizer,
            "exchanges": self.journal.newest_first(request.query_params.get("id")),
        }
        headers = {"cache-control": "no-store"}
        return Response(dumps(told), media_type="application/json", headers=headers)


def _guarded(answer: Answer) -> Answer:
    @wraps(answer)
    async def guarded(request: Request) -> Response:
        if _came_by_loopback(request) and not _names_this_machine(request):
            response: Response = PlainTextResponse(ELSEWHERE, status_code=403)
        else:
            response = await answer(request)
        response.headers.update(HEADERS)
        return response

    return guarded


def _came_by_loopback(request: Request) -> bool:
    server = request.scope.get("server")
    address = _address(server[0]) if server else None
    return address is not None and address.is_loopback


def _names_this_machine(request: Request) -> bool:
    """Check the Host header: an IP address, or a name under `.localhost`.

    Neither can be made to point elsewhere by DNS.
    """
    given = request.headers.get("host", "").lower()
    host = given[1:].partition("]")[0] if given.startswith("[") else given.partition(":")[0]
    return _address(host) is not None or f".{host.removesuffix('.')}".endswith(".localhost")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address; an IPv4-mapped IPv6 address, as a dual-stack socket reports it, becomes
    IPv4."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
