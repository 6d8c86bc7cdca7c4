"""Tool loops for each pair of APIs: upstream gets each round's reasoning back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.types import ASGIApp

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
from tests.support.streams import DONE, chunk, completion
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


@pytest.mark.matrix(3)
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


@EACH
async def test_identical_conversations_never_share_reasoning(client: str, upstream: str) -> None:
    """Two clients send the same words; only upstream's reasoning differs."""
    first = [play(upstream, 0, "calls", stream=False)] * 2
    app = bridge(played := Upstream(*first, play(upstream, 1, "calls", stream=False)), upstream)
    question = [{"role": "user", "content": "Where is it?"}]
    anna, _ = [
        await turn(app, client, question, "standard fields", stream=False, key=key)
        for key in (KEY, OTHER)
    ]
    stranger = {"authorization": "Bearer sk-carl-9012"}
    await turn(app, client, [*question, *anna], "everything", stream=False, key=stranger)
    assert "I look in two more places" not in played.requests[-1].body.decode()
    await turn(app, client, [*question, *anna], "everything", stream=False, key=OTHER)
    assert "I look in two more places" in played.requests[-1].body.decode()


@EACH
async def test_an_edited_history_gets_nothing_restored(client: str, upstream: str) -> None:
    """The client's change stays, whatever is restored beside it."""
    played = rounds(upstream, "text and calls", stream=False)
    history = await loop(app := bridge(played, upstream), client, "standard fields", stream=False)
    edited = json.loads(json.dumps(history).replace("Looking, 01.", "Edited, 01."))
    assert edited != history
    await turn(app, client, edited, "everything", stream=False)
    assert "Looking, 01." not in played.requests[-1].body.decode()
    assert "Edited, 01." in played.requests[-1].body.decode()


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


DETAILS = [
    {"type": "reasoning.text", "text": "I look.", "signature": "sig==", "format": "x", "index": 0},
    {"type": "reasoning.encrypted", "data": "b64==", "id": "rs_1", "format": "x", "index": 1},
]
NATIVE_DETAILS = [
    {"type": "reasoning.summary", "summary": "**Looking**", "format": "y", "index": 0},
    {"type": "reasoning.encrypted", "data": "b64==", "id": "rs_1", "format": "y", "index": 1},
]
BLOCKS = [{"type": "thinking", "thinking": "I look.", "signature": "sig=="}]
CHUNKS = [{"type": "thinking", "thinking": [{"type": "text", "text": "I look."}], "closed": True}]
SIGNATURE = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
DIALECTS: dict[str, tuple[str, Json]] = {
    "vllm": ("vllm", {"reasoning": "I look."}),
    "openrouter": ("openrouter", {"reasoning": "I look.", "reasoning_details": DETAILS}),
    "openrouter's summaries": (
        "openrouter",
        {"reasoning": "**Looking**", "reasoning_details": NATIVE_DETAILS},
    ),
    "litellm": ("litellm", {"reasoning_content": "I look.", "thinking_blocks": BLOCKS}),
    "mistral": ("mistral", {"content": [*CHUNKS, {"type": "text", "text": "So."}]}),
    "minimax": ("minimax", {"content": "<think>\nI look.\n</think>\n\nSo."}),
    "gemini": ("gemini", {"content": "So.", "extra_content": SIGNATURE}),
    "gemini's thoughts": ("gemini", {"content": "<thought>I look.</thought>So."}),
}


@pytest.mark.matrix(2)
@BOTH
@pytest.mark.parametrize("keeps", KEEPS)
@pytest.mark.parametrize("expose", ["auto", "both"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_provider_gets_reasoning_back_in_its_own_field(
    dialect: str, expose: Any, keeps: str, *, stream: bool
) -> None:
    profile, spelling = DIALECTS[dialect]
    tool = encode_round("chat", 0, "calls")[0]["tool_calls"][0]
    tool |= {"extra_content": SIGNATURE} if profile == "gemini" else {}
    message = {"role": "assistant", "content": None, **spelling, "tool_calls": [tool]}
    frames = [chunk({"role": "assistant"})]
    frames += [chunk(spelling)]
    frames += [chunk({"tool_calls": [{**tool, "index": 0}]}), chunk({}, finish="tool_calls"), DONE]
    played = Upstream(Answer(frames) if stream else Answer.json(completion(message)))
    app = bridge(played, "chat", expose=expose, entry={"profile": profile})
    await loop(app, "responses", keeps, stream=stream)
    sent = played.requests[-1].json["messages"][1]
    assert {key: sent.get(key) for key in spelling} == spelling
    assert sent["tool_calls"] == [tool]
