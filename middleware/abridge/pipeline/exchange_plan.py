"""Plan an exchange: what is shown, what is summarized, and what reads and writes the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TypeAlias

from abridge.apis.display import Display, Exposure
from abridge.apis.protocols import Reader, Writer
from abridge.apis.quotes import repeats_added
from abridge.config.exposure import EXPOSED, hides_raw, shows_both_without_store, shows_summary
from abridge.config.settings import Settings
from abridge.core.envelope import SealEnvelope
from abridge.core.plan import Fallback, NativeReasoning, SummaryPlan
from abridge.core.styles import SummaryStyle
from abridge.memory.summaries import SummaryTracker
from abridge.observability.record import Record
from abridge.pipeline.answer_memory import AnswerMemory, RememberTurn
from abridge.pipeline.answers.error_writer import ErrorWriter
from abridge.pipeline.body import Room
from abridge.pipeline.native_reasoning import depends_on_model, find_native_reasoning, show_native
from abridge.pipeline.prepare import PreparedRequest
from abridge.stages.attribution import CallAttribution
from abridge.summarizers.call import runs_in_process
from abridge.summarizers.guard import Guard
from abridge.summarizers.summarizer import CheckedSummarizer, Summarizer

FIRST_SHARE = 0.6
"""The size of the first part, as a share of the others': until it is written,
there is nothing to read."""

TAIL_CHARS = 400
"""The least rest of reasoning for which a summarizer is called, in characters."""

EXTRACT_TAIL_CHARS = 80
"""The least rest of which an extract is made."""


PlanFor: TypeAlias = "Callable[[str], ExchangePlan | None]"


@dataclass(slots=True, frozen=True)
class ExchangePlan:
    """Decisions and collaborators for one request."""

    reader: Reader
    writer: Writer
    attribution: CallAttribution | None
    summary_plan: SummaryPlan
    hide_unread: bool  # nothing unread may get through
    display: Display
    errors: ErrorWriter
    guard: Guard
    summarizer: Summarizer
    summary_tracker: SummaryTracker  # follows what the client is shown
    remember: RememberTurn  # called with the last event
    event_limit: int  # bytes of one event, or of a whole JSON body
    tells_status: bool  # each title of the summary is told in a field of its own, too
    room: Room  # for what waits of either
    plan_for: PlanFor | None = None
    """Returns the plan for an answer by another model than was requested, None where it is this
    one. Without it the model does not matter."""


class ExchangePlanner:
    """Plans exchanges according to the settings."""

    def __init__(self, settings: Settings, answer_memory: AnswerMemory) -> None:
        self._settings = settings
        self._answer_memory = answer_memory
        if any(route.summary.on_failure == "extract" for route in settings.routes):
            _import_fallback()  # is imported now rather than while streams run

    def plan(
        self,
        prepared: PreparedRequest,
        requested: SummaryStyle | None,
        summarizer: Summarizer,
        guard: Guard,
        grace: float,
        *,
        answered_by: str = "",
    ) -> ExchangePlan:
        """Plan the exchange of one request. `grace` is the one in force, which may be less than the
        route's; `answered_by` is the model that answers, if that is known."""

        def plan_for(model: str) -> ExchangePlan | None:
            if find_native(model) is not None:
                return None
            return self.plan(prepared, requested, summarizer, guard, grace, answered_by=model)

        request, summary = prepared.request, prepared.request.route.summary
        style = requested if shows_summary(request.route) else None
        free, reviewed = runs_in_process(summarizer), guard.reviews
        translates = summary.translate and isinstance(summarizer, CheckedSummarizer)
        find_native = partial(find_native_reasoning, prepared, translates=translates)
        # a review sees every summary that is shown
        native = None if style is None or reviewed else find_native(answered_by)
        follows_model = native is not None and not answered_by and depends_on_model(prepared)
        copies = free or summary.on_failure == "extract" or native == "translated"
        display = self._display(prepared, requested, style, native)
        reader, writer = self._reader_and_writer(prepared, display)
        return ExchangePlan(
            reader=reader,
            writer=writer,
            attribution=request.api.follow_calls(display),
            summary_plan=self._summary_plan(
                prepared, style, native, grace, free=free, reviewed=reviewed
            ),
            hide_unread=_hides_unread(prepared),
            display=display,
            errors=_error_writer(prepared),
            guard=guard,
            summarizer=summarizer,
            summary_tracker=prepared.turn_memory.track_summaries(
                copied=style is not None and copies, native=native in ("shown", "copied")
            ),
            remember=self._answer_memory.for_request(prepared, display, writer),
            event_limit=int(self._settings.limits.event),
            tells_status=style is not None and summary.status,
            room=Room(request.buffered.reserve),
            plan_for=plan_for if follows_model else None,
        )

    def _display(
        self,
        prepared: PreparedRequest,
        requested: SummaryStyle | None,
        style: SummaryStyle | None,
        native: NativeReasoning | None,
    ) -> Display:
        """Decide what is shown. `style` is None where no summary is made."""
        display = self._requested_display(prepared, style)
        if native is not None:
            display = show_native(display, native, prepared)
        omits = prepared.request.wish == "omitted"
        if requested is None and not (omits or _hides_unread(prepared)):  # nothing is changed
            display = replace(display, show_raw=True, show_summary=True)
        seal = self._envelope_sealer(prepared, display)
        request = prepared.request
        tells = not display.shows_thinking and request.api.wants_progress(request.scope["headers"])
        if seal is None and not tells:
            return display
        return replace(display, seal=seal, tells_progress=tells)

    def _requested_display(self, prepared: PreparedRequest, style: SummaryStyle | None) -> Display:
        """Return the display that the settings and the request ask for."""
        request, chat = prepared.request, self._settings.chat
        attribution, limits = self._settings.attribution, self._settings.limits
        expose: Exposure = request.route.reasoning.expose
        if shows_both_without_store(request.route, chat):
            expose = "both"
        raw, summary = EXPOSED.get(expose, request.api.default_exposure)
        uses_blocks = chat.envelope == "thinking_blocks"
        wish = request.wish
        omits = wish == "omitted" and style is None
        return Display(
            show_raw=not omits and (raw or (style is None and not hides_raw(request.route))),
            hides_raw=hides_raw(request.route),
            hidden=Record.get(prepared.scope).note_profile(prepared.profile.name),
            echoed=prepared.echoed,
            trusts_state=prepared.profile.encrypts_state,
            show_summary=summary and not omits,
            drops_reasoning=(
                prepared.translated
                and request.api.reasons_on_request
                and style is None
                and wish not in ("summarized", "omitted")
            ),
            style=style,
            merge_usage=request.usage_mode() == "merged",
            summary_field=chat.summary_field,
            raw_field=chat.raw_field,
            add_details=chat.details,
            envelope_field="thinking_blocks" if uses_blocks else "reasoning_details",
            hides_usage=prepared.hides_usage,
            obfuscate=request.wants_obfuscation,
            ends_with_text=request.api.ends_with_text,
            carries_images=request.api.carries_images,
            attribution_limit=int(limits.reasoning) if attribution.enabled else None,
        )

    def _envelope_sealer(self, prepared: PreparedRequest, display: Display) -> SealEnvelope | None:
        """Return the function that makes envelopes, or None.

        Envelopes are made if the client asks for them; on an API where it cannot ask, if the
        settings allow them and something that it could return is altered.
        """
        memory, wanted = prepared.turn_memory, prepared.wants_opaque_state
        if wanted is None:
            fits = prepared.request.api.returns_signatures or self._settings.chat.envelope != "none"
            wanted = fits and (prepared.translated or display.restores or not display.show_raw)
        if not (wanted and memory.can_seal) or memory.sealer is None:
            return None
        return memory.sealer.seal

    def _reader_and_writer(
        self, prepared: PreparedRequest, display: Display
    ) -> tuple[Reader, Writer]:
        """Choose the Reader of upstream's API and the Writer of the client's."""
        api, profile, limits = prepared.request.api, prepared.profile, self._settings.limits
        if not prepared.request.route.reasoning.hold_text:
            profile = replace(profile, parses_text=True)
        make_reader = prepared.upstream.translating_reader if prepared.translated else api.reader
        writer = api.writer(profile, display, prepared.echo, int(limits.event))
        return make_reader(profile, display, int(limits.reasoning)), writer

    def _summary_plan(
        self,
        prepared: PreparedRequest,
        style: SummaryStyle | None,
        native: NativeReasoning | None,
        grace: float,
        *,
        free: bool,
        reviewed: bool,
    ) -> SummaryPlan:
        """Build the summary plan; `free` if the summarizer is the built-in one.

        It uses no tokens, and is late only if this process has too much to do: it takes its turn.

        A part that is `reviewed` comes whole or not at all, so that nothing is said by its first
        text being late; what steps in at a deadline would be shown unreviewed, so nothing does; and
        parts do not take turns, since each then waits for somebody else's verdict.

        Of a summary that is translated nothing is left out, and each part comes whole.
        """
        route, limits = prepared.request.route, self._settings.limits
        summary, translates = route.summary, native == "translated"
        tail_chars = EXTRACT_TAIL_CHARS if free else TAIL_CHARS  # an extract costs no call
        if summary.tail_chars is not None:
            tail_chars = summary.tail_chars
        extracts = (free or summary.on_failure == "extract") and not reviewed
        return SummaryPlan(
            style=style,
            native=native,
            language=prepared.summary_language,
            hidden=hides_raw(route) and not translates,
            live=summary.live,
            part_chars=summary.part_chars,
            first_share=FIRST_SHARE,
            max_parts=summary.max_parts,
            tail_chars=0 if translates else tail_chars,
            min_chars=1 if translates else summary.min_chars,
            reasoning_limit=int(limits.reasoning),
            grace=grace,
            first_token_timeout=inf if free or reviewed or translates else summary.first_token,
            in_turn=free and not reviewed,
            held_limit=int(limits.held),
            max_overhead=None if free else summary.max_overhead,
            fallback=_import_fallback() if extracts else None,
            fail_response=summary.on_failure == "fail",
        )


def _hides_unread(prepared: PreparedRequest) -> bool:
    """Return whether an answer that is not read must not pass."""
    return hides_raw(prepared.request.route) or prepared.translated


def _error_writer(prepared: PreparedRequest) -> ErrorWriter:
    request = prepared.request
    return ErrorWriter(
        request.api,
        Record.get(request.scope).id,
        prepared.upstream if prepared.translated else None,
        partial(repeats_added, sent=prepared.body, given=request.buffered.data or b""),
    )


def _import_fallback() -> Fallback:
    from abridge.summarizers.extractive.extract import (  # noqa: PLC0415 -- many patterns
        extract_or_nothing,
    )

    return extract_or_nothing
