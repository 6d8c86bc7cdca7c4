"""Warnings about valid but surprising settings, printed at startup and by `abridge check`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from abridge.apis.model_names import MATCHED
from abridge.config.addresses import find_unversioned
from abridge.config.exposure import hides_raw, shows_both_without_store
from abridge.config.settings import Route, Settings
from abridge.core.language import AUTO, REASONING
from abridge.http.hosts import is_loopback_name
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile, is_reasoning_model

_ONE_OF_SEVERAL = re.compile(r"\[.[^]]*\]|\?")
"""What stands for one of several characters in a glob."""


def settings_warnings(settings: Settings) -> Iterator[str]:
    """Yield one line for each warning, beginning with the key."""
    for check in WARNING_CHECKS:
        yield from check(settings)


def _warn_thinking_summarizer(settings: Settings) -> Iterator[str]:
    summarizer = settings.summarizer
    if summarizer.kind != "model" or not is_reasoning_model(summarizer.model or ""):
        return
    switches = {key for row in PROFILES.values() for key in row.thinking_off}
    if not (PROFILES[summarizer.profile].thinking_off or switches & summarizer.extra_body.keys()):
        yield (
            f"summarizer.profile: {summarizer.profile!r} cannot turn thinking off, and "
            f"{summarizer.model} looks like a reasoning model, whose thinking costs time and "
            "tokens; set its server's profile, or turn thinking off in summarizer.extra_body"
        )


def unused_addresses(settings: Settings) -> Iterator[str]:
    """Yield a line for each address that the middleware does not use around an application."""
    for index, upstream in enumerate(settings.upstreams):
        if upstream.base_url is not None:
            yield (
                f"upstreams[{index}].base_url: is set, but the application answers by itself, and "
                "nothing is sent to that address; leave it out, or mount abridge.Proxy, or "
                "create_app, which call it"
            )


def _warn_copied_language(settings: Settings) -> Iterator[str]:
    for route in settings.routes:
        language = route.summary.language
        if settings.summarizer.kind == "extractive" and language not in (AUTO, REASONING):
            yield (
                f"summary.language: is {language!r} for upstream {route.upstream.name!r}, but "
                "summarizer.kind = 'extractive' copies sentences in the language of the "
                "reasoning; for summaries in another language, let a model write them"
            )


def _warn_busy_summarizer(settings: Settings) -> Iterator[str]:
    summarizer = settings.summarizer
    if summarizer.kind == "upstream":
        yield (
            "summarizer.kind: 'upstream' makes the model's own server write each part while it is "
            "still reasoning: if that server is busy, answers wait"
        )
    if summarizer.kind != "model" or summarizer.base_url is None:
        return
    for upstream in settings.upstreams:
        if upstream.base_url and _netloc(upstream.base_url) == _netloc(summarizer.base_url):
            yield (
                f"summarizer.base_url: is also the address of upstream {upstream.name!r}: if that "
                "server is busy, summaries queue behind the answers that wait for them"
            )


def _warn_uncalled_summarizer(settings: Settings) -> Iterator[str]:
    summarizer = settings.summarizer
    if summarizer.kind != "model" and (summarizer.base_url or summarizer.model):
        key = "base_url" if summarizer.base_url else "model"
        yield (
            f"summarizer.{key}: is set, but summarizer.kind = {summarizer.kind!r} does not call "
            "it; set kind to 'model'"
        )


def _warn_unreviewed(settings: Settings) -> Iterator[str]:
    review = settings.review
    if review.kind == "none":
        if review.base_url is not None:
            yield "review.base_url: is set, but review.kind = 'none' reviews nothing"
        return
    for route in settings.routes:
        expose, name = route.reasoning.expose, route.upstream.name
        if not hides_raw(route):
            clients = "Responses clients" if expose == "auto" else "clients"
            yield (
                f"review.kind: reviews only summaries, but reasoning.expose = {expose!r} also "
                f"shows {clients} of upstream {name!r} the raw reasoning; 'summary' hides it"
            )


def _netloc(url: str) -> str:
    return urlsplit(url).netloc.casefold()


def _warn_claude_names(settings: Settings) -> Iterator[str]:
    for route in settings.routes:
        targets = [target.replace(MATCHED, "*") for _, target in route.renames.rules]
        sent = [*map(route.renames.to_upstream, route.upstream.models), *targets]
        yield from warn_claude_names(route, sent)


def warn_claude_names(route: Route, names: Iterable[str]) -> Iterator[str]:
    """Warn if one of upstream's names of models, or globs of them, is Claude's, and nothing else
    tells that Claude answers: a server may give any model that name, as for Claude Code. Where raw
    reasoning is hidden, a name alone makes nothing a summary."""
    profile = PROFILES[route.upstream.profile]
    is_told = not profile.learns or route.upstream.api == "messages"
    if is_told or route.reasoning.kind != "auto" or hides_raw(route):
        return
    found = next((name for name in names if _passes_as_claude(profile, name)), None)
    if found is not None:
        yield (
            f"reasoning.kind: is 'auto', so the model {found} of upstream {route.upstream.name!r} "
            "is taken for Claude, and its reasoning for a summary, which passes unchanged; if it "
            "is another model, set 'raw' so that its reasoning is summarized; if it is Claude, "
            "set 'summary', or the upstream's profile"
        )


def _passes_as_claude(profile: Profile, name: str) -> bool:
    is_glob = not set("*?[").isdisjoint(name)
    is_claudes = name.casefold().rpartition("/")[2].startswith("claude-")
    return is_claudes and (is_glob or profile.reasons_in_summaries([name]))


def _warn_missing_credential(settings: Settings) -> Iterator[str]:
    for index, upstream in enumerate(settings.upstreams):
        unsaid = upstream.api_key_env is None and upstream.credential is None
        if unsaid and settings.server.keys_file is not None:
            yield (
                f"upstreams[{index}].api_key_env: is not set, and clients' keys are those of "
                f"server.keys_file, so upstream {upstream.name!r} gets no credential: set it, or "
                "set credential to 'none'"
            )
        elif unsaid and upstream.base_url and len(settings.upstreams) > 1:
            yield (
                f"upstreams[{index}].credential: is not set, and there are several upstreams, so "
                f"{upstream.name!r} gets no credential: set it to 'client' if clients' keys are "
                "meant for it, or to 'none'"
            )


def _warn_lost_reasoning(settings: Settings) -> Iterator[str]:
    for route in settings.routes:
        name, history = route.upstream.name, route.history
        if shows_both_without_store(route, settings.chat):
            yield (
                f"history.store: is 'none', and upstream {name!r} needs reasoning back: clients "
                "get the raw reasoning as well as the summary, since Abridge could not restore it"
            )
        returns = PROFILES[route.upstream.profile].returns
        if history.restore == "never" and returns.required_on_calls:
            yield (
                f"history.restore: is 'never', and upstream {name!r} rejects turns that call "
                "tools without their reasoning: clients must return it themselves"
            )


def _warn_lost_hidden_reasoning(settings: Settings) -> Iterator[str]:
    exposed = not is_loopback_name(settings.server.host)
    all_named = settings.server.keys_file is not None
    for route in filter(hides_raw, settings.routes):
        history = route.history
        hidden = f"and reasoning is hidden on upstream {route.upstream.name!r}"
        if history.store == "none" and history.keep != "none":
            yield (
                f"history.store: is 'none', {hidden}: a Responses client that does not request "
                "encrypted_content loses it"
            )
        unsealed = history.store == "memory" and not history.seal_keys_env
        if unsealed and history.keep != "none":
            yield (
                f"history.seal_keys_env: is not set, {hidden}: only this process remembers it, so "
                "a restart loses it and other replicas lack it"
            )
        forgets = history.anonymous is False or (history.anonymous == "loopback" and exposed)
        if forgets and not all_named:
            yield (
                f"history.anonymous: is {history.anonymous!r}, {hidden}: it is not remembered for "
                "clients without a credential and is missing from their later requests"
            )


def _warn_open_page(settings: Settings) -> Iterator[str]:
    server = settings.server
    if server.page and server.keys_file is None and not is_loopback_name(server.host):
        yield f"server.page: shows all clients' exchanges to anyone who can reach {server.host}"


def _warn_open_key(settings: Settings) -> Iterator[str]:
    server = settings.server
    if server.keys_file is not None or is_loopback_name(server.host):
        return
    for upstream in settings.upstreams:
        if upstream.shares_key:
            yield (
                f"server.host: anyone who can reach {server.host} can use the key of upstream "
                f"{upstream.name!r} (api_key_env), since clients need none: set server.keys_file, "
                "or authenticate clients in front of Abridge"
            )


def _warn_unshared_memory(settings: Settings) -> Iterator[str]:
    general = settings.history.store
    stores = [one.history.get("store", general) for one in settings.upstreams] or [general]
    if settings.server.workers > 1 and "memory" in stores:
        yield (
            f"server.workers: {settings.server.workers} processes cannot share history.store = "
            "'memory', so it becomes 'none': no reasoning is restored and no response is stored; "
            "for both, set it to an address such as redis://127.0.0.1:6379/0"
        )


def _warn_unknown_summaries(settings: Settings) -> Iterator[str]:
    histories = [route.history for route in settings.routes]
    unshared = settings.server.workers > 1 and not any(history.is_shared for history in histories)
    if unshared and any(history.keep != "none" for history in histories):
        yield (
            f"server.workers: each of the {settings.server.workers} knows only the summaries that "
            "it sent itself, so one that a client returns to another is sent upstream as "
            "reasoning; to avoid that, share a history.store"
        )


def _warn_revealing_fallback(settings: Settings) -> Iterator[str]:
    for route in settings.routes:
        for fallback, _ in settings.fallbacks_of(route):
            if hides_raw(route) and not hides_raw(fallback):
                yield (
                    f"upstreams[].fallback: {route.upstream.name!r} hides raw reasoning, but its "
                    f"fallback {fallback.upstream.name!r} does not"
                )


def _warn_unreachable_upstream(settings: Settings) -> Iterator[str]:
    """Warn of globs that match nothing which an earlier upstream's do not match as well."""
    earlier: list[tuple[str, str]] = []  # globs, each with its upstream's name
    spares = {each.upstream for upstream in settings.upstreams for each in upstream.fallbacks}
    for index, upstream in enumerate(settings.upstreams):
        for glob in upstream.models if upstream.name not in spares else ():
            name = next((name for known, name in earlier if covers(known, glob)), None)
            if name is not None:
                yield (
                    f"upstreams[{index}].models: upstream {name!r}, which comes first, takes "
                    f"every model that {glob!r} of upstream {upstream.name!r} matches; put "
                    f"{upstream.name!r} first, or give {name!r} other models"
                )
        earlier += [(glob, upstream.name) for glob in upstream.models]


def covers(glob: str, other: str) -> bool:
    """Return whether a glob surely matches all that another does."""
    if set(glob) & set("?["):
        return glob == other
    return fnmatchcase(_ONE_OF_SEVERAL.sub("\0", other), glob)


WARNING_CHECKS: tuple[Callable[[Settings], Iterator[str]], ...] = (
    _warn_thinking_summarizer,
    _warn_copied_language,
    _warn_busy_summarizer,
    _warn_uncalled_summarizer,
    _warn_unreviewed,
    _warn_claude_names,
    _warn_missing_credential,
    _warn_lost_reasoning,
    _warn_lost_hidden_reasoning,
    _warn_open_page,
    _warn_open_key,
    _warn_unshared_memory,
    _warn_unknown_summaries,
    _warn_revealing_fallback,
    find_unversioned,
    _warn_unreachable_upstream,
)
