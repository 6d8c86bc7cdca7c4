"""Tool loops for each pair of APIs: upstream gets each round's reasoning back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.types import ASGIApp

from tests.apis.messages import scripts as messages
from tests.end_to_end.translation.test_translation import BOTH, EACH, KEY, SUMMARY, TOOLS, bridge
from tests.end_to_end.translation.tool_loops import (
    FOR_CHAT,
    KEEPS,
    ROUNDS,
    client_items,
    comparable,
    encode_round,
    play,
    received_items,
    results,
    returned_items,
)
from tests.end_to_end.translation.turn import BRIDGES, PATHS
from tests.support.asgi import call
from tests.support.streams import call as tool_call
from tests.support.streams import chat_stream, completion
from tests.support.upstream import Answer, Upstream

Json = dict[str, Any]
OTHER = {"authorization": "Bearer sk-bert-5678"}
TIMES = 3
LOOPS = [
    (client, upstream, shape)
    for client, upstream in BRIDGES
    for shape in (FOR_CHAT if upstream == "chat" else ROUNDS)
]

RAW, SUMMARIZING = "claude-3-7-sonnet-20250219", "claude-opus-4-5"
"""Models that show all of their thinking, and a summary of it."""


async def loop(
    app: ASGIApp,
    client: str,
    keeps: str = "everything",
    *,
    stream: bool,
    key: Any = KEY,
    model: str = RAW,
) -> list[Json]:
    """Run a client through all rounds and return its history."""
    history: list[Json] = [{"role": "user", "content": "Where is it?"}]
    for _ in range(TIMES):
        history += await turn(app, client, history, keeps, stream=stream, key=key, model=model)
    return history


async def turn(
    app: ASGIApp,
    client: str,
    history: list[Json],
    keeps: str,
    *,
    stream: bool,
    key: Any = KEY,
    model: str = RAW,
) -> list[Json]:
    body = {
        "model": model,
        "stream": stream,
        "tools": TOOLS[client],
        "reasoning": {"summary": "auto"},
        ("messages" if client == "chat" else "input"): history,
    }
    reply = await call(app, PATHS[client], body, key)
    assert reply.status == 200, reply.data
    items = returned_items(client_items(client, reply, stream=stream), keeps)
    return [*items, *results(items)]


def rounds(api: str, shape: str, *, stream: bool, times: int = TIMES) -> Upstream:
    return Upstream(*(play(api, number, shape, stream=stream) for number in range(times)))


def sent_items(api: str, shape: str) -> list[Json]:
    """Return upstream's output before its last round."""
    return [each for number in range(TIMES - 1) for each in encode_round(api, number, shape)]


@pytest.mark.matrix(2)
@BOTH
@pytest.mark.parametrize(("client", "upstream", "shape"), LOOPS)
@pytest.mark.parametrize("keeps", KEEPS)
@pytest.mark.parametrize("model", [RAW, SUMMARIZING])
async def test_each_round_of_calls_keeps_the_reasoning_it_came_from(
    model: str, client: str, upstream: str, shape: str, keeps: str, *, stream: bool
) -> None:
    played = rounds(upstream, shape, stream=stream)
    await loop(bridge(played, upstream), client, keeps, stream=stream, model=model)
    sent = played.requests[-1].json
    assert "I add the numbers" not in json.dumps(sent)
    assert list(map(comparable, received_items(upstream, sent))) == list(
        map(comparable, sent_items(upstream, shape))
    )


SPELLINGS: dict[str, Json] = {
    "reasoning_content": {"reasoning_content": SUMMARY},
    "reasoning": {"reasoning": SUMMARY},
    "blocks": {"thinking_blocks": [{"type": "thinking", "thinking": SUMMARY}]},
    "summary details": {"reasoning_details": [{"type": "reasoning.summary", "summary": SUMMARY}]},
    "text details": {"reasoning_details": [{"type": "reasoning.text", "text": SUMMARY}]},
    "inline": {"content": f"<think>{SUMMARY}</think>\n\nSo."},
    "inline part": {"content": [{"type": "text", "text": f"<think>\n{SUMMARY}\n</think>So."}]},
    "chunk": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": SUMMARY}]},
            {"type": "text", "text": "So."},
        ]
    },
}
ITEMS: dict[str, Json] = {
    "summary": {"id": "rs_1", "summary": [{"type": "summary_text", "text": SUMMARY}]},
    "no id": {"summary": [{"type": "summary_text", "text": SUMMARY}]},
    "content": {"summary": [], "content": [{"type": "reasoning_text", "text": SUMMARY}]},
}


