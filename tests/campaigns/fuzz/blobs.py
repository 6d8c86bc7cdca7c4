"""Mutants of sealed reasoning that clients carry: damaged, moved, and of others."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from string import ascii_letters, digits
from typing import Any

from tests.campaigns.fuzz import streams
from tests.campaigns.fuzz.case import Case, Json, latin
from tests.campaigns.fuzz.mutations import ODD, write
from tests.campaigns.fuzz.world import KEYS_VARIABLE, World
from tests.support.asgi import call
from tests.support.canaries import objects_in

PREFIX = "abr1."
ALPHABET = ascii_letters + digits + "-_"
TENANTS = ("anna", "bert")
FOR_YEARS = 1e9
"""How long blobs are accepted, in seconds: saved cases are replayed for years."""


@dataclass
class Conversation:
    """A request of a conversation's second turn, from a client that carries its reasoning."""

    world: Json
    tenant: str
    body: Json


def specs() -> Iterator[Json]:
    """Yield the deployments that seal: each API over each, by two keys."""
    for client, other in (("chat", "responses"), ("responses", "chat")):
        for upstream in ("same", other):
            for key in "ab":
                history = {"store": "none", "seal_keys_env": f"{KEYS_VARIABLE}_{key}"}
                yield {
                    "client": client,
                    "upstream": upstream,
                    "form": "sidecar",
                    "expose": "summary",
                    "summarizer": "good",
                    "tables": {"history": {**history, "seal_ttl": FOR_YEARS}},
                }


async def prepare(seed: int) -> list[Conversation]:
    """Hold a conversation of one turn in each deployment, as each tenant."""
    random = Random(seed)
    return [await _begin(random, spec, tenant) for spec in specs() for tenant in TENANTS]


async def _begin(random: Random, spec: Json, tenant: str) -> Conversation:
    world, client = World(spec), spec["client"]
    source = client if spec["upstream"] == "same" else spec["upstream"]
    whole = streams.whole(random, source)
    while json.dumps(whole).count("reasoning_text") > 1:  # one blob alone
        whole = streams.whole(random, source)
    world.upstream.play(Case("blobs", spec, "", "", whole=latin(json.dumps(whole).encode())))
    body = streams.request(spec, stream=False)
    if client == "responses":
        body |= {"include": ["reasoning.encrypted_content"], "store": False}
        body["input"] = [{"role": "user", "content": body["input"]}]
    answered = (await call(world.app, streams.PATHS[client], body, _credential(tenant))).json
    more = {"role": "user", "content": "And now?"}
    if client == "chat":
        body["messages"] += [answered["choices"][0]["message"], more]
    else:
        body["input"] += [*answered["output"], more]
    return Conversation(spec, tenant, body)


def _credential(tenant: str) -> dict[str, str]:
    return {"authorization": f"Bearer key-of-{tenant}"}


def make(random: Random, conversations: list[Conversation]) -> Case:
    """Draw a case: a conversation goes on, mostly with something wrong about its blob."""
    told = random.choice(conversations)
    spec, body = told.world, copy.deepcopy(told.body)
    body["stream"] = random.random() < 0.5
    case = Case("blobs", spec, streams.PATHS[spec["client"]], "", _credential(told.tenant))
    case.harm, case.restores = "none", False
    change = random.choice(CHANGES)
    case.changes.append(change.__name__.strip("_"))
    change(random, case, body, conversations)
    case.body = latin(json.dumps(body).encode(errors="surrogatepass"))
    source = spec["client"] if spec["upstream"] == "same" else spec["upstream"]
    case.pieces = [latin(write(random, streams.streamed(random, source, "none"), named=True))]
    case.answer_headers = streams.STREAM
    case.whole = latin(json.dumps(streams.whole(random, source)).encode())
    return case


