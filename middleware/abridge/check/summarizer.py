"""Check that the summarizer can be reached, answers, and is fast enough."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from abridge.check.finding import Finding
from abridge.check.place import Place
from abridge.check.reach import reach
from abridge.errors import SummarizerError
from abridge.middleware import AbridgeMiddleware
from abridge.proxy import Proxy
from abridge.settings import ROUTE, Route, Settings
from abridge.summarize import Spent, Summarizer
from abridge.summarize.chosen import Chosen
from abridge.summarize.guard import Guard
from abridge.turn.part import Passage
from abridge.wire.apis import CHAT
from abridge.wire.profiles import PROFILES

ABOUT = "summarizer"

NOTHING_TO_REACH = {
    "extractive": "extractive: in process, no model to reach",
    "upstream": "upstream: the request's own model, on its own server",
    "object": "object: handed over in code, not known here",
}

PASSAGE = Passage(
    "The user asks which is larger, 9.11 or 9.9. Compare digit by digit: the whole parts are "
    "equal. Then the tenths: 1 against 9. So 9.9 is larger, and the number of digits does not "
    "matter. A common mistake is to read them as versions, where 9.11 comes after 9.9. The user "
    "says larger, so these are numbers. Therefore the answer is 9.9."
)


async def reach_summarizer(settings: Settings, transport: httpx.AsyncBaseTransport) -> Finding:
    """Check that the summarizer's server can be reached. Raises SettingsError."""
    summarizer = settings.summarizer
    if summarizer.kind != "model" or summarizer.base_url is None:
        return Finding(ABOUT, NOTHING_TO_REACH[summarizer.kind])
    place = Place.of(
        summarizer.base_url, transport, summarizer.api_key_env, "summarizer.api_key_env"
    )
    reached = await reach(place, ABOUT)
    if reached.models and summarizer.model not in reached.models:
        return Finding(ABOUT, f"{reached.finding.text}; {summarizer.model} is not listed", "note")
    return reached.finding


async def probe_summarizer(
    settings: Settings,
    transport: httpx.AsyncBaseTransport,
    route: Route,
    model: str | None,
    client: Mapping[str, str],
) -> Finding:
    """Have the summarizer write one part. Raises SettingsError.

    `route`, `model` and the client's headers are used only if the summarizer is the upstream's own
    model.
    """
    kind = settings.summarizer.kind
    if kind == "object" or (kind == "upstream" and model is None):
        return Finding(ABOUT, f"not asked; {NOTHING_TO_REACH[kind]}", "note")
    chosen = Chosen(settings.summarizer, settings.limits, transport=transport)
    profile = PROFILES[route.upstream.profile]
    registry = CollectorRegistry()
    app = AbridgeMiddleware(Proxy(settings, transport, registry), settings, registry=registry)
    return await write_one(
        settings, chosen.for_request(app, _scope(route, client), model or "", CHAT, profile)
    )


async def write_one(settings: Settings, summarizer: Summarizer) -> Finding:
    """Have the summarizer write one part, and compare its times with what an answer waits."""
    began, first, spent = monotonic(), None, Spent()
    try:
        async for piece in Guard(settings.summarizer).write(summarizer, PASSAGE):
            if isinstance(piece, Spent):
                spent = piece
            elif first is None:
                first = monotonic() - began
    except SummarizerError as error:
        return Finding(ABOUT, f"{error} ({error.code})", "fault")
    return _timed(settings, first or 0.0, monotonic() - began, spent)


def _timed(settings: Settings, first: float, whole: float, spent: Spent) -> Finding:
    grace = settings.summary.grace
    patience = min(settings.summary.first_token, grace)
    cost = "tokens not told"
    if spent.tokens is not None:
        cost = f"{spent.tokens.input} tokens in, {spent.tokens.output} out"
    text = f"first word after {first:.2f} s, all after {whole:.2f} s; {cost}"
    if first > patience:
        return Finding(ABOUT, f"{text}; an answer waits {patience:g} s for it", "fault")
    if whole > grace:
        return Finding(ABOUT, f"{text}; past summary.grace, {grace:g} s", "note")
    return Finding(ABOUT, text)


def _scope(route: Route, client: Mapping[str, str]) -> dict[str, Any]:
    """Return the scope of a client's request."""
    path = f"/v1{CHAT.path}"
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in client.items()],
        ROUTE: route,
    }
