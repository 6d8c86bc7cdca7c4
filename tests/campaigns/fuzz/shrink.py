"""Make a case that is a finding smaller, as long as it stays the same finding."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from tests.campaigns.fuzz.case import Case

TRIES = 150

Runs = Callable[[Case], Awaitable[list[str]]]


def signature(wrong: str) -> str:
    """Return what two cases of the same finding have in common."""
    head, _, rest = wrong.partition(":")
    places = re.findall(r'File ".*?(\w+/\w+\.py)"', rest)
    if places:
        last = rest.strip().rpartition("\n")[2]
        return f"{head}: {last[:80]} in {places[-1]}"
    if "text is longer" in rest:
        return "altered: text is longer"
    if head.startswith("altered"):
        return f"{head}:{rest.partition(':')[0]}"
    if head == "illegal":
        return f"{head}: {re.sub(r'[0-9]+|: .*', '', rest)[:60]}"
    return head


async def shrink(case: Case, name: str, run: Runs) -> Case:
    """Join the pieces, then leave out one event after the other; raw HTTP stays as it is."""
    if case.kind == "http":
        return case
    tries = 0

    async def same(one: Case) -> bool:
        nonlocal tries
        tries += 1
        return any(signature(wrong) == name for wrong in await run(one))

    joined = replace(case, pieces=["".join(case.pieces)])
    if not await same(joined):
        return case  # it takes these pieces
    case, split = joined, re.split(r"(?<=\n\n)", joined.pieces[0])
    place = len(split) - 1
    while place >= 0 and tries < TRIES:
        without = replace(case, pieces=["".join(split[:place] + split[place + 1 :])])
        if await same(without):
            case, split = without, split[:place] + split[place + 1 :]
        place -= 1
    return case
