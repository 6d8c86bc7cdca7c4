"""What the settings expose: of a route's reasoning, and of the paths of an upstream."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from abridge.apis.display import Exposure
from abridge.apis.paths import SHARED_PATHS, OpenPaths
from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.settings import Route, Settings
from abridge.config.tables import ChatSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile

EXPOSED: dict[Exposure, tuple[bool, bool]] = {
    "both": (True, True),
    "summary": (False, True),
    "raw": (True, False),
    "none": (False, False),
}
"""Values of `expose`: (raw reasoning is shown, summaries are). For `auto` see
`Api.default_exposure`."""


def hides_raw(route: Route) -> bool:
    """Return whether raw reasoning must not get through; `auto` is a display choice, not a
    promise."""
    return route.reasoning.expose in ("summary", "none")


def open_paths(settings: Settings) -> OpenPaths:
    """Return the paths that pass unread where reasoning is hidden. Upstreams' own base paths count
    as bases: the proxy forwards a path that begins with one."""
    addresses = (upstream.base_url or "" for upstream in settings.upstreams)
    bases = OpenPaths().bases.union(urlsplit(address).path for address in addresses)
    return OpenPaths(bases, settings.reasoning.open_paths)


def shared_paths(upstream: UpstreamSettings) -> OpenPaths:
    """Return the paths that are forwarded unread with the key that all of an upstream's clients
    share."""
    bases = OpenPaths().bases | {urlsplit(upstream.base_url or "").path}
    return OpenPaths(bases, upstream.forward_paths, SHARED_PATHS)


def shows_both_without_store(route: Route, chat: ChatSettings) -> bool:
    """Return whether raw reasoning is shown only so that clients can return it.

    True for `auto` where upstream wants its reasoning back and nothing replaced could be restored:
    there is neither a store nor an envelope.
    """
    upstream = UPSTREAM_APIS.get(route.upstream.api)
    returns_reasoning = PROFILES[route.upstream.profile].returns.wanted or (
        upstream is not None and upstream.requires_reasoning
    )
    has_envelopes = route.history.seal_keys_env is not None and chat.envelope != "none"
    restorable = route.history.store != "none" or has_envelopes
    return returns_reasoning and not restorable and route.reasoning.expose == "auto"


def reasons_in_summaries(route: Route, profile: Profile, models: Iterable[str]) -> bool:
    """Return whether the reasoning of these models is a summary already: as the settings say, else
    as upstream's profile does."""
    kind = route.reasoning.kind
    return kind == "summary" or (kind == "auto" and profile.reasons_in_summaries(models))


def shows_summary(route: Route) -> bool:
    return EXPOSED.get(route.reasoning.expose, (True, True))[1]
