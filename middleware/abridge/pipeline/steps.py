"""The steps by which a client's request becomes upstream's, in order.

`SAME_API` holds for an upstream that speaks the client's API: what the client wrote is changed as
little as possible. `TRANSLATED` holds for any other.

Each step edits the draft, and nothing else: what it finds is in the draft, what it looks up in the
context.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from starlette.types import Scope

from abridge.apis.api import UpstreamApi, UpstreamOptions
from abridge.apis.compaction.form import unreadable_error
from abridge.apis.effort import NOTHING_LOWERED, LoweredEffort
from abridge.apis.history import History
from abridge.apis.json import contains, packed
from abridge.apis.object_references import (
    EVERYTHING,
    ObjectReference,
    find_object_references,
    may_name_objects,
)
from abridge.apis.opaque_state import has_opaque_state
from abridge.apis.paths import OpenPaths
from abridge.apis.protocols import RequestEcho
from abridge.apis.shapes import DropCount, rebuild
from abridge.apis.summary_request import last_user_text
from abridge.apis.summary_request import rewrite_summary_request as rewrite_body
from abridge.apis.thinking_switches import drop_thinking_switches
from abridge.config.client_key import must_count
from abridge.config.exposure import hides_raw, shared_paths
from abridge.config.tables import LimitSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.conversation import Json, Turn
from abridge.core.envelope import ENVELOPE_PREFIX
from abridge.core.language import AUTO, REASONING, detect_language
from abridge.errors import RequestError
from abridge.memory.policy import HistoryChanges
from abridge.memory.turn_memory import TurnMemory
from abridge.observability.metrics_sink import SUMMARY_CALL
from abridge.pipeline.refused_fields import ADDABLE, ADDABLE_TO_TRANSLATION
from abridge.pipeline.renaming import rename_models
from abridge.pipeline.request import ApiRequest, admit_values, check_item_count, too_large
from abridge.pipeline.request_translation import from_items, scope_for_upstream, translate_body
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from abridge.stored_responses.compactions import Compactions
from abridge.stored_responses.references import (
    NO_REFERENCES,
    ReferenceResolver,
    ResolvedReferences,
    refuse_unstored,
    remove_minted_ids,
)
from abridge.stored_responses.repository import ResponseRepository
from abridge.work import Work

ENVELOPE = re.compile(b'"' + re.escape(ENVELOPE_PREFIX.encode()))
"""The beginning of an envelope in a body."""


@dataclass(slots=True)
class RequestDraft:
    """A request, as far as the steps have brought it."""

    body: Json  # in the client's API until it is translated
    scope: Scope
    changed: bool = False  # if false, the body is sent as it came
    sent: frozenset[str] = frozenset()  # the fields that the client sent
    added: frozenset[str] = frozenset()  # those that Abridge added, and the request can do without
    references: ResolvedReferences = NO_REFERENCES
    echo: RequestEcho | None = None  # what a translated answer repeats of the request
    stripped: HistoryChanges | None = None  # changes made to the history before its translation
    history_changes: list[HistoryChanges] = field(default_factory=list)
    dropped_fields: int = 0
    summary_language: str | None = None  # a tag; None: the reasoning's own
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Clients' names of models, by upstream's."""
    lowered: LoweredEffort = NOTHING_LOWERED
    hides_usage: bool = False  # which was not asked for by the client


class StepContext(NamedTuple):
    """What the steps look up; the same for all of one request's."""

    request: ApiRequest
    model: str  # as upstream names it
    upstream: UpstreamApi
    profile: Profile  # upstream's, refined by what was learned of the model
    turn_memory: TurnMemory
    engaged: bool  # the answer will be read
    limits: LimitSettings  # what the request may grow to
    summary_language: str  # `auto`, `reasoning` or a tag
    summary_due: bool  # there is to be a summary in the answer
    refused: Callable[[frozenset[str]], frozenset[str]]  # those that upstream refuses

    @property
    def settings(self) -> UpstreamSettings:
        return self.request.route.upstream

    @property
    def translates(self) -> bool:
        return self.upstream is not self.request.api.upstream

    @property
    def hides_raw(self) -> bool:
        """Raw reasoning must not get through, unless it is a summarizer of Abridge's that asks."""
        return hides_raw(self.request.route) and SUMMARY_CALL not in self.request.scope

    @property
    def work(self) -> Work:
        return self.request.work

    async def admit(self, items: Sequence[bytes]) -> None:
        """Admit the JSON of more items to the request. Raises RequestError if it exceeds the limits
        with them, or memory is short."""
        size, reserve = sum(map(len, items)), self.request.buffered.reserve
        if size + len(self.request.decoded) > self.limits.body:
            raise too_large("conversation", self.limits.body)
        reserve(size)
        self.work.add(joined := b",".join(items))
        await admit_values(joined, self.work, self.limits.values, reserve)

    def may_have_envelopes(self, draft: RequestDraft) -> bool:
        """Return whether the draft may hold envelopes, which stored items may have brought."""
        request = self.request
        return draft.references.substituted or (
            request.may_have_state and contains(request.decoded, ENVELOPE)
        )


