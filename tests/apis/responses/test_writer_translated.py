"""The Responses API, composed of what an upstream of another API told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import Response

from abridge.apis.display import Display
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.writer import ResponsesWriter
from abridge.apis.tools import as_function
from abridge.core.effects import RequestPart
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    ToolCallDelta,
)
from abridge.core.model_request import Tool
from abridge.core.plan import SummaryPlan
from abridge.core.usage import SummaryShare, Tokens
from tests.end_to_end.translation.turn import WORDS, answer
from tests.support.checker import ResponsesStream, check_responses, frames
from tests.support.openapi import event_faults, faults
from tests.support.pipeline import LIMIT, Minting, Pipeline, translating
from tests.support.shared import needs_openapi
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    THOUGHT,
    call,
    chat_stream,
    chunk,
    completion,
    thinking,
)

ANSWER = "The sum is 100."
REQUIRED = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
]
"""What openresponses' compliance suite looks for."""


def run(stream: list[bytes], **settings: Any) -> ResponsesStream:
    return check_responses(translating("chat", RESPONSES, **settings).stream(b"".join(stream)))


def make_writer(echo: RequestEcho | None = None, **display: Any) -> ResponsesWriter:
    return ResponsesWriter(Display(**display), echo or RequestEcho(), LIMIT, Minting())


def write(*events: Event, echo: RequestEcho | None = None, **display: Any) -> ResponsesStream:
    writer = make_writer(echo, **display)
    whole = [ResponseStarted(None, None, "up", "thinker-1", 7), *events]
    if not isinstance(events[-1], ResponseEnded):
        whole.append(ResponseEnded(None, None, ok=True))
    return check_responses(b"".join(map(writer.write, whole)))


def called(number: int, arguments: str, *, name: str = "", custom: bool = False) -> ToolCallDelta:
    identity = f"call_{number}" if name else ""
    return ToolCallDelta(
        0, None, call_index=number, id=identity, name=name, arguments=arguments, custom=custom
    )


