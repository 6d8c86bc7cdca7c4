"""The address of an upstream, and the request that it gets for a client's.

The address comes from the settings alone. The client's path, below the app's mount point, and its
query are forwarded as the client wrote them. Of a request's headers only those are forwarded that
model servers read and that the settings add to them, so that no cookie and no address of a client
gets to a provider; the client's credential goes only where the settings say so. Those that are
forwarded are kept unchanged, including repeated ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from secrets import token_hex

import httpx
from starlette.types import Scope

from abridge.apis.credentials import CREDENTIAL_HEADERS, GATEWAY_PREFIXES, Header, credential_header
from abridge.apis.model_names import ModelRenames
from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.loading import read_secret
from abridge.config.settings import Route
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import SettingsError
from abridge.http.asgi import encoded_path
from abridge.http.transport import HttpRequest, body_length
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

ABRIDGE_HEADER_PREFIX = b"x-abridge-"

FORWARDED = frozenset(
    {
        *(b"accept", b"accept-encoding", b"accept-language", b"user-agent", b"prefer", b"range"),
        *(b"content-type", b"content-encoding", b"content-language", b"content-disposition"),
        *(b"content-digest", b"content-md5", b"digest", b"repr-digest", b"cache-control"),
        *(b"if-none-match", b"if-modified-since", b"if-match", b"if-unmodified-since"),
        *(b"traceparent", b"tracestate", b"baggage"),
        *(b"x-request-id", b"x-client-request-id", b"x-correlation-id"),
        *(b"http-referer", b"x-title"),  # the client's application, which OpenRouter asks for
        b"api-revision",  # Gemini's Interactions
        *(b"originator", b"session_id", b"session-id", b"conversation_id"),  # Codex
        *(b"origin", b"access-control-request-method", b"access-control-request-headers"),
    }
)
"""Request headers that model servers read and that say nothing of who the client is. The last ones
are for servers that answer to web pages themselves."""

ACCOUNT_HEADERS = frozenset({b"idempotency-key", b"openai-organization", b"openai-project"})
"""Headers that choose between the accounts of a key, or an answer that was given with it before.
They go where the client's credential goes: to another upstream they would tell who the client is,
or bring it what somebody else was answered."""

DECIDED = CREDENTIAL_HEADERS | ACCOUNT_HEADERS | {b"host", b"content-length", b"expect"}
"""Request headers that no setting adds: Abridge itself decides about them."""

FORWARDED_PREFIXES = (b"openai-", b"anthropic-", b"x-stainless-", b"x-openai-", b"x-codex-")
"""Prefixes of further ones."""


VIA = b"x-abridge-via"
"""The request header with the ids of the proxies of Abridge's that a request passed."""

MAX_PROXIES = 8
"""How many of them a request passes at most."""

MAX_VIA = MAX_PROXIES * 18
"""The bytes that are read of the header: an id has 16."""

_INSTANCE = re.compile(rb"\b[0-9a-f]{16}\b")


class LoopError(httpx.LocalProtocolError):
    """A request came back to the proxy that sent it."""


def make_instance() -> bytes:
    """Return an id for a proxy."""
    return token_hex(8).encode()


def end_to_end_headers(
    headers: Iterable[Header], dropped: frozenset[bytes] = HOP_BY_HOP
) -> list[Header]:
    """Return the headers that are not hop-by-hop, with names in lower case. `dropped` has the names
    of those, and of others to leave out."""
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


MAX_TARGET = 64 << 10
"""The longest path and query, in bytes."""

NOTHING = "(?!)"
"""A pattern that matches nothing."""


