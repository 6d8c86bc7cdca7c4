"""The earlier turns of a case: played first, and repeated in what follows."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from tests.campaigns.fuzz.case import Case, Json
from tests.campaigns.fuzz.mutations import harm_json
from tests.support.asgi import call

if TYPE_CHECKING:
    from tests.campaigns.fuzz.world import World


async def begin(case: Case, world: World) -> bytes:
    """Play the earlier turns; return the body of the last, with what it repeats of them.

    In the bodies, "@answer N" stands for the message or the items of turn N, "@id N" for the id of
    its response, and "@item N" for that of its last item.
    """
    answers: list[Json] = []
    for turn in case.before:
        world.upstream.play(Case(case.kind, case.world, case.path, "", whole=turn["whole"]))
        body = _fill_in(turn["body"].encode("latin-1"), answers)
        answered = await call(world.app, case.path, body, turn["headers"])
        answers.append(answered.json if answered.status == 200 else {})
    body = _fill_in(case.body.encode("latin-1"), answers)
    if case.odd is None:
        return body
    changed = json.loads(body)
    harm_json(Random(case.odd), changed)
    return json.dumps(changed).encode(errors="surrogatepass")


def _fill_in(body: bytes, answers: list[Json]) -> bytes:
    for number, answer in enumerate(answers):
        items = _items(answer)
        said = b", ".join(json.dumps(item).encode() for item in items)
        last = str(items[-1].get("id", "")) if items else ""
        body = body.replace(b'"@answer %d"' % number, said or b'{"role": "user", "content": ""}')
        body = body.replace(b"@id %d" % number, str(answer.get("id", "")).encode())
        body = body.replace(b"@item %d" % number, last.encode())
    return body


def _items(answer: Json) -> list[Any]:
    """Return the message of a completion, or the items of a response."""
    if "output" in answer:
        items: list[Any] = answer["output"]
        return items
    return [choice["message"] for choice in answer.get("choices", [])[:1]]
