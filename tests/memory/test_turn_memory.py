"""What is remembered of an answer and restored in the next request, end to end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.config.settings import Settings
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.memory.stores.memory import MemoryBackend
from abridge.middleware import AbridgeMiddleware
from abridge.work import LIGHT_BYTES
from tests.apis.messages import scripts as messages
from tests.stored_responses.conversations import fail
from tests.support.asgi import begin, call
from tests.support.checker import check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.streams import (
    DONE,
    THOUGHT,
    call_item,
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    thinking,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
USER = {"role": "user", "content": "Hi"}
KEY = {"authorization": "Bearer sk-anna-1234567890"}
OTHER = {"authorization": "Bearer sk-bert-1234567890"}
SUMMARY = "**Adding up**\n\nI add the numbers."
TO_CHAT = {"base_url": f"{ORIGIN}/v1", "api": "chat", "profile": "vllm"}


def make(upstream: Upstream, registry: CollectorRegistry | None = None, **tables: Any) -> ASGIApp:
    return build_app("mounted", upstream, writer=Scripted(), registry=registry, **tables)


async def say(app: ASGIApp, messages: list[Any], headers: Any = KEY, model: str = "m") -> Any:
    """One turn on Chat Completions, whole, with a summary; the assistant's message."""
    body = {"model": model, "messages": messages, "reasoning": {"summary": "auto"}}
    answer = await call(app, CHAT, body, headers)
    return answer.json["choices"][0]["message"]


def answers(*messages: dict[str, Any]) -> Upstream:
    return Upstream(*(Answer.json(completion(message)) for message in messages))


SPELLINGS: dict[str, dict[str, Any]] = {
    "reasoning_content": {"reasoning_content": THOUGHT},
    "reasoning": {"reasoning": THOUGHT},
    "both fields": {"reasoning_content": THOUGHT, "reasoning": THOUGHT},
    "details": {
        "reasoning": THOUGHT,
        "reasoning_details": [
            {"type": "reasoning.text", "text": THOUGHT, "signature": "sig", "index": 0},
            {"type": "reasoning.encrypted", "data": "opaque", "index": 1},
        ],
    },
    "thinking blocks": {
        "reasoning_content": THOUGHT,
        "thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": "sig"}],
    },
    "inline": {"content": f"<think>\n{THOUGHT}</think>\n\nSo."},
    "content list": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}], "closed": True},
            {"type": "text", "text": "So."},
        ]
    },
}


@pytest.mark.parametrize(("size", "is_beside"), [(10, False), (2 * LIGHT_BYTES, True)])
async def test_a_large_answer_is_remembered_beside_the_event_loop(
    size: int, monkeypatch: pytest.MonkeyPatch, *, is_beside: bool
) -> None:
    threads = set[str]()

    def note(value: Any) -> str:
        threads.add(threading.current_thread().name)
        return json.dumps(value)

    monkeypatch.setattr("abridge.core.conversation.encode_sorted", note)
    called = {"index": 0, "id": "call_0", "type": "function", "function": {"name": "write"}}
    called["function"]["arguments"] = json.dumps({"text": "a" * size})
    message = {"content": None, "reasoning_content": THOUGHT, "tool_calls": [called]}
    await say(make(answers(message)), [USER])
    assert threads
    assert (threading.current_thread().name not in threads) is is_beside


class TestWhoLeaves:
    """A summary that was seen is known, however the answer ended."""

    @pytest.mark.parametrize("seen", [b"Adding up**", b"I add", b"The lon"])
    @pytest.mark.parametrize("cut", [False, True])
    async def test_a_summary_seen_in_part_never_goes_upstream_as_reasoning(
        self, seen: bytes, *, cut: bool
    ) -> None:
        frames = chat_stream(THOUGHT, "The long answer goes on")
        gate = asyncio.Event()
        upstream = Upstream(Answer([*frames[:-5], gate]), Answer(chat_stream("", "Done.")))
        writer = Scripted() if seen == b"The lon" else Halting(seen.decode(), gate)
        app = build_app(
            "mounted", upstream, writer=writer, summary={"grace": 60, "first_token": 60}
        )
        asking = {"model": "m", "reasoning": {"summary": "auto"}, "stream": True}
        request = begin(app, CHAT, {**asking, "messages": [USER]}, KEY)
        await request.until(seen)
        (gate if cut else request.left).set()
        await request.finish()
        field = _told(request.data, "reasoning_content")
        said = {"role": "assistant", "reasoning_content": field, "content": "The long"}
        await call(app, CHAT, {**asking, "messages": [USER, said, USER]}, KEY)
        sent = upstream.requests[1].json["messages"][1]
        assert field
        assert "reasoning_content" not in sent


