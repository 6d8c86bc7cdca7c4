"""Test writing requests in the format of Anthropic Messages."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.json import dumps
from abridge.apis.messages.api import MESSAGES
from abridge.core.conversation import Json
from abridge.core.model_request import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ModelRequest,
    OutputFormat,
    ReasoningPart,
    RefusalPart,
    Role,
    TextPart,
    Tool,
    ToolCallPart,
    ToolChoice,
    ToolOutputPart,
    TranslatedRequest,
    UnknownPart,
)
from abridge.providers.catalog import PROFILES
from tests.apis.messages.spec import ANTHROPIC, check_request, needs_anthropic
from tests.support.shared import RECORDINGS, needs_recordings

OLD, BUDGET, LATE, NEWEST = (
    "claude-3-haiku",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-5-5",
)
MODELS = (
    OLD,
    "claude-sonnet-4-0",
    BUDGET,
    LATE,
    "claude-opus-4-8",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-1",
    NEWEST,
    "claude-of-tomorrow",
    "deepseek-v4",
)
LOOK = Tool("look", description="Looks.", parameters={"type": "object", "properties": {}})
LISTEN = Tool("hear")


def message_of(role: Role, *parts: MessagePart | str) -> Message:
    return Message(role, [TextPart(part) if isinstance(part, str) else part for part in parts])


def write(
    *given_messages: Message, profile: str = "auto", **request_fields: Any
) -> TranslatedRequest:
    """Write a request; check it with Anthropic's own types if they are installed."""
    request_fields = {
        "model": BUDGET,
        "messages": list(given_messages or [message_of("user", "Hi")]),
        **request_fields,
    }
    written = MESSAGES.upstream.write_request(
        ModelRequest(**request_fields), UpstreamOptions(PROFILES[profile], max_tokens=4096)
    )
    if ANTHROPIC:
        check_request(written.body)
    return written


def body(*given_messages: Message, **request_fields: Any) -> Json:
    """Return the body, having checked that nothing is left out."""
    written = write(*given_messages, **request_fields)
    assert written.unsupported == []
    return written.body


def messages(*given_messages: Message, **request_fields: Any) -> list[tuple[str, list[str]]]:
    """Return the roles and the kinds of their blocks."""
    return [
        (message["role"], [block["type"] for block in message["content"]])
        if isinstance(message["content"], list)
        else (message["role"], [message["content"]])
        for message in body(*given_messages, **request_fields)["messages"]
    ]


def unsupported_params(*given_messages: Message, **request_fields: Any) -> list[tuple[str, bool]]:
    return [
        (left.param, left.essential)
        for left in write(*given_messages, **request_fields).unsupported
    ]


CALL, OUTPUT = (
    ToolCallPart("toolu_0", "look", '{"at": 1}'),
    ToolOutputPart("toolu_0", (TextPart("7"),)),
)
SIGNED = ReasoningPart(text="I think.", state="c2ln", is_signature=True)
REDACTED = ReasoningPart(state="ZGF0YQ==")


