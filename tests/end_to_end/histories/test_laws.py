"""Any clients, providers and orders: reasoning never appears in another conversation, nor twice,
nor in place of a client's text.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.end_to_end.histories.assertions import assert_safe
from tests.end_to_end.histories.clients import KINDS, Client, Refused
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage
from tests.support.matrix import some

Json = dict[str, Any]

TENANTS = st.sampled_from(["anna", "bert"])
NAMES = st.sampled_from(["blue", "green"])
STEPS = ("ask", "ask at once", "twice", "fork", "edit", "theft")


@dataclass(frozen=True)
class Step:
    """`who` indexes the clients, modulo; `rounds` is the number to request, or the edit to make."""

    kind: str
    who: int
    rounds: int


PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(["chat", "responses", "messages"]),
        st.sampled_from(list(KINDS)),
        st.booleans(),
        TENANTS,
        NAMES,
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one[3:],
)
PLOTS = st.lists(
    st.builds(Step, st.sampled_from(STEPS), st.integers(0, 5), st.integers(0, 2)),
    min_size=1,
    max_size=6,
)
TABLES = st.fixed_dictionaries(
    {
        "restore": st.sampled_from(["never", "altered", "always"]),
        "keep": st.sampled_from(["client", "none", "tool_rounds", "all"]),
    }
)


@dataclass
class Plot:
    """Runs steps on several conversations; a refused client sends no more."""

    people: list[Client]
    done: list[Client] = field(default_factory=list)

    async def play(self, step: Step) -> None:
        if self.people:
            client = self.people[step.who % len(self.people)]
            others = [one for one in self.people if one is not client]
            await getattr(self, f"_{step.kind.replace(' ', '_')}")(client, others, step.rounds)

    async def _ask(self, client: Client, _: list[Client], rounds: int) -> None:
        await self._run(client, client.ask(rounds))

    async def _ask_at_once(self, client: Client, others: list[Client], rounds: int) -> None:
        together = [client, *others]
        await asyncio.gather(*(self._run(one, one.ask(rounds)) for one in together))

    async def _twice(self, client: Client, _: list[Client], rounds: int) -> None:
        client.question(rounds)
        await self._run(client, client.again(keeps_first=client.provider.distinct))

    async def _fork(self, client: Client, _: list[Client], rounds: int) -> None:
        if client.provider.distinct and len(self.people) < 6:
            self.people.append(client.fork())

    async def _edit(self, client: Client, _: list[Client], rounds: int) -> None:
        edits = ("where is it", "where was it"), ("It is", "It was"), ("Looking", "Edited")
        old, new = edits[rounds]
        if old in str(client.history):
            client.edit(old, new)

    async def _theft(self, client: Client, others: list[Client], rounds: int) -> None:
        """Add a client with another's answers, no reasoning, and a key of its own."""
        if client.keeps == "keeps answers" and len(self.people) < 6:
            self.people.append(client.fork(tenant="carl"))

    async def _run(self, client: Client, doing: Any) -> None:
        try:
            await doing
        except Refused:
            self.people.remove(client)
            self.done.append(client)


@settings(max_examples=some(60), deadline=None)
@given(
    name=st.sampled_from(list(PROVIDERS)),
    expose=st.sampled_from(["auto", "both", "summary", "raw", "none"]),
    people=PEOPLE,
    plot=PLOTS,
    history=TABLES,
)
async def test_no_reasoning_appears_in_another_conversation(
    name: str, expose: str, people: list[Any], plot: list[Step], history: Json
) -> None:
    provider = PROVIDERS[name]()
    app = stage(provider, expose, history=history)
    going = Plot([Client(app, provider, *person) for person in people])
    for step in plot:
        await going.play(step)
    for client in going.people + going.done:
        event(f"{len(client.sent)} requests")
        for sent in client.sent:
            assert_safe(sent, provider)