Step: TypeAlias = Callable[[RequestDraft, StepContext], Awaitable[None]]


async def use_upstreams_names(draft: RequestDraft, context: StepContext) -> None:
    """Give the models that the request names upstream's names."""
    draft.renamed = rename_models(draft.body, context.request.route.renames)
    draft.changed |= bool(draft.renamed)


async def refuse_shared_objects(draft: RequestDraft, context: StepContext) -> None:
    """Refuse what would, or might, have upstream hand out an object of an account that all clients
    share.

    A body that may name one is encoded anew: one that names a field twice may be read in two ways.
    """
    settings, work = context.settings, context.work
    if not settings.shares_key:
        return
    if not await work.run(may_name_objects, context.request.decoded):
        return
    has_responses = context.request.api.upstream.stores_responses  # whose they are is checked later
    references = find_object_references(draft.body, checks_responses=has_responses)
    await work.run(_refuse_closed_objects, references, shared_paths(settings))
    draft.changed = True


def _refuse_closed_objects(references: Iterable[ObjectReference], paths: OpenPaths) -> None:
    for reference in references:
        if not paths.include("GET", reference.path, reference.path):
            is_known = reference.path != EVERYTHING
            subject = "This object" if is_known else "This field, which may name a stored object,"
            opened = reference.path if is_known else "everything with '/*'"
            raise RequestError(
                f"{subject} cannot be used here, because all clients share one key and would "
                f"share the object. The setting upstreams[].forward_paths opens {opened}.",
                param=reference.param,
                code="unsupported_value",
            )


async def resolve_references(draft: RequestDraft, context: StepContext) -> None:
    """Put stored items in the place of references to them and to the previous response."""
    memory = context.turn_memory
    repository = ResponseRepository.for_tenant(
        memory.route_memory, memory.owner.tags if memory.owner is not None else None
    )
    if not context.request.api.upstream.stores_responses:
        return
    resolves_all = context.translates or context.profile.forgets_responses
    if repository is None:
        has_store = memory.route_memory.store is not None
        refuse_unstored(draft.body, resolves_all=resolves_all, has_store=has_store)
        if resolves_all:
            return
    resolver = ReferenceResolver(
        repository,
        context.settings.name,
        resolves_all=resolves_all,
        shares_key=context.settings.shares_key,
        background=context.request.background_stage,
    )
    references = await resolver.resolve(draft.body, context.admit, context.work)
    check_item_count(draft.body, context.request.api.conversation_field, context.limits.items)
    draft.references = references
    draft.changed |= references.substituted


async def open_compactions(draft: RequestDraft, context: StepContext) -> None:
    """Put what a compaction of Abridge's holds in the place of what it stands for."""
    api, memory = context.request.api, context.turn_memory
    form = api.compaction
    if form is None or not await context.work.run(context.may_have_envelopes, draft):
        return
    found = await context.work.run(form.find, draft.body)
    if found is None:
        return
    tags = memory.owner.tags if memory.owner is not None else None
    compactions = Compactions.for_tenant(memory.route_memory, tags)
    compaction = await compactions.open(found.blob, found.param, form.unreadable_code)
    if found.text is not None and found.text != compaction.text:
        raise unreadable_error(found.param, form.unreadable_code)
    await context.admit(list(map(packed, compaction.items)))
    items = await context.work.run(from_items, compaction.items, api)
    sources = await context.work.run(form.replace, draft.body, found, items)
    draft.changed, draft.references = True, draft.references.moved(sources)


async def choose_summary_language(draft: RequestDraft, context: StepContext) -> None:
    """Choose the language of the summary: the one that was named, or the last user message's."""
    language: str | None = context.summary_language
    if language == REASONING:
        return
    if language == AUTO:
        field = context.request.api.conversation_field
        language = await context.work.run(
            lambda: detect_language(last_user_text(draft.body, field))
        )
    draft.summary_language = language


