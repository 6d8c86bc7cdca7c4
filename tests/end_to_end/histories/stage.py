"""Abridge between a provider and its clients, with a scripted summarizer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.types import ASGIApp

from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage, Tokens
from tests.end_to_end.histories.answers import labels
from tests.end_to_end.histories.provider import Provider
from tests.support.deployments import ORIGIN, build_app


class Summing:
    """A summarizer whose summary names the labels of the reasoning."""

    name = "summing"

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        yield "**Going on**\n\n"
        yield f"I go by sum[{' '.join(map(str, labels(passage.text)))}]."
        yield SummarizerUsage(Tokens(10, 5, 15), "mini")


def stage(provider: Provider, expose: str = "auto", **tables: Any) -> ASGIApp:
    """Build the app. `tables` are settings, `entry` the upstream's."""
    own = {"api": provider.api, "profile": provider.profile, **tables.pop("entry", {})}
    return build_app(
        "sidecar",
        provider,
        writer=Summing(),
        upstreams=[{"base_url": f"{ORIGIN}/v1", **own}],
        reasoning={"expose": expose},
        **tables,
    )
