"""The APIs that clients speak, by path, and those that upstreams speak, by name."""

from __future__ import annotations

from collections.abc import Mapping

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.chat.api import CHAT
from abridge.apis.gemini.api import GEMINI
from abridge.apis.interactions.api import INTERACTIONS
from abridge.apis.messages.api import MESSAGES
from abridge.apis.paths import normalized_paths
from abridge.apis.responses.api import RESPONSES
from abridge.caches import PATHS, cached

APIS = (CHAT, RESPONSES, MESSAGES)

UPSTREAM_APIS: Mapping[str, UpstreamApi] = {
    api.name: api for api in (*(api.upstream for api in APIS), GEMINI, INTERACTIONS)
}
"""The APIs that upstreams speak, by their names in the settings."""


def fallbacks(api: Api) -> tuple[UpstreamApi, ...]:
    """Return the APIs to try, in order, where an upstream does not have the client's."""
    return tuple(UPSTREAM_APIS[name] for name in api.fallbacks)


@cached(PATHS)
def find_api(path: str, raw_path: str = "") -> Api | None:
    """Return the API whose endpoint a request's path is, or the one that counts its tokens or
    compacts its conversation; None if it is none of these.

    Servers merge slashes and resolve dots, some before they decode the client's path (`raw_path`),
    some after it. A path that any of them would take for an endpoint is one.
    """
    ends = ((api, api.endpoint or api.path, api.counts_tokens_at, api.compacts_at) for api in APIS)
    return next((api for api, *each in ends if _lead_to(path, raw_path, *each)), None)


@cached(PATHS)
def counts_tokens(path: str, raw_path: str) -> bool:
    """Return whether a request on an API's path asks for the number of its tokens."""
    return _lead_to(path, raw_path, *(api.counts_tokens_at for api in APIS))


@cached(PATHS)
def compacts(path: str, raw_path: str) -> bool:
    """Return whether a request on an API's path asks for a compaction of its conversation."""
    return _lead_to(path, raw_path, *(api.compacts_at for api in APIS))


def _lead_to(path: str, raw_path: str, *endpoints: str) -> bool:
    ends = tuple(filter(None, endpoints))
    return any(candidate.endswith(ends) for candidate in normalized_paths(path, raw_path))