@EACH
@pytest.mark.parametrize("restore", ["never", "altered"])
async def test_no_summary_is_sent_as_reasoning_in_any_field(
    client: str, upstream: str, restore: str
) -> None:
    played = rounds(upstream, "calls", stream=False, times=1)
    app = bridge(played, upstream, history={"restore": restore})
    await turn(app, client, [{"role": "user", "content": "Hi"}], "everything", stream=False)
    sent_items = {"role": "assistant", "content": "So."}
    histories = [[{**sent_items, **spelling}] for spelling in SPELLINGS.values()]
    if client == "responses":
        histories = [[{"type": "reasoning", **item}, sent_items] for item in ITEMS.values()]
    for history in histories:
        question = {"role": "user", "content": "Where?"}
        await turn(app, client, [question, *history, question], "everything", stream=False)
        assert "I add the numbers" not in played.requests[-1].body.decode(), history
        assert "So." in played.requests[-1].body.decode()


@BOTH
@pytest.mark.parametrize("shape", ["thinking between calls", "thinking twice"])
async def test_joined_summaries_are_recognized_as_one(shape: str, *, stream: bool) -> None:
    """A chat client has one field for all summaries."""
    played = rounds("responses", shape, stream=stream, times=1)
    app = bridge(played, "responses", history={"restore": "never"})
    await loop(app, "chat", "the summary alone", stream=stream)
    assert "I add the numbers" not in played.requests[-1].body.decode()


@BOTH
async def test_a_native_summary_does_not_return_as_reasoning(*, stream: bool) -> None:
    played = rounds("responses", "summarized", stream=stream, times=1)
    app = bridge(played, "responses", history={"restore": "never"})
    history = await loop(app, "chat", "the summary alone", stream=stream)
    assert "Upstream's own words" in json.dumps(history)
    assert "Upstream's own words" not in played.requests[-1].body.decode()


@BOTH
@EACH
async def test_shown_and_hidden_reasoning_return_together(
    client: str, upstream: str, *, stream: bool
) -> None:
    """Shown reasoning returns unchanged, with its signature, id and seal."""
    shape = "calls" if upstream == "chat" else "thinking between calls"
    played = rounds(upstream, shape, stream=stream)
    app = bridge(played, upstream, expose="both")
    history: list[Json] = [{"role": "user", "content": "Where is it?"}]
    for _ in range(TIMES):
        items = await turn(app, client, history, "everything", stream=stream)
        for item in items:
            item.pop("thinking_blocks", None)
            item.pop("encrypted_content", None)
        history += items
    sent = played.requests[-1].json
    assert list(map(comparable, received_items(upstream, sent))) == list(
        map(comparable, sent_items(upstream, shape))
    )


BUILT_IN: dict[str, tuple[Json, Any]] = {
    "shell": (
        {"commands": ["ls"]},
        [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    ),
    "apply_patch": ({"type": "create_file", "path": "a", "diff": "+ä"}, "Done."),
}


@BOTH
@pytest.mark.parametrize("upstream", ["chat", "messages"])
@pytest.mark.parametrize("kind", BUILT_IN)
async def test_a_built_in_tool_is_called_and_keeps_its_reasoning(
    kind: str, upstream: str, *, stream: bool
) -> None:
    arguments, output = BUILT_IN[kind]
    played = Upstream(*(_calling(upstream, kind, arguments, stream=stream) for _ in range(2)))
    app, history = bridge(played, upstream), [{"role": "user", "content": "Where is it?"}]
    for _ in range(2):
        body = {"model": RAW, "stream": stream, "tools": [{"type": kind}], "input": history}
        reply = await call(app, PATHS["responses"], body, KEY)
        *others, called = client_items("responses", reply, stream=stream)
        assert called["type"] == f"{kind}_call"
        answered = {"type": f"{kind}_call_output", "call_id": called["call_id"], "output": output}
        history += [*others, called, {**answered, "status": "completed"}]
    thought, *_, sent = _pieces(upstream, played.requests[-1].json)
    assert (thought, sent) == ("I look.", arguments)


def _calling(upstream: str, name: str, arguments: Json, *, stream: bool) -> Answer:
    """Return an answer that calls a tool after a thought."""
    if upstream == "messages":
        blocks = [messages.thinking("I look.", "sig=="), messages.tool_use(1, name, **arguments)]
        whole = messages.message(blocks, "tool_use")
        return Answer(messages.stream(blocks, "tool_use")) if stream else Answer.json(whole)
    called = tool_call(name, json.dumps(arguments))
    if stream:
        return Answer(chat_stream("I look.", "", calls=[called], finish="tool_calls"))
    return Answer.json(completion({"reasoning_content": "I look.", "tool_calls": [called]}))


def _pieces(upstream: str, sent: Json) -> list[Any]:
    """Return the thought and the arguments of the call that upstream gets back."""
    answer = next(each for each in sent["messages"] if each["role"] == "assistant")
    if upstream == "messages":
        thought, called = answer["content"]
        return [thought["thinking"], called["input"]]
    (called,) = answer["tool_calls"]
    return [answer["reasoning_content"], json.loads(called["function"]["arguments"])]