def _holder(body: Json) -> tuple[Json, str]:
    """Return the object that holds a blob, and its key."""
    for holder in objects_in(body):
        for key, value in holder.items():
            if isinstance(value, str) and value.startswith(PREFIX):
                return holder, key
    raise LookupError("no blob in the conversation")


# What may be wrong


def _nothing(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    case.restores = True


def _damage(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    holder, key = _holder(body)
    blob, case.refusable = holder[key], True
    at = random.randrange(len(PREFIX), len(blob))
    holder[key] = random.choice(
        (
            blob[:at] + random.choice(ALPHABET.replace(blob[at], "")) + blob[at + 1 :],
            blob[:at],
            blob[:at] + random.choice(ALPHABET) + blob[at:],
            blob[:at] + blob[at + 1 :],
            blob + random.choice(("A", "=", "==", "\n", " ", "\x00", blob)),
            blob[:at] + random.choice(("é", "\ud800", ".", "/", "+", "%")) + blob[at + 1 :],
            PREFIX + random.choice(("", "a", "a.", "zz.AAAA", "a.AAAA", "..", "a." + "A" * 60_000)),
            blob.swapcase().replace("ABR1", "abr1"),
            f"{PREFIX}a.{blob[:6:-1]}",
        )
    )
    if holder[key] == blob:
        case.restores = None


def _odd(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    """The blob, or what is beside it, is of another type."""
    holder, key = _holder(body)
    chosen = random.choice((key, *holder))
    holder[chosen] = copy.deepcopy(random.choice(ODD))
    case.restores, case.refusable = None if chosen != key else False, True


def _without(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    """Something beside the blob is missing."""
    holder, key = _holder(body)
    del holder[random.choice(sorted(holder.keys() - {key}))]
    case.restores, case.refusable = None, True


def _of_another_tenant(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    case.headers = random.choice(
        ({}, {"authorization": "Bearer other"}, {"x-api-key": case.headers["authorization"]})
    )


def _of_another_model(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    body["model"] = random.choice(("other", "m2", "x/n", "mm"))


def _of_another_key(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    case.world = copy.deepcopy(case.world)
    history = case.world["tables"]["history"]
    variable = history["seal_keys_env"]
    history["seal_keys_env"] = variable[:-1] + {"a": "b", "b": "a"}[variable[-1]]
    case.refusable = True


def _of_another_conversation(
    random: Random, case: Case, body: Json, others: list[Conversation]
) -> None:
    """The blob is one that another tenant, deployment or API was given."""
    sealed_here = [case.world["client"], case.world["upstream"], case.headers]
    other = random.choice(others)
    if [other.world["client"], other.world["upstream"], _credential(other.tenant)] == sealed_here:
        case.restores = None
    holder, key = _holder(body)
    theirs, their_key = _holder(copy.deepcopy(other.body))
    holder[key] = theirs[their_key]
    case.refusable = True
    if other.tenant == case.headers["authorization"].rpartition("-")[2]:
        case.restores = None


def _twice(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    turns: list[Any] = body.get("messages") or body["input"]
    place = random.randrange(1, len(turns))
    turns.insert(random.randrange(len(turns)), copy.deepcopy(turns[place]))
    case.restores, case.refusable = None, True


def _shuffled(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    random.shuffle(body.get("messages") or body["input"])
    case.restores, case.refusable = None, True


def _renamed(random: Random, case: Case, body: Json, others: list[Conversation]) -> None:
    """A reasoning item has another id than the one in its blob."""
    holder, _ = _holder(body)
    if holder.get("type") != "reasoning" or "id" not in holder:
        case.restores = True
        return
    holder["id"] = "rs_other"


Change = Callable[[Random, Case, Json, list[Conversation]], None]
CHANGES: tuple[Change, ...] = (
    *(_nothing, _damage, _damage, _damage, _damage, _odd, _without, _of_another_tenant),
    *(_of_another_model, _of_another_key, _of_another_conversation, _twice, _shuffled, _renamed),
)