async def drop_revealing_fields(draft: RequestDraft, context: StepContext) -> None:
    """Drop what might have upstream write hidden reasoning where it is not looked for.

    The body is encoded anew in any case: one that names a field twice may be read in two ways.
    """
    if not context.hides_raw:
        return
    drops = DropCount()
    shape = context.request.api.request_shape
    draft.body = await context.work.run(rebuild, draft.body, shape, drops)
    draft.dropped_fields += drops.count
    draft.changed = True


async def drop_switches(draft: RequestDraft, context: StepContext) -> None:
    """Drop what may have upstream write hidden reasoning into the text without its closing tag, but
    where nothing of it is there, or upstream's settings switch thinking off themselves."""
    settings, reasoning = context.settings, context.request.route.reasoning
    is_parsed = context.profile.parses_text or not reasoning.hold_text
    if not context.hides_raw or is_parsed or "none" in (settings.effort, settings.effort_max):
        return
    drops = DropCount()
    draft.body = drop_thinking_switches(draft.body, context.profile, drops)
    draft.dropped_fields += drops.count


async def drop_foreign_state(draft: RequestDraft, context: StepContext) -> None:
    """Drop the reasoning of turns with opaque state of a provider other than upstream's, which
    would refuse it."""
    if context.request.drops_state != "foreign_state":
        return
    is_sent = not context.translates
    read_history = context.request.api.history
    await _drop_reasoning(draft, context, read_history, has_opaque_state, is_sent=is_sent)


async def drop_refused_state(draft: RequestDraft, context: StepContext) -> None:
    """Drop all reasoning of earlier turns: upstream has refused the opaque state in it, or what it
    writes is not to quote it."""
    if context.request.drops_state not in ("refused_state", "compacted"):
        return
    await _drop_reasoning(draft, context, context.upstream.history, lambda _: True)


async def _drop_reasoning(
    draft: RequestDraft,
    context: StepContext,
    read_history: Callable[[Json], History],
    drops: Callable[[Turn], bool],
    *,
    is_sent: bool = True,
) -> None:
    history = await context.work.run(read_history, draft.body)
    changes = HistoryChanges()
    turns = [turn for turn in history.turns if drops(turn)]
    changes.dropped[context.request.drops_state] = sum(map(history.drop_reasoning, turns))
    for turn in turns if is_sent else ():
        if turn.role == "assistant":  # whose place may have to be there, but empty
            history.place_reasoning(turn, context.profile)
    draft.body = history.sent_body() if is_sent else history.body()
    draft.changed = True
    draft.history_changes.append(changes)


async def rewrite_history(draft: RequestDraft, context: StepContext) -> None:
    """Take out of the history what Abridge added, and put back the reasoning it replaced."""
    memory, api, work = context.turn_memory, context.request.api, context.work
    holds_anything = memory.route_memory.holds_anything()
    if await work.run(
        memory.route_memory.may_need_rewrite, context.request.decoded, lambda: holds_anything
    ):
        changes, body = await memory.rewrite(
            partial(api.history, draft.body),
            context.profile,
            may_have_envelopes=partial(context.may_have_envelopes, draft),
        )
        draft.history_changes.append(changes)
        draft.changed |= body is not None
        draft.body = body or draft.body
    elif context.engaged and (memory.can_remember or memory.can_seal):
        await work.run(lambda: memory.note_history(api.history(draft.body)))


async def rewrite_summary_request(draft: RequestDraft, context: StepContext) -> None:
    """Leave of the request for a summary what upstream knows: nothing where it does not know the
    field, or would answer it with raw reasoning under that name."""
    knows_style = context.request.api.has_summary_field and not context.profile.summary_is_raw
    draft.changed |= rewrite_body(draft.body, keep_style=knows_style)


async def fill_defaults(draft: RequestDraft, context: StepContext) -> None:
    """Set the settings' defaults for fields that the client left out. A body that is yet to be
    translated gets them as its API has them, whatever upstream's profile."""
    profile = PROFILES["auto"] if context.translates else context.profile
    defaults = context.settings.request_defaults
    draft.changed |= bool(defaults.fill(draft.body, context.request.api, profile))


async def ask_for_usage(draft: RequestDraft, context: StepContext) -> None:
    """Have upstream report usage that is counted."""
    request = context.request
    if must_count(request.scope) and request.api.ask_for_usage(draft.body):
        draft.hides_usage = draft.changed = True