class TestCopies:
    async def test_an_extract_removes_nothing_from_another_tenants_request(self) -> None:
        thought = "The user says hi, so I should greet them."
        said = {"role": "assistant", "reasoning_content": thought, "content": "Hi!"}
        upstream = answers(said, said)
        app = build_app("mounted", upstream, summary={"default": "concise"})
        await call(app, CHAT, {"model": "m", "messages": [USER]}, KEY)
        await call(app, CHAT, {"model": "m", "messages": [USER, said, USER]}, OTHER)
        assert upstream.requests[1].json["messages"][1] == said

    async def test_an_extract_shorter_than_the_reasoning_is_removed(self) -> None:
        thought = "Okay. The user says hi, so I should greet them."
        said = {"role": "assistant", "reasoning_content": thought, "content": "Hi!"}
        upstream = answers(said, said)
        app = build_app("mounted", upstream, summary={"default": "concise"})
        answer = await call(app, CHAT, {"model": "m", "messages": [USER]}, KEY)
        returned = answer.json["choices"][0]["message"]
        assert returned["reasoning_content"] != thought
        await call(app, CHAT, {"model": "m", "messages": [USER, returned, USER]}, KEY)
        assert upstream.requests[1].json["messages"][1] == said


def _told(stream: bytes, field: str) -> str:
    """What a client that keeps everything has of a field, from a stream that may be cut."""
    deltas = (
        choice["delta"]
        for line in stream.split(b"\n")
        if line.startswith(b"data: {")
        for choice in json.loads(line[6:]).get("choices", [])
    )
    return "".join(delta.get(field) or "" for delta in deltas)


class Halting(Scripted):
    """Says its text as far as `until`, and then no more."""

    def __init__(self, until: str, gate: asyncio.Event) -> None:
        super().__init__(SUMMARY[: SUMMARY.index(until) + len(until)], pieces=1)
        self.end = gate

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        async for piece in super().summarize(passage):
            if isinstance(piece, str):
                yield piece
        await self.end.wait()


class TestChat:
    @pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
    @pytest.mark.parametrize("spelling", SPELLINGS)
    async def test_upstream_gets_its_reasoning_back_in_its_own_format(
        self, spelling: str, expose: str
    ) -> None:
        said = {"role": "assistant", "content": "So.", **SPELLINGS[spelling]}
        upstream = answers(said, {"content": "Done."})
        app = make(upstream, reasoning={"expose": expose})
        returned = await say(app, [USER])
        await say(app, [USER, returned, USER])
        assert upstream.requests[1].json["messages"] == [USER, said, USER]

    async def test_a_summary_without_an_original_is_removed(self) -> None:
        upstream = answers({"content": "So.", "reasoning": THOUGHT}, {"content": "Done."})
        registry = CollectorRegistry()
        app = make(upstream, registry)
        returned = await say(app, [USER])
        edited = {**returned, "content": "So, edited."}
        await say(app, [USER, edited, USER])
        assert upstream.requests[1].json["messages"][1] == {
            "role": "assistant",
            "content": "So, edited.",
        }
        labels = {"api": "chat", "upstream": "default"}
        assert registry.get_sample_value("abridge_reasoning_missed_total", labels) == 1
        assert registry.get_sample_value("abridge_marks_removed_total", {"api": "chat"}) == 1

    @pytest.mark.parametrize(
        "mark", [{"summary_error": {"code": "timeout"}}, {"hosted_calls": [{"type": "mcp_call"}]}]
    )
    async def test_marks_are_removed_without_a_store(self, mark: dict[str, Any]) -> None:
        upstream = answers({"content": "Done."})
        marked = {"role": "assistant", "content": "So.", **mark}
        body = {"model": "m", "messages": [USER, marked, USER]}
        await call(make(upstream), CHAT, body)
        assert upstream.requests[0].json["messages"][1] == {"role": "assistant", "content": "So."}

    async def test_a_part_returned_alone_is_recognised(self) -> None:
        long = {"content": "So.", "reasoning": thinking(4000)}
        upstream = answers(long, {"content": "Done."})
        app = make(upstream)
        returned = await say(app, [USER])
        assert returned["reasoning"].count(SUMMARY) > 1
        await say(app, [USER, {**returned, "reasoning": SUMMARY}, USER])
        assert upstream.requests[1].json["messages"][1]["reasoning"] == thinking(4000)


