"""What all kinds of answers have in common, and what they are made with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.core.sequencer import Sequencer
from abridge.pipeline.client import Client
from abridge.pipeline.exchange_plan import ExchangePlan
from abridge.pipeline.summary_runner import SummaryRunner


class Answer:
    """One response on its way from the application to the client. Each kind says what it does with
    the body and the events; where it says nothing, they are discarded."""

    @property
    def passed_ok(self) -> bool | None:
        """None if the response was read; else whether the status passed on is a success."""
        return None

    def feed(self, data: bytes) -> None:
        """Take more of the body."""

    async def end(self, error: ErrorDetail | None = None) -> None:
        """End the body; `error` says why it broke off."""

    def emit(self, events: list[Event]) -> None:
        """Take the next events, in the client's order."""

    async def complete(self, ended: ResponseEnded) -> None:
        """Write what is left to be written once the last event, `ended`, was taken."""

    def keep_alive(self) -> bytes:
        """Return a keep-alive if one is due, else nothing."""
        return b""


@dataclass(slots=True)
class AnswerContext:
    """Collaborators of an answer."""

    plan: ExchangePlan
    client: Client
    runner: SummaryRunner

    def name_model(self, model: str) -> ExchangePlan:
        """Name the model that answers, empty if upstream names none, before anything of its answer
        is read. Return the plan that is in force from then on."""
        plan_for = self.plan.plan_for
        other = plan_for(model) if plan_for is not None and model else None
        self.plan = replace(self.plan, plan_for=None) if other is None else other
        if other is not None:
            self.runner.sequencer = Sequencer(other.summary_plan)
        return self.plan