class Waiting(Pipeline):
    """Its summarizer writes only when it is told to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked: list[RequestPart] = []

    def summarize(self, request: RequestPart) -> None:
        self.asked.append(request)

    def write_all(self) -> None:
        for request in self.asked:
            super().summarize(request)


def data_of(stream: bytes) -> list[str]:
    return [data for _, data in frames(bytes(stream))]


class TestOrder:
    def test_a_whole_lifecycle_in_openais_order(self) -> None:
        seen = run(chat_stream(THOUGHT, ANSWER))
        runs = [
            kind
            for place, kind in enumerate(seen.kinds)
            if not place or seen.kinds[place - 1] != kind
        ]
        assert runs == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]

    @pytest.mark.parametrize("upstream", ["chat", "messages", "gemini", "interactions"])
    def test_reasoning_ends_as_upstreams_does_whatever_its_summary_takes(
        self, upstream: str
    ) -> None:
        pipeline = Waiting(RESPONSES, upstream=upstream)
        steps = answer(upstream, stream=True).steps
        pipeline.stream(b"".join(step for step in steps if isinstance(step, bytes)))
        early = [event["type"] for event in map(json.loads, data_of(pipeline.out))]
        assert early[-2:] == ["response.reasoning_text.done", "response.content_part.done"]
        pipeline.write_all()
        seen = check_responses(bytes(pipeline.out))
        assert seen.kinds.count("response.reasoning_text.done") == 1
        assert (seen.raw, len(seen.summary), seen.text) == (THOUGHT, 1, WORDS)

    def test_the_same_text_everywhere(self) -> None:
        seen = run(chat_stream(THOUGHT, ANSWER))
        (item,) = seen.reasoning
        assert item.done is not None
        assert seen.response["output"][0] == item.done
        assert item.done["content"] == [{"type": "reasoning_text", "text": THOUGHT}]
        assert [part["text"] for part in item.done["summary"]] == item.summary
        assert seen.response["output"][1]["content"][0]["text"] == ANSWER

    def test_each_stretch_is_an_item_with_parts_of_its_own(self) -> None:
        stream = [
            chunk({"reasoning": THOUGHT}),
            chunk({"tool_calls": [call("a", "{}", 0)]}),
            chunk({"reasoning": thinking(2000)}),
            chunk({"tool_calls": [call("b", "{}", 1)]}),
            chunk({}, finish="tool_calls"),
            DONE,
        ]
        seen = run(stream)
        kinds = [item.type for item in seen.items.values()]
        assert kinds == ["reasoning", "function_call"] * 2
        assert all(item.summary for item in seen.reasoning)

    def test_ids_are_minted_in_openais_form_and_call_ids_are_upstreams(self) -> None:
        seen = run(chat_stream(THOUGHT, ANSWER, calls=[call("add", "{}")]))
        prefixes = [item.id.split("_")[0] for item in seen.items.values()]
        assert prefixes == ["rs", "msg", "fc"]
        assert seen.response["id"].startswith("resp_")
        assert seen.response["output"][2]["call_id"] == "call_0"

    def test_an_empty_answer_is_a_valid_response(self) -> None:
        seen = run([chunk({"role": "assistant"}), chunk({}, finish="stop"), DONE])
        assert seen.response["output"] == []
        assert seen.response["status"] == "completed"


class TestResponse:
    ECHO = RequestEcho(
        {
            "model": "asked-for",
            "instructions": "Be brief.",
            "tools": [{"type": "function", "name": "add"}],
            "tool_choice": "required",
            "text": {"verbosity": "low"},
            "temperature": 0.2,
            "metadata": {"a": "b"},
            "store": True,
            "reasoning": {"effort": "low", "summary": "detailed"},
        },
        now=lambda: 1_800_000_000.5,
    )

    def test_it_repeats_the_parameters_of_the_request(self) -> None:
        response = run(chat_stream(THOUGHT, ANSWER), echo=self.ECHO).response
        assert response["instructions"] == "Be brief."
        assert response["tools"] == [
            {
                "type": "function",
                "name": "add",
                "description": None,
                "parameters": None,
                "strict": True,
            }
        ]
        assert response["text"] == {"format": {"type": "text"}, "verbosity": "low"}
        assert (response["temperature"], response["metadata"]) == (0.2, {"a": "b"})

    def test_ignored_parameters_are_not_repeated(self) -> None:
        response = run(chat_stream(THOUGHT, ANSWER), echo=self.ECHO, expose="raw").response
        assert response["reasoning"] == {"effort": "low", "summary": None}
        assert response["store"] is False

    def test_times(self) -> None:
        response = run(chat_stream(THOUGHT, ANSWER), echo=self.ECHO).response
        assert (response["created_at"], response["completed_at"]) == (1_700_000_000, 1_800_000_000)

    def test_without_a_name_or_a_time_of_upstreams_it_has_the_requests(self) -> None:
        writer = make_writer(self.ECHO)
        events = [ResponseStarted(None, None, "", "", 0), ResponseEnded(None, None, ok=True)]
        response = check_responses(b"".join(map(writer.write, events))).response
        assert (response["created_at"], response["model"]) == (1_800_000_000, "asked-for")

    def test_all_that_open_responses_requires_is_there(self) -> None:
        for event in run(chat_stream(THOUGHT, ANSWER)).events:
            if "response" in event:
                assert set(REQUIRED) <= event["response"].keys()

    def test_a_frame_of_upstreams_api_is_not_passed(self) -> None:
        writer = make_writer()
        writer.write(ResponseStarted(None, None, "", "", 0))
        assert writer.write(Passthrough(None, b"data: {}\n\n")) == b""

    def test_a_keep_alive_is_the_response_once_more(self) -> None:
        writer = make_writer()
        assert writer.keep_alive() == b""
        stream = writer.write(ResponseStarted(None, None, "", "", 0)) + writer.keep_alive()
        stream += writer.write(ResponseEnded(None, None, ok=True))
        assert check_responses(stream).kinds[1:3] == ["response.in_progress"] * 2
        assert writer.keep_alive() == b""

    @needs_openapi
    @pytest.mark.parametrize("echo", [RequestEcho(), ECHO])
    def test_it_is_what_openai_describes(self, echo: RequestEcho) -> None:
        seen = run(chat_stream(THOUGHT, ANSWER, calls=[call("add", "{}")]), echo=echo)
        for event in seen.events:
            assert not event_faults(event), event


class TestExposure:
    def test_a_signature_is_marked_as_one(self) -> None:
        seen = write(
            ReasoningStarted(0, None, 0),
            ReasoningDelta(0, None, 0, "Hm"),
            ProviderState(0, None, 0, "s1", signs=True),
            ReasoningEnded(0, None, 0),
        )
        assert seen.response["output"][0]["encrypted_content"] == "sig1.s1"

    def test_an_item_holds_one_and_the_rest_go_in_items_of_their_own(self) -> None:
        seals = [ProviderState(0, None, 0, data) for data in ("a", "b", "c")]
        seen = write(
            ReasoningStarted(0, None, 0),
            ReasoningDelta(0, None, 0, "Hm"),
            *seals,
            ReasoningEnded(0, None, 0),
        )
        items = seen.response["output"]
        assert [item["encrypted_content"] for item in items] == ["a", "b", "c"]
        assert [len(item["content"]) for item in items] == [1, 0, 0]
        assert all(item["summary"] == [] for item in items)

    def test_without_state_there_is_no_such_key(self) -> None:
        item = run(chat_stream(THOUGHT, ANSWER)).response["output"][0]
        assert "encrypted_content" not in item


class TestCalls:
    PATCH = Tool("apply_patch", "custom", client_name="apply_patch")
    SHELL = Tool("local_shell", "local_shell", client_name="local_shell")
    GROUPED = Tool("mail_send", client_name="send", group="mail", parameters={})

    def offered(self, tool: Tool) -> RequestEcho:
        return RequestEcho({}, {tool.name: tool})

    def test_the_next_call_streams_as_soon_as_the_last_is_whole(self) -> None:
        writer = make_writer()
        for event in (called(0, "{", name="f"), called(1, "{", name="g")):
            writer.write(event)
        assert b'"name":"g"' in writer.write(called(0, "}"))

    def test_a_call_that_is_never_whole_does_not_cost_the_others(self) -> None:
        seen = write(called(0, "", name="f"), called(1, "{}", name="g"), Finished(0, None, "stop"))
        assert [item.arguments for item in seen.items.values()] == ["", "{}"]

    def test_a_custom_tools_input_streams(self) -> None:
        echo = self.offered(self.PATCH)
        seen = write(
            called(0, "*** ", name="apply_patch", custom=True),
            called(0, "Begin", custom=True),
            echo=echo,
        )
        deltas = [event["delta"] for event in seen.events if "input.delta" in event["type"]]
        assert deltas == ["*** ", "Begin"]
        (item,) = seen.response["output"]
        assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin")
        assert item["id"].startswith("ctc_")

    def test_a_custom_tool_offered_as_a_function_gets_its_text(self) -> None:
        echo = self.offered(as_function(self.PATCH))
        seen = write(
            called(0, '{"input": "*** ', name="apply_patch"), called(0, 'Begin"}'), echo=echo
        )
        kinds = [kind for kind in seen.kinds if "custom_tool_call_input" in kind]
        assert [kind.rsplit(".", 1)[1] for kind in kinds] == ["delta", "done"]
        assert seen.response["output"][0]["input"] == "*** Begin"

    def test_a_local_shell_call_has_no_deltas(self) -> None:
        echo = self.offered(self.SHELL)
        seen = write(called(0, '{"command": ["ls"]}', name="local_shell"), echo=echo)
        assert not any("delta" in kind for kind in seen.kinds)
        (item,) = seen.response["output"]
        assert (item["type"], item["action"]["command"]) == ("local_shell_call", ["ls"])

    @pytest.mark.parametrize(
        ("kind", "given", "field"),
        [
            ("shell", {"commands": ["ls"], "timeout_ms": 5, "max_output_length": None}, "action"),
            ("apply_patch", {"type": "create_file", "path": "a", "diff": "+ä"}, "operation"),
        ],
    )
    @needs_openapi
    def test_a_built_in_tool_s_call_is_an_item_of_its_own_type(
        self, kind: Any, given: Any, field: str
    ) -> None:
        arguments = json.dumps(given)
        seen = write(
            called(0, arguments[:9], name=kind),
            called(0, arguments[9:]),
            echo=self.offered(Tool(kind, kind, client_name=kind)),
        )
        (item,) = seen.response["output"]
        assert (item["type"], item[field]) == (f"{kind}_call", given)
        assert not any(event_faults(event) for event in seen.events)
        Response.model_validate(seen.response, strict=True)

    def test_a_tool_of_a_group_is_called_by_the_clients_name_for_it(self) -> None:
        seen = write(called(0, "{}", name="mail_send"), echo=self.offered(self.GROUPED))
        (item,) = seen.response["output"]
        assert (item["name"], item["namespace"]) == ("send", "mail")

    @needs_openapi
    def test_they_are_what_openai_describes(self) -> None:
        tools = {tool.name: tool for tool in (self.SHELL, as_function(self.PATCH), self.GROUPED)}
        seen = write(
            called(0, '{"input": "x"}', name="apply_patch"),
            called(1, '{"command": ["ls"]}', name="local_shell"),
            called(2, "{}", name="mail_send"),
            echo=RequestEcho({}, tools),
        )
        for event in seen.events:
            assert not event_faults(event), event


class TestMessages:
    def test_a_refusal_is_a_part_of_its_own(self) -> None:
        seen = run([chunk({"content": "Well."}), chunk({"refusal": "No."}), *END])
        (item,) = seen.response["output"]
        assert [part["type"] for part in item["content"]] == ["output_text", "refusal"]
        assert item["content"][1]["refusal"] == "No."
        assert "response.refusal.done" in seen.kinds

    def test_log_probabilities_are_in_deltas_and_parts(self) -> None:
        entry = {"token": "Yes", "logprob": -0.1}
        seen = write(ContentDelta(0, None, "Yes", [entry]))
        (part,) = seen.response["output"][0]["content"]
        whole = {**entry, "bytes": [89, 101, 115], "top_logprobs": []}
        assert part["logprobs"] == [whole]
        (delta,) = [event for event in seen.events if event["type"].endswith("text.delta")]
        assert delta["logprobs"] == [whole]


END = [chunk({}, finish="stop"), DONE]


class TestEnds:
    @pytest.mark.parametrize(
        ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter",) * 2]
    )
    def test_an_answer_that_is_cut_is_incomplete(self, finish: str, reason: str) -> None:
        response = run(chat_stream("", ANSWER, finish=finish)).response
        assert response["status"] == "incomplete"
        assert response["incomplete_details"] == {"reason": reason}
        assert response["output"][-1]["status"] == "incomplete"
        assert response["completed_at"] is None

    def test_an_error_in_the_stream_keeps_its_message(self) -> None:
        error = chunk({}, error={"message": "The provider broke."})
        seen = run([*chat_stream(THOUGHT, ANSWER)[:45], error, DONE])
        assert seen.response["error"]["message"] == "The provider broke."
        assert seen.reasoning

    def test_omit_marks_the_item_once(self) -> None:
        stream = [
            chunk({"reasoning": THOUGHT}),
            chunk({"content": "One."}),
            chunk({"reasoning": THOUGHT}),
            chunk({"content": "Two."}),
            *END,
        ]
        output = run(stream, write=None).response["output"]
        marks = [item["summary_error"]["code"] for item in output if "summary_error" in item]
        assert marks == ["upstream_error"]
        assert [item["type"] for item in output] == ["reasoning", "message"] * 2

    def test_fail_ends_with_response_failed_that_carries_the_output(self) -> None:
        seen = run(chat_stream(THOUGHT, ANSWER), write=None, plan=SummaryPlan(fail_response=True))
        assert seen.response["status"] == "failed"
        assert seen.response["output"][1]["content"][0]["text"] == ANSWER

    def test_fail_of_a_whole_response_is_an_error_that_carries_it(self) -> None:
        pipeline = translating("chat", RESPONSES, write=None, plan=SummaryPlan(fail_response=True))
        text = {"reasoning_content": THOUGHT, "content": ANSWER}
        body = json.loads(pipeline.whole(json.dumps(completion(text)).encode()))
        assert body["error"]["code"] == "upstream_error"
        assert body["error"]["response"]["output"][1]["content"][0]["text"] == ANSWER


class TestUsage:
    def test_merged_the_totals_grow_and_the_share_stands_apart(self) -> None:
        usage = run(chat_stream(THOUGHT, ANSWER)).response["usage"]
        assert usage["total_tokens"] == CHAT_USAGE["total_tokens"] + 15
        assert usage["output_tokens_details"]["reasoning_tokens"] == 50
        assert usage["reasoning_summary"]["total_tokens"] == 15

    def test_separate_the_totals_stay_upstreams(self) -> None:
        usage = run(chat_stream(THOUGHT, ANSWER), merge_usage=False).response["usage"]
        assert usage["total_tokens"] == CHAT_USAGE["total_tokens"]

    def test_what_nobody_reported_is_null(self) -> None:
        response = run(chat_stream(THOUGHT, ANSWER, usage=None)).response
        assert response["usage"] is None
        assert response["reasoning_summary_usage"]["total_tokens"] == 15

    def test_the_share_comes_with_the_end(self) -> None:
        share = SummaryShare(Tokens(1, 2, 3), ("mini",), 1, incomplete=False)
        seen = write(ResponseEnded(None, None, ok=True, usage=Tokens(1, 1, 2), share=share))
        assert seen.response["usage"]["total_tokens"] == 5


@needs_openapi
def test_a_stream_and_a_body_agree() -> None:
    text = {"reasoning_content": THOUGHT, "content": ANSWER, "tool_calls": [call("add", "{}")]}
    pipeline = translating("chat", RESPONSES)
    whole = json.loads(pipeline.whole(json.dumps(completion(text)).encode()))
    streamed = run(chat_stream(THOUGHT, ANSWER, calls=[call("add", "{}")])).response
    assert whole == streamed
    assert not faults("Response", whole)
