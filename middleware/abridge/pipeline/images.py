"""Answers with images, which no reader reads: rebuilt here where raw reasoning is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.images import IMAGES, rebuild_frame
from abridge.apis.paths import OpenPaths
from abridge.apis.shapes import DropCount
from abridge.client_shares import client_of
from abridge.config.exposure import hides_raw
from abridge.config.settings import ROUTE
from abridge.core.conversation import Json
from abridge.http.asgi import request_paths
from abridge.observability.record import Record
from abridge.pipeline.body import MemoryBudget, Room
from abridge.stored_responses.rewriting import RewritingApp
from abridge.work import Work


@dataclass(slots=True, frozen=True)
class ImageAnswers:
    """Calls an application, and rebuilds its answers with images where reasoning is hidden."""

    app: ASGIApp
    paths: OpenPaths
    limit: int  # bytes of an answer that are buffered
    budget: MemoryBudget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_rebuilt = self.paths.lead_to_images(scope["method"], *request_paths(scope))
        if is_rebuilt and hides_raw(scope[ROUTE]):
            await self._answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = Record.get(scope)
        drops = DropCount(hidden=record.note_profile(scope[ROUTE].upstream.profile))

        async def rewrite(body: Json) -> Json | None:
            rebuilt: Json = await Work(heavy=True).run(IMAGES, body, drops)
            return rebuilt

        with self.budget.reserving(client_of(scope)) as reserve:
            rewriting = RewritingApp(
                self.app,
                rewrite,
                self.limit,
                hide_unread=True,
                hides_raw=True,
                rewrite_frame=partial(rebuild_frame, drops=drops),
                holds=Room(reserve).holds,
                may_quote=lambda _: False,  # nothing that is hidden was put into the request
            )
            await rewriting(scope, receive, send)
        record.rebuilt_as, record.dropped_response_fields = "images", drops.count
