"""All settings: the tables together, what they say of each upstream, and what contradicts what.

Settings that contradict each other are rejected at startup, not at run time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from pydantic import PrivateAttr, ValidationError, model_validator

from abridge.apis.display import Exposure
from abridge.apis.effort import EffortLimits
from abridge.apis.model_names import ModelRenames
from abridge.config.review import EXTRACT_UNREVIEWED, ReviewSettings
from abridge.config.setting_types import Table, explain_error, note_places
from abridge.config.tables import (
    AttributionSettings,
    BackgroundSettings,
    ChatSettings,
    CompactionSettings,
    HistorySettings,
    LedgerSettings,
    LimitSettings,
    LogSettings,
    PriceSettings,
    ReasoningSettings,
    ServerSettings,
    SummarizerSettings,
    SummarySettings,
    TracingSettings,
    UsageSettings,
)
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import SettingsError
from abridge.providers.profile import matches_any

if TYPE_CHECKING:
    from abridge.config.setting_dicts import SettingsDict

ROUTE = "abridge.route"
"""The scope key under which the middleware passes the `Route` it chose to the proxy."""

ATTEMPT = "abridge.attempt"
"""The scope key of the attempt at an upstream, to which the proxy reports how it goes."""

GENERAL_KEYS = (("history", "seal_keys_env"), ("reasoning", "open_paths"))
"""Keys, each with its table, that hold for all upstreams alike."""

T = TypeVar("T", bound="Table")


@dataclass(slots=True, frozen=True)
class Route:
    """An upstream and the settings in force for it."""

    upstream: UpstreamSettings
    summary: SummarySettings
    reasoning: ReasoningSettings
    usage: UsageSettings
    history: HistorySettings
    client_credential: bool  # the client's credential is forwarded to it
    renames: ModelRenames  # from clients' names of models to upstream's
    effort_limits: EffortLimits


class Settings(Table):
    """All settings: made in code, or by `load_settings` from a file and the environment.

    In code, each table is either an object or a dictionary of its keys:
    `Settings(summary=SummarySettings(default="auto"))`, `Settings(summary={"default": "auto"})`.
    """

    server: ServerSettings = ServerSettings()
    """The listeners, processes and shutdown of `abridge serve`."""
    upstreams: tuple[UpstreamSettings, ...] = ()
    """Where requests go. Around an application, there need not be any."""
    summary: SummarySettings = SummarySettings()
    """When to make a summary, and how."""
    summarizer: SummarizerSettings = SummarizerSettings()
    """What writes summaries."""
    compaction: CompactionSettings = CompactionSettings()
    """Summaries that replace a long conversation."""
    review: ReviewSettings = ReviewSettings()
    """What checks them before they are shown."""
    reasoning: ReasoningSettings = ReasoningSettings()
    """What clients see of the reasoning."""
    chat: ChatSettings = ChatSettings()
    """The fields on Chat Completions."""
    history: HistorySettings = HistorySettings()
    """The memory of earlier reasoning."""
    background: BackgroundSettings = BackgroundSettings()
    """Responses that run without their client."""
    usage: UsageSettings = UsageSettings()
    """The report of the summarizer's tokens."""
    prices: PriceSettings = PriceSettings()
    """What tokens cost."""
    ledger: LedgerSettings = LedgerSettings()
    """What each request used and cost."""
    attribution: AttributionSettings = AttributionSettings()
    """Which reasoning led to which tool call."""
    limits: LimitSettings = LimitSettings()
    """Limits on memory, time and concurrency."""
    log: LogSettings = LogSettings()
    """The log of `abridge serve`."""
    tracing: TracingSettings = TracingSettings()
    """OpenTelemetry spans."""

    if TYPE_CHECKING:

        def __init__(self, **tables: Unpack[SettingsDict]) -> None: ...

    _routes: tuple[Route, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _resolve_routes(self) -> Settings:
        wrong = list(self._find_wrong_names())
        routes = []
        for index, upstream in enumerate(self.upstreams or (UpstreamSettings(),)):
            try:
                routes.append(self._make_route(index, upstream))
            except ValueError as error:
                wrong += str(error).splitlines()
        self._routes = tuple(routes)
        if not wrong:
            wrong = [line for place in enumerate(routes) for line in self._contradictions(*place)]
            wrong += self._find_wrong_servers()
            if self.ledger.url == "store" and not self.history.is_shared:
                wrong.append("ledger.url: 'store' needs an address in history.store")
        if wrong:
            raise ValueError("\n".join(dict.fromkeys(wrong)))
        return self

    def find_route(self, model: str | None) -> Route | None:
        """Return the first upstream whose globs match the model's name, None if no upstream's do.

        The only upstream takes every model, and the first one requests that name none; where
        upstreams have no addresses, all are one application, and the first one's settings are for
        the models that none of them lists.
        """
        first = self._routes[0]
        if model is None or len(self._routes) == 1:
            return first
        for route in self._routes:
            if matches_any(model, route.upstream.models):
                return route
        return None if first.upstream.base_url else first

    def fallbacks_of(self, route: Route) -> list[tuple[Route, float | None]]:
        """Return the routes of the upstreams that are asked where a route's own cannot answer, each
        with its weight."""
        routes = {other.upstream.name: other for other in self._routes}
        return [(routes[each.upstream], each.weight) for each in route.upstream.fallbacks]

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._routes

    def _make_route(self, index: int, upstream: UpstreamSettings) -> Route:
        path = ("upstreams", index)
        _reject_general_keys(upstream, f"upstreams[{index}]")
        return Route(
            upstream,
            _override(self.summary, upstream.summary, (*path, "summary")),
            _override(self.reasoning, upstream.reasoning, (*path, "reasoning")),
            _override(self.usage, upstream.usage, (*path, "usage")),
            self._shareable(_override(self.history, upstream.history, (*path, "history"))),
            upstream.takes_client_credential(
                is_only=len(self.upstreams) <= 1 and self.server.keys_file is None
            ),
            ModelRenames.parse(upstream.rename),
            upstream.effort_limits,
        )

    def _shareable(self, history: HistorySettings) -> HistorySettings:
        """Return the memory that all processes have: a store in each would hold a conversation only
        for as long as its requests happen to reach the same one."""
        if self.server.workers > 1 and history.store == "memory":
            return history.model_copy(update={"store": "none"})
        return history

    def _find_wrong_names(self) -> Iterator[str]:
        """Yield a line for each name that another upstream has, or that none has."""
        names = [upstream.name for upstream in self.upstreams]
        for index, upstream in enumerate(self.upstreams):
            if upstream.name in names[:index]:
                yield (
                    f"upstreams[{index}].name: two are named {upstream.name!r}; each needs a "
                    "unique name"
                )
            yield from self._find_wrong_fallbacks(f"upstreams[{index}].fallback", upstream)

    def _find_wrong_fallbacks(self, key: str, upstream: UpstreamSettings) -> Iterator[str]:
        others = {other.name for other in self.upstreams} - {upstream.name}
        spares = [each.upstream for each in upstream.fallbacks]
        for index, spare in enumerate(spares):
            if spare not in others:
                yield f"{key}: must name another upstream, not {spare!r}"
            elif spare in spares[:index]:
                yield f"{key}: names {spare!r} twice"
        if spares and any(entry.base_url is None for entry in self.upstreams):
            yield f"{key}: needs upstreams with a base_url"

    def _find_wrong_servers(self) -> Iterator[str]:
        if self.server.admin_port and self.server.admin_port == self.server.port:
            yield f"server.admin_port: is {self.server.port}; must differ from server.port"
        if self.server.workers > 1 and self.server.page:
            yield "server.workers: must be 1 with server.page, which shows a single process"
        if self.server.workers > 1 and not hasattr(signal, "pthread_sigmask"):
            yield (
                "server.workers: must be 1 on this system, which lacks POSIX's signals; run "
                "several processes on ports of their own"
            )

    def _contradictions(self, index: int, route: Route) -> Iterator[str]:
        """Yield a line for each setting of a route that another contradicts."""

        def key(table: str, name: str) -> str:
            is_own = name in getattr(route.upstream, table)
            return f"upstreams[{index}].{table}.{name}" if is_own else f"{table}.{name}"

        summary, expose = route.summary, route.reasoning.expose
        hiding = f"{key('reasoning', 'expose')} = {expose!r}"
        if summary.default != "off" and summary.default not in summary.allow:
            allow = key("summary", "allow")
            yield f"{key('summary', 'default')}: {summary.default!r} is not one of {allow}"
        if expose == "summary" and self.summarizer.kind == "extractive":
            yield (
                f"summarizer.kind: 'extractive' copies sentences of the raw reasoning, which "
                f"{hiding} hides; must be model, upstream or object"
            )
        if self.compaction.kind == "model" and self.summarizer.kind != "model":
            yield "compaction.kind: 'model' needs summarizer.kind = 'model'"
        if summary.on_failure == "extract":
            on_failure = key("summary", "on_failure")
            if expose == "summary":
                yield (
                    f"{on_failure}: 'extract' copies sentences of the raw reasoning, which "
                    f"{hiding} hides; must be omit or fail"
                )
            if self.review.kind != "none":
                yield f"{on_failure}: {EXTRACT_UNREVIEWED}"
        yield from self._history_contradictions(
            route.history, expose, hiding, key("history", "store")
        )
        fields = self.chat.summary_field, self.chat.raw_field
        if fields[0] == fields[1] != "auto" and expose in ("auto", "both"):
            yield "chat.raw_field: must differ from chat.summary_field"

    def _history_contradictions(
        self, history: HistorySettings, expose: Exposure, hiding: str, key: str
    ) -> Iterator[str]:
        sealed = history.seal_keys_env and self.chat.envelope != "none"
        keeps_reasoning = history.store != "none" or sealed or history.keep == "none"
        if expose in ("summary", "none") and not keeps_reasoning:
            if self.server.workers > 1:
                yield (
                    f"server.workers: {self.server.workers} processes share no memory and would "
                    f"lose the reasoning that {hiding} hides; set history.store to an address "
                    "such as redis://127.0.0.1:6379/0, or set history.seal_keys_env and a "
                    "chat.envelope"
                )
                return
            yield (
                f"{key}: 'none' would lose the reasoning that {hiding} hides; set it to memory, or "
                "set history.seal_keys_env and a chat.envelope"
            )
        if history.is_shared and not history.seal_keys_env:
            yield (
                f"{key}: an address needs history.seal_keys_env, since reasoning leaves the "
                "process only sealed"
            )


def _reject_general_keys(upstream: UpstreamSettings, key: str) -> None:
    for table, name in GENERAL_KEYS:
        if name in getattr(upstream, table):
            raise ValueError(f"{key}.{table}.{name}: can be set only in the general table")


def _override(general: T, overrides: dict[str, Any], path: tuple[str | int, ...]) -> T:
    """Return the general table with an upstream's own keys laid over it."""
    try:
        return type(general).model_validate({**general.model_dump(), **overrides})
    except ValidationError as error:
        raise ValueError(explain_error(error, type(general), path)) from None


note_places(Settings)


def check_settings(settings: object) -> None:
    """Raise SettingsError for what is no `Settings`, such as a dictionary of its tables."""
    if not isinstance(settings, Settings):
        raise SettingsError(
            "settings: must be a Settings, such as Settings(summary={'default': 'auto'}), "
            f"not of type {type(settings).__name__}"
        )
