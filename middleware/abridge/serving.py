"""Serve requests, each as its path and its body say.

An endpoint of an API is served by the pipeline if the request concerns Abridge, and what is stored
here from here. Anything else the application answers: it gets the client's own `send`, and from
`receive` the body as it came, in one piece where it was read.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api
from abridge.apis.paths import model_in_path
from abridge.apis.responses.api import RESPONSES
from abridge.background.responses import AnswerAlone, BackgroundResponses
from abridge.config.settings import ROUTE, Route, Settings
from abridge.errors import RequestError
from abridge.http.asgi import decoded_path, get_header
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.observability.metrics_sink import MetricsSink
from abridge.observability.record import Record
from abridge.pipeline.allowed_models import check_endpoint, check_path, check_unread, chooses_models
from abridge.pipeline.body import BufferedBody, MemoryBudget, Room
from abridge.pipeline.closed_paths import ClosedPaths
from abridge.pipeline.conversation_endpoints import ConversationEndpoints
from abridge.pipeline.dispatch import Dispatcher, pass_on
from abridge.pipeline.engage import Engagement
from abridge.pipeline.images import ImageAnswers
from abridge.pipeline.model_lists import ModelLists
from abridge.pipeline.reading import RequestReading
from abridge.pipeline.renaming import rename_unread
from abridge.pipeline.request import check_model_name, read_model
from abridge.stored_responses.endpoints import ResponsePath, StoredResponses, api_of_preflight
from abridge.work import CLIENT, LIGHT_WORK, Work


class Serving:
    """Serves requests that were admitted. `answer` has those of background responses answered."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        memory: MemoryRegistry,
        metrics_sink: MetricsSink,
        engagement: Engagement,
        *,
        answer: AnswerAlone,
        lasting: Lasting,
    ) -> None:
        self._routes, self._limits = settings.routes, settings.limits
        self._find_route = settings.find_route
        self.budget = lasting.get("bodies", partial(MemoryBudget, settings.limits))
        self._names_matter = len(self._routes) > 1 or any(route.renames for route in self._routes)
        self.paths = ClosedPaths(settings)
        self._unread_app: ASGIApp = ModelLists(app, settings)
        if self.paths.hides_raw:
            self._unread_app = ImageAnswers(
                self._unread_app, self.paths.opened, int(settings.limits.body), self.budget
            )
        self._stored = StoredResponses(app, settings, memory)
        self._conversations = ConversationEndpoints(app, settings, memory, self.budget, self.paths)
        background = self.background = BackgroundResponses(
            answer, settings, self._stored, metrics_sink.metrics, lasting
        )
        self._dispatcher = Dispatcher(
            app, settings, memory, metrics_sink, engagement, background=background, lasting=lasting
        )
        self._reading = RequestReading(
            settings, memory, self.paths, self._route_for, self._dispatcher.may_translate
        )

    def take_effect(self) -> None:
        self.budget.resize(self._limits)
        self._dispatcher.take_effect()
        self.background.take_effect()

    async def aclose(self) -> None:
        await self.background.aclose()
        await self._dispatcher.aclose()

    def serve_endpoint(
        self, api: Api, scope: Scope, receive: Receive, send: Send
    ) -> Awaitable[None]:
        """Serve a request to an endpoint of an API."""
        Record.get(scope).api = api.name
        if self.paths.shared:
            self.paths.check_shared_endpoint(api, scope)
        check_endpoint(scope, api.path, self.paths.opened)
        return self._serve_by_body(api, scope, receive, send)

    async def serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request to anything but an endpoint of an API."""
        path, asked_about = decoded_path(scope), api_of_preflight(scope)
        response_path = ResponsePath.parse(scope["method"], path)
        read_as = asked_about if response_path is None else RESPONSES
        if self.paths.shared and read_as is not None:
            self.paths.check_shared_endpoint(read_as, scope)
        if response_path is not None and (
            await self.background.answer(response_path, scope, receive, send)
            or await self._stored.answer(response_path, scope, receive, send)
        ):
            Record.get(scope).outcome = "stored"
            return
        if await self._conversations.answer(scope, receive, send):
            return
        if self.paths.hides_raw and asked_about is None:
            self.paths.check_open(scope)
        model = model_in_path(path)
        is_addressed = model is not None or response_path is not None
        if not is_addressed and self._is_routed_by_body(scope):
            await self._serve_by_body(None, scope, receive, send)
            return
        check_path(scope, model, is_stored_response=response_path is not None)
        scope[ROUTE] = route = self._route_for(model if self._names_matter else None)
        self.paths.check_shared(scope, route)
        await pass_on(self._unread_app, scope, receive, send)

    async def _serve_by_body(
        self, api: Api | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request as its body says."""
        with self.budget.reserving(CLIENT.get()) as reserve:
            buffered, body, request = await self._reading.read(api, scope, receive, reserve)
            if request is not None:
                await self._dispatcher.dispatch(request, receive, send)
            else:
                await self._pass_on_unread(api, scope, buffered, body, send)

    async def _pass_on_unread(
        self, api: Api | None, scope: Scope, buffered: BufferedBody, body: bytes | None, send: Send
    ) -> None:
        """Pass on a request of which nothing is read but the model. `body` is without its content
        encoding; None if it is unknown."""
        model, work = None, LIGHT_WORK
        if self._names_matter or chooses_models(scope):
            work = Work()
            if body is not None:
                model = await read_model(body, work, self._limits, buffered.reserve)
            await work.run(check_unread, scope, body)
        scope[ROUTE] = route = self._route_for(model)
        if api is not None:
            Record.get(scope).note_target(api.name, route.upstream.name, model)
        self.paths.check_shared(scope, route)
        app = self._unread_app
        if body is not None and model and route.renames:
            rename = partial(rename_unread, limit=int(self._limits.event))
            room = Room(buffered.reserve)
            app, scope, renamed = await work.run(rename, app, scope, body, model, room=room)
            buffered = buffered if renamed is body else buffered.with_body(renamed)
        if api is None or body is None:
            await pass_on(app, scope, buffered, send)
        else:
            read = partial(self._reading.parse, api, scope, decoded=body)
            await self._dispatcher.pass_unread(app, api, scope, buffered, send, read=read)
        if buffered.client_left:
            Record.get(scope).outcome = "left"

    def _route_for(self, model: str | None) -> Route:
        """Return the route to a model. Raises RequestError for a model that no upstream has, or
        with a name that none can have."""
        if model is not None:
            check_model_name(model)
        route = self._routes[0] if len(self._routes) == 1 else self._find_route(model)
        if route is None:
            raise RequestError(
                f"The model '{model:.256}' does not exist.",
                status=404,
                param="model",
                code="model_not_found",
            )
        return route

    def _is_routed_by_body(self, scope: Scope) -> bool:
        """Return whether the upstream can only be chosen by the model named in the body, or that
        may have another name there."""
        content_type = get_header(scope["headers"], b"content-type")
        matters = self._names_matter or chooses_models(scope)
        return matters and content_type.startswith(b"application/json")