class TestMessages:
    def test_a_minimal_request(self) -> None:
        assert body() == {
            "model": BUDGET,
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        }

    def test_instructions_at_the_start_are_the_prompt(self) -> None:
        written_body = body(
            message_of("system", "Be brief."),
            message_of("developer", "Be kind."),
            message_of("user", "Hi"),
        )
        assert written_body["system"] == "Be brief.\n\nBe kind."
        assert len(written_body["messages"]) == 1

    def test_instructions_alone_become_a_user_message(self) -> None:
        written_body = body(message_of("system", "Say hello."))
        assert "system" not in written_body
        assert written_body["messages"][0]["content"] == [{"type": "text", "text": "Say hello."}]

    LATER = (
        message_of("user", "Hi"),
        message_of("assistant", "Yes?"),
        message_of("developer", "Now be brief."),
        message_of("user", "Tell me."),
    )

    def test_later_instructions_stay_in_their_round_where_a_model_takes_them(self) -> None:
        assert messages(*self.LATER, model=NEWEST)[2:] == [
            ("user", ["text"]),
            ("system", ["Now be brief."]),
        ]

    def test_later_instructions_join_the_prompt_elsewhere(self) -> None:
        written_body = body(*self.LATER)
        assert written_body["system"] == "Now be brief."
        assert [message["role"] for message in written_body["messages"]] == [
            "user",
            "assistant",
            "user",
        ]

    def test_instructions_between_two_answers_join_the_prompt(self) -> None:
        written_body = body(
            *self.LATER[:3], message_of("assistant", "Hm."), message_of("user", "?"), model=NEWEST
        )
        assert written_body["system"] == "Now be brief."

    def test_adjacent_messages_of_one_role_become_one(self) -> None:
        assert messages(
            message_of("user", "Hi"),
            message_of("user", "there"),
            message_of("assistant", "A"),
            message_of("assistant", "B"),
        ) == [("user", ["text", "text"]), ("assistant", ["text", "text"])]

    def test_results_come_first_in_the_users_message(self) -> None:
        assert messages(
            message_of("user", "Hi"),
            message_of("assistant", CALL),
            message_of("user", "Wait."),
            message_of("tool", OUTPUT),
        )[-1] == ("user", ["tool_result", "text"])

    def test_results_follow_their_calls_whatever_was_said_before_them(self) -> None:
        other = replace(CALL, id="toolu_1"), replace(OUTPUT, call_id="toolu_1")
        assert messages(
            message_of("user", "Hi"),
            message_of("assistant", CALL, other[0]),
            message_of("tool", other[1]),
            message_of("assistant", "Wait."),
            message_of("tool", OUTPUT),
        )[1:] == [
            ("assistant", ["tool_use", "tool_use"]),
            ("user", ["tool_result", "tool_result"]),
            ("assistant", ["text"]),
        ]

    def test_blank_texts_are_left_out(self) -> None:
        assert messages(
            message_of("user", "Hi", "  "),
            message_of("assistant", "\n", CALL),
            message_of("tool", OUTPUT),
        )[:2] == [("user", ["text"]), ("assistant", ["tool_use"])]

    def test_a_refusal_is_the_assistants_text(self) -> None:
        written_body = body(
            message_of("user", "Hi"),
            message_of("assistant", RefusalPart("No.")),
            message_of("user", "Why?"),
        )
        assert written_body["messages"][1]["content"] == [{"type": "text", "text": "No."}]

    def test_a_speaker_s_name_begins_the_text(self) -> None:
        question = Message("user", [TextPart("Hi"), ImagePart("https://a.b/c.png")], name="Ann")
        text, image = body(question)["messages"][0]["content"]
        assert (text["text"], image["type"]) == ("Ann: Hi", "image")


