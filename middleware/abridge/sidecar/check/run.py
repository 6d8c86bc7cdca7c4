"""Run all checks, and yield their findings in the order of the report."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

import httpx
from prometheus_client import CollectorRegistry

from abridge.apis.api import UpstreamApi
from abridge.apis.credentials import Header, credential_header
from abridge.apis.model_names import MATCHED
from abridge.apis.registry import APIS, UPSTREAM_APIS
from abridge.config.addresses import other_addresses
from abridge.config.loading import check_secrets
from abridge.config.settings import Route, Settings
from abridge.config.warnings import settings_warnings, warn_claude_names
from abridge.errors import SettingsError
from abridge.http.transport import Transport
from abridge.memory.registry import MemoryRegistry
from abridge.memory.stores.store import observe_nothing
from abridge.observability.ledger import open_backend
from abridge.observability.tracing import exporting_spans
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import matches_any
from abridge.sidecar.check.fallbacks import check_store, describe_fallbacks
from abridge.sidecar.check.probe import Probe, compare_apis, describe_discovery
from abridge.sidecar.check.reach import (
    CheckTarget,
    Finding,
    ReachResult,
    is_abridge,
    reach,
    wrong_address,
)
from abridge.sidecar.check.summarizer import (
    probe_review,
    probe_summarizer,
    reach_review,
    reach_summarizer,
)
from abridge.sidecar.client_keys.door import open_keys
from abridge.sidecar.client_keys.file import keys_notes

IS_ABRIDGE = "is Abridge, too; a request that comes back to its sender gets a 508"

SUGGEST_PROFILE = 'says that it is {0}: set profile = "{0}" (`abridge profiles {0}`)'

RESPONSE_TIMEOUT = 30.0
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
        for warning in settings_warnings(self.settings):
            yield Finding("settings", warning, "note")
        for finding in _startup_findings(self.settings):
            yield finding
        limits = self.settings.limits
        timeout = min(RESPONSE_TIMEOUT, limits.headers)
        transport = Transport(connect=limits.connect, headers=timeout, idle=timeout)
        try:
            check_secrets(self.settings)
            async for finding in self._check_servers(transport):
                yield finding
        except SettingsError as error:
            for line in str(error).splitlines():
                yield Finding("settings", line, "fault")
        finally:
            await transport.aclose()

    async def _check_servers(self, transport: httpx.AsyncBaseTransport) -> AsyncIterator[Finding]:
        for route in self.settings.routes:
            async for finding in self._check_upstream(route, transport):
                yield finding
        async for finding in check_store(self.settings):
            yield finding
        yield await reach_summarizer(self.settings, transport)
        if self.probing:
            route = self.settings.routes[0]
            client_headers = self._target_for(route, transport).headers
            model = self._model_to_probe(route, await reach(self._target_for(route, transport), ""))
            yield await probe_summarizer(self.settings, transport, route, model, client_headers)
        async for finding in self._check_review(transport):
            yield finding

    async def _check_review(self, transport: httpx.AsyncBaseTransport) -> AsyncIterator[Finding]:
        checks = [reach_review, probe_review] if self.probing else [reach_review]
        for check in checks:
            if (finding := await check(self.settings, transport)) is not None:
                yield finding

    async def _check_upstream(
        self, route: Route, transport: httpx.AsyncBaseTransport
    ) -> AsyncIterator[Finding]:
        subject = f"upstream {route.upstream.name}"
        target = self._target_for(route, transport)
        reached = await reach(target, subject)
        model = self._model_to_probe(route, reached)
        has_name = self.model is not None or (reached.list_fails and model is not None)
        if self.probing and has_name and reached.answers and not reached.is_reachable:
            reached = replace(reached, finding=replace(reached.finding, grade="note"))
        yield reached.finding
        if reached.answers and await is_abridge(target):
            yield Finding(subject, IS_ABRIDGE, "note")
        for finding in _describe_names(route, reached, subject):
            yield finding
        if route.upstream.profile == "auto":
            for name in sorted(PROFILES.keys() & reached.owners):
                if PROFILES[name].owns_models:
                    yield Finding(subject, SUGGEST_PROFILE.format(name), "note")
        for finding in describe_fallbacks(route, self.settings):
            yield finding
        if self.probing and (reached.is_reachable or reached.list_fails):
            async for finding in self._probe_upstream(route, target, model, subject):
                yield finding

    async def _probe_upstream(
        self, route: Route, target: CheckTarget, model: str | None, subject: str
    ) -> AsyncIterator[Finding]:
        if model is None:
            yield Finding(subject, "no model is known; set one with --model", "fault")
            return
        upstream, apis = route.upstream, _apis_to_probe(route)
        probe = Probe(target, model, PROFILES[upstream.profile], upstream.request_defaults, subject)
        reports = [await probe.ask(api) for api in apis]
        for report in reports:
            yield report.finding
        better = compare_apis(reports, subject)
        if better is None and len(apis) > 1:
            better = describe_discovery(reports, subject, finds_out=upstream.api == "auto")
        if better is not None:
            yield better
        if all(report.result.is_missing for report in reports):
            other = await self._find_other_address(probe, apis[0])
            if other is not None:
                yield wrong_address(subject, target.base_url, other)
        if all(report.finding.grade != "ok" for report in reports):
            which = "no API streams" if len(apis) > 1 else "it does not stream"
            yield Finding(subject, f"{which} an answer of {model}", "fault")

    async def _find_other_address(self, probe: Probe, api: UpstreamApi) -> str | None:
        """Return an address at which an upstream has an API that it has not where it was asked."""
        for url in other_addresses(probe.target.base_url):
            moved = replace(probe, target=replace(probe.target, base_url=url))
            report = await moved.ask(api)
            if report.finding.grade == "ok":
                return url
        return None

    def _target_for(self, route: Route, transport: httpx.AsyncBaseTransport) -> CheckTarget:
        upstream = route.upstream
        variable, setting = upstream.api_key_env, "upstreams[].api_key_env"
        if variable is None and route.client_credential:
            variable, setting = self.key_env, "--key-env"

        def make_header(key: bytes) -> Header:
            return credential_header(
                key, PROFILES[upstream.profile], UPSTREAM_APIS.get(upstream.api)
            )

        url = upstream.base_url or ""
        return CheckTarget.with_key(url, transport, variable, setting, make_header)

    def _model_to_probe(self, route: Route, reached: ReachResult) -> str | None:
        """Return a model to probe an upstream with, by upstream's name: one that would be routed
        there."""
        globs, renames = route.upstream.models, route.renames
        if self.model is not None and self.settings.find_route(self.model) is route:
            return renames.to_upstream(self.model)
        literal = [renames.to_upstream(glob) for glob in globs if not set(glob) & set("*?[")]
        listed = [
            model
            for model in reached.models or []
            if any(matches_any(name, globs) for name in renames.to_client(model))
        ]
        return next(iter(literal + listed), None)


def _describe_names(route: Route, reached: ReachResult, subject: str) -> Iterator[Finding]:
    """Yield what clients call the upstream's models, and the names that it does not list."""
    rules = route.renames.rules
    if rules:
        named = ", ".join(f"{glob} = {name}" for glob, name in rules)
        yield Finding(subject, f"uses other names for the models that clients request: {named}")
    known = reached.models or []
    missing = [name for _, name in rules if MATCHED not in name and name not in known]
    if missing and known:
        listed = ", ".join(dict.fromkeys(missing))
        yield Finding(subject, f"rename: its list of models does not have {listed}", "note")
    if "*" in route.upstream.models:  # else a warning of the settings has said it
        for warning in warn_claude_names(route, known):
            yield Finding(subject, warning, "note")


def _apis_to_probe(route: Route) -> Sequence[UpstreamApi]:
    """Return the APIs on which the upstream may be called."""
    configured = UPSTREAM_APIS.get(route.upstream.api)
    return [api.upstream for api in APIS] if configured is None else [configured]


def _startup_findings(settings: Settings) -> Iterator[Finding]:
    """Yield what would prevent startup: invalid keys, a bad store address, a missing extra.

    Opens no connection.
    """
    try:
        MemoryRegistry(settings, observe_nothing, None)
        open_keys(settings, CollectorRegistry())
        for note in keys_notes(settings):
            yield Finding("settings", note, "note")
        open_backend(settings)
        exporting_spans(settings)
    except SettingsError as error:
        yield Finding("settings", str(error), "fault")
