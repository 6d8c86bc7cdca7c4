"""Read the requests of Messages clients, and write them for upstreams of other APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.messages.request import REQUEST_SHAPE, read_request
from abridge.apis.shapes import DropCount, rebuild
from abridge.apis.tools import FAILED_NOTE
from abridge.core.model_request import (
    FilePart,
    ImagePart,
    Message,
    OutputFormat,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolOutputPart,
    UnknownPart,
)
from tests.apis.translation import (
    HELLO,
    Json,
    chat_request,
    messages_request,
    refused_param,
    to_chat,
    to_messages,
    to_responses,
    unfit,
)

PIXEL = {"type": "base64", "media_type": "image/png", "data": "AA=="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
LOOK = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}}
SEARCH = {"type": "web_search_20260318", "name": "web_search"}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str, **fields: Any) -> Json:
    return {"type": "text", "text": value, **fields}


def result(content: Any = "7", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **fields}


def read(*turns: Json, **fields: Any) -> list[Message]:
    return messages_request(*turns, **fields).messages


def chat_messages(*turns: Json, profile: str = "auto", **fields: Any) -> list[Json]:
    written: list[Json] = to_chat(messages_request(*turns, **fields), profile).body["messages"]
    return written


def items(*turns: Json, profile: str = "auto", **fields: Any) -> list[Json]:
    written: list[Json] = to_responses(messages_request(*turns, **fields), profile).body["input"]
    return written


class TestBlocks:
    @pytest.mark.parametrize(
        ("block", "part"),
        [
            (text("Hi"), TextPart("Hi")),
            ({"type": "image", "source": PIXEL}, ImagePart("data:image/png;base64,AA==")),
            (
                {"type": "image", "source": {"type": "url", "url": "https://x/y"}},
                ImagePart("https://x/y"),
            ),
            (
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                ImagePart(file_id="file_1"),
            ),
            (
                {"type": "document", "source": PDF, "title": "Plan"},
                FilePart("data:application/pdf;base64,AA==", name="Plan"),
            ),
            (
                {"type": "document", "source": PDF},
                FilePart("data:application/pdf;base64,AA==", name="document.pdf"),
            ),
            (
                {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
                FilePart(url="https://x/y.pdf"),
            ),
            (
                {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
                FilePart(file_id="file_1"),
            ),
            ({"type": "compaction", "content": "So far: 7."}, TextPart("So far: 7.")),
            (result("7"), ToolOutputPart("toolu_1", (TextPart("7"),))),
            (result(None, is_error=True), ToolOutputPart("toolu_1", (), failed=True)),
            (
                result([text("7"), {"type": "image", "source": PIXEL}]),
                ToolOutputPart("toolu_1", (TextPart("7"), ImagePart("data:image/png;base64,AA=="))),
            ),
            (
                result([{"type": "tool_reference", "tool_name": "look"}]),
                ToolOutputPart("toolu_1", (TextPart("Found, and offered from now on: look"),)),
            ),
        ],
    )
    def test_of_users_become_parts(self, block: Json, part: object) -> None:
        (message,) = read(user(block))
        assert message.parts == [part]

    @pytest.mark.parametrize(
        ("block", "part"),
        [
            ({"type": "thinking", "thinking": "Hm."}, ReasoningPart("Hm.")),
            (
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                ReasoningPart("Hm.", state="c2ln", is_signature=True),
            ),
            ({"type": "redacted_thinking", "data": "ZA=="}, ReasoningPart(state="ZA==")),
            (CALL, ToolCallPart("toolu_1", "look", '{"at":1}')),
            ({**CALL, "input": None}, ToolCallPart("toolu_1", "look", "{}")),
        ],
    )
    def test_of_the_assistant_become_parts(self, block: Json, part: object) -> None:
        (message,) = read(assistant(block))
        assert message.parts == [part]

    @pytest.mark.parametrize(
        "source",
        [
            {"type": "text", "media_type": "text/plain", "data": "It rains."},
            {"type": "content", "content": "It rains."},
            {"type": "content", "content": [text("It rains.")]},
        ],
    )
    def test_a_document_of_text_is_text_for_every_upstream(self, source: Json) -> None:
        block = {"type": "document", "source": source, "title": 'The "sky"', "context": "Today."}
        (message,) = chat_messages(user(block))
        shown = "".join(part["text"] for part in message["content"])
        assert shown == '<document title="The \\"sky\\"">\nToday.\nIt rains.\n</document>'

    def test_a_search_result_says_where_it_is_from(self) -> None:
        block = {
            "type": "search_result",
            "source": "https://x",
            "title": "X",
            "content": [text("It rains.")],
        }
        (message,) = read(user(block))
        shown = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        assert shown == '<document title="X">\nSource: https://x\nIt rains.\n</document>'

    def test_citations_are_left_out(self) -> None:
        source = {"type": "text", "media_type": "text/plain", "data": "It rains."}
        block = {"type": "document", "source": source, "citations": {"enabled": True}}
        assert unfit(to_chat(messages_request(user(block)))) == {
            "messages.0.content.0.citations": False
        }

    @pytest.mark.parametrize(
        ("block", "essential"),
        [
            ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, False),
            ({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, False),
            ({"type": "code_execution_tool_result", "tool_use_id": "s", "content": {}}, True),
            ({"type": "container_upload", "file_id": "file_1"}, True),
            ({"type": "a block of tomorrow"}, True),
        ],
    )
    def test_what_only_anthropic_can_run_is_refused_if_it_is_missed(
        self, block: Json, *, essential: bool
    ) -> None:
        asked = messages_request(assistant(text("Hm."), block), HELLO)
        for write in (to_chat, to_responses):
            assert unfit(write(asked)) == {"messages.0.content.1": essential}

    def test_a_part_that_no_tool_can_give_is_refused(self) -> None:
        request = messages_request(assistant(CALL), user(result([{"type": "browser_state"}])))
        assert unfit(to_chat(request)) == {"messages.1.content.0.content.0": True}

    @pytest.mark.parametrize(
        ("turns", "param"),
        [
            ("Hi", "messages"),
            (["Hi"], "messages.0"),
            ([{"role": "tool", "content": "Hi"}], "messages.0.role"),
            ([{"role": "user", "content": 7}], "messages.0.content"),
            ([user({"text": "Hi"})], "messages.0.content.0.type"),
            ([HELLO, user(text("Hi"), {"type": "text"})], "messages.1.content.1.text"),
            ([user({"type": "image"})], "messages.0.content.0.source"),
            ([user({"type": "image", "source": {}})], "messages.0.content.0.source.type"),
            (
                [user({"type": "image", "source": {**PIXEL, "type": "svg"}})],
                "messages.0.content.0.source.type",
            ),
            (
                [user({"type": "image", "source": {**PIXEL, "data": None}})],
                "messages.0.content.0.source.data",
            ),
            (
                [user({"type": "document", "source": {"type": "url"}})],
                "messages.0.content.0.source.url",
            ),
            ([user({"type": "tool_result"})], "messages.0.content.0.tool_use_id"),
            (
                [user(result([{"type": "image"}]))],
                "messages.0.content.0.content.0.source",
            ),
            ([assistant({**CALL, "id": None})], "messages.0.content.0.id"),
            ([assistant({**CALL, "input": "{}"})], "messages.0.content.0.input"),
            ([assistant({"type": "thinking"})], "messages.0.content.0.thinking"),
            (
                [assistant({"type": "thinking", "thinking": "", "signature": 1})],
                "messages.0.content.0.signature",
            ),
            ([assistant({"type": "redacted_thinking"})], "messages.0.content.0.data"),
        ],
    )
    def test_an_error_names_the_field_as_anthropic_does(self, turns: Any, param: str) -> None:
        assert refused_param(lambda: messages_request(messages=turns)) == param


class TestMessages:
    def test_results_are_a_message_of_their_own(self) -> None:
        assert [
            (message.role, len(message.parts))
            for message in read(
                user(text("Hi")),
                assistant(CALL, {**CALL, "id": "toolu_2"}),
                user(result(), {**result(), "tool_use_id": "toolu_2"}, text("And?")),
            )
        ] == [("user", 1), ("assistant", 2), ("tool", 2), ("user", 1)]

    def test_the_system_prompt_is_one_text(self) -> None:
        system = [text("Be brief."), text("Be kind.", cache_control={"type": "ephemeral"})]
        assert chat_messages(system=system)[0] == {
            "role": "system",
            "content": "Be brief.\n\nBe kind.",
        }

    def test_instructions_may_come_later(self) -> None:
        roles = [
            message.role for message in read(HELLO, {"role": "system", "content": "Be brief."})
        ]
        assert roles == ["user", "system"]

    def test_a_template_sees_later_instructions_as_the_users(self) -> None:
        """Claude Code sends some, and some templates raise an error at any but the first."""
        later = {"role": "system", "content": [text("Be brief."), text("Be kind.")]}
        reminder = "<system-reminder>\nBe brief.\n\nBe kind.\n</system-reminder>"
        assert chat_messages(HELLO, later, profile="vllm") == [
            HELLO,
            {"role": "user", "content": reminder},
        ]
        assert [message["role"] for message in chat_messages(HELLO, later, profile="openai")] == [
            "user",
            "system",
        ]

    BILLING = "x-anthropic-billing-header: cc_version=2.1.197.4cb; cch=6ea6a;"

    @pytest.mark.parametrize(
        ("system", "prompt"),
        [
            ([text(BILLING), text("Be brief.")], "Be brief."),
            ([text(f"{BILLING}\nBe brief.", cache_control={})], "Be brief."),
            (f"{BILLING}\nBe brief.", "Be brief."),
            (f"Be brief.\n{BILLING}", f"Be brief.\n{BILLING}"),
            ([text("Be brief."), text(BILLING)], f"Be brief.\n\n{BILLING}"),
        ],
    )
    def test_a_line_for_anthropics_billing_is_left_out(self, system: Any, prompt: str) -> None:
        assert chat_messages(system=system)[0] == {"role": "system", "content": prompt}

    @pytest.mark.parametrize("system", [BILLING, [text(BILLING)], "", [], None])
    def test_without_another_word_there_are_no_instructions(self, system: Any) -> None:
        assert chat_messages(system=system) == [HELLO]

    def test_an_answer_that_is_begun_stays_the_last_message(self) -> None:
        assert chat_messages(HELLO, {"role": "assistant", "content": "{"})[-1] == {
            "role": "assistant",
            "content": "{",
        }

    def test_reasoning_returns_with_its_call(self) -> None:
        turn = assistant({"type": "thinking", "thinking": "Hm.", "signature": ""}, CALL)
        (_, said, answered) = chat_messages(HELLO, turn, user(result()), profile="deepseek")
        assert said["reasoning_content"] == "Hm."
        assert answered == {"role": "tool", "tool_call_id": "toolu_1", "content": "7"}

    def test_opaque_state_returns_to_a_responses_upstream(self) -> None:
        turn = assistant({"type": "redacted_thinking", "data": "gAAA"}, text("Hi"))
        assert items(HELLO, turn, HELLO)[1] == {
            "type": "reasoning",
            "summary": [],
            "encrypted_content": "gAAA",
        }

    @pytest.mark.parametrize(
        ("content", "stated"),
        [
            ("No such file", f"{FAILED_NOTE}\nNo such file"),
            (None, FAILED_NOTE),
        ],
    )
    def test_the_model_is_told_that_a_tool_failed(self, content: Any, stated: str) -> None:
        turns = (HELLO, assistant(CALL), user(result(content, is_error=True)))
        assert chat_messages(*turns)[-1]["content"] == stated
        assert items(*turns)[-1]["output"] == stated

    def test_an_image_of_a_tool_that_failed_is_shown(self) -> None:
        turns = (
            assistant(CALL),
            user(result([{"type": "image", "source": PIXEL}], is_error=True)),
        )
        *_, answered, shown = chat_messages(HELLO, *turns)
        assert answered["content"] == FAILED_NOTE
        assert shown["content"][-1]["type"] == "image_url"
        parts = items(HELLO, *turns)[-1]["output"]
        assert [part["type"] for part in parts] == ["input_text", "input_image"]

    def test_results_of_parallel_calls_keep_their_order(self) -> None:
        calls = [{**CALL, "id": f"toolu_{number}"} for number in range(3)]
        results = [{**result(str(number)), "tool_use_id": f"toolu_{number}"} for number in range(3)]
        turns = (HELLO, assistant(*calls), user(*results))
        assert [message["content"] for message in chat_messages(*turns)[2:]] == ["0", "1", "2"]
        assert [item["output"] for item in items(*turns)[4:]] == ["0", "1", "2"]


class TestTools:
    def test_are_functions(self) -> None:
        tool = {**LOOK, "description": "Looks.", "strict": True}
        assert to_chat(messages_request(tools=[tool])).body["tools"] == [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": LOOK["input_schema"],
                    "strict": True,
                },
            }
        ]

    @pytest.mark.parametrize(
        ("kind", "name", "keys"),
        [
            ("bash_20250124", "bash", {"command", "restart"}),
            ("text_editor_20250728", "str_replace_based_edit_tool", {"command", "path"}),
            ("memory_20250818", "memory", {"command", "path", "old_path"}),
            ("computer_20251124", "computer", {"action", "coordinate", "text"}),
        ],
    )
    def test_of_anthropics_that_the_client_runs_are_functions(
        self, kind: str, name: str, keys: set[str]
    ) -> None:
        tool = {"type": kind, "name": name, "display_width_px": 800, "display_height_px": 600}
        written = to_chat(messages_request(tools=[tool]))
        function = written.body["tools"][0]["function"]
        assert function["name"] == name
        assert keys <= function["parameters"]["properties"].keys()
        assert written.unsupported == []

    def test_a_models_screen_has_its_size(self) -> None:
        tool = {"type": "computer_20250124", "name": "computer"}
        (read_tool,) = messages_request(
            tools=[{**tool, "display_width_px": 800, "display_height_px": 600}]
        ).tools
        assert "800 pixels wide and 600 high" in read_tool.description

    def test_names_are_such_that_every_upstream_takes_them(self) -> None:
        name = "mcp__" + "a" * 100
        request = messages_request(
            HELLO,
            assistant({**CALL, "name": name}),
            user(result()),
            tools=[{**LOOK, "name": name}],
            tool_choice={"type": "tool", "name": name},
        )
        body = to_chat(request).body
        offered = body["tools"][0]["function"]["name"]
        assert len(offered) <= 64
        assert body["messages"][1]["tool_calls"][0]["function"]["name"] == offered
        assert body["tool_choice"]["function"]["name"] == offered
        assert request.tools[0].client_name == name

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            ({"type": "auto"}, ToolChoice("auto")),
            ({"type": "any"}, ToolChoice("required")),
            ({"type": "none"}, ToolChoice("none")),
            ({"type": "tool", "name": "look"}, ToolChoice("required", ("look",))),
            (None, None),
        ],
    )
    def test_choices(self, choice: Json | None, expected: ToolChoice | None) -> None:
        assert messages_request(tools=[LOOK], tool_choice=choice).tool_choice == expected

    def test_calls_may_be_wanted_one_at_a_time(self) -> None:
        choice = {"type": "auto", "disable_parallel_tool_use": True}
        request = messages_request(tools=[LOOK], tool_choice=choice)
        for write in (to_chat, to_responses):
            assert write(request).body["parallel_tool_calls"] is False

    @pytest.mark.parametrize(
        ("fields", "essential"),
        [
            ({"tools": [LOOK, SEARCH]}, False),
            ({"tools": [SEARCH, LOOK], "tool_choice": {"type": "tool", "name": "look"}}, False),
            ({"tools": [SEARCH]}, True),
            (
                {"tools": [SEARCH, LOOK], "tool_choice": {"type": "tool", "name": "web_search"}},
                True,
            ),
            ({"tools": [LOOK, {"type": "code_execution_20250825", "name": "x"}]}, True),
            ({"tools": [LOOK, {"type": "mcp_toolset", "mcp_server_name": "x"}]}, True),
        ],
    )
    def test_that_anthropic_runs_are_refused_unless_the_model_can_do_without(
        self, fields: Json, *, essential: bool
    ) -> None:
        for write in (to_chat, to_responses):
            ((param, is_essential),) = unfit(write(messages_request(**fields))).items()
            assert param.startswith("tools.")
            assert is_essential is essential

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"tools": {}}, "tools"),
            ({"tools": [{"input_schema": {}}]}, "tools.0.name"),
            ({"tools": [LOOK, {"name": "look"}]}, "tools.1.input_schema"),
            ({"tools": [{**LOOK, "strict": "yes"}]}, "tools.0.strict"),
            ({"tool_choice": "auto"}, "tool_choice"),
            ({"tool_choice": {"type": "all"}}, "tool_choice.type"),
            ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ],
    )
    def test_an_error_names_the_field(self, fields: Json, param: str) -> None:
        assert refused_param(lambda: messages_request(**fields)) == param


class TestThinking:
    @pytest.mark.parametrize(
        ("budget", "effort"),
        [
            (1024, "low"),
            (4096, "low"),
            (4097, "medium"),
            (10_000, "medium"),
            (31_999, "high"),
        ],
    )
    def test_a_budget_stands_for_an_effort(self, budget: int, effort: str) -> None:
        request = messages_request(thinking={"type": "enabled", "budget_tokens": budget})
        assert to_chat(request).body["reasoning_effort"] == effort
        assert to_responses(request).body["reasoning"] == {"effort": effort, "summary": "auto"}

    @pytest.mark.parametrize(
        ("profile", "field"),
        [("qwen", {"thinking_budget": 9000}), ("openrouter", {"reasoning": {"max_tokens": 9000}})],
    )
    def test_a_budget_is_one_where_the_provider_takes_budgets(
        self, profile: str, field: Json
    ) -> None:
        request = messages_request(thinking={"type": "enabled", "budget_tokens": 9000})
        body = to_chat(request, profile).body
        assert field.items() <= body.items()
        assert "reasoning_effort" not in body

    def test_an_effort_is_taken_at_its_word(self) -> None:
        request = messages_request(thinking={"type": "adaptive"}, output_config={"effort": "xhigh"})
        assert to_chat(request).body["reasoning_effort"] == "xhigh"

    def test_thinking_of_no_known_amount_is_upstreams_to_choose(self) -> None:
        body = to_chat(messages_request(thinking={"type": "adaptive"})).body
        assert "reasoning_effort" not in body

    @pytest.mark.parametrize(
        ("profile", "fields"),
        [
            ("vllm", {"chat_template_kwargs": {"enable_thinking": False}}),
            ("deepseek", {"thinking": {"type": "disabled"}}),
        ],
    )
    def test_is_switched_off_where_upstream_can_be_told(self, profile: str, fields: Json) -> None:
        request = messages_request(thinking={"type": "disabled"}, output_config={"effort": "high"})
        written = to_chat(request, profile)
        assert fields.items() <= written.body.items()
        assert "reasoning_effort" not in written.body
        assert written.unsupported == []

    @pytest.mark.parametrize(
        ("thinking", "style"),
        [
            ({"type": "adaptive"}, "auto"),
            ({"type": "enabled", "budget_tokens": 2000, "display": "summarized"}, "auto"),
            ({"type": "adaptive", "display": "omitted"}, None),
            ({"type": "disabled"}, None),
            (None, None),
        ],
    )
    def test_upstream_summarizes_for_whoever_wants_to_see_thinking(
        self, thinking: Json | None, style: str | None
    ) -> None:
        assert messages_request(thinking=thinking).native_style == style

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"thinking": "high"}, "thinking"),
            ({"thinking": {"type": 1}}, "thinking.type"),
            ({"thinking": {"type": "enabled", "budget_tokens": "9"}}, "thinking.budget_tokens"),
            ({"thinking": {"type": "enabled", "budget_tokens": 0}}, "thinking.budget_tokens"),
            ({"output_config": []}, "output_config"),
            ({"output_config": {"effort": 5}}, "output_config.effort"),
        ],
    )
    def test_an_error_names_the_field(self, fields: Json, param: str) -> None:
        assert refused_param(lambda: messages_request(**fields)) == param


MARK = {"type": "ephemeral"}


class TestCacheMarks:
    TURNS = (
        user(text("Hi"), text("there", cache_control=MARK)),
        assistant(CALL),
        user(result("7", cache_control=MARK)),
    )
    SYSTEM = (text("Be brief."), text("Be kind.", cache_control=MARK))

    @pytest.mark.parametrize("profile", ["openrouter", "litellm"])
    def test_stand_where_the_client_set_them(self, profile: str) -> None:
        system, asked, _, answered = chat_messages(
            *self.TURNS, system=list(self.SYSTEM), profile=profile
        )
        assert system == {"role": "system", "content": list(self.SYSTEM)}
        assert asked["content"] == [text("Hi"), text("there", cache_control=MARK)]
        assert answered["content"] == [text("7", cache_control=MARK)]

    @pytest.mark.parametrize("profile", ["auto", "vllm", "openai"])
    def test_are_dropped_where_upstream_knows_none(self, profile: str) -> None:
        request = messages_request(*self.TURNS, system=list(self.SYSTEM), cache_control=MARK)
        for written in (to_chat(request, profile), to_responses(request, profile)):
            assert "cache_control" not in str(written.body)
            assert unfit(written) == {"cache_control": False}

    def test_a_mark_for_the_whole_request_is_passed_on(self) -> None:
        assert (
            to_chat(messages_request(cache_control=MARK), "openrouter").body["cache_control"]
            == MARK
        )

    def test_of_a_chat_client_reach_a_messages_upstream(self) -> None:
        request = chat_request(
            {"role": "system", "content": list(self.SYSTEM)},
            {"role": "user", "content": [text("Hi", cache_control=MARK)]},
            cache_control=MARK,
        )
        body = to_messages(request).body
        assert body["system"] == list(self.SYSTEM)
        assert body["messages"][0]["content"] == [text("Hi", cache_control=MARK)]
        assert body["cache_control"] == MARK


SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


class TestParams:
    def test_have_their_places_in_a_chat_request(self) -> None:
        request = messages_request(
            stop_sequences=["END"],
            temperature=0.5,
            top_k=3,
            metadata={"user_id": "u"},
            service_tier="standard_only",
            stream=True,
        )
        body = to_chat(request).body
        assert {
            "max_tokens": 100,
            "stop": ["END"],
            "temperature": 0.5,
            "top_k": 3,
            "user": "u",
            "service_tier": "default",
            "stream": True,
        }.items() <= body.items()

    def test_a_limit_is_not_needed_where_upstream_needs_none(self) -> None:
        assert "max_tokens" not in to_chat(messages_request(max_tokens=None)).body

    def test_a_long_user_id_is_a_digest(self) -> None:
        first, again, other = (
            to_chat(messages_request(metadata={"user_id": letter * 200})).body["user"]
            for letter in "aab"
        )
        assert first == again != other
        assert len(first) == 64

    @pytest.mark.parametrize(
        "fields",
        [
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
            {"output_format": {"type": "json_schema", "schema": SCHEMA}},
        ],
    )
    def test_a_format_is_a_schema(self, fields: Json) -> None:
        request = messages_request(**fields)
        assert request.output_format == OutputFormat(SCHEMA)
        assert to_chat(request).body["response_format"]["json_schema"]["schema"] == SCHEMA

    @pytest.mark.parametrize(
        ("field", "value", "essential"),
        [
            ("context_management", {"edits": [{"type": "clear_thinking_20251015"}]}, False),
            ("container", "container_1", True),
            ("mcp_servers", [{"type": "url", "url": "https://x", "name": "x"}], True),
            ("inference_geo", "us", True),
            ("speed", "fast", False),
            ("betas", ["context-1m-2025-08-07"], False),
            ("cache_control", {"type": "ephemeral"}, False),
            ("diagnostics", {}, False),
        ],
    )
    def test_of_anthropics_alone_are_left_out(
        self, field: str, value: Any, *, essential: bool
    ) -> None:
        for write in (to_chat, to_responses):
            written = write(messages_request(**{field: value}))
            assert unfit(written) == {field: essential}
            assert field not in written.body

    def test_that_nobody_knows_are_passed_on(self) -> None:
        assert to_chat(messages_request(of_tomorrow=1)).body["of_tomorrow"] == 1

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"max_tokens": "9"}, "max_tokens"),
            ({"max_tokens": 0}, "max_tokens"),
            ({"stop_sequences": [1]}, "stop_sequences"),
            ({"temperature": "hot"}, "temperature"),
            ({"metadata": {"user_id": 1}}, "metadata.user_id"),
            ({"stream": "yes"}, "stream"),
            ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
            ({"output_format": {"type": "json_schema"}}, "output_format.schema"),
        ],
    )
    def test_an_error_names_the_field(self, fields: Json, param: str) -> None:
        assert refused_param(lambda: messages_request(**fields)) == param


def test_an_unknown_block_is_kept_for_whoever_asks() -> None:
    (message,) = read(user({"type": "a block of tomorrow", "of": 1}))
    assert message.parts == [UnknownPart({"type": "a block of tomorrow", "of": 1})]


@pytest.mark.parametrize(
    "read", [read_request, lambda body: rebuild(body, REQUEST_SHAPE, DropCount())]
)
def test_a_thread_is_refused_where_upstream_would_not_hear_of_it(
    read: Callable[[dict[str, Any]], object],
) -> None:
    body = {"model": "m", "messages": [], "thread": {"type": "create"}}
    assert refused_param(lambda: read(body)) == "thread"
    read({**body, "thread": None})