async def ask_to_think(draft: RequestDraft, context: StepContext) -> None:
    """Have a model reason that does so only if asked, where a summary is due."""
    api = context.request.api
    if context.summary_due and api.ask_to_think(draft.body):
        draft.changed = True


async def limit_effort(draft: RequestDraft, context: StepContext) -> None:
    """Lower an effort or a budget above what clients may ask for."""
    lowered = context.request.route.effort_limits.lower(draft.body)
    if lowered != NOTHING_LOWERED:
        draft.lowered, draft.changed = draft.lowered.followed_by(lowered), True


async def strip_history(draft: RequestDraft, context: StepContext) -> None:
    """Take out of the history what Abridge added, and put what envelopes hold in their place: they
    cannot be translated."""
    draft.stripped, body = await context.turn_memory.strip(
        partial(context.request.api.history, draft.body),
        context.profile,
        may_have_envelopes=partial(context.may_have_envelopes, draft),
    )
    draft.body = body or draft.body


async def translate(draft: RequestDraft, context: StepContext) -> None:
    """Write the request in upstream's API, and address it to upstream's endpoint."""
    api, upstream, settings = context.request.api, context.upstream, context.settings
    translation = await context.work.run(
        translate_body,
        draft.body,
        api,
        upstream,
        UpstreamOptions(context.profile, settings.max_tokens, context.summary_due),
        lenient=settings.unsupported == "drop",
    )
    echo = draft.references.update_echo(translation.echo)
    if draft.renamed:
        echo = replace(echo, body={**echo.body, "model": context.request.model})
    endpoint, profile = translation.endpoint, context.profile
    draft.scope = scope_for_upstream(draft.scope, api, upstream, endpoint, profile)
    draft.body, draft.echo, draft.changed = translation.body, echo, True
    draft.dropped_fields += len(translation.dropped)


async def restore_history(draft: RequestDraft, context: StepContext) -> None:
    """Restore the history's reasoning in upstream's API, which alone has upstream's own fields."""
    changes, body = await context.turn_memory.rewrite(
        partial(context.upstream.history, draft.body), context.profile, stripped=draft.stripped
    )
    draft.history_changes.append(changes)
    draft.body = body or draft.body


async def drop_rejected_fields(draft: RequestDraft, context: StepContext) -> None:
    """Drop what the model would refuse, or has refused, from any request that Abridge answers
    for."""
    if not (context.engaged or draft.changed):
        return
    names = ADDABLE_TO_TRANSLATION if context.translates else ADDABLE
    added = frozenset(name for name in names if name in draft.body and name not in draft.sent)
    refused = added and (added & context.request.refused | context.refused(added))
    for name in refused:
        del draft.body[name]
    draft.added = added - refused
    dropped = context.profile.drop_rejected(draft.body, context.model)
    draft.dropped_fields += len(dropped)
    draft.changed |= bool(dropped or refused)


async def forget_minted_ids(draft: RequestDraft, context: StepContext) -> None:
    """Remove the ids that Abridge made: no upstream can know them."""
    has_items = "input" in draft.body
    removed = await context.work.run(remove_minted_ids, draft.body) if has_items else 0
    if removed:
        draft.history_changes.append(HistoryChanges(removed))
        draft.changed = True


RESOLVING: tuple[Step, ...] = (refuse_shared_objects, resolve_references, open_compactions)
"""These put the whole conversation into the body."""

SAME_API: tuple[Step, ...] = (
    use_upstreams_names,
    *RESOLVING,
    choose_summary_language,
    drop_revealing_fields,
    drop_foreign_state,
    rewrite_history,
    rewrite_summary_request,
    fill_defaults,
    ask_to_think,
    ask_for_usage,
    drop_switches,
    limit_effort,
    drop_refused_state,
    drop_rejected_fields,
    forget_minted_ids,
)
"""For an upstream that speaks the client's API."""

TRANSLATED: tuple[Step, ...] = (
    use_upstreams_names,
    *RESOLVING,
    choose_summary_language,
    drop_revealing_fields,
    drop_foreign_state,
    strip_history,
    fill_defaults,
    limit_effort,
    translate,
    drop_switches,
    limit_effort,
    restore_history,
    drop_refused_state,
    drop_rejected_fields,
    forget_minted_ids,
)
"""For an upstream that speaks another."""