class TestRenamedCalls:
    """A client may give calls other ids, as agno does: then everything else has to be the same."""

    def turn(self, number: int, name: str = "f", call_id: str = "") -> list[Any]:
        identity = call_id or f"call_Ab3dEf6hIj{number}"
        call = {"id": identity, "type": "function", "function": {"name": name, "arguments": "{}"}}
        output = {"role": "tool", "tool_call_id": identity, "content": f"{number}"}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, output]

    def loop(self, rounds: int = 3) -> Upstream:
        return answers(
            *(
                {**self.turn(number)[0], "reasoning": f"{THOUGHT} {number}"}
                for number in range(rounds)
            ),
            {"content": "Done."},
        )

    async def last_request(self, *returned: list[Any], key: Any = KEY) -> list[Any]:
        """Have three rounds of calls; return the reasoning upstream gets with what is returned."""
        upstream = self.loop()
        app, messages = make(upstream), [USER]
        for number in range(3):
            said = await say(app, messages)
            messages += [said, self.turn(number)[1]]
        await say(app, [USER, *(each for turn in returned for each in turn)], key)
        sent = upstream.requests[3].json["messages"]
        return [message.get("reasoning") for message in sent if message["role"] == "assistant"]

    async def test_each_turn_gets_its_own_reasoning(self) -> None:
        renamed = [self.turn(number, call_id=f"fc_{number}") for number in range(3)]
        assert await self.last_request(*renamed) == [f"{THOUGHT} {number}" for number in range(3)]

    async def test_a_turn_after_another_question_gets_none(self) -> None:
        question = [{"role": "user", "content": "Something else"}]
        assert await self.last_request(question, self.turn(0, call_id="fc_0")) == [None]

    async def test_another_call_gets_none_nor_does_what_follows_it(self) -> None:
        renamed = [self.turn(0, call_id="fc_0", name="g"), self.turn(1, call_id="fc_1")]
        assert await self.last_request(*renamed) == [None, None]

    async def test_outputs_that_changed_places_get_none(self) -> None:
        one, other = self.turn(0, call_id="fc_0"), self.turn(1, call_id="fc_1")
        assert await self.last_request([one[0], other[1]], [other[0], one[1]]) == [
            *(f"{THOUGHT} 0", None)
        ]

    async def test_another_tenant_gets_none(self) -> None:
        assert await self.last_request(self.turn(0, call_id="fc_0"), key=OTHER) == [None]

    async def test_a_random_id_is_another_turns(self) -> None:
        """Whatever else is alike."""
        another = self.turn(0, call_id="call_Zb3dEf6hIj9")
        assert await self.last_request(another) == [None]
        mixed = [another, self.turn(1, call_id="fc_1")]
        assert await self.last_request(*mixed) == [None, None]

    async def test_where_nobody_can_tell_of_another_turn_like_it_both_get_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, other = ({**self.turn(number)[0], "reasoning": THOUGHT} for number in (0, 9))
        upstream = answers(one, other, {"content": "Done."})
        app = make(upstream)
        await say(app, [USER])
        with monkeypatch.context() as down:
            down.setattr(MemoryBackend, "get", fail)
            await say(app, [USER])
        output = {"role": "tool", "tool_call_id": "fc_0", "content": ""}
        await say(app, [USER, self.turn(0, call_id="fc_0")[0], output])
        assert "reasoning" not in upstream.requests[2].json["messages"][1]

    async def test_a_turn_that_did_not_think_gets_nothing_of_one_like_it(self) -> None:
        thought, bare = {**self.turn(0)[0], "reasoning": THOUGHT}, self.turn(9)[0]
        upstream = answers(thought, bare, {"content": "Done."}, {"content": "Done."})
        app = make(upstream)
        await say(app, [USER])
        await say(app, [USER])
        await say(app, [USER, *self.turn(0, call_id="fc_0")])
        await say(app, [USER, *self.turn(9)])
        for request in upstream.requests[2:]:
            assert "reasoning" not in request.json["messages"][1]

    async def test_of_two_turns_that_differ_in_their_ids_alone_none_is_taken(self) -> None:
        one, other = ({**self.turn(n)[0], "reasoning": f"{THOUGHT} {n}"} for n in (1, 2))
        upstream = answers(one, other, {"content": "Done."})
        app = make(upstream)
        await say(app, [USER])
        await say(app, [USER])
        await say(app, [USER, *self.turn(1, call_id="fc_0")])
        assert "reasoning" not in upstream.requests[2].json["messages"][1]


