"""The request side: prepare a request for upstream.

References are resolved, Abridge's own additions removed, the history restored, the body translated
and defaults added.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from abridge.apis.api import Reader, UpstreamApi, UpstreamOptions
from abridge.apis.display import DAMAGED_CODE, ENVELOPE_PREFIX, Display
from abridge.config.settings import ROUTE, Route, Settings
from abridge.core.conversation import Json, PrefixDigest
from abridge.core.events import ResponseEnded
from abridge.errors import RequestError
from abridge.memory.policy import HistoryChanges
from abridge.memory.registry import MemoryRegistry
from abridge.memory.tenants import TenantCallable
from abridge.memory.turn_memory import TurnMemory
from abridge.observability.metrics_sink import MetricsSink
from abridge.observability.record import Record
from abridge.pipeline.request import ApiRequest
from abridge.providers.catalog import PROFILES
from abridge.providers.learned import Learned
from abridge.providers.profile import Profile
from abridge.stored_responses.references import (
    ReferenceResolver,
    ResolvedReferences,
    strip_minted_ids,
)
from abridge.stored_responses.repository import StorageAction

TOO_DEEP = "The request body is nested too deep."

SEEMS_PREFILLED = (
    "upstream %s: a model's answers close a block of reasoning that nothing opens; its profile is "
    "probably 'prefilled'"
)

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class PreparedRequest:
    """A request that is ready for upstream."""

    request: ApiRequest
    profile: Profile  # upstream's, refined by what was learned of the model
    turn_memory: TurnMemory
    storage: StorageAction | None = None  # stores the answer, if it is to be stored


class RequestPreparation:
    """Prepare requests; holds what is remembered and learned of each upstream."""

    def __init__(
        self, settings: Settings, metrics_sink: MetricsSink, tenant: TenantCallable | None
    ) -> None:
        self._metrics_sink = metrics_sink
        self._learned = {route.upstream.name: Learned() for route in settings.routes}
        self.memory = MemoryRegistry(settings, metrics_sink.observe_store_operation, tenant)
        self._reference_resolver = ReferenceResolver(int(settings.limits.body))

    async def prepare(
        self, request: ApiRequest, upstream: UpstreamApi | None, *, engaged: bool
    ) -> PreparedRequest:
        """Prepare a request, for the given API if that is not the client's own."""
        Record.get(request.scope).reset_changes()
        route: Route = request.scope[ROUTE]
        learned = self._learned[route.upstream.name]
        profile = learned.refine(PROFILES[route.upstream.profile], request.model)
        route_memory, api = self.memory.for_route(route), request.api.name
        turn_memory = TurnMemory.begin(route_memory, route, api, request.model, request.scope)
        references = ResolvedReferences()
        try:
            references = await self._reference_resolver.resolve(
                request, turn_memory, translates=upstream is not None
            )
            turn_memory.may_have_blobs = (
                request.changed or ENVELOPE_PREFIX.encode() in request.decoded
            )
            if upstream is not None:
                await self._translate(request, upstream, profile, turn_memory)
            else:
                await self._rewrite_history(request, profile, turn_memory, engaged=engaged)
            self._remove_minted_ids(request)
            if request.echo is not None:
                request.echo = references.update_echo(request.echo)
            request.scope = request.app_scope(engaged=engaged)
        except RecursionError:
            raise RequestError(TOO_DEEP, code="invalid_json") from None
        except RequestError as error:
            if error.code == DAMAGED_CODE:
                self._metrics_sink.count_refused_envelope(request.api, request.scope)
            raise references.renumber_error(error) from None
        return PreparedRequest(request, profile, turn_memory, references.storage)

    def remember(
        self, turn_memory: TurnMemory, display: Display, reader: Reader, ended: ResponseEnded
    ) -> Coroutine[Any, Any, None]:
        """Learn from a complete answer at once; return the coroutine that remembers it."""
        name = turn_memory.route.upstream.name
        learned, observation = self._learned[name], reader.observed()
        if (
            learned.record(turn_memory.model, observation)
            and PROFILES[turn_memory.route.upstream.profile].learns
        ):
            _log.warning(SEEMS_PREFILLED, name)
        return self._remember(turn_memory, display, reader, ended)

    async def store(
        self, storage: StorageAction, response: Json, ended: ResponseEnded, display: Display
    ) -> None:
        """Store an answer, or what upstream does not store of it."""
        try:
            await storage.save(response, ended, display)
        except Exception as error:  # noqa: BLE001 -- upstream may have sent anything
            _log.warning("an answer could not be stored: %s", type(error).__name__)
        self._metrics_sink.set_store_size(self.memory.size)

    async def _remember(
        self, turn_memory: TurnMemory, display: Display, reader: Reader, ended: ResponseEnded
    ) -> None:
        try:
            await turn_memory.remember(reader.recorded_turns(), ended, display)
        except Exception as error:  # noqa: BLE001 -- upstream may have sent anything
            _log.warning("an answer could not be remembered: %s", type(error).__name__)
        self._metrics_sink.set_store_size(self.memory.size)

    async def _rewrite_history(
        self, request: ApiRequest, profile: Profile, turn_memory: TurnMemory, *, engaged: bool
    ) -> None:
        """Restore the request's history, in the client's own API."""
        if turn_memory.route_memory.may_need_rewrite(request.decoded):
            history = request.api.history(request.data)
            changes = await turn_memory.rewrite(history, profile)
            Record.get(request.scope).history_changes.append(changes)
            if changes.changed:
                request.data, request.changed = history.body(), True
        elif engaged and turn_memory.can_remember:
            turn_memory.prefix = PrefixDigest().extended_by(request.api.history(request.data).turns)
        request.remove_summary_request(summary_is_raw=profile.summary_is_raw)
        request.apply_defaults(turn_memory.route.upstream.request_defaults, profile)
        if engaged or request.changed:
            self._drop_unsupported(request, profile, turn_memory.model)

    def _remove_minted_ids(self, request: ApiRequest) -> None:
        """Remove Abridge's ids: no upstream can know them."""
        if removed := strip_minted_ids(request.data):
            Record.get(request.scope).history_changes.append(HistoryChanges(removed))
            request.changed = True

    def _drop_unsupported(self, request: ApiRequest, profile: Profile, model: str) -> None:
        dropped = profile.drop_rejected(request.data, model)
        request.changed = request.changed or bool(dropped)
        Record.get(request.scope).dropped_request_fields += len(dropped)

    async def _translate(
        self, request: ApiRequest, upstream: UpstreamApi, profile: Profile, turn_memory: TurnMemory
    ) -> None:
        """Translate the request, then restore its history in upstream's API, which alone has
        upstream's own reasoning fields."""
        turn_memory.translated = True
        client_history = request.api.history(request.data)
        stripped = await turn_memory.strip(client_history, profile)
        request.data = client_history.body()
        settings = turn_memory.route.upstream
        request.apply_defaults(settings.request_defaults, PROFILES["auto"])
        options = UpstreamOptions(profile, settings.max_tokens)
        dropped = request.translate(upstream, options, lenient=settings.unsupported == "drop")
        Record.get(request.scope).dropped_request_fields += len(dropped)
        history = upstream.history(request.data)
        changes = await turn_memory.rewrite(history, profile)
        changes.removed += stripped.removed
        changes.restored.update(stripped.restored)
        changes.dropped.update(stripped.dropped)
        changes.missed = max(0, stripped.missed - changes.restored["store"])
        Record.get(request.scope).history_changes.append(changes)
        request.data = history.body()
        self._drop_unsupported(request, profile, turn_memory.model)
