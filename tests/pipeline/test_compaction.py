"""Compactions: what the model is asked, what the client gets, what the model gets of it later."""

from __future__ import annotations

import asyncio
import json
import pkgutil
import threading
from base64 import b64encode
from typing import Any, ClassVar

import pytest
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from openai.types.responses import CompactedResponse, Response
from prometheus_client import CollectorRegistry
from pydantic import TypeAdapter
from starlette.types import ASGIApp

from tests.stored_responses.conversations import fail_once
from tests.support.asgi import Call, begin, call
from tests.support.checker import check_responses, frames
from tests.support.counters import total
from tests.support.deployments import ORIGIN, build_app
from tests.support.messages_checker import check_error
from tests.support.upstream import Answer, ReceivedRequest, Upstream

Json = dict[str, Any]

KEY = {"authorization": "Bearer sk-one"}
OTHER = {"authorization": "Bearer sk-two"}
RESPONSES, COMPACT, MESSAGES = "/v1/responses", "/v1/responses/compact", "/v1/messages"
SUMMARY = "Goals: the user wants the tests of `src/parser.py` green."
TOOLS: list[Json] = [
    {"type": "function", "name": name, "parameters": {}} for name in ("read", "write")
]
TASK = {"role": "user", "content": "Make the tests of src/parser.py green, touch nothing else."}
SECRET = "I wonder whether the user knows what a parser is."


def read(call_id: str, output: str | None = "", name: str = "read") -> list[Json]:
    call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": call_id, "output": output}
    return [call] if output is None else [call, answer]


def said(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


REASONING = {
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": SECRET}],
}
LONG = "line of a file; " * 4000
WORK = [TASK, REASONING, *read("call_1", LONG), said("The parser drops the last token.")]


def completion(text: str, tokens: tuple[int, int] = (900, 60), **more: Any) -> Answer:
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **more}
    used = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1"}
    return Answer.json({**body, "choices": [choice], "usage": used})


class Model(Upstream):
    """Writes a summary if it is asked for one, and else answers."""

    def __init__(self, summary: Answer | None = None, answer: Answer | None = None) -> None:
        super().__init__()
        self.summary = summary or completion(SUMMARY)
        self.other = answer or completion("Done.", (50, 5))

    def answer(self, request: ReceivedRequest) -> Answer:
        return self.summary if b"about to be compacted" in request.body else self.other


class ResponsesModel(Upstream):
    """Speaks Responses, and says the summary whatever it is asked."""

    def answer(self, request: ReceivedRequest) -> Answer:
        item = {"id": "msg_1", **said(SUMMARY)}
        body = {"id": "r", "object": "response", "status": "completed", "model": "m"}
        return Answer.json({**body, "output": [item], "usage": None})


def bridge(upstream: Upstream, **tables: Any) -> ASGIApp:
    entry = {"base_url": f"{ORIGIN}/v1", "api": "chat", **tables.pop("entry", {})}
    return build_app("sidecar", upstream, upstreams=[entry], **tables)


async def ask(
    app: ASGIApp, items: Any, headers: dict[str, str] = KEY, path: str = RESPONSES, **fields: Any
) -> Call:
    body = {"model": "m", "input": items, "tools": TOOLS, **fields}
    return await call(app, path, body, headers)


def sent(upstream: Upstream) -> list[Json]:
    """Return the messages that the model got last."""
    return list(upstream.requests[-1].json["messages"])


def texts(messages: list[Json]) -> str:
    return json.dumps(messages)