class TestTraces:
    async def test_a_text_without_reasoning_gets_nothing_of_the_same_text_before(self) -> None:
        thought, bare = {"content": "So.", "reasoning": THOUGHT}, {"content": "So."}
        upstream = answers(thought, bare, {"content": "Done."})
        app = make(upstream)
        await say(app, [USER])
        returned = await say(app, [USER])
        await say(app, [USER, returned, USER])
        assert "reasoning" not in upstream.requests[2].json["messages"][1]


class TestPromise10TenantsNeverMeet:
    @pytest.mark.parametrize(("shown_to", "returned_by"), [(KEY, OTHER), (KEY, {}), ({}, KEY)])
    async def test_who_sends_a_text_cannot_tell_that_another_tenant_was_shown_it(
        self, shown_to: dict[str, str], returned_by: dict[str, str]
    ) -> None:
        upstream = answers({"content": "So.", "reasoning": THOUGHT}, {"content": "Done."})
        app = make(upstream, history={"anonymous": False})
        returned = await say(app, [USER], shown_to)
        assert returned["reasoning"]
        await say(app, [USER, returned, USER], returned_by)
        assert upstream.requests[1].json["messages"][1] == returned

    async def test_a_summary_is_recognised_without_a_tenant(self) -> None:
        upstream = answers({"content": "So.", "reasoning": THOUGHT}, {"content": "Done."})
        app = make(upstream, history={"anonymous": False})
        returned = await say(app, [USER], {})
        await say(app, [USER, returned, USER], {})
        assert upstream.requests[1].json["messages"][1] == {"role": "assistant", "content": "So."}

    @pytest.mark.parametrize(("who", "restored"), [("anna", True), ("bert", False)])
    async def test_a_configured_header_identifies_the_tenant(
        self, who: str, *, restored: bool
    ) -> None:
        upstream = answers({"content": "So.", "reasoning": THOUGHT}, {"content": "Done."})
        app = make(upstream, history={"tenant": "header:x-user"})
        returned = await say(app, [USER], {**KEY, "x-user": "anna"})
        await say(app, [USER, returned, USER], {**OTHER, "x-user": who})
        assert (upstream.requests[1].json["messages"][1].get("reasoning") == THOUGHT) == restored

    @pytest.mark.parametrize(("who", "restored"), [("anna", True), ("bert", False)])
    async def test_a_callable_identifies_the_tenant(self, who: str, *, restored: bool) -> None:
        upstream = answers({"content": "So.", "reasoning": THOUGHT}, {"content": "Done."})
        app = AbridgeMiddleware(
            upstream,
            Settings.model_validate({"summarizer": {"kind": "object"}}),
            summarizer=Scripted(),
            registry=CollectorRegistry(),
            tenant=lambda scope: dict(scope["headers"])[b"x-session"].decode(),
        )
        returned = await say(app, [USER], {"x-session": "anna"})
        await say(app, [USER, returned, USER], {"x-session": who})
        assert (upstream.requests[1].json["messages"][1].get("reasoning") == THOUGHT) == restored


