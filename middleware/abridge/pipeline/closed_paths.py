"""Refuse requests to closed paths: where reasoning is hidden, those whose answers nothing reads;
where clients share a key, those that would show one what is another's."""

from __future__ import annotations

from starlette.types import Scope

from abridge.apis.api import Api
from abridge.config.exposure import hides_raw, open_paths, shared_paths
from abridge.config.settings import Route, Settings
from abridge.errors import RequestError
from abridge.http.asgi import request_paths
from abridge.pipeline.allowed_models import chooses_models
from abridge.stored_responses.endpoints import api_of_preflight

REASONING_HIDDEN = (
    "This path is closed, because reasoning is hidden here and answers on this path are not read. "
    "The setting reasoning.open_paths opens it."
)

SOCKET_CLOSED = (
    "WebSockets to this path are closed, because reasoning is hidden here and nothing reads them. "
    "The setting reasoning.open_paths opens those of an application, and server.websockets has "
    "those of the Responses API served."
)

KEY_SHARED = (
    "This path is closed, because all clients share one key here and would share what is behind "
    "the path. The setting upstreams[].forward_paths opens it."
)


class ClosedPaths:
    """The paths that the settings close."""

    def __init__(self, settings: Settings) -> None:
        self.hides_raw = any(map(hides_raw, settings.routes))
        self.opened = open_paths(settings)
        self.shared = {
            route.upstream.name: shared_paths(route.upstream)
            for route in settings.routes
            if route.upstream.shares_key
        }
        """What is open of each upstream with a key that all clients share."""

    def check_shared_endpoint(self, api: Api, scope: Scope) -> None:
        """Raise RequestError where upstream might take the path of an API's endpoint for another
        one, which the key that all clients share would open."""
        method, paths = scope["method"], request_paths(scope)
        if not (
            self.opened.lead_to(api.path, *paths)
            or any(shared.include(method, *paths) for shared in self.shared.values())
        ):
            raise RequestError(KEY_SHARED, status=404, code="not_found")

    def check_open(self, scope: Scope) -> None:
        """Raise RequestError unless answers on a path may pass unread where reasoning is hidden."""
        if not self.opened.include(scope["method"], *request_paths(scope)):
            raise RequestError(REASONING_HIDDEN, status=404, code="not_found")

    def check_shared(self, scope: Scope, route: Route) -> None:
        """Raise RequestError unless clients who share a key may reach a path, unread."""
        if self.shared and api_of_preflight(scope) is None and not self._is_shared(scope, route):
            raise RequestError(KEY_SHARED, status=404, code="not_found")

    def may_ask(self, scope: Scope, route: Route) -> bool:
        """Return whether upstream may be asked on a path, whatever the body says."""
        is_open = self.opened.include(scope["method"], *request_paths(scope))
        is_open = is_open or not (self.hides_raw or chooses_models(scope))
        return is_open and self._is_shared(scope, route)

    def closes_socket(self, scope: Scope) -> bool:
        """Return whether WebSockets to a path are closed."""
        return self.hides_raw and not self.opened.include_socket(*request_paths(scope))

    def _is_shared(self, scope: Scope, route: Route) -> bool:
        shared = self.shared.get(route.upstream.name)
        return shared is None or shared.include(scope["method"], *request_paths(scope))
