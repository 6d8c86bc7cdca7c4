"""Run all checks, and yield their findings in the order of the report."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import httpx

from abridge.advice import surprises
from abridge.check.finding import Finding
from abridge.check.place import Place
from abridge.check.probe import probe
from abridge.check.reach import Reached, reach
from abridge.check.summarizer import probe_summarizer, reach_summarizer
from abridge.errors import SettingsError
from abridge.history.pasts import Pasts
from abridge.history.stores.store import unwatched
from abridge.http import Transport
from abridge.settings import Route, Settings
from abridge.telemetry.tracing import exporting
from abridge.wire.api import UpstreamApi
from abridge.wire.apis import APIS, UPSTREAM_APIS
from abridge.wire.credential import Header, credential
from abridge.wire.profiles import PROFILES

PATIENCE = 30.0
"""Seconds without a response before giving up; the settings may lower it."""


@dataclass(slots=True, frozen=True)
class Check:
    """The checks for some settings."""

    settings: Settings
    probing: bool = False  # send each API a small request, too
    model: str | None = None  # the model to probe; None: the first that an upstream lists
    key_env: str | None = None
    """The variable with a client's API key, for upstreams that have none in the settings."""

    async def findings(self) -> AsyncIterator[Finding]:
        for surprise in surprises(self.settings):
            yield Finding("settings", surprise, "note")
        for finding in _start(self.settings):
            yield finding
        limits = self.settings.limits
        patience = min(PATIENCE, limits.headers)
        transport = Transport(connect=limits.connect, headers=patience, idle=patience)
        try:
            async for finding in self._asked(transport):
                yield finding
        except SettingsError as error:
            yield Finding("settings", str(error), "fault")
        finally:
            await transport.aclose()

    async def _asked(self, transport: httpx.AsyncBaseTransport) -> AsyncIterator[Finding]:
        for route in self.settings.routes:
            async for finding in self._upstream(route, transport):
                yield finding
        yield await reach_summarizer(self.settings, transport)
        if self.probing:
            route = self.settings.routes[0]
            client = self._place(route, transport).headers
            model = self._model(route, await reach(self._place(route, transport), ""))
            yield await probe_summarizer(self.settings, transport, route, model, client)

    async def _upstream(
        self, route: Route, transport: httpx.AsyncBaseTransport
    ) -> AsyncIterator[Finding]:
        about = f"upstream {route.upstream.name}"
        place = self._place(route, transport)
        reached = await reach(place, about)
        yield reached.finding
        if self.probing and reached.there:
            async for finding in self._probe(route, place, self._model(route, reached), about):
                yield finding

    async def _probe(
        self, route: Route, place: Place, model: str | None, about: str
    ) -> AsyncIterator[Finding]:
        if model is None:
            yield Finding(about, "no model to ask is known; takes --model NAME", "fault")
            return
        profile = PROFILES[route.upstream.profile]
        apis = _apis(route)
        found = [await probe(place, api, model, profile, about) for api in apis]
        for finding in found:
            yield finding
        if all(finding.grade != "ok" for finding in found):
            which = "neither API streams" if len(apis) > 1 else "it does not stream"
            yield Finding(about, f"{which} an answer of {model}", "fault")

    def _place(self, route: Route, transport: httpx.AsyncBaseTransport) -> Place:
        upstream = route.upstream
        url, variable, named_by = upstream.base_url or "", self.key_env, "--key-env"
        if upstream.api_key_env is not None:
            variable, named_by = upstream.api_key_env, "upstreams[].api_key_env"

        def shown(key: bytes) -> Header:
            return credential(key, PROFILES[upstream.profile], UPSTREAM_APIS.get(upstream.api))

        return Place.of(url, transport, variable, named_by, shown)

    def _model(self, route: Route, reached: Reached) -> str | None:
        """Return a model to probe an upstream with: one that would be routed there."""
        if self.model is not None and self.settings.route(self.model) is route:
            return self.model
        globs = route.upstream.models
        known = [glob for glob in globs if not set(glob) & set("*?[")]
        listed = [one for one in reached.models or [] if _matches(one, globs)]
        return next(iter(known + listed), None)


def _apis(route: Route) -> Sequence[UpstreamApi]:
    """Return the APIs on which the upstream may be called."""
    own = UPSTREAM_APIS.get(route.upstream.api)
    return [api.upstream for api in APIS] if own is None else [own]


def _matches(model: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(model, glob) for glob in globs)


def _start(settings: Settings) -> Iterator[Finding]:
    """Yield what would prevent startup: invalid keys, a bad store address, a missing extra.

    Opens no connection.
    """
    try:
        Pasts(settings, unwatched, None)
        exporting(settings)
    except SettingsError as error:
        yield Finding("settings", str(error), "fault")