class TestAnswersInPieces:
    """Answers that think between their texts."""

    @pytest.mark.parametrize(
        ("texts", "thoughts"), [(["One.", "Two."], "Hm.So."), (["One.", "Three."], None)]
    )
    async def test_its_reasoning_comes_back_unless_it_was_edited(
        self, texts: list[str], thoughts: str | None
    ) -> None:
        said = {"reasoning": "Hm."}, {"content": "One."}, {"reasoning": "So."}, {"content": "Two."}
        frames = [*map(chunk, said), chunk({}, finish="stop"), DONE]
        upstream = Upstream(Answer(frames), Answer.json(completion({"content": "Done."})))
        app = build_app("sidecar", upstream, upstreams=[TO_CHAT], history={"keep": "all"})
        body = {"model": "m", "input": [USER], "stream": True}
        first = check_responses((await call(app, RESPONSES, body, KEY)).data).response["output"]
        shown = [item for item in first if item["type"] == "message"]
        assert [item["content"][0]["text"] for item in shown] == ["One.", "Two."]
        returned = [message_item(number, text) for number, text in enumerate(texts)]
        await call(app, RESPONSES, {"model": "m", "input": [USER, *returned, USER]}, KEY)
        assert upstream.requests[1].json["messages"][1].get("reasoning") == thoughts

    ITEMS = (
        *(reasoning_item(0, "Hm."), message_item(1, "One."), reasoning_item(2, "So.")),
        *(message_item(3, "Two."), reasoning_item(4, "Now."), call_item(5, "f", "{}")),
    )
    BLOCKS = (
        *(messages.thinking("Hm."), messages.text("One."), messages.redacted("ZGF0YQ")),
        *(messages.text("Two."), messages.thinking("Now."), messages.tool_use(0)),
    )

    @pytest.mark.parametrize("length", [4, 6])
    @pytest.mark.parametrize("texts", [["One.", "Two."], ["One.\n\nTwo."], ["One.", "Three."]])
    async def test_on_responses_it_comes_back_to_where_it_was(
        self, texts: list[str], length: int
    ) -> None:
        said = list(self.ITEMS[:length])
        upstream = Upstream(Answer.json(response(said)), Answer.json(response([])))
        app = make(upstream, history={"restore": "always"})
        await call(app, RESPONSES, {"model": "m", "input": [USER]}, KEY)
        own = [{"role": "assistant", "content": text} for text in texts]
        returned = [*own, *said[5:], USER]
        await call(app, RESPONSES, {"model": "m", "input": [USER, *returned]}, KEY)
        sent = upstream.requests[1].json["input"]
        if texts == ["One.", "Two."]:
            assert sent == [USER, said[0], own[0], said[2], own[1], *said[4:], USER]
        elif len(texts) == 1:
            assert sent == [USER, *said, USER]
        else:
            thoughts = [item for item in said if item["type"] == "reasoning" and length == 6]
            assert sent == [USER, *thoughts, *returned]

    @pytest.mark.parametrize("length", [4, 6])
    @pytest.mark.parametrize("texts", [["One.", "Two."], ["One.\n\nTwo."], ["One.", "Three."]])
    async def test_on_messages_it_comes_back_to_where_it_was(
        self, texts: list[str], length: int
    ) -> None:
        said = list(self.BLOCKS[:length])
        upstream = Upstream(*(Answer.json(messages.message(said)) for _ in range(2)))
        app = make(upstream, history={"restore": "always"})
        asking = {"model": "m", "max_tokens": 100}
        await call(app, MESSAGES, {**asking, "messages": [USER]}, KEY)
        cached = {"cache_control": {"type": "ephemeral"}}
        own = [{**messages.text(text), **cached} for text in texts]
        answer = {"role": "assistant", "content": [*own, *said[5:]]}
        await call(app, MESSAGES, {**asking, "messages": [USER, answer, USER]}, KEY)
        sent = upstream.requests[1].json["messages"][1]["content"]
        if texts == ["One.", "Two."]:
            assert sent == [said[0], own[0], said[2], own[1], *said[4:]]
        elif len(texts) == 1:
            assert sent == said
        else:
            thoughts = [each for each in said if "thinking" in each["type"] and length == 6]
            assert sent == [*thoughts, *own, *said[5:]]


class TestResponses:
    OUTPUT = (reasoning_item(0, THOUGHT), call_item(1, "f", "{}"))

    @pytest.mark.parametrize("own", [{"encrypted_content": "gAAAA"}, {"id": "rs_own"}])
    async def test_an_item_that_the_client_returned_is_not_replaced(self, own: Any) -> None:
        """By that of another conversation that is alike: the call has no random id."""
        upstream = Upstream(
            Answer.json(response(list(self.OUTPUT))), Answer.json(response([message_item(0, "D")]))
        )
        app = make(upstream, reasoning={"expose": "none"})
        await call(app, RESPONSES, {"model": "m", "input": [USER]}, KEY)
        result = {"type": "function_call_output", "call_id": "call_1", "output": "7"}
        item = {"type": "reasoning", "summary": [], **own}
        sent = [USER, item, self.OUTPUT[1], result]
        await call(app, RESPONSES, {"model": "m", "input": sent}, KEY)
        assert upstream.requests[1].json["input"] == sent


