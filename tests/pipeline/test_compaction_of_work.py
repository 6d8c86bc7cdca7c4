"""A long piece of work, compacted: what of it the model still knows, and what that takes.

The work is an agent's: a task, then sixty rounds of reading files, with what matters planted among
a lot that does not. The model is scripted. It writes down what a careful one would: every planted
line that it is shown, and nothing else.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from abridge.apis.token_counters import estimate_tokens
from tests.pipeline.test_compaction import COMPACT, Model, ask, bridge, completion, said, sent
from tests.support.upstream import Answer, ReceivedRequest

Json = dict[str, Any]

ROUNDS = 60
TASK = (
    "Port the billing service to Postgres 16. Keep the table names, do not touch "
    "`legacy/export.py`, and have it done by Friday."
)
PLANTED = {
    3: "DECIDED: money is stored in cents as bigint, since floats lost 0.01 in invoice 4711.",
    11: "FOUND: migrations/0042_split.sql fails with 'column \"due_on\" is of type date'.",
    19: "DECIDED: the pool is capped at 40 connections; 80 were tried and exhausted the server.",
    28: "FOUND: test_invoice_rounding in tests/test_invoice.py is flaky before the change too.",
    37: "OPEN: nobody has answered whether archive_2019 may be dropped.",
    46: "FOUND: the staging password rotation runs at 03:15 UTC as job `pg-rotate-7`.",
    55: "OPEN: the last failing test is tests/test_dunning.py::test_third_reminder.",
}
LATER = "Also keep the old endpoint /v1/invoices until the end of the year."
WORDS = ("select", "insert", "billing", "invoice", "row", "value", "index", "commit", "return")


def work() -> list[Json]:
    """Return the items of the conversation: the last call has no result yet."""
    chance = random.Random(16)
    items: list[Json] = [{"role": "user", "content": TASK}]
    for number in range(ROUNDS):
        lines = [" ".join(chance.choices(WORDS, k=12)) for _ in range(60)]
        if number in PLANTED:
            lines[chance.randrange(60)] = PLANTED[number]
        name = {"type": "function_call", "call_id": f"call_{number}", "name": "read"}
        items.append({**name, "arguments": json.dumps({"path": f"src/billing/{number}.py"})})
        result = {"type": "function_call_output", "call_id": f"call_{number}"}
        items.append({**result, "output": "\n".join(lines)})
        if number == ROUNDS // 2:
            items += [said("I am half-way through."), {"role": "user", "content": LATER}]
    items.append(said("Now I run the tests."))
    run = {"type": "function_call", "call_id": "call_run", "name": "run"}
    return [*items, {**run, "arguments": '{"cmd": "pytest -q"}'}]


class Careful(Model):
    """Writes down all that is planted in what it is shown."""

    def answer(self, request: ReceivedRequest) -> Answer:
        if b"about to be compacted" not in request.body:
            return self.other
        shown = "\n".join(str(message["content"]) for message in request.json["messages"][:-1])
        noted = re.findall(r"^(?:DECIDED|FOUND|OPEN): .*$", shown, re.MULTILINE)
        wanted = [
            message["content"] for message in request.json["messages"] if message["role"] == "user"
        ]
        return completion("\n".join(["## Goals", *wanted[:-1], "## State", *noted]))


async def test_what_matters_stays_and_the_rest_is_saved() -> None:
    upstream = Careful()
    app = bridge(upstream)
    items = work()
    output = (await ask(app, items, path=COMPACT)).json["output"]
    result = {"type": "function_call_output", "call_id": "call_run", "output": "1 failed"}
    assert (await ask(app, [*output, result])).status == 200
    after = json.dumps(sent(upstream))
    for fact in (TASK, LATER, *PLANTED.values()):
        assert json.dumps(fact)[1:-1] in after
    calls = [call["function"] for each in sent(upstream) for call in each.get("tool_calls", ())]
    assert calls[-1]["arguments"] == '{"cmd": "pytest -q"}'
    assert sent(upstream)[-1]["content"] == "1 failed"
    left = [*sent(upstream), *({"type": "function_call", **call} for call in calls)]
    assert tuple(estimate_tokens({"input": each}) for each in (items, left)) == BEFORE_AND_AFTER


async def test_three_compactions_on_end_lose_nothing() -> None:
    """Each takes over what the one before it holds."""
    upstream = Careful()
    app = bridge(upstream)
    output: list[Json] = []
    items = work()[:-1]
    for start in range(0, len(items), 50):
        more = items[start : start + 50]
        output = (await ask(app, [*output, *more], path=COMPACT)).json["output"]
    await ask(app, [*output, {"role": "user", "content": "Where are we?"}])
    after = json.dumps(sent(upstream))
    for fact in (TASK, LATER, *PLANTED.values()):
        assert json.dumps(fact)[1:-1] in after


BEFORE_AND_AFTER = (73_418, 3_973)
"""Tokens of the conversation, and of what the model gets in its place, as docs/compaction.md has
them."""
