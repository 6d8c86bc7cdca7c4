"""Test that reasoning state goes back to the account that made it, and that nothing else does."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from starlette.types import ASGIApp

from tests.pipeline.test_failover import BUSY, Pair, app_for
from tests.pipeline.test_renaming import PATHS
from tests.support.asgi import Call, call
from tests.support.streams import message_item, reasoning_item, response
from tests.support.upstream import Answer

USER = {"role": "user", "content": "Hi"}
SEAL = {"seal_keys_env": "SEAL"}
STORED = {"store": "memory"}


def responses(state: str) -> Answer:
    items = [reasoning_item(1, "", encrypted_content=state), message_item(2, "Hello.")]
    return Answer.json(response(items))


def messages(state: str) -> Answer:
    return Answer.json(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": state},
                {"type": "text", "text": "Hello."},
            ],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )


ANSWERS = {"responses": responses, "messages": messages}
PROFILES = {"responses": "openai", "messages": "anthropic"}


async def ask(app: ASGIApp, api: str, history: list[Any]) -> list[Any]:
    """Ask, and return what the client appends to its history."""
    more: dict[str, Any] = {"input": history, "store": False} if api == "responses" else {}
    more |= {"include": ["reasoning.encrypted_content"]} if api == "responses" else {}
    body = {"model": "m", **(more or {"messages": history, "max_tokens": 9})}
    answer: Call = await call(app, PATHS[api], body, {"authorization": "Bearer k"})
    assert answer.status == 200
    if api == "responses":
        output: list[Any] = answer.json["output"]
        return output
    return [{"role": "assistant", "content": answer.json["content"]}]


@pytest.mark.parametrize("api", list(ANSWERS))
@pytest.mark.parametrize("expose", ["auto", "summary"])
async def test_it_goes_back_while_a_request_carries_it(
    api: str, expose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")
    pair = Pair(ANSWERS[api]("first's"), ANSWERS[api]("second's"))
    options = {"api": api, "profile": PROFILES[api], "breaker_failures": 100}
    app = app_for(pair, options, options, history=STORED | SEAL, reasoning={"expose": expose})
    said = await ask(app, api, [USER])
    pair.is_busy = False
    heard = len(pair.heard("first"))
    history = [USER, *said, USER]
    await ask(app, api, history)
    assert len(pair.heard("first")) == heard
    assert b"second's" in pair.heard("second")[-1]
    await ask(app, api, [USER])  # nothing binds this one
    assert len(pair.heard("first")) == heard + 1


@pytest.mark.parametrize("api", list(ANSWERS))
async def test_what_a_requests_own_upstream_made_stays_there(api: str) -> None:
    pair = Pair(ANSWERS[api]("first's"), ANSWERS[api]("second's"))
    pair.is_busy = False
    options = {"api": api, "profile": PROFILES[api]}
    app = app_for(pair, options, options, history=STORED)
    said = await ask(app, api, [USER])
    await ask(app, api, [USER, *said, USER])
    assert b"first's" in pair.heard("first")[-1]
    assert not pair.heard("second")


async def test_another_upstream_answers_while_that_one_cannot() -> None:
    pair = Pair(responses("first's"), responses("second's"))
    options = {"api": "responses", "profile": "openai", "breaker_failures": 100}
    app = app_for(pair, options, options, history=STORED)
    said = await ask(app, "responses", [USER])
    pair.is_busy = False
    pair.answers = [BUSY]
    await ask(app, "responses", [USER, *said, USER])
    assert len(pair.heard("first")) == 2