async def test_what_is_remembered_is_counted_and_bounded() -> None:
    registry = CollectorRegistry()
    upstream = Upstream(Answer())
    app = make(upstream, registry, history={"bytes": "20KiB"})
    for number in range(50):
        said = {"content": f"So {number}.", "reasoning": thinking(2000)}
        upstream.answers = [Answer.json(completion(said))]
        await say(app, [USER])
        held = registry.get_sample_value("abridge_store_bytes")
        assert held is not None
        assert 0 < held <= 20 * 1024


CALLED = [(f"call_{number}x7Kq9ZtR4mP2s", f"toolu_{number}x7Kq9ZtR4mP2s") for number in range(4)]


def answer_pieces(api: str, kind: str, thinks: tuple[bool, ...]) -> list[Any]:
    """An answer of calls, before some of which the model thought, alike each time if `kind` is
    `alike`."""
    pieces = list[Any]()
    for number, (call_id, tool_use_id) in enumerate(CALLED[: len(thinks)]):
        thought = "Once more." if kind == "alike" else f"I think of {number}."
        if thinks[number] and api == MESSAGES:
            pieces.append(
                messages.redacted(thought)
                if kind == "opaque"
                else messages.thinking(thought, "" if kind == "alike" else f"Eq{number}")
            )
        elif thinks[number]:
            fields = {"encrypted_content": thought} if kind == "opaque" else {}
            text = "" if kind == "opaque" else thought
            pieces.append({**reasoning_item(number, text, **fields), "id": f"rs_{number}"})
        pieces.append(
            {**messages.tool_use(number, "f"), "id": tool_use_id}
            if api == MESSAGES
            else {**call_item(number, "f", "{}"), "call_id": call_id}
        )
    return pieces


def is_thought(piece: dict[str, Any]) -> bool:
    return piece["type"] in ("reasoning", "thinking", "redacted_thinking")


class TestMovedReasoning:
    """LiteLLM returns all reasoning of an answer before all of its calls."""

    async def sent(
        self, api: str, answer: list[Any], *, moves: bool = True, **history: Any
    ) -> list[Any]:
        """What upstream gets of its answer, once the client has returned it."""
        given = Answer.json(response(answer) if api == RESPONSES else messages.message(answer))
        upstream = Upstream(given, given)
        app = make(upstream, history=history, reasoning={"expose": "both"})
        body = {"model": "m", "reasoning": {"summary": "auto"}}
        body |= {"max_tokens": 9, "thinking": {"type": "adaptive"}} if api == MESSAGES else {}
        key, field = ("input", "output") if api == RESPONSES else ("messages", "content")
        returned = (await call(app, api, {**body, key: [USER]}, KEY)).json[field]
        if moves:
            returned = sorted(returned, key=lambda piece: not is_thought(piece))
        turn = returned if api == RESPONSES else [{"role": "assistant", "content": returned}]
        await call(app, api, {**body, key: [USER, *turn, USER]}, KEY)
        sent: list[Any] = upstream.requests[1].json[key]
        return sent[1:-1] if api == RESPONSES else sent[1]["content"]

    @pytest.mark.parametrize("restore", ["always", "altered"])
    @pytest.mark.parametrize("kind", ["raw", "opaque"])
    @pytest.mark.parametrize("thinks", [(True, True), (False, True), (False, False, True, True)])
    @pytest.mark.parametrize("api", [RESPONSES, MESSAGES])
    async def test_none_of_it_goes_back_twice_and_none_is_lost(
        self, api: str, thinks: tuple[bool, ...], kind: str, restore: str
    ) -> None:
        answer = answer_pieces(api, kind, thinks)
        sent = await self.sent(api, answer, restore=restore)
        thoughts = [piece for piece in sent if is_thought(piece)]
        assert thoughts == [piece for piece in answer if is_thought(piece)]
        if restore == "always":  # then all of it is remembered, and stands where it was
            assert list(map(is_thought, sent)) == list(map(is_thought, answer))

    @pytest.mark.parametrize("moves", [True, False])
    @pytest.mark.parametrize("thinks", [(True, True), (True, False, True)])
    @pytest.mark.parametrize("api", [RESPONSES, MESSAGES])
    async def test_reasoning_alike_stays_with_each_of_its_calls(
        self, api: str, thinks: tuple[bool, ...], *, moves: bool
    ) -> None:
        answer = answer_pieces(api, "alike", thinks)
        sent = await self.sent(api, answer, moves=moves, restore="always")
        assert list(map(is_thought, sent)) == list(map(is_thought, answer))
