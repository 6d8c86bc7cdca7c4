"""Check that the summarizer, and the review of its parts, can be reached, answer, and are fast
enough."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from abridge.apis.chat.api import CHAT
from abridge.apis.credentials import credential_header
from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.settings import ROUTE, Route, Settings
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.errors import SummarizerError
from abridge.middleware import AbridgeMiddleware
from abridge.providers.catalog import PROFILES
from abridge.sidecar.check.reach import CheckTarget, Finding, reach
from abridge.sidecar.check.refusal import ListeningTransport
from abridge.sidecar.proxy.proxy import Proxy
from abridge.summarizers.guard import Guard
from abridge.summarizers.review import make_moderator
from abridge.summarizers.selection import Overrides, SummarizerSelection
from abridge.summarizers.summarizer import Summarizer
from abridge.waiting import silence_timeout

SUBJECT, REVIEW = "summarizer", "review"

NOT_CHECKED = {
    "extractive": "extractive: in process, without a model",
    "upstream": "upstream: the request's own model, on its own server",
    "object": "object: passed in code, unknown here",
}

SAMPLE_PASSAGE = Passage(
    "The user asks which is larger, 9.11 or 9.9. Compare digit by digit: the whole parts are "
    "equal. Then the tenths: 1 against 9. So 9.9 is larger, and the number of digits does not "
    "matter. A common mistake is to read them as versions, where 9.11 comes after 9.9. The user "
    "says larger, so these are numbers. Therefore the answer is 9.9."
)

SAMPLE_PART = (
    "**Comparing the numbers**\n\nI compare 9.11 and 9.9 digit by digit: 9.9 is the larger one."
)


async def reach_summarizer(settings: Settings, transport: httpx.AsyncBaseTransport) -> Finding:
    """Check that the summarizer's server can be reached. Raises SettingsError."""
    summarizer = settings.summarizer
    if summarizer.kind != "model" or summarizer.base_url is None:
        return Finding(SUBJECT, NOT_CHECKED[summarizer.kind])
    api, profile = UPSTREAM_APIS[summarizer.api], PROFILES[summarizer.profile]
    target = CheckTarget.with_key(
        summarizer.base_url,
        transport,
        summarizer.api_key_env,
        "summarizer.api_key_env",
        lambda key: credential_header(key, profile, api),
    )
    target = replace(target, headers={**api.headers, **target.headers})
    reached = await reach(target, SUBJECT)
    if reached.models and summarizer.model not in reached.models:
        return Finding(SUBJECT, f"{reached.finding.text}; {summarizer.model} is not listed", "note")
    return reached.finding


async def probe_summarizer(
    settings: Settings,
    transport: httpx.AsyncBaseTransport,
    route: Route,
    model: str | None,
    client_headers: Mapping[str, str],
) -> Finding:
    """Have the summarizer write one part. Raises SettingsError.

    `route`, `model` and the client's headers are used only if the summarizer is the upstream's own
    model.
    """
    kind = settings.summarizer.kind
    if kind == "object" or (kind == "upstream" and model is None):
        return Finding(SUBJECT, f"not probed; {NOT_CHECKED[kind]}", "note")
    listening = ListeningTransport(transport)
    selection = SummarizerSelection(
        settings.summarizer, settings.limits, Overrides(transport=listening)
    )
    profile = PROFILES[route.upstream.profile]
    registry = CollectorRegistry()
    keyless = settings.server.model_copy(update={"keys_file": None})
    mounted = settings.model_copy(update={"server": keyless})
    app = AbridgeMiddleware(Proxy(mounted, listening, registry), mounted, registry=registry)
    scope = _client_scope(route, client_headers)
    summarizer = selection.for_request(app, scope, model or "", CHAT, profile)
    return await probe_part(settings, summarizer, listening)


async def probe_part(
    settings: Settings, summarizer: Summarizer, listening: ListeningTransport
) -> Finding:
    """Have the summarizer write one part, and compare its times with how long an answer waits."""
    started, first, usage = monotonic(), None, SummarizerUsage()
    try:
        with _unlogged():
            async for delta in Guard(settings.summarizer).summarize(summarizer, SAMPLE_PASSAGE):
                if isinstance(delta, SummarizerUsage):
                    usage = delta
                elif first is None:
                    first = monotonic() - started
    except SummarizerError as error:
        return Finding(SUBJECT, f"{error} ({error.code}){listening.said}", "fault")
    return _timing_finding(settings, first or 0.0, monotonic() - started, usage)


@contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing meanwhile: what fails is told by a finding."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _timing_finding(
    settings: Settings, first: float, total: float, usage: SummarizerUsage
) -> Finding:
    grace = settings.summary.grace
    wait, limit = min((settings.summary.first_token, "first_token"), (grace, "grace"))
    if settings.review.kind != "none":  # a part is shown only when it is whole
        wait, limit = grace, "grace"
    cost = "tokens not reported"
    if usage.tokens is not None:
        cost = f"{usage.tokens.input} tokens in, {usage.tokens.output} out"
    text = f"first word after {first:.2f} s, complete after {total:.2f} s; {cost}"
    if first > wait:
        text = f"{text}; an answer waits only {wait:g} s for it, summary.{limit}"
        return Finding(SUBJECT, text, "fault")
    if total > grace:
        return Finding(SUBJECT, f"{text}; longer than summary.grace, {grace:g} s", "note")
    return Finding(SUBJECT, text)


def _client_scope(route: Route, client_headers: Mapping[str, str]) -> dict[str, Any]:
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
        "headers": [(name.encode(), value.encode()) for name, value in client_headers.items()],
        ROUTE: route,
    }


async def reach_review(settings: Settings, transport: httpx.AsyncBaseTransport) -> Finding | None:
    """Check that the endpoint's server can be reached; None if there is no review.

    Raises SettingsError.
    """
    review = settings.review
    if review.kind == "none" or review.base_url is None:
        return None
    target = CheckTarget.with_key(
        review.base_url, transport, review.api_key_env, "review.api_key_env"
    )
    return (await reach(target, REVIEW)).finding


async def probe_review(settings: Settings, transport: httpx.AsyncBaseTransport) -> Finding | None:
    """Have a harmless part reviewed; None if there is no review. Raises SettingsError."""
    reviewer = make_moderator(settings, transport)
    if reviewer is None:
        return None
    started, timeout = monotonic(), settings.review.timeout
    try:
        async with silence_timeout(timeout):
            approved = await reviewer.review(SAMPLE_PART)
    except TimeoutError:
        return Finding(REVIEW, f"no verdict within review.timeout, {timeout:g} s", "fault")
    except SummarizerError as error:
        return Finding(REVIEW, str(error), "fault")
    if approved is None:
        return Finding(REVIEW, "flags a harmless part, so it would withhold most others", "fault")
    return Finding(REVIEW, f"passes a harmless part after {monotonic() - started:.2f} s")
