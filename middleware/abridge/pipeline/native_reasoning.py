"""Reasoning that is a summary already: when it is, and how a client is shown it.

Anthropic's thinking since Claude 4 and Gemini's thoughts are summaries, whatever an API calls them.
Where a summary is asked for they are it: nothing is summed up, and no summarizer is called. On an
API whose summaries have parts they are copied into such parts; else they stand where summaries do.
With `summary.translate`, those in another language than their reader's are written anew in that.
"""

from __future__ import annotations

from dataclasses import replace

from abridge.apis.display import Display
from abridge.config.exposure import hides_raw, reasons_in_summaries
from abridge.core.plan import NativeReasoning
from abridge.pipeline.prepare import PreparedRequest
from abridge.providers.profile import FULL_THINKING, FULL_THINKING_HEADER


def find_native_reasoning(
    prepared: PreparedRequest, answered_by: str = "", *, translates: bool = False
) -> NativeReasoning | None:
    """Return what becomes of reasoning that is a summary already; None if it is raw. The model that
    it is `answered_by` decides, and the requested ones while none is known.

    Where raw reasoning is hidden it counts as a summary only if the provider vouches for it, or the
    settings do. Where nothing could be restored that is replaced, it is left where it stands, so
    that the client can return it.
    """
    request, memory = prepared.request, prepared.turn_memory
    can_restore = memory.can_seal or (memory.can_remember and memory.route_memory.restores)
    translates = translates and can_restore and prepared.summary_language is not None
    if translates and _summarizes_beside(prepared):
        return "translated"
    route, hides = request.route, hides_raw(request.route)
    models = (prepared.name_of_upstream(answered_by),) if answered_by else prepared.models
    if not reasons_in_summaries(route, prepared.profile, models):
        return None
    if route.reasoning.kind == "auto" and (
        _asks_for_full_thinking(prepared) or (hides and not prepared.profile.keeps_summaries_apart)
    ):
        return None
    if translates:
        return "translated"
    return "copied" if request.api.has_summary_parts and (hides or can_restore) else "shown"


def depends_on_model(prepared: PreparedRequest) -> bool:
    """Return whether it depends on the model whether reasoning is a summary."""
    return prepared.request.route.reasoning.kind == "auto"


def _summarizes_beside(prepared: PreparedRequest) -> bool:
    """Return whether upstream makes summaries of reasoning that it never sends, as OpenAI does.
    Where raw reasoning is hidden, that it never does is not relied on."""
    profile, is_hidden = prepared.profile, hides_raw(prepared.request.route)
    keeps_raw = profile.makes_summaries and not profile.reasoning_in
    return prepared.upstream.name == "responses" and keeps_raw and not is_hidden


def _asks_for_full_thinking(prepared: PreparedRequest) -> bool:
    return any(
        name.lower() == FULL_THINKING_HEADER and FULL_THINKING in value.lower()
        for name, value in prepared.scope["headers"]
    )


def show_native(display: Display, native: NativeReasoning, prepared: PreparedRequest) -> Display:
    """Return the display of reasoning that is a summary already. It takes the field of summaries;
    left where upstream has it, it passes as it comes. Where it is translated, it is replaced as raw
    reasoning is by a summary."""
    drops_inline = display.hides_raw and prepared.profile.keeps_summaries_apart
    if native == "translated":
        is_beside = _summarizes_beside(prepared)
        return replace(
            display, show_raw=False, drops_inline=drops_inline, replaces_native=is_beside
        )
    display = replace(
        display,
        native=True,
        show_raw=native == "shown",
        restores=not display.show_raw,
        drops_inline=drops_inline,
    )
    if prepared.request.api.has_summary_parts:
        return display
    style = None if display.summary_field == "auto" else display.style
    return replace(display, raw_field=display.summary_field, style=style)