class TestReasoning:
    def turn(self, *parts: MessagePart | str, **request_fields: Any) -> list[Json]:
        conversation_so_far = (
            message_of("user", "Hi"),
            message_of("assistant", *parts),
            message_of("tool", OUTPUT),
        )
        content: list[Json] = body(*conversation_so_far, **request_fields)["messages"][1]["content"]
        return content

    def test_opaque_state_goes_back_byte_for_byte(self) -> None:
        assert self.turn(SIGNED, REDACTED, CALL)[:2] == [
            {"type": "thinking", "thinking": "I think.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        ]

    def test_reasoning_text_and_call_in_this_order(self) -> None:
        kinds = [block["type"] for block in self.turn(SIGNED, "So.", CALL)]
        assert kinds == ["thinking", "text", "tool_use"]

    def test_thinking_that_was_left_out_keeps_its_signature(self) -> None:
        assert self.turn(ReasoningPart(state="c2ln", is_signature=True), CALL)[0]["thinking"] == ""

    def test_thinking_that_was_shown_as_a_summary_keeps_its_text(self) -> None:
        shown = ReasoningPart(summary=("I think.",), state="c2ln", is_signature=True)
        assert self.turn(shown, CALL)[0]["thinking"] == "I think."

    @pytest.mark.parametrize(
        "reasoning_part", [ReasoningPart(text="x"), ReasoningPart(summary=("y",)), ReasoningPart()]
    )
    def test_unsigned_reasoning_is_left_out(self, reasoning_part: ReasoningPart) -> None:
        assert [block["type"] for block in self.turn(reasoning_part, CALL)] == ["tool_use"]

    def test_a_provider_that_misses_its_reasoning_gets_it_unsigned(self) -> None:
        content = self.turn(ReasoningPart(text="x", summary=("y",)), CALL, profile="deepseek")
        assert content[0] == {"type": "thinking", "thinking": "x", "signature": ""}

    def test_a_summary_never_travels_as_reasoning(self) -> None:
        content = self.turn(ReasoningPart(summary=("y",)), CALL, profile="deepseek")
        assert content[0]["type"] == "tool_use"

    def test_thinking_on_a_users_turn_is_ignored(self) -> None:
        assert messages(message_of("user", SIGNED, "Hi")) == [("user", ["text"])]

    def test_trailing_reasoning_is_dropped(self) -> None:
        assert messages(
            message_of("user", "Hi"), message_of("assistant", "A", SIGNED), message_of("user", "B")
        ) == [
            ("user", ["text"]),
            ("assistant", ["text"]),
            ("user", ["text"]),
        ]
        assert messages(
            message_of("user", "Hi"), message_of("assistant", REDACTED), message_of("user", "B")
        ) == [("user", ["text", "text"])]
        assert messages(message_of("assistant", "A", SIGNED, " ")) == [("assistant", ["text"])]

    def test_reasoning_joins_the_assistants_next_message(self) -> None:
        written_body = messages(
            message_of("user", "Hi"), message_of("assistant", SIGNED), message_of("assistant", "A")
        )
        assert written_body[1] == ("assistant", ["thinking", "text"])


class TestParts:
    def part(self, part: MessagePart) -> Json:
        block: Json = body(message_of("user", part))["messages"][0]["content"][0]
        return block

    def test_images(self) -> None:
        assert self.part(ImagePart("data:image/png;base64,iVBO"))["source"] == {
            "type": "base64",
            "media_type": "image/png",
            "data": "iVBO",
        }
        assert (
            self.part(ImagePart("data:image/jpg;base64,iVBO"))["source"]["media_type"]
            == "image/jpeg"
        )
        assert self.part(ImagePart("https://a.test/b.png"))["source"] == {
            "type": "url",
            "url": "https://a.test/b.png",
        }
        assert self.part(ImagePart(file_id="file_1"))["source"] == {
            "type": "file",
            "file_id": "file_1",
        }

    def test_files(self) -> None:
        pdf = base64.b64encode(b"%PDF-1.7").decode()
        words = base64.b64encode("Grüße".encode()).decode()
        for data in (pdf, f"data:application/pdf;base64,{pdf}"):
            block = self.part(FilePart(data, name="a.pdf"))
            assert block["title"] == "a.pdf"
            assert block["source"] == {
                "type": "base64",
                "media_type": "application/pdf",
                "data": pdf,
            }
        source = self.part(FilePart(f"data:text/markdown;charset=utf-8;base64,{words}"))["source"]
        assert source == {"type": "text", "media_type": "text/plain", "data": "Grüße"}
        assert self.part(FilePart(url="https://a.test/b.pdf"))["source"]["type"] == "url"
        assert self.part(FilePart(file_id="file_1"))["source"] == {
            "type": "file",
            "file_id": "file_1",
        }

    @pytest.mark.parametrize(
        "part",
        [
            ImagePart("data:image/tiff;base64,AAAA"),
            ImagePart("gs://bucket/a.png"),
            FilePart("data:application/zip;base64,AAAA"),
            FilePart("data:text/plain;base64,*"),
            FilePart("AAAA"),
            AudioPart("AAAA", "wav"),
        ],
    )
    def test_unsupported_content_is_named(self, part: MessagePart) -> None:
        request_fields = [message_of("user", "Hi", part)]
        assert unsupported_params(*request_fields, param_names={"messages": "input"}) == [
            ("input", True)
        ]
        assert unsupported_params(
            message_of("user", "Hi"), message_of("tool", ToolOutputPart("c", (part,)))
        ) == [  # type: ignore[arg-type]
            ("messages", True)
        ]

    def test_unsupported_fields_are_named_as_the_client_names_them(self) -> None:
        foreign = UnknownPart({"type": "item_reference"}, "input[0]")
        assert unsupported_params(message_of("user", "Hi", foreign)) == [("input[0]", True)]
        assert unsupported_params(
            message_of("system", "Hi", foreign), message_of("user", "Hi")
        ) == [("input[0]", True)]

    def test_calls_and_their_results(self) -> None:
        written_body = body(
            message_of("user", "Hi"), message_of("assistant", CALL), message_of("tool", OUTPUT)
        )
        call, result = (
            written_body["messages"][1]["content"][0],
            written_body["messages"][2]["content"][0],
        )
        assert call == {"type": "tool_use", "id": "toolu_0", "name": "look", "input": {"at": 1}}
        assert result == {"type": "tool_result", "tool_use_id": "toolu_0", "content": "7"}

    @pytest.mark.parametrize(
        ("arguments", "given"),
        [
            ("", {}),
            ("{}", {}),
            (f'{{"a": {10**30}}}', {"a": 10**30}),
            ('{"a', {"INVALID_JSON": '{"a'}),
            ("[1]", {"INVALID_JSON": "[1]"}),
        ],
    )
    def test_arguments_are_always_an_object(self, arguments: str, given: Json) -> None:
        written_body = body(
            message_of("user", "Hi"), message_of("assistant", ToolCallPart("c", "look", arguments))
        )
        assert dumps(written_body["messages"][1]["content"][0]["input"]) == dumps(given)

    def test_a_custom_call_has_its_text_as_input(self) -> None:
        call = ToolCallPart("c", "shell", "ls -l", custom=True)
        written_body = body(message_of("user", "Hi"), message_of("assistant", call))
        assert written_body["messages"][1]["content"][0]["input"] == {"input": "ls -l"}

    def test_results_may_hold_images_fail_or_be_empty(self) -> None:
        image = ImagePart("https://a.test/b.png")
        outputs = [
            ToolOutputPart("a", (TextPart("x"), image)),
            ToolOutputPart("b", (TextPart("no"),), failed=True),
            ToolOutputPart("c", (TextPart(""),)),
        ]
        first, second, third = body(message_of("tool", *outputs))["messages"][0]["content"]
        assert [block["type"] for block in first["content"]] == ["text", "image"]
        assert second["is_error"] is True
        assert third == {"type": "tool_result", "tool_use_id": "c"}

    def test_ids_of_other_providers_are_written_in_allowed_letters(self) -> None:
        call, output = ToolCallPart("functions.f:0", "f", "{}"), ToolOutputPart("functions.f:0", ())
        written_body = body(message_of("assistant", call), message_of("tool", output))["messages"]
        assert written_body[0]["content"][0]["id"] == "functions_2e_f_3a_0"
        assert written_body[1]["content"][0]["tool_use_id"] == "functions_2e_f_3a_0"

    def test_other_ids_stay_others_and_none_is_empty(self) -> None:
        calls = [ToolCallPart(identity, "f", "{}") for identity in ("a.b", "a:b", "a_b", "")]
        (message,) = body(message_of("assistant", *calls))["messages"]
        ids = [block["id"] for block in message["content"]]
        assert ids[2] == "a_b"
        assert len({*ids}) == 4
        assert all(ids)


class TestTools:
    def test_functions(self) -> None:
        written = write(tools=[LOOK, LISTEN])
        assert written.body["tools"] == [
            {"name": "look", "description": "Looks.", "input_schema": LOOK.parameters},
            {"name": "hear", "input_schema": {"type": "object", "properties": {}}},
        ]
        assert written.tools == {"look": LOOK, "hear": LISTEN}
        assert "tool_choice" not in written.body

    def test_strict_is_what_the_client_set(self) -> None:
        closed = {"type": "object", "properties": {}, "additionalProperties": False}
        tools = [
            Tool("a", parameters=closed, strict=True),
            Tool("b", parameters=closed, strict=False),
            Tool("c", strict=True),
        ]
        stricts = [tool.get("strict") for tool in body(tools=tools)["tools"]]
        assert stricts == [True, None, None], "and only where the schema can be"
        assert unsupported_params(tools=tools[:1], model=OLD) == [("tools", False)]

    def test_a_custom_tool_is_a_function_of_one_text(self) -> None:
        grammar = {"syntax": "lark", "definition": "start: WORD"}
        tool = Tool("shell", "custom", "Runs.", grammar=grammar)
        (offered,) = body(tools=[tool])["tools"]
        assert offered["input_schema"]["properties"]["input"]["type"] == "string"
        assert offered["input_schema"]["required"] == ["input"]
        assert offered["description"].startswith("Runs.\n\n")
        assert offered["description"].endswith("start: WORD")
        plain = Tool("shell", "custom")
        assert "description" not in body(tools=[plain])["tools"][0]

    def test_hosted_tools_are_unsupported(self) -> None:
        hosted = Tool("file_search", "hosted", param="tools[1]")
        written = write(tools=[LOOK, hosted])
        assert [(left.param, left.essential) for left in written.unsupported] == [
            ("tools[1]", True)
        ]
        assert list(written.tools) == ["look"]

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            (ToolChoice("auto"), {"type": "auto"}),
            (ToolChoice("none"), {"type": "none"}),
            (ToolChoice("required"), {"type": "any"}),
            (ToolChoice("required", ("look",)), {"type": "tool", "name": "look"}),
        ],
    )
    def test_the_choice_keeps_the_tools(self, choice: ToolChoice, expected: Json) -> None:
        written_body = body(tools=[LOOK, LISTEN], tool_choice=choice)
        assert written_body["tool_choice"] == expected
        assert len(written_body["tools"]) == 2
        alone = body(tools=[LOOK], tool_choice=choice, params={"parallel_tool_calls": False})
        wanted = {} if choice.mode == "none" else {"disable_parallel_tool_use": True}
        assert alone["tool_choice"] == {**expected, **wanted}

    def test_one_call_at_a_time_without_a_choice(self) -> None:
        written_body = body(tools=[LOOK], params={"parallel_tool_calls": False})
        assert written_body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}

    def test_a_choice_among_some_offers_only_those(self) -> None:
        tools = [LOOK, LISTEN, Tool("feel")]
        for mode, kind in (("auto", "auto"), ("required", "any")):
            choice = ToolChoice(mode, ("look", "feel"))  # type: ignore[arg-type]
            written_body = body(tools=tools, tool_choice=choice)
            assert [tool["name"] for tool in written_body["tools"]] == ["look", "feel"]
            assert written_body["tool_choice"] == {"type": kind}

    def test_without_tools_there_is_no_choice(self) -> None:
        assert "tool_choice" not in body(tool_choice=ToolChoice("auto"))

    def test_where_no_tool_can_be_forced_the_choice_is_unsupported(self) -> None:
        choice = ToolChoice("required", ("look",))
        request_fields = {"tools": [LOOK], "tool_choice": choice, "model": NEWEST}
        assert unsupported_params(**request_fields) == [("tool_choice", True)]
        assert write(**request_fields).body["tool_choice"] == {"type": "auto"}