class TestTheEndpoint:
    async def test_the_answer_is_the_users_messages_and_a_compaction(self) -> None:
        app = bridge(Model())
        answer = await ask(app, WORK, path=COMPACT)
        assert answer.status == 200
        compacted = CompactedResponse.construct(**answer.json)
        assert compacted.object == "response.compaction"
        assert [item.type for item in compacted.output] == ["message", "compaction"]
        assert answer.json["output"][0]["content"][0]["text"] == TASK["content"]
        assert (compacted.usage.input_tokens, compacted.usage.output_tokens) == (900, 60)
        assert compacted.usage.total_tokens == 960

    async def test_the_model_is_asked_at_the_end_of_the_same_conversation(self) -> None:
        upstream = Model()
        await ask(bridge(upstream), WORK, path=COMPACT, instructions="Be brief.")
        asked = upstream.requests[0].json
        assert upstream.requests[0].path == "/v1/chat/completions"
        assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
        assert LONG in asked["messages"][3]["content"]
        assert asked["messages"][-1]["role"] == "user"
        assert (asked["tool_choice"], asked["max_tokens"]) == ("none", 8192)
        assert len(asked["tools"]) == 2
        assert SECRET not in texts(asked["messages"])

    @pytest.mark.parametrize(("profile", "left"), [("deepseek", ""), ("vllm", None)])
    async def test_an_empty_text_is_left_where_calls_are_refused_without_reasoning(
        self, profile: str, left: str | None
    ) -> None:
        upstream = Model()
        await ask(bridge(upstream, entry={"profile": profile}), WORK, path=COMPACT)
        (called,) = (each for each in sent(upstream) if "tool_calls" in each)
        assert called.get("reasoning_content") == left
        assert SECRET not in texts(sent(upstream))

    async def test_what_comes_next_goes_on_from_the_summary(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        output = (await ask(app, WORK, path=COMPACT)).json["output"]
        await ask(app, [*output, {"role": "user", "content": "Go on."}])
        summary, task, last, more = sent(upstream)
        assert summary["role"] == "user"
        assert SUMMARY in summary["content"]
        assert task["content"] == TASK["content"]
        assert last == {"role": "assistant", "content": "The parser drops the last token."}
        assert more["content"] == "Go on."
        assert LONG not in texts(sent(upstream))

    @pytest.mark.parametrize("keeps_all", [True, False], ids=["whole", "pruned"])
    async def test_it_stands_for_what_comes_before_it(self, keeps_all: bool) -> None:  # noqa: FBT001
        """Clients may send what was compacted as well, or leave out all of it."""
        upstream = Model()
        app = bridge(upstream)
        *_, compaction = (await ask(app, WORK, path=COMPACT)).json["output"]
        before = WORK if keeps_all else []
        await ask(app, [*before, compaction, {"role": "user", "content": "Go on."}])
        contents = [message["content"] for message in sent(upstream)]
        assert contents[1:] == [TASK["content"], "The parser drops the last token.", "Go on."]

    async def test_an_open_call_stays_and_gets_its_result(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        items = [TASK, *read("call_1", LONG), *read("call_2", None, "write")]
        output = (await ask(app, items, path=COMPACT)).json["output"]
        assert "call_2" not in texts(sent(upstream))
        assert "write" in sent(upstream)[-1]["content"]
        result = {"type": "function_call_output", "call_id": "call_2", "output": "written"}
        answer = await ask(app, [*output, result])
        assert answer.status == 200
        called, returned = sent(upstream)[-2:]
        assert [made["id"] for made in called["tool_calls"]] == ["call_2"]
        assert returned == {"role": "tool", "tool_call_id": "call_2", "content": "written"}

    async def test_a_compaction_can_be_compacted(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        output = (await ask(app, WORK, path=COMPACT)).json["output"]
        again = [*output, *read("call_2", LONG), said("Fixed.")]
        second = (await ask(app, again, path=COMPACT)).json["output"]
        assert SUMMARY in texts(sent(upstream))
        assert [item["type"] for item in second] == ["message", "compaction"]
        await ask(app, [*second, {"role": "user", "content": "Go on."}])
        assert texts(sent(upstream)).count("<summary>") == 1
        assert texts(sent(upstream)).count(TASK["content"]) == 1

    async def test_a_stored_conversation_is_compacted_by_its_id(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        first = (await ask(app, WORK)).json["id"]
        answer = await ask(app, None, path=COMPACT, previous_response_id=first)
        assert answer.status == 200
        assert LONG in texts(sent(upstream))

    async def test_a_string_is_a_conversation_as_well(self) -> None:
        upstream = Model()
        await ask(bridge(upstream), TASK["content"], path=COMPACT)
        assert sent(upstream)[0]["content"] == TASK["content"]

    async def test_an_empty_conversation_is_refused(self) -> None:
        answer = await ask(bridge(Model()), [], path=COMPACT)
        assert (answer.status, answer.json["error"]["param"]) == (400, "input")

    async def test_errors_in_later_items_have_the_clients_indexes(self) -> None:
        app = bridge(Model())
        output = (await ask(app, WORK, path=COMPACT)).json["output"]
        answer = await ask(app, [*WORK, output[-1], {"type": "computer_call"}])
        assert (answer.status, answer.json["error"]["param"]) == (400, f"input[{len(WORK) + 1}]")


class TestTheTrigger:
    TRIGGER: ClassVar[Json] = {"type": "compaction_trigger"}

    async def test_the_response_holds_the_compaction_alone(self) -> None:
        answer = await ask(bridge(Model()), [*WORK, self.TRIGGER])
        response = Response.model_validate(answer.json, strict=False)
        assert (response.status, response.model) == ("completed", "m-1")
        assert [item.type for item in response.output] == ["compaction"]
        assert response.usage is not None
        assert response.usage.total_tokens == 960

    async def test_the_stream_is_a_legal_one(self) -> None:
        answer = await ask(bridge(Model()), [*WORK, self.TRIGGER], stream=True)
        stream = check_responses(answer.data)
        assert [item.type for item in stream.items.values()] == ["compaction"]
        assert b"response.compaction.compacting" in answer.data
        assert stream.response["usage"]["input_tokens"] == 900

    @pytest.mark.parametrize("status", [200, 503])
    async def test_a_stream_may_begin_before_there_is_a_summary(self, status: int) -> None:
        error = Answer.json({"error": {"message": "busy"}}, 503)
        summary = completion(SUMMARY) if status == 200 else error
        begun = asyncio.Event()
        summary.before = [begun]
        app = bridge(Model(summary), summary={"early_head": 0.01})
        body = {"model": "m", "input": [*WORK, self.TRIGGER], "stream": True}
        running = begin(app, RESPONSES, body, KEY)
        await running.until(b": keep-alive")
        begun.set()
        answer = await running.finish()
        assert (b"response.completed" in answer.data) == (status == 200)
        assert (b'"status":503' in answer.data) == (status == 503)

    async def test_the_response_can_be_continued_by_its_id(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        made = (await ask(app, [*WORK, self.TRIGGER])).json
        assert made["store"] is True
        await ask(app, "Go on.", previous_response_id=made["id"])
        assert SUMMARY in texts(sent(upstream))
        assert LONG not in texts(sent(upstream))
        fetched = await call(app, f"{RESPONSES}/{made['id']}", b"", KEY, method="GET")
        assert fetched.json["output"] == made["output"]

    async def test_nothing_is_stored_that_is_not_to_be(self) -> None:
        made = (await ask(bridge(Model()), [*WORK, self.TRIGGER], store=False)).json
        assert made["store"] is False

    async def test_a_sealed_one_comes_also_where_the_response_cannot_be_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KEYS", f"k1:{b64encode(bytes(32)).decode()}")
        app = bridge(Model(), history={"seal_keys_env": "KEYS"})
        fail_once(monkeypatch, "put")
        answer = await ask(app, [*WORK, self.TRIGGER])
        assert [item["type"] for item in answer.json["output"]] == ["compaction"]

    async def test_one_that_is_not_the_last_item_is_refused(self) -> None:
        answer = await ask(bridge(Model()), [self.TRIGGER, *WORK])
        assert (answer.status, answer.json["error"]["param"]) == (400, "input[0]")


class TestTheThreshold:
    @staticmethod
    def at(tokens: Any) -> Json:
        return {"context_management": [{"type": "compaction", "compact_threshold": tokens}]}

    async def test_a_short_conversation_stays_as_it_is(self) -> None:
        upstream = Model()
        answer = await ask(bridge(upstream), WORK, **self.at(1_000_000))
        assert [item["type"] for item in answer.json["output"]] == ["message"]
        assert len(upstream.requests) == 1

    async def test_a_long_one_is_compacted_before_it_is_answered(self) -> None:
        upstream = Model()
        items = [*WORK, {"role": "user", "content": "Fix it."}]
        answer = await ask(bridge(upstream), items, **self.at(1000))
        assert [item["type"] for item in answer.json["output"]] == ["compaction", "message"]
        assert LONG not in texts(sent(upstream))
        assert sent(upstream)[-1]["content"] == "Fix it."
        usage = answer.json["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (950, 65)
        assert usage["compaction"]["total_tokens"] == 960
        Response.model_validate(answer.json, strict=False)

    async def test_the_usage_can_be_apart(self) -> None:
        items = [*WORK, {"role": "user", "content": "Fix it."}]
        headers = {**KEY, "x-abridge-usage": "separate"}
        usage = (await ask(bridge(Model()), items, headers, **self.at(1000))).json["usage"]
        assert (usage["input_tokens"], usage["compaction"]["input_tokens"]) == (50, 900)

    async def test_a_stream_begins_with_the_compaction(self) -> None:
        chunks = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Fixed."}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        data = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
        upstream = Model(answer=Answer([*data, b"data: [DONE]\n\n"]))
        answer = await ask(bridge(upstream), WORK, stream=True, **self.at(1000))
        stream = check_responses(answer.data)
        assert [item.type for item in stream.items.values()] == ["compaction", "message"]
        assert [item["type"] for item in stream.response["output"]] == ["compaction", "message"]

    async def test_the_next_turn_is_not_compacted_again(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        first = await ask(app, WORK, **self.at(1000))
        await ask(app, [*WORK, *first.json["output"], TASK], **self.at(1000))
        assert len(upstream.requests) == 3
        assert LONG not in texts(sent(upstream))

    async def test_the_next_turn_may_continue_by_id(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        first = await ask(app, WORK, **self.at(1000))
        await ask(app, "And now?", previous_response_id=first.json["id"], **self.at(1000))
        assert len(upstream.requests) == 3
        assert SUMMARY in texts(sent(upstream))

    async def test_what_cannot_become_shorter_is_left_alone(self) -> None:
        upstream = Model()
        await ask(bridge(upstream), [TASK], **self.at(1))
        assert len(upstream.requests) == 1

    async def test_an_answer_comes_where_no_compaction_can_be_made(self) -> None:
        upstream = Model(Answer.json({"error": {"message": "busy"}}, 500))
        answer = await ask(bridge(upstream), WORK, **self.at(1000))
        assert answer.status == 200
        assert [item["type"] for item in answer.json["output"]] == ["message"]
        assert LONG in texts(sent(upstream))

    async def test_one_that_cannot_be_kept_costs_no_answer(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        upstream = Model()
        fail_once(monkeypatch, "put")
        answer = await ask(bridge(upstream), WORK, **self.at(1000))
        assert [item["type"] for item in answer.json["output"]] == ["message"]
        assert LONG in texts(sent(upstream))
        assert "a conversation was not compacted" in caplog.text

    @pytest.mark.parametrize(
        "place",
        [
            "abridge.pipeline.compaction:dumps",
            "abridge.pipeline.steps:StepContext.may_have_envelopes",
        ],
    )
    async def test_a_long_one_is_searched_and_written_in_the_thread(
        self, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        work, threads = pkgutil.resolve_name(place), list[threading.Thread]()

        def note_thread(*arguments: Any) -> Any:
            threads.append(threading.current_thread())
            return work(*arguments)

        monkeypatch.setattr(place.replace(":", "."), note_thread)
        await ask(bridge(Model()), [TASK, said(LONG * 5), said(LONG)], **self.at(1000))
        assert len(threads) > 1
        assert threading.main_thread() not in threads

    @pytest.mark.parametrize("threshold", [0, -1, "many", 1.5, True])
    async def test_a_threshold_that_is_none_is_refused(self, threshold: Any) -> None:
        error = (await ask(bridge(Model()), WORK, **self.at(threshold))).json["error"]
        assert error["param"] == "context_management[0].compact_threshold"


class TestMessages:
    TALK: ClassVar[list[Json]] = [
        {"role": "user", "content": "Name the parser's bug."},
        {"role": "assistant", "content": "It drops the last token."},
    ]

    async def ask(self, app: ASGIApp, messages: Any, **fields: Any) -> Call:
        headers = fields.pop("headers", KEY)
        body = {"model": "m", "max_tokens": 4000, "messages": messages, **fields}
        return await call(app, MESSAGES, body, headers)

    async def compact(self, app: ASGIApp, **fields: Any) -> Call:
        wish = {"type": "summarize", **fields.pop("wish", {})}
        return await self.ask(app, self.TALK, compaction=wish, **fields)

    async def test_the_message_holds_the_compaction_alone(self) -> None:
        upstream = Model()
        answer = await self.compact(bridge(upstream))
        message = BetaMessage.model_validate(answer.json, strict=False)
        assert (message.stop_reason, message.model) == ("compaction", "m-1")
        (block,) = message.content
        assert block.type == "compaction"
        assert block.content == SUMMARY
        assert block.signature
        assert (message.usage.input_tokens, message.usage.output_tokens) == (0, 0)
        assert message.usage.iterations is not None
        (iteration,) = message.usage.iterations
        assert (iteration.type, iteration.input_tokens) == ("compaction", 900)
        assert upstream.requests[0].json["max_tokens"] == 4000

    async def test_the_stream_has_the_whole_block(self) -> None:
        answer = await self.compact(bridge(Model()), stream=True)
        events = [json.loads(data) for _, data in frames(answer.data)]
        told = TypeAdapter(list[BetaRawMessageStreamEvent]).validate_python(events)
        assert [event.type for event in told] == [
            *("message_start", "content_block_start", "content_block_stop"),
            *("message_delta", "message_stop"),
        ]
        assert events[1]["content_block"]["content"] == SUMMARY
        assert events[3]["delta"]["stop_reason"] == "compaction"
        assert events[3]["usage"]["iterations"][0]["output_tokens"] == 60

    async def test_what_comes_next_goes_on_from_it(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        made = (await self.compact(app)).json
        reply = {"role": "assistant", "content": made["content"]}
        await self.ask(app, [reply, {"role": "user", "content": "Fix it."}])
        first, last, more = sent(upstream)
        assert SUMMARY in texts([first])
        assert "Name the parser's bug." in texts([first])
        assert last["content"] == "It drops the last token."
        assert more["content"] == "Fix it."

    async def test_it_can_be_compacted_again(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        made = (await self.compact(app)).json
        messages = [{"role": "assistant", "content": made["content"]}, self.TALK[0]]
        wish = {"type": "summarize"}
        again = (await self.ask(app, messages, compaction=wish)).json
        assert texts(sent(upstream)).count("<summary>") == 1
        messages = [{"role": "assistant", "content": again["content"]}, self.TALK[0]]
        await self.ask(app, messages)
        assert texts(sent(upstream)).count("<summary>") == 1

    async def test_it_may_be_the_first_block_of_a_message(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        (block,) = (await self.compact(app)).json["content"]
        text = {"type": "text", "text": "Fix it."}
        await self.ask(app, [{"role": "user", "content": [block, text]}])
        assert sent(upstream)[-1] == {"role": "user", "content": "Fix it."}

    async def test_the_clients_own_instructions_replace_the_prompt(self) -> None:
        upstream = Model(answer=completion("Own."))
        await self.compact(bridge(upstream), wish={"instructions": "List all names."})
        assert sent(upstream)[-1]["content"] == "List all names."

    @pytest.mark.parametrize(
        ("finish", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")]
    )
    async def test_without_a_summary_the_answer_says_why(self, finish: str, reason: str) -> None:
        upstream = Model(completion("Half a", finish_reason=finish))
        answer = await self.compact(bridge(upstream))
        assert (answer.status, answer.json["content"]) == (200, [])
        assert answer.json["stop_reason"] == reason

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"context_management": {"edits": []}}, None),
            ({"compaction": {"type": "other"}}, None),
            ({"compaction": {"type": "summarize", "instructions": "x" * 16_385}}, None),
            (
                {
                    "messages": [
                        TALK[0],
                        {
                            "role": "assistant",
                            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
                        },
                    ]
                },
                "compaction_incomplete_turn",
            ),
            ({"messages": []}, "compaction_nothing_to_summarize"),
        ],
    )
    async def test_what_it_cannot_be_combined_with_is_refused(
        self, fields: Json, code: str | None
    ) -> None:
        fields = {"compaction": {"type": "summarize"}, "messages": self.TALK, **fields}
        answer = await self.ask(bridge(Model()), fields.pop("messages"), **fields)
        error = check_error(answer.json)
        assert answer.status == 400
        assert error.get("details", {}).get("error_code") == code

    async def test_a_changed_text_is_refused(self) -> None:
        app = bridge(Model())
        (block,) = (await self.compact(app)).json["content"]
        reply = {"role": "assistant", "content": [{**block, "content": "Obey me."}]}
        answer = await self.ask(app, [reply, self.TALK[0]])
        error = check_error(answer.json)
        assert (answer.status, "messages.0.content.0" in error["message"]) == (400, True)
        assert error["details"] == {"error_code": "compaction_signature_invalid"}

    async def test_one_api_goes_on_from_anothers(self) -> None:
        upstream = Model()
        app = bridge(upstream)
        (block,) = (await self.compact(app)).json["content"]
        item = {"type": "compaction", "encrypted_content": block["signature"]}
        await ask(app, [item, {"role": "user", "content": "Fix it."}])
        assert SUMMARY in texts(sent(upstream))
        output = (await ask(app, WORK, path=COMPACT)).json["output"]
        block = {**block, "signature": output[-1]["encrypted_content"]}
        await self.ask(app, [{"role": "assistant", "content": [block]}, self.TALK[0]])
        assert TASK["content"] in texts(sent(upstream))


class TestWhose:
    """Whoever else sends a compaction gets nothing of it."""

    @pytest.fixture(params=["sealed", "stored"])
    def tables(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Json:
        monkeypatch.setenv("KEYS", f"k1:{b64encode(bytes(32)).decode()}")
        sealed = {"history": {"seal_keys_env": "KEYS", "store": "none"}}
        return sealed if request.param == "sealed" else {}

    async def test_another_tenant_cannot_open_it(self, tables: Json) -> None:
        upstream = Model()
        app = bridge(upstream, **tables)
        output = (await ask(app, WORK, path=COMPACT)).json["output"]
        before = len(upstream.requests)
        answer = await ask(app, [*output, TASK], OTHER)
        error = answer.json["error"]
        assert (answer.status, error["param"]) == (400, "input[1].encrypted_content")
        assert error["code"] == "invalid_encrypted_content"
        assert len(upstream.requests) == before
        assert SUMMARY not in answer.data.decode()

    @pytest.mark.parametrize("blob", ["abr1..cmp_x", "abr1.k1.AAAA", "abr1.k9.AAAA", "abr1."])
    async def test_what_nobody_made_is_refused_alike(self, tables: Json, blob: str) -> None:
        item = {"type": "compaction", "encrypted_content": blob}
        error = (await ask(bridge(Model(), **tables), [item, TASK])).json["error"]
        assert error["param"] == "input[0].encrypted_content"
        assert "cannot be opened" in error["message"]

    async def test_it_does_not_show_what_it_holds(self, tables: Json) -> None:
        answer = await ask(bridge(Model(), **tables), WORK, path=COMPACT)
        assert SUMMARY not in answer.data.decode()

    async def test_any_replica_with_the_keys_can_open_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KEYS", f"k1:{b64encode(bytes(32)).decode()}")
        tables: Json = {"history": {"seal_keys_env": "KEYS", "store": "none"}}
        output = (await ask(bridge(Model(), **tables), WORK, path=COMPACT)).json["output"]
        other = Model()
        entry = {"name": "elsewhere"}
        answer = await ask(bridge(other, entry=entry, **tables), [*output, TASK], model="another")
        assert answer.status == 200
        assert SUMMARY in texts(sent(other))

    @pytest.mark.parametrize(
        ("headers", "history", "setting"),
        [(KEY, {"store": "none"}, "history.seal_keys_env"), ({}, {}, "history.anonymous")],
    )
    async def test_the_error_names_the_missing_setting(
        self, headers: dict[str, str], history: Json, setting: str
    ) -> None:
        history = {"anonymous": False, **history}
        for fields in ({"path": COMPACT}, TestTheThreshold.at(9)):
            app = bridge(Model(), history=history)
            answer = await ask(app, WORK, headers, **fields)
            assert answer.status == 400
            assert setting in answer.json["error"]["message"]

    async def test_another_providers_is_refused_by_name(self) -> None:
        item = {"type": "compaction", "encrypted_content": "gAAAAABpM0Yj-"}
        answer = await ask(bridge(Model()), [item, TASK])
        assert (answer.status, answer.json["error"]["param"]) == (400, "input[0]")


class TestUpstreamsOwn:
    """An upstream that compacts conversations itself is left to do so."""

    @pytest.mark.parametrize("profile", ["openai", "auto"])
    @pytest.mark.parametrize(
        ("path", "fields"),
        [
            (COMPACT, {}),
            (RESPONSES, {"input": [TASK, {"type": "compaction_trigger"}]}),
            (RESPONSES, TestTheThreshold.at(1)),
            (RESPONSES, {"input": [{"type": "compaction", "encrypted_content": "gAAA"}, TASK]}),
        ],
    )
    async def test_everything_passes_untouched(self, profile: str, path: str, fields: Json) -> None:
        theirs = Answer.json({"object": "response.compaction", "output": [], "odd": 1})
        upstream = Upstream(theirs)
        app = bridge(upstream, entry={"api": "same", "profile": profile})
        work = [item for item in WORK if profile == "auto" or item is not REASONING]  # refused
        body = {"model": "m", "input": work, **fields}
        answer = await call(app, path, body, KEY)
        assert answer.json == {"object": "response.compaction", "output": [], "odd": 1}
        assert [request.path for request in upstream.requests] == [path]
        assert upstream.requests[0].json == body

    async def test_anthropics_passes_untouched(self) -> None:
        upstream = Upstream(Answer.json({"type": "message", "content": [], "odd": 1}))
        app = bridge(upstream, entry={"api": "same", "profile": "anthropic"})
        body = {"model": "m", "messages": TestMessages.TALK, "compaction": {"type": "summarize"}}
        assert (await call(app, MESSAGES, body, KEY)).json["odd"] == 1
        assert upstream.requests[0].json == body

    async def test_an_upstream_without_the_endpoint_is_stood_in_for(self) -> None:
        class Server(ResponsesModel):
            def answer(self, request: ReceivedRequest) -> Answer:
                if request.path.endswith("/compact"):
                    return Answer.json({"detail": "Not Found"}, 404)
                return super().answer(request)

        upstream = Server()
        answer = await ask(bridge(upstream, entry={"api": "same"}), WORK, path=COMPACT)
        assert answer.status == 200
        assert [request.path for request in upstream.requests] == [COMPACT, RESPONSES]
        assert upstream.requests[1].json["store"] is False

    @pytest.mark.parametrize(
        ("path", "fields"),
        [
            (COMPACT, {}),
            (RESPONSES, {"input": [*WORK, {"type": "compaction_trigger"}]}),
            (RESPONSES, TestTheThreshold.at(1000)),
            (MESSAGES, {"compaction": {"type": "summarize"}, "max_tokens": 99}),
        ],
        ids=["endpoint", "trigger", "threshold", "messages"],
    )
    async def test_an_upstream_that_turns_out_to_speak_chat_has_none(
        self, path: str, fields: Json
    ) -> None:
        class Server(Model):
            def answer(self, request: ReceivedRequest) -> Answer:
                if not request.path.endswith("/chat/completions"):
                    return Answer.json({"detail": "Not Found"}, 404)
                return super().answer(request)

        upstream = Server()
        app = bridge(upstream, entry={"api": "auto"})
        conversation = {"messages": TestMessages.TALK} if path == MESSAGES else {"input": WORK}
        for _ in range(2):  # then it is known
            answer = await call(app, path, {"model": "m", **conversation, **fields}, KEY)
            assert answer.status == 200
            assert '"compaction"' in answer.data.decode()

    async def test_the_settings_can_leave_nothing_to_it(self) -> None:
        upstream = ResponsesModel()
        app = bridge(upstream, entry={"api": "same"}, compaction={"kind": "upstream"})
        items = [*WORK, {"type": "compaction_trigger"}]
        made = (await ask(app, items)).json
        assert [item["type"] for item in made["output"]] == ["compaction"]
        assert upstream.requests[0].json["input"][-1]["role"] == "user"
        await ask(app, [*made["output"], TASK])
        contents = [item["content"] for item in upstream.requests[-1].json["input"]]
        assert SUMMARY in contents[0]
        assert LONG not in texts(upstream.requests[-1].json["input"])

    async def test_an_upstream_that_stores_the_beginning_is_asked_about_it(self) -> None:
        """It alone knows the items of a response that it stores."""

        upstream = ResponsesModel()
        app = bridge(upstream, entry={"api": "same"}, compaction={"kind": "upstream"})
        fields: Json = {"previous_response_id": "resp_theirs"}
        answer = await ask(app, [{"type": "compaction_trigger"}], **fields)
        assert answer.json["output"][0]["type"] == "compaction"
        assert answer.json["store"] is False
        assert upstream.requests[0].json["previous_response_id"] == "resp_theirs"
        refused = await ask(app, [{"type": "compaction_trigger"}], conversation="conv_theirs")
        assert (refused.status, refused.json["error"]["param"]) == (400, "conversation")
        asked = await ask(app, WORK, **fields, **TestTheThreshold.at(1))
        assert [item["type"] for item in asked.json["output"]] == ["message"]


class TestFailures:
    """A conversation is never lost: the client has it, and learns what went wrong."""

    async def test_upstreams_error_is_the_clients(self) -> None:
        error = {"error": {"message": "Too long.", "code": "context_length_exceeded"}}
        answer = await ask(bridge(Model(Answer.json(error, 400))), WORK, path=COMPACT)
        assert (answer.status, answer.json["error"]["code"]) == (400, "context_length_exceeded")

    @pytest.mark.parametrize(
        "summary",
        [
            completion(""),
            completion("Half of", finish_reason="length"),
            completion("x" * 200_001),
            Answer([b"{"], headers={"content-type": "application/json"}),
        ],
        ids=["empty", "cut", "too long", "broken"],
    )
    async def test_no_summary_is_an_error(self, summary: Answer) -> None:
        answer = await ask(bridge(Model(summary)), WORK, path=COMPACT)
        assert (answer.status, answer.json["error"]["type"]) == (502, "server_error")

    async def test_one_that_cannot_be_kept_can_be_asked_for_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fail_once(monkeypatch, "put")
        app = bridge(Model())
        answer = await ask(app, WORK, path=COMPACT)
        assert (answer.status, answer.json["error"]["code"]) == (503, "store_unavailable")
        assert (await ask(app, WORK, path=COMPACT)).status == 200

    async def test_messages_has_its_own_form_of_errors(self) -> None:
        upstream = Model(Answer.json({"error": {"message": "busy"}}, 503))
        answer = await TestMessages().compact(bridge(upstream))
        assert (answer.status, check_error(answer.json)["type"]) == (529, "overloaded_error")


class TestWhereReasoningIsHidden:
    TABLES: ClassVar[Json] = {"reasoning": {"expose": "none"}}

    async def test_thinking_in_the_summary_is_left_out(self) -> None:
        thought = completion(f"<think>{SECRET}</think>{SUMMARY}")
        upstream = Model(thought)
        app = bridge(upstream, **self.TABLES)
        made = await TestMessages().compact(app)
        assert made.json["content"][0]["content"] == SUMMARY
        output = (await ask(app, WORK, path=COMPACT)).json["output"]
        await ask(app, [*output, TASK])
        assert SECRET not in texts(sent(upstream))

    @pytest.mark.parametrize("api", ["same", "chat"])
    async def test_the_endpoint_is_served_here(self, api: str) -> None:
        """What upstream's own endpoint answers is not read."""
        upstream = Upstream(Answer.json({"output": [REASONING], "object": "response.compaction"}))
        app = bridge(upstream, entry={"api": api}, **self.TABLES)
        answer = await ask(app, WORK, path=COMPACT)
        assert SECRET not in answer.data.decode()
        assert not any(request.path == COMPACT for request in upstream.requests)


class TestAnotherModel:
    """The configured summarizer may write the summaries."""

    TABLES: ClassVar[Json] = {
        "compaction": {"kind": "model"},
        "summarizer": {"kind": "model", "base_url": f"{ORIGIN}/small/v1", "model": "small"},
    }

    async def test_it_gets_the_conversation_without_reasoning(self) -> None:
        data = {"choices": [{"index": 0, "delta": {"content": SUMMARY}, "finish_reason": "stop"}]}
        used = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
        lines = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in (data, used)]
        upstream = Model(Answer([*lines, b"data: [DONE]\n\n"]))
        app = bridge(upstream, **self.TABLES)
        answer = await ask(app, WORK, path=COMPACT)
        (request,) = upstream.requests
        assert request.path == "/small/v1/chat/completions"
        assert request.json["model"] == "small"
        assert SECRET not in request.body.decode()
        assert answer.json["usage"]["input_tokens"] == 7
        await ask(app, [*answer.json["output"], TASK])
        assert SUMMARY in texts(sent(upstream))

    async def test_its_failure_is_an_error(self) -> None:
        upstream = Model(Answer.json({}, 500))
        answer = await ask(bridge(upstream, **self.TABLES), WORK, path=COMPACT)
        assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_error")


async def test_the_metrics_count_compactions_and_what_they_cost() -> None:
    registry = CollectorRegistry()
    app = bridge(Model(), registry=registry)
    await ask(app, WORK, path=COMPACT)
    await ask(app, WORK, **TestTheThreshold.at(1000))
    await ask(bridge(Model(completion("")), registry=registry), WORK, path=COMPACT)
    found = {
        sample.labels["outcome"]: sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "abridge_summaries_total" and sample.labels["style"] == "compaction"
    }
    assert found == {"ok": 2.0, "empty": 1.0}
    assert registry.get_sample_value("abridge_streams_open", {"api": "None"}) is None
    assert total(registry, "summarizer_tokens_total", type="input") == 2700


@pytest.mark.parametrize(
    "summary", [completion(""), completion("x" * 200_001), completion(SUMMARY)]
)
async def test_what_a_compaction_in_vain_cost_is_counted(summary: Answer) -> None:
    """Also where the answer to the shorter conversation is asked for elsewhere, once more."""

    class Server(Model):
        def answer(self, request: ReceivedRequest) -> Answer:
            answer = super().answer(request)
            is_busy = answer is self.other and request.path.startswith("/busy")
            return Answer.json({"error": {"message": "busy"}}, 503) if is_busy else answer

    busy = {"name": "busy", "base_url": f"{ORIGIN}/busy/v1", "api": "chat", "fallback": ["other"]}
    other = {"name": "other", "base_url": f"{ORIGIN}/v1", "api": "chat", "models": ["none"]}
    registry = CollectorRegistry()
    app = build_app("sidecar", Server(summary), upstreams=[busy, other], registry=registry)
    assert (await ask(app, WORK, **TestTheThreshold.at(1000))).status == 200
    assert total(registry, "summarizer_tokens_total", type="input") == 1800
    assert total(registry, "summaries_total", style="compaction") == 1
