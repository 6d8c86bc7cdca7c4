"""The page's routes, and who may use them.

Whoever can reach the port may open the page, as they may read the metrics. A stranger's web page,
open in the browser of somebody who can, may not: no other origin is allowed to read what is here,
and a host name that was made to point at this machine is not taken for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from importlib.resources import files
from ipaddress import ip_address
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
    """`summarizer` is the kind in the settings: the page says from the start what an extract is."""

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

    async def _exchanges(self, _: Request) -> Response:
        told = {
            "now": time(),
            "summarizer": self._summarizer,
            "exchanges": self.journal.newest_first(),
        }
        headers = {"cache-control": "no-store"}
        return Response(dumps(told), media_type="application/json", headers=headers)


def _guarded(answer: Answer) -> Answer:
    @wraps(answer)
    async def guarded(request: Request) -> Response:
        if _came_by_loopback(request) and not _is_loopback(_host(request)):
            response: Response = PlainTextResponse(ELSEWHERE, status_code=403)
        else:
            response = await answer(request)
        response.headers.update(HEADERS)
        return response

    return guarded


def _came_by_loopback(request: Request) -> bool:
    server = request.scope.get("server")
    return server is not None and _is_loopback(server[0])


def _host(request: Request) -> str:
    """The host that was asked for, less its port."""
    host = request.headers.get("host", "")
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return f".{host}".endswith(".localhost")
