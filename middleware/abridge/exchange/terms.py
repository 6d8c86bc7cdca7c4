"""What settings come to for one request: what is shown, what is made, how long it may wait."""

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
"""What is shown: raw reasoning, a summary. `auto` is the API's own choice."""


def hides(route: Route) -> bool:
    """Whether raw reasoning must not get through: `auto` chooses a display and promises nothing."""
    return route.reasoning.expose in ("summary", "none")


def shows_both_for_want_of_a_store(route: Route, chat: Chat) -> bool:
    """Whether clients must keep the reasoning themselves: upstream wants it back, and what was
    replaced could not be restored."""
    wanted = PROFILES[route.upstream.profile].wants_reasoning or route.upstream.api == "messages"
    sealed = route.history.seal_keys_env is not None and chat.envelope != "none"
    kept = route.history.store != "none" or sealed
    return wanted and not kept and route.reasoning.expose == "auto"


def shows_summary(route: Route) -> bool:
    return SHOWN.get(route.reasoning.expose, (True, True))[1]


def display(route: Route, api: Api, style: Style | None, chat: Chat, count: str) -> Display:
    """`style` is None where no summary is made; `count` is `merged` or `separate`."""
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
    """`grace` is the one in force, which may be less than the route's; `free`: the summarizer
    spends no tokens."""
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
