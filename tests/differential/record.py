"""Write what clients get from the checkout on the path: a line of JSON each case and way."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from abridge.core.conversation import RecordedTurn
from abridge.memory.client_envelopes import Sealer
from abridge.memory.turn_memory import TurnMemory
from tests.differential.cases import WAYS, Case, all_cases
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import call
from tests.support.deployments import ORIGIN, build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

MINTED = re.compile(rb"\b[a-z]{2,10}(?:_call)?[_-][0-9a-f]{18,64}\b")
KEPT = {"store": "memory", "restore": "always", "seal_keys_env": "DIFFERENTIAL_KEYS"}
CREDENTIAL = {"authorization": "Bearer sk-of-the-differential-run"}
VARYING = [
    (re.compile(rb'"obfuscation":"[^"]*"'), b'"obfuscation":""'),
    (re.compile(rb'"(created|created_at|completed_at)":\d{10}\b'), rb'"\1":0'),
]


def normalized(data: bytes) -> str:
    """Number the ids that were minted, and leave out padding and the time."""
    known: dict[bytes, bytes] = {}
    data = MINTED.sub(lambda found: known.setdefault(found[0], b"id%d" % len(known)), data)
    for pattern, replacement in VARYING:
        data = pattern.sub(replacement, data)
    return data.decode(errors="backslashreplace")


remembered: list[str] = []
"""What is remembered of the present case's answer."""


def show_what_is_kept() -> None:
    """Have envelopes say what they hold and where they belong, and note what is remembered."""
    remember = TurnMemory.remember

    def seal(self: Sealer, envelope: Any) -> str:
        place = self.next_place if envelope.place is None else envelope.place
        held = [envelope.reasoning, envelope.item_id, envelope.holds_answer]
        return f"abr1.shown.{json.dumps(held)}, place_{(place or b'').hex()}"

    async def note(self: TurnMemory, turns: Sequence[RecordedTurn], *rest: Any) -> None:
        for one in turns:
            kept = [one.raw, one.original, one.item_keys, len(one.turns_before)]
            said = [one.turn.text, *(call.canonicalize() for call in one.turn.calls)]
            remembered.append(json.dumps([said, one.turn.has_opaque_state, *kept]))
        await remember(self, turns, *rest)

    Sealer.seal = seal  # type: ignore[method-assign]
    TurnMemory.remember = note  # type: ignore[method-assign, assignment]


async def answer(case: Case, client: str, way: str) -> str:
    summary, expose, keeps = WAYS[way]
    profile = {"profile": case.profile} if case.profile else {}
    memory: dict[str, Any] = {"history": KEPT} if keeps else {}
    app = build_app(
        "sidecar",
        Upstream(Answer(case.pieces, headers={"content-type": case.content_type})),
        writer=Scripted(),
        upstreams=[{"api": case.api, "base_url": f"{ORIGIN}/v1", **profile}],
        reasoning={"expose": expose},
        **memory,
    )
    wish: dict[str, Any] = {}
    if client == "messages" and summary:
        wish = {"thinking": {"type": "adaptive"}}
    if client == "responses" and keeps:
        wish = {"include": ["reasoning.encrypted_content"]}
    body = request_body(client, stream=case.streamed, summary=summary, **wish)
    remembered.clear()
    try:
        reply = await call(app, PATHS[client], body, CREDENTIAL if keeps else None)
    except Exception as error:  # noqa: BLE001 - what it raises is its answer
        return f"raised {type(error).__name__}"
    kept = "\n".join(remembered if keeps else ()).encode()
    return f"{reply.status}\n{normalized(reply.data + kept)}"


async def record(examples: int, only: str) -> None:
    for case in all_cases(examples):
        for client in PATHS:
            for way in WAYS:
                name = f"{case.name} of {case.api} -> {client}, {way}"
                if re.search(only, name):
                    print(json.dumps([name, await answer(case, client, way)]))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    os.environ[KEPT["seal_keys_env"]] = f"a:{b64encode(bytes(32)).decode()}"
    show_what_is_kept()
    asyncio.run(record(int(sys.argv[1]), sys.argv[2]))
