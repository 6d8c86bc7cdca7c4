"""The request side: prepare a request for upstream.

References are resolved, Abridge's own additions removed, the history restored, the body translated
and defaults added.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from abridge.answering.continuing import Continued, Continuing
from abridge.answering.counting import Counting
from abridge.answering.storing import Storing
from abridge.errors import RequestError
from abridge.exchange.request import Request
from abridge.history.pasts import Pasts
from abridge.history.policy import Mended
from abridge.history.tenant import Named
from abridge.history.visit import Visit
from abridge.settings import ROUTE, Route, Settings
from abridge.telemetry.record import Record
from abridge.turn.conversation import Prefix
from abridge.turn.events import Ended
from abridge.wire.api import Asking, Reader, UpstreamApi
from abridge.wire.codec import Json
from abridge.wire.display import Display
from abridge.wire.envelope import DAMAGED, PREFIX
from abridge.wire.learned import Learned
from abridge.wire.profiles import PROFILES, Profile
from abridge.wire.responses.stored import forget_ids

DEEP = "The request body is nested too deep."
PREFILLED = (
    "upstream %s: a model's answers close a block of reasoning that nothing opens; its profile is "
    "probably 'prefilled'"
)
_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Prepared:
    """A request that is ready for upstream."""

    request: Request
    profile: Profile  # upstream's, refined by what was learned of the model
    visit: Visit
    storing: Storing | None = None  # stores the answer, if it is to be stored


class Preparing:
    """Prepare requests; holds what is remembered and learned of each upstream."""

    def __init__(self, settings: Settings, counting: Counting, named: Named | None) -> None:
        self._counting = counting
        self._learned = {route.upstream.name: Learned() for route in settings.routes}
        self.pasts = Pasts(settings, counting.store_operation, named)
        self._continuing = Continuing(int(settings.limits.body))

    async def prepare(
        self, request: Request, upstream: UpstreamApi | None, *, engaged: bool
    ) -> Prepared:
        """Prepare a request, for the given API if that is not the client's own."""
        Record.in_(request.scope).prepare()
        route: Route = request.scope[ROUTE]
        learned = self._learned[route.upstream.name]
        profile = learned.refine(PROFILES[route.upstream.profile], request.model)
        past, api = self.pasts.of(route), request.api.name
        visit = Visit.begin(past, route, api, request.model, request.scope)
        continued = Continued()
        try:
            continued = await self._continuing.go_on(request, visit, crosses=upstream is not None)
            visit.carries = request.changed or PREFIX.encode() in request.clear
            if upstream is not None:
                await self._cross(request, upstream, profile, visit)
            else:
                await self._mend(request, profile, visit, engaged=engaged)
            self._forget_ids(request)
            if request.asked is not None:
                request.asked = continued.told(request.asked)
            request.scope = request.inner_scope(engaged=engaged)
        except RecursionError:
            raise RequestError(DEEP, code="invalid_json") from None
        except RequestError as refusal:
            if refusal.code == DAMAGED:
                self._counting.refused(request.api, request.scope)
            raise continued.as_asked(refusal) from None
        return Prepared(request, profile, visit, continued.storing)

    def keep(
        self, visit: Visit, shown: Display, reader: Reader, ended: Ended
    ) -> Coroutine[Any, Any, None]:
        """Learn from a complete answer at once; return the coroutine that remembers it."""
        name = visit.route.upstream.name
        learned, seen = self._learned[name], reader.seen()
        if learned.note(visit.model, seen) and PROFILES[visit.route.upstream.profile].learns:
            _log.warning(PREFILLED, name)
        return self._remember(visit, shown, reader, ended)

    async def store(self, storing: Storing, response: Json, ended: Ended, display: Display) -> None:
        """Store an answer, or what upstream does not store of it."""
        try:
            await storing.keep(response, ended, display)
        except Exception as error:  # noqa: BLE001 -- upstream may have sent anything
            _log.warning("an answer could not be stored: %s", type(error).__name__)
        self._counting.store(self.pasts.size)

    async def _remember(self, visit: Visit, shown: Display, reader: Reader, ended: Ended) -> None:
        try:
            await visit.keep(reader.heard(), ended, shown)
        except Exception as error:  # noqa: BLE001 -- upstream may have sent anything
            _log.warning("an answer could not be remembered: %s", type(error).__name__)
        self._counting.store(self.pasts.size)

    async def _mend(
        self, request: Request, profile: Profile, visit: Visit, *, engaged: bool
    ) -> None:
        """Restore the request's history, in the client's own API."""
        if visit.past.concerns(request.clear):
            conversation = request.api.conversation(request.data)
            mended = await visit.mend(conversation, profile)
            Record.in_(request.scope).mended.append(mended)
            if mended.changed:
                request.data, request.changed = conversation.body(), True
        elif engaged and visit.keeps:
            visit.prefix = Prefix().after(request.api.conversation(request.data).turns)
        request.grant(summary_is_raw=profile.summary_is_raw)
        request.fill(visit.route.upstream.preset, profile)
        if engaged or request.changed:
            self._drop_refused(request, profile, visit.model)

    def _forget_ids(self, request: Request) -> None:
        """Remove Abridge's ids: no upstream can know them."""
        if removed := forget_ids(request.data):
            Record.in_(request.scope).mended.append(Mended(removed))
            request.changed = True

    def _drop_refused(self, request: Request, profile: Profile, model: str) -> None:
        dropped = profile.drop_refused(request.data, model)
        request.changed = request.changed or bool(dropped)
        Record.in_(request.scope).lost += len(dropped)

    async def _cross(
        self, request: Request, upstream: UpstreamApi, profile: Profile, visit: Visit
    ) -> None:
        """Translate the request, then restore its history in upstream's API, which alone has
        upstream's own reasoning fields."""
        visit.crossed = True
        own = request.api.conversation(request.data)
        stripped = await visit.strip(own, profile)
        request.data = own.body()
        settings = visit.route.upstream
        request.fill(settings.preset, PROFILES["auto"])
        asking = Asking(profile, settings.max_tokens)
        lost = request.cross(upstream, asking, lenient=settings.unsupported == "drop")
        Record.in_(request.scope).lost += len(lost)
        conversation = upstream.conversation(request.data)
        mended = await visit.mend(conversation, profile)
        mended.removed += stripped.removed
        mended.restored.update(stripped.restored)
        mended.dropped.update(stripped.dropped)
        mended.missed = max(0, stripped.missed - mended.restored["store"])
        Record.in_(request.scope).mended.append(mended)
        request.data = conversation.body()
        self._drop_refused(request, profile, visit.model)
