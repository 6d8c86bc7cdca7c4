"""Conversations of several turns, by two tenants of one memory: each goes on, mostly oddly."""

from __future__ import annotations

import json
from random import Random

from tests.campaigns.fuzz import streams
from tests.campaigns.fuzz.case import Case, Json, latin
from tests.campaigns.fuzz.mutations import write

CREDENTIALS = {name: {"authorization": f"Bearer key-of-{name}"} for name in ("anna", "bert")}
UPSTREAMS = {"chat": ("same", "same", "responses"), "responses": ("same", "same", "chat")}
WAYS = ("resent", "resent", "previous", "reference")
"""How a Responses client goes on: it sends all again, or refers to it."""


def make(random: Random) -> Case:
    """Draw a case: one to three turns were held by one tenant, and the next may be another's."""
    spec = _spec(random)
    client = spec["client"]
    source = client if spec["upstream"] == "same" else spec["upstream"]
    case = Case("conversations", spec, streams.PATHS[client], "", harm="none", refusable=True)
    way = random.choice(WAYS) if client == "responses" else "resent"
    count = random.choice((1, 1, 2, 3))
    for number in range(count):
        body = json.dumps(_body(spec, number, "resent", stream=False))
        whole = latin(json.dumps(streams.whole(random, source)).encode())
        case.before.append({"headers": CREDENTIALS["anna"], "body": body, "whole": whole})
    case.body = json.dumps(_body(spec, count, way, stream=random.random() < 0.5))
    case.headers = dict(CREDENTIALS["anna"])
    case.changes = [way]
    case.changes += _change(random, case)
    case.pieces = [latin(write(random, streams.streamed(random, source, "none"), named=True))]
    case.answer_headers = streams.STREAM
    case.whole = latin(json.dumps(streams.whole(random, source)).encode())
    return case


def _change(random: Random, case: Case) -> list[str]:
    """Change who goes on, or what they send; note what becomes of the earlier reasoning."""
    hides = case.world["expose"] != "auto"
    match random.randrange(4):
        case 0:
            case.restores = True if hides and case.changes == ["resent"] else None
            return []
        case 1 | 2:
            case.restores = False if hides else None  # else the client has it all
            case.headers = random.choice(
                ({}, dict(CREDENTIALS["bert"]), {"x-api-key": "key-of-anna"})
            )
            return ["another tenant"]
        case _:
            case.odd = random.randrange(10**9)
            return ["something odd"]


def _spec(random: Random) -> Json:
    client = random.choice(("chat", "responses"))
    upstream = random.choice(UPSTREAMS[client])
    tables: Json = {"history": {"keep": "all"}}
    if random.random() < 0.5:
        tables["shares_key"] = True
    return {
        "client": client,
        "upstream": upstream,
        "form": "sidecar" if "shares_key" in tables else random.choice(("mounted", "sidecar")),
        "expose": random.choice(("summary", "summary", "none", "auto")),
        "summarizer": "good",
        "tables": tables,
    }


def _body(spec: Json, number: int, way: str, *, stream: bool) -> Json:
    """Return the request of a turn; `turns.begin` fills in what it repeats of those before it."""
    body = streams.request(spec, stream=stream)
    if spec["client"] == "chat":
        field, asked = "messages", body["messages"][0]
    else:
        field, asked = "input", {"role": "user", "content": body["input"]}
        body["store"] = True
    told = [part for turn in range(number) for part in (asked, f"@answer {turn}")]
    body[field] = [*told, asked]
    last = number - 1
    if way == "previous":
        body |= {"input": [asked], "previous_response_id": f"@id {last}"}
    if way == "reference":
        body["input"] = [*told[:-1], {"type": "item_reference", "id": f"@item {last}"}, asked]
    return body