@dataclass(slots=True, frozen=True)
class UpstreamTarget:
    """One upstream to forward to."""

    name: str
    origin: str
    host: bytes
    base_path: bytes  # the path that replaces a leading `/v1` of the client's
    credential: Header | None  # its own
    forwarded_names: frozenset[bytes]  # of request headers, in lower case
    dropped_names: frozenset[bytes]  # of those that no setting adds
    takes_client_credential: bool
    header_globs: re.Pattern[str]  # match the headers that its settings add to those
    renames: ModelRenames
    instance: bytes  # the id of the proxy that sends its requests

    @classmethod
    def from_route(cls, route: Route, instance: bytes) -> UpstreamTarget:
        """Raises SettingsError."""
        upstream = route.upstream
        if upstream.base_url is None:
            raise SettingsError(f"upstreams: {upstream.name!r} has no base_url")
        url = httpx.URL(upstream.base_url)
        origin = f"{url.scheme}://{url.netloc.decode()}"
        return cls(
            upstream.name,
            origin,
            url.netloc,
            url.raw_path.rstrip(b"/"),
            _credential_header(upstream),
            (names := _forwarded_names(route)),
            HOP_BY_HOP | (DECIDED - names),
            route.client_credential,
            re.compile("|".join(map(translate, upstream.forward_headers)) or NOTHING),
            route.renames,
            instance,
        )

    def build_request(self, scope: Scope, body: bytes | httpx.AsyncByteStream) -> HttpRequest:
        """Return the request to send for a client's request.

        Raises httpx.InvalidURL, httpx.LocalProtocolError if it does not say where its body ends,
        and LoopError if it came from the same proxy.
        """
        target, query = self._path(scope), scope.get("query_string", b"")
        if query:
            target = b"%b?%b" % (target, query)
        if len(target) > MAX_TARGET:
            raise httpx.InvalidURL("The path is too long.")
        headers, length = self._headers(scope["headers"], body)
        return HttpRequest(scope["method"], self.origin, target, headers, body, length)

    def _path(self, scope: Scope) -> bytes:
        path = encoded_path(scope)
        if path == b"/v1" or path.startswith(b"/v1/"):
            path = self.base_path + path.removeprefix(b"/v1")
        return path if path.startswith(b"/") else b"/" + path

    def _headers(
        self, headers: list[Header], body: bytes | httpx.AsyncByteStream
    ) -> tuple[list[Header], int | None]:
        """Return the headers to send, and the length of the body as they frame it."""
        names = self.forwarded_names
        forwarded = [
            header
            for header in end_to_end_headers(headers, self.dropped_names)
            if header[0] in names or self._adds(header[0])
        ]
        forwarded.insert(0, (b"host", self.host))
        found = dict(headers)
        forwarded.append((VIA, self._extend_via(headers) if VIA in found else self.instance))
        if self.credential is not None:
            forwarded.append(self.credential)
        if isinstance(body, bytes):
            if body or b"content-length" in found:
                forwarded.append((b"content-length", b"%d" % len(body)))
            return forwarded, len(body)
        declared = [header for header in headers if header[0] == b"content-length"]
        framing = declared or [(b"transfer-encoding", b"chunked")]
        return forwarded + framing, body_length(framing)

    def _extend_via(self, headers: list[Header]) -> bytes:
        """Return the ids of the proxies that a request passed, and this one's. Raises LoopError."""
        passed = b",".join(value for name, value in headers if name == VIA)
        ids = _INSTANCE.findall(passed[:MAX_VIA])
        if self.instance in ids or len(ids) >= MAX_PROXIES:
            raise LoopError("base_url leads back to Abridge itself")
        return b", ".join([*ids, self.instance])

    def _adds(self, name: bytes) -> bool:
        """Return whether a prefix or the settings add a header, by its name in lower case."""
        if name.startswith(FORWARDED_PREFIXES):
            return True
        if name.startswith(GATEWAY_PREFIXES):  # they may redirect the key that is sent, or its cost
            return self.takes_client_credential
        if name.startswith(ABRIDGE_HEADER_PREFIX):
            return False
        return self.header_globs.fullmatch(name.decode("latin-1")) is not None


def _forwarded_names(route: Route) -> frozenset[bytes]:
    """Return the names of the headers that are forwarded to a route's upstream."""
    client_headers = CREDENTIAL_HEADERS | ACCOUNT_HEADERS
    return FORWARDED | client_headers if route.client_credential else FORWARDED


def _credential_header(upstream: UpstreamSettings) -> Header | None:
    """Return the header with the upstream's own key, if the settings name one."""
    if upstream.api_key_env is None:
        return None
    setting = f"upstreams[].api_key_env (of {upstream.name!r})"
    key = read_secret(upstream.api_key_env, setting).encode()
    return credential_header(key, PROFILES[upstream.profile], UPSTREAM_APIS.get(upstream.api))
