"""Write what clients get from the checkout on the path: a line of JSON each case and way."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys

from tests.differential.cases import WAYS, Case, all_cases
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import call
from tests.support.deployments import ORIGIN, build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

MINTED = re.compile(rb"\b[a-z]{2,10}(?:_call)?[_-][0-9a-f]{18,64}\b")
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


async def answer(case: Case, client: str, way: str) -> str:
    summary, expose = WAYS[way]
    profile = {"profile": case.profile} if case.profile else {}
    app = build_app(
        "sidecar",
        Upstream(Answer(case.pieces, headers={"content-type": case.content_type})),
        writer=Scripted(),
        upstreams=[{"api": case.api, "base_url": f"{ORIGIN}/v1", **profile}],
        reasoning={"expose": expose},
    )
    wish = {"thinking": {"type": "adaptive"}} if client == "messages" and summary else {}
    body = request_body(client, stream=case.streamed, summary=summary, **wish)
    try:
        reply = await call(app, PATHS[client], body)
    except Exception as error:  # noqa: BLE001 - what it raises is its answer
        return f"raised {type(error).__name__}"
    return f"{reply.status}\n{normalized(reply.data)}"


async def record(examples: int, only: str) -> None:
    for case in all_cases(examples):
        for client in PATHS:
            for way in WAYS:
                name = f"{case.name} of {case.api} -> {client}, {way}"
                if re.search(only, name):
                    print(json.dumps([name, await answer(case, client, way)]))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(record(int(sys.argv[1]), sys.argv[2]))
