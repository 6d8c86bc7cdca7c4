"""Resolve the settings for one request: what is shown, what is summarized, how long it may wait."""

from __future__ import annotations

from abridge.settings import Chat, Limits, Route
from abridge.summarize.extractive import extract
from abridge.turn.part import Style
from abridge.turn.plan import Plan
from abridge.wire.api import Api
from abridge.wire.display import Display, Expose
from abridge.wire.profiles import PROFILES

SHOWN: dict[Expose, tuple[bool, bool]] = {
    "both": (True, True),
    "summary": (False, True),
    "raw": (True, False),
    "none": (False, False),
}
"""Values of `expose`: (raw reasoning is shown, summaries are). For `auto` see
`Api.default_exposure`."""


def hides(route: Route) -> bool:
    """Tell whether raw reasoning must not get through; `auto` is a display choice, not a
    promise."""
    return route.reasoning.expose in ("summary", "none")


def shows_both_for_want_of_a_store(route: Route, chat: Chat) -> bool:
    """Tell whether raw reasoning is shown only so that clients can return it.

    True for `auto` where upstream wants its reasoning back and nothing replaced could be restored:
    there is neither a store nor an envelope.
    """
    wanted = PROFILES[route.upstream.profile].wants_reasoning or route.upstream.api == "messages"
    sealed = route.history.seal_keys_env is not None and chat.envelope != "none"
    kept = route.history.store != "none" or sealed
    return wanted and not kept and route.reasoning.expose == "auto"


def shows_summary(route: Route) -> bool:
    return SHOWN.get(route.reasoning.expose, (True, True))[1]


def display(route: Route, api: Api, style: Style | None, chat: Chat, count: str) -> Display:
    """Decide what is shown. `style` is None where no summary is made; `usage_mode` is `merged` or
    `separate`."""
    expose: Expose = route.reasoning.expose
    if shows_both_for_want_of_a_store(route, chat):
        expose = "both"
    raw, summary = SHOWN.get(expose, api.auto)
    if style is None and not hides(route):
        raw = True
    return Display(
        raw=raw,
        summary=summary,
        style=style,
        merged=count == "merged",
        summary_field=chat.summary_field,
        raw_field=chat.raw_field,
        details=chat.details,
        envelope="thinking_blocks" if chat.envelope == "thinking_blocks" else "reasoning_details",
    )


def plan(
    route: Route, style: Style | None, limits: Limits, grace: float, *, free: bool = False
) -> Plan:
    """Build the summary plan.

    `grace` is the one in force, which may be less than the route's; `free`: the summarizer uses no
    tokens.
    """
    summary = route.summary
    return Plan(
        style=style,
        live=summary.live,
        part_chars=summary.part_chars,
        max_parts=summary.max_parts,
        tail_chars=summary.tail_chars,
        min_chars=summary.min_chars,
        reasoning=int(limits.reasoning),
        grace=grace,
        first_token=summary.first_token,
        held=int(limits.held),
        max_overhead=None if free else summary.max_overhead,
        substitute=extract if summary.on_failure == "extract" else None,
        fail=summary.on_failure == "fail",
    )
