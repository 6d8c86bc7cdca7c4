"""Resolve the settings for one request: what is shown, what is summarized, how long it may wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from abridge.apis.api import Api, Reader, Writer
from abridge.apis.display import Display, Exposure
from abridge.config.exposure import EXPOSED, hides_raw, shows_both_without_store
from abridge.config.settings import ChatSettings, LimitSettings, Route
from abridge.core.events import ResponseEnded
from abridge.core.plan import SummaryPlan
from abridge.core.styles import SummaryStyle
from abridge.memory.summaries import SummaryTracker
from abridge.summarizers.extractive.extract import extract
from abridge.summarizers.guard import Guard
from abridge.summarizers.summarizer import Summarizer

RememberTurn: TypeAlias = Callable[[Reader, ResponseEnded], Coroutine[Any, Any, None]]
"""Remembers an answer, however it ended, with the summaries that were shown. The coroutine starts
after the last event was written, and finishes before the client is sent it."""


@dataclass(slots=True, frozen=True)
class ExchangePlan:
    """Decisions and collaborators for one request."""

    reader: Reader
    writer: Writer
    summary_plan: SummaryPlan
    hide_unread: bool  # nothing unread may get through
    translate_error: Callable[[bytes], bytes] | None  # translates an error body, if the APIs differ
    guard: Guard
    summarizer: Summarizer
    summary_tracker: SummaryTracker  # follows what the client is shown
    remember: RememberTurn  # called with the last event
    event_limit: int  # bytes of one event, or of a whole JSON body


def build_display(
    route: Route, api: Api, style: SummaryStyle | None, chat: ChatSettings, usage_mode: str
) -> Display:
    """Decide what is shown. `style` is None where no summary is made; `usage_mode` is `merged` or
    `separate`."""
    expose: Exposure = route.reasoning.expose
    if shows_both_without_store(route, chat):
        expose = "both"
    raw, summary = EXPOSED.get(expose, api.default_exposure)
    if style is None and not hides_raw(route):
        raw = True
    return Display(
        show_raw=raw,
        show_summary=summary,
        style=style,
        merge_usage=usage_mode == "merged",
        summary_field=chat.summary_field,
        raw_field=chat.raw_field,
        add_details=chat.details,
        envelope_field="thinking_blocks"
        if chat.envelope == "thinking_blocks"
        else "reasoning_details",
    )


def build_summary_plan(
    route: Route,
    style: SummaryStyle | None,
    limits: LimitSettings,
    grace: float,
    *,
    free: bool = False,
) -> SummaryPlan:
    """Build the summary plan.

    `grace` is the one in force, which may be less than the route's; `free`: the summarizer uses no
    tokens.
    """
    summary = route.summary
    return SummaryPlan(
        style=style,
        live=summary.live,
        part_chars=summary.part_chars,
        max_parts=summary.max_parts,
        tail_chars=summary.tail_chars,
        min_chars=summary.min_chars,
        reasoning_limit=int(limits.reasoning),
        grace=grace,
        first_token_timeout=summary.first_token,
        held_limit=int(limits.held),
        max_overhead=None if free else summary.max_overhead,
        fallback=extract if summary.on_failure == "extract" else None,
        fail_response=summary.on_failure == "fail",
    )
