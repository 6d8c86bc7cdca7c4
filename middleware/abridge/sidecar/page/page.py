"""The page's routes and their protection.

Anyone who can reach the port may open the page. Another web site, open in the browser of such a
person, may not: cross-origin reads are forbidden, and a request must address an IP address, a local
name or one that the settings list, against DNS rebinding. That holds whatever address the server
listens on: behind a port mapping it is not the one that the browser was given. The page finds its
own requests in the journal by the request id it sent with them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from time import time

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from abridge.apis.json import dumps
from abridge.config.client_key import key_name
from abridge.core.styles import STYLES
from abridge.http.asgi import get_header
from abridge.http.hosts import is_allowed_host
from abridge.sidecar.page.journal import Journal

FILES = Path(__file__).parent / "files"

PAGE = "page.html"

STYLE_CHOICE = b'<select id="style">'
"""What the styles stand in, on the page."""

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

WRONG_HOST = (
    "Open this page with an IP address such as http://127.0.0.1, or as http://localhost. The "
    "setting server.allowed_hosts adds names.\n"
)

Handler = Callable[[Request], Awaitable[Response]]


class Page:
    """The page; `summarizer` is the kind in the settings, so that it can say what an extract is.

    `hosts` are globs of the names by which it may be opened.
    """

    def __init__(self, summarizer: str, hosts: Sequence[str] = ()) -> None:
        self.journal = Journal()
        self.summarizer = summarizer
        self._hosts = hosts
        self._files = {file.name: file.read_bytes() for file in FILES.iterdir() if file.is_file()}
        self.html = self._files[PAGE] = _with_styles(self._files[PAGE])

    def routes(self) -> list[Route]:
        return [
            Route("/abridge", _guard(self._page, self._hosts)),
            Route("/abridge/", _guard(self._redirect_slash, self._hosts)),
            Route("/abridge/page/{file}", _guard(self._file, self._hosts)),
            Route("/abridge/exchanges", _guard(self._exchanges, self._hosts)),
        ]

    async def _page(self, _: Request) -> Response:
        return self._serve_file(PAGE)

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
        request_id, owner = request.query_params.get("id"), key_name(request.scope)
        listing = {
            "now": time(),
            "summarizer": self.summarizer,
            "exchanges": self.journal.newest_first(request_id, owner),
        }
        headers = {"cache-control": "no-store"}
        return Response(dumps(listing), media_type="application/json", headers=headers)


def _with_styles(page: bytes) -> bytes:
    """Return the page with a choice of all styles."""
    options = "".join(f"<option>{style}</option>" for style in STYLES).encode()
    return page.replace(STYLE_CHOICE, STYLE_CHOICE + options)


def _guard(handler: Handler, hosts: Sequence[str]) -> Handler:
    @wraps(handler)
    async def guarded(request: Request) -> Response:
        if not is_allowed_host(get_header(request.scope["headers"], b"host"), hosts):
            response: Response = PlainTextResponse(WRONG_HOST, status_code=421)
        else:
            response = await handler(request)
        response.headers.update(SECURITY_HEADERS)
        return response

    return guarded