class TestThinking:
    @pytest.mark.parametrize(
        ("effort", "budget"),
        [("minimal", 1024), ("low", 2000), ("medium", 5000), ("high", 8000), ("max", 9500)],
    )
    def test_older_models_get_a_budget(self, effort: str, budget: int) -> None:
        written_body = body(effort=effort, params={"max_tokens": 10_000})
        assert written_body["thinking"] == {"type": "enabled", "budget_tokens": budget}
        assert "output_config" not in written_body

    def test_below_the_bound_there_may_be_no_room(self) -> None:
        assert unsupported_params(effort="high", params={"max_tokens": 1024}) == [
            ("reasoning_effort", False)
        ]
        written_body = body(effort="max", params={"max_tokens": 1025})
        assert written_body["thinking"]["budget_tokens"] == 1024

    @pytest.mark.parametrize(
        ("model", "effort", "level"),
        [
            (LATE, "minimal", "low"),
            (LATE, "medium", "medium"),
            (LATE, "xhigh", "high"),
            (LATE, "max", "max"),
            (NEWEST, "xhigh", "xhigh"),
            ("claude-of-tomorrow", "max", "max"),
        ],
    )
    def test_newer_models_get_an_effort_and_show_their_thinking(
        self, model: str, effort: str, level: str
    ) -> None:
        written_body = body(model=model, effort=effort)
        assert written_body["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert written_body["output_config"] == {"effort": level}

    def test_an_unknown_effort_is_upstreams_default(self) -> None:
        assert "output_config" not in body(model=NEWEST, effort="utmost")

    def test_a_wish_for_a_summary_is_one_for_thinking(self) -> None:
        assert body(native_style="auto")["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        written_body = body(model=LATE, native_style="auto")
        assert written_body["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert "output_config" not in written_body

    @pytest.mark.parametrize(
        ("model", "thinking"),
        [
            (OLD, None),
            (BUDGET, {"type": "disabled"}),
            ("claude-opus-5", {"type": "disabled"}),
            ("claude-sonnet-5-5", {"type": "between_tools"}),
        ],
    )
    def test_no_effort_turns_it_off(self, model: str, thinking: Json | None) -> None:
        written_body = body(model=model, effort="none")
        assert written_body.get("thinking") == thinking
        assert "output_config" not in written_body

    def test_where_it_cannot_be_turned_off_it_is_least(self) -> None:
        written = write(model=NEWEST, effort="none")
        assert written.body["output_config"] == {"effort": "low"}
        assert [left.essential for left in written.unsupported] == [False]

    def test_a_model_that_does_not_think_gets_no_thinking_parameters(self) -> None:
        written = write(model=OLD, effort="high", param_names={"effort": "reasoning.effort"})
        assert "thinking" not in written.body
        assert [left.param for left in written.unsupported] == ["reasoning.effort"]
        assert body(model=OLD, native_style="auto").get("thinking") is None

    @pytest.mark.parametrize("model", [BUDGET, LATE, "claude-sonnet-5"])
    def test_thinking_yields_to_a_forced_tool(self, model: str) -> None:
        choice = ToolChoice("required")
        written_body = body(model=model, effort="high", tools=[LOOK], tool_choice=choice)
        assert "thinking" not in written_body
        assert written_body["tool_choice"] == {"type": "any"}

    @pytest.mark.parametrize("model", [BUDGET, LATE])
    def test_thinking_yields_to_an_answer_that_is_begun(self, model: str) -> None:
        def asked(*begun: MessagePart | str) -> Json:
            question = message_of("user", "Hi"), message_of("assistant", *begun)
            return body(*question, model=model, effort="high", params={"max_tokens": 4096})

        assert "thinking" not in asked("Sure:")
        assert "thinking" in asked(SIGNED, "Sure:")

    def test_anthropics_own_parameters_win(self) -> None:
        client_thinking = {"type": "enabled", "budget_tokens": 3000}
        written_body = body(effort="high", extra={"thinking": client_thinking, "container": "c"})
        assert written_body["thinking"] == client_thinking
        assert written_body["container"] == "c"
        client_thinking = {"effort": "max"}
        written_body = body(model=NEWEST, effort="low", extra={"output_config": client_thinking})
        assert written_body["output_config"] == client_thinking

    def test_extra_fields_do_not_replace_translated_ones(self) -> None:
        assert body(extra={"messages": [], "model": "other"})["model"] == BUDGET


class TestStructuredOutputs:
    @pytest.mark.parametrize(
        ("profile", "model", "given"),
        [
            ("anthropic", BUDGET, True),
            ("anthropic", OLD, False),
            ("vllm", "qwen3", True),
            ("auto", "qwen3", False),
            ("deepseek", BUDGET, False),
        ],
    )
    def test_depend_on_the_provider_and_not_on_a_name_alone(
        self, profile: str, model: str, *, given: bool
    ) -> None:
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        tool = Tool("look", parameters=schema, strict=True)
        written = write(
            profile=profile, model=model, output_format=OutputFormat(schema), tools=[tool]
        )
        assert ("output_config" in written.body) is given
        assert ("strict" in written.body["tools"][0]) is given
        left_out = [] if given else [("tools", False), ("response_format", True)]
        assert [(left.param, left.essential) for left in written.unsupported] == left_out


class TestSampling:
    def test_sampling_parameters_are_sent(self) -> None:
        written_body = body(params={"temperature": 0, "top_k": 5})
        assert (written_body["temperature"], written_body["top_k"]) == (0, 5)
        assert body(params={"top_p": 0.5})["top_p"] == 0.5

    def test_defaults_are_not_sent(self) -> None:
        written_body = body(model=NEWEST, params={"temperature": 1, "top_p": 1.0})
        assert not {"temperature", "top_p"} & written_body.keys()

    @pytest.mark.parametrize("model", MODELS)
    def test_a_temperature_above_one_is_refused_by_name(self, model: str) -> None:
        assert unsupported_params(model=model, params={"temperature": 1.5}) == [
            ("temperature", True)
        ]

    def test_sampling_parameters_are_left_out_where_the_model_takes_none(self) -> None:
        values = {"temperature": 0.5, "top_p": 0.5, "top_k": 5}
        written = write(model=NEWEST, params=values)
        assert not values.keys() & written.body.keys()
        assert [(left.param, left.essential) for left in written.unsupported] == [
            (name, False) for name in values
        ]

    def test_thinking_restricts_sampling(self) -> None:
        values = {"temperature": 0.5, "top_p": 0.97, "top_k": 5}
        written = write(effort="low", params=values)
        assert written.body["top_p"] == 0.97
        assert [left.param for left in written.unsupported] == ["temperature", "top_k"]

    def test_of_two_that_exclude_each_other_one_stays(self) -> None:
        written = write(params={"temperature": 0.5, "top_p": 0.5})
        assert written.body["temperature"] == 0.5
        assert [(left.param, left.essential) for left in written.unsupported] == [("top_p", False)]


SCHEMA: Json = {"type": "object", "properties": {}, "additionalProperties": False}


class TestTheRest:
    def test_plain_parameters(self) -> None:
        values = {
            "max_tokens": 100,
            "stop": ["END", "FIN"],
            "user": "u1",
            "service_tier": "default",
        }
        written_body = body(params=values, stream=True)
        assert written_body["max_tokens"] == 100
        assert written_body["stop_sequences"] == ["END", "FIN"]
        assert written_body["metadata"] == {"user_id": "u1"}
        assert written_body["service_tier"] == "standard_only"
        assert written_body["stream"] is True
        values = {"stop": ["END"], "user": "u1", "safety_identifier": "s1"}
        assert body(params=values)["stop_sequences"] == ["END"]
        assert body(params=values)["metadata"] == {"user_id": "s1"}

    def test_a_blank_stop_is_unsupported(self) -> None:
        written = write(params={"stop": ["\n", "END"]})
        assert written.body["stop_sequences"] == ["END"]
        assert [(left.param, left.essential) for left in written.unsupported] == [("stop", True)]

    def test_structured_outputs(self) -> None:
        written_body = body(output_format=OutputFormat(SCHEMA), model=LATE, effort="low")
        assert written_body["output_config"] == {
            "effort": "low",
            "format": {"type": "json_schema", "schema": SCHEMA},
        }
        assert unsupported_params(output_format=OutputFormat(SCHEMA), model=OLD) == [
            ("response_format", True)
        ]
        assert unsupported_params(
            output_format=OutputFormat(), param_names={"format": "text.format"}
        ) == [("text.format", True)]

    @pytest.mark.parametrize(
        ("values", "matters"),
        [
            ({"n": 2}, True),
            ({"logit_bias": {"1": 2}}, True),
            ({"frequency_penalty": 0.5}, False),
            ({"presence_penalty": 0.5}, False),
            ({"logprobs": True}, True),
            ({"top_logprobs": 3}, True),
            ({"modalities": ["audio"]}, True),
            ({"seed": 7}, False),
            ({"service_tier": "flex"}, False),
        ],
    )
    def test_unsupported_content_is_named(self, values: Json, *, matters: bool) -> None:
        (name,) = values
        assert unsupported_params(params=values) == [(name, matters)]


@needs_anthropic
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("effort", [None, "none", "low", "max"])
def test_a_full_request_is_valid_for_every_model(model: str, effort: str | None) -> None:
    parts = [SIGNED, REDACTED, "So.", CALL]
    written = write(
        message_of("system", "Be brief."),
        message_of("user", "Hi", ImagePart("https://a.test/b.png")),
        message_of("assistant", *parts),
        message_of("tool", OUTPUT),
        message_of("developer", "Go on."),
        model=model,
        effort=effort,
        tools=[LOOK, Tool("shell", "custom", strict=True)],
        tool_choice=ToolChoice("auto"),
        params={"temperature": 0.5, "parallel_tool_calls": False},
        stream=True,
    )
    assert not any(left.essential for left in written.unsupported)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("anthropic/claude-opus-4.5", BUDGET),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", BUDGET),
        ("claude-haiku-4-5@20251001", BUDGET),
        ("Claude-Opus-5-5", NEWEST),
        ("anthropic.claude-v2:1", OLD),
        ("claude-opus-6", "claude-of-tomorrow"),
        ("kimi-k3", "deepseek-v4"),
    ],
)
def test_a_model_is_recognized_by_any_of_its_names(name: str, like: str) -> None:
    request_fields = {"effort": "high", "tools": [LOOK], "tool_choice": ToolChoice("auto")}
    one, other = write(model=name, **request_fields), write(model=like, **request_fields)
    assert {**one.body, "model": like} == other.body
    assert one.unsupported == other.unsupported


def read_recorded_request(given: Json) -> ModelRequest:
    """Read an Anthropic request, independently of the writer."""
    given_messages = []
    for message in given["messages"]:
        parts = [PARTS[block["type"]](block) for block in message["content"]]
        results = [part for part in parts if isinstance(part, ToolOutputPart)]
        others = [part for part in parts if not isinstance(part, ToolOutputPart)]
        given_messages += [Message("tool", list(results))] if results else []
        given_messages += [Message(message["role"], others)] if others else []
    tools = [
        Tool(tool["name"], description=tool["description"], parameters=tool["input_schema"])
        for tool in given.get("tools", ())
    ]
    return ModelRequest(
        model=given["model"],
        messages=given_messages,
        tools=tools,
        tool_choice=ToolChoice("auto") if "tool_choice" in given else None,
        stream=given["stream"],
        params={"max_tokens": given["max_tokens"]},
        extra={"thinking": given["thinking"]},
    )


PARTS: dict[str, Any] = {
    "text": lambda block: TextPart(block["text"]),
    "thinking": lambda block: ReasoningPart(
        text=block["thinking"], state=block["signature"], is_signature=True
    ),
    "redacted_thinking": lambda block: ReasoningPart(state=block["data"]),
    "tool_use": lambda block: ToolCallPart(block["id"], block["name"], json.dumps(block["input"])),
    "tool_result": lambda block: ToolOutputPart(
        block["tool_use_id"], (TextPart(block["content"]),)
    ),
}


@needs_recordings
@pytest.mark.parametrize(
    "name", [path.name for path in sorted(RECORDINGS.glob("anthropic*.request.json"))]
)
def test_recorded_requests_are_written_as_they_were(name: str) -> None:
    given = json.loads((RECORDINGS / name).read_bytes())
    written = MESSAGES.upstream.write_request(
        read_recorded_request(given), UpstreamOptions(PROFILES["auto"])
    )
    says_nothing: list[tuple[str, Any]] = [
        ("description", ""),
        ("is_error", False),
        ("stream", False),
    ]
    assert _less(written.body, says_nothing) == _less(given, says_nothing)
    assert written.unsupported == []


def _less(value: Any, entries: list[tuple[str, Any]]) -> Any:
    """Return a body without empty entries."""
    if isinstance(value, dict):
        remaining = {key: inner for key, inner in value.items() if (key, inner) not in entries}
        return {key: _less(inner, entries) for key, inner in remaining.items()}
    return [_less(inner, entries) for inner in value] if isinstance(value, list) else value


@needs_anthropic
@pytest.mark.parametrize(
    "wrong", [{"bogus": 1}, {"messages": [{"role": "user", "content": [{"type": "texts"}]}]}]
)
def test_anthropics_types_refuse_invalid_requests(wrong: Json) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_request({**body(), **wrong})
