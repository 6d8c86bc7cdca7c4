"""Read a request, and parse it if it may concern Abridge: its answer may have to be changed, or its
body holds something that Abridge made, or refers to something that it hid or replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.types import Receive, Scope

from abridge.apis.api import Api
from abridge.apis.registry import compacts, counts_tokens
from abridge.apis.summary_request import may_request_summary
from abridge.config.settings import Route, Settings
from abridge.errors import RequestError
from abridge.http.asgi import get_header, request_paths
from abridge.memory.registry import MemoryRegistry
from abridge.observability.record import Record
from abridge.pipeline.allowed_models import check_body, chooses_models, must_read
from abridge.pipeline.body import BufferedBody, ReserveMemory, buffer_body
from abridge.pipeline.closed_paths import ClosedPaths
from abridge.pipeline.request import SUMMARY_HEADER, ApiRequest, decode_body, must_decode, too_large
from abridge.providers.catalog import PROFILES
from abridge.work import LIGHT_BYTES, Work


class RequestReading:
    """Reads requests. `may_translate` says whether upstream was found to lack a client's API."""

    def __init__(
        self,
        settings: Settings,
        memory: MemoryRegistry,
        paths: ClosedPaths,
        choose_route: Callable[[str | None], Route],
        may_translate: Callable[[Api], bool],
    ) -> None:
        routes, ledger = settings.routes, settings.ledger
        self._limits = settings.limits
        self._memory = memory
        self.parse = partial(ApiRequest.read, limits=settings.limits, choose_route=choose_route)
        self._may_translate = may_translate
        translates = any(route.upstream.api not in ("same", "auto") for route in routes)
        self._needs_json = translates or paths.hides_raw or bool(paths.shared)
        self._parses_all = (
            self._needs_json
            or (ledger.url or ledger.url_env) is not None
            or len(routes) > 1
            or settings.attribution.enabled
            or any(route.summary.default != "off" for route in routes)
            or any(route.upstream.changes_requests for route in routes)
        )
        self._stores_responses = any(
            PROFILES[route.upstream.profile].forgets_responses for route in routes
        )

    async def read(
        self, api: Api | None, scope: Scope, receive: Receive, reserve: ReserveMemory
    ) -> tuple[BufferedBody, bytes | None, ApiRequest | None]:
        """Read the body and, if it must be read, parse it. Return it as it came, without its
        content encoding if that is known, and the request."""
        buffered = await buffer_body(scope, receive, self._limits, reserve)
        body = buffered.data
        if body is None or must_decode(scope):
            body = await self._decode(api, scope, buffered)
            if body is not buffered.data:
                reserve(len(body or b""))
        Record.get(scope).request_bytes = len(body or b"")
        if api is None or body is None or not await self._must_parse(api, scope, body):
            return buffered, body, None
        request = await self.parse(api, scope, buffered, body)
        if request is None:
            if self._needs_json or self._may_translate(api) or must_read(scope):
                raise RequestError("The request body is not a JSON object.", code="invalid_json")
        elif chooses_models(scope):
            await request.work.run(check_body, scope, request.body)
        return buffered, body, request

    async def _decode(self, api: Api | None, scope: Scope, buffered: BufferedBody) -> bytes | None:
        """Return the body without its content encoding; None if it is unknown and not needed."""
        limit = int(self._limits.body)
        try:
            if buffered.data is not None:
                return await decode_body(scope, buffered.data, limit)
            if not buffered.client_left:
                raise too_large("request body", limit)
        except RequestError:
            if self._must_know(api, scope):
                raise
        return None

    def _must_know(self, api: Api | None, scope: Scope) -> bool:
        """Return whether a body must be read, whatever it holds."""
        return (
            self._parses_all or must_read(scope) or (api is not None and self._may_translate(api))
        )

    async def _must_parse(self, api: Api, scope: Scope, body: bytes) -> bool:
        if self._must_know(api, scope) or get_header(scope["headers"], SUMMARY_HEADER):
            return True
        if self._stores_responses and api.upstream.stores_responses:
            return True
        if api.counts_tokens_at or api.compaction is not None:  # it has other endpoints, too
            paths = request_paths(scope)
            if counts_tokens(*paths) or compacts(*paths):
                return True
        if len(body) <= LIGHT_BYTES:
            return self._may_concern(api, body, self._memory.holds_anything)
        holds_anything = self._memory.holds_anything()
        return await Work(heavy=True).run(self._may_concern, api, body, lambda: holds_anything)

    def _may_concern(self, api: Api, body: bytes, holds_anything: Callable[[], bool]) -> bool:
        """Return whether a body may hold anything that concerns Abridge, by a byte search alone."""
        return (
            self._memory.may_concern(body, holds_anything)  # first: often known at once
            or may_request_summary(body)
            or bool(api.wish_needle and api.wish_needle in body)
            or (api.compaction is not None and api.compaction.needle in body)
        )
