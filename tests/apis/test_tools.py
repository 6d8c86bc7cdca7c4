"""Test translating a request's tools and tool choice."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.registry import UPSTREAM_APIS
from abridge.apis.responses.tools import write_call
from abridge.apis.tools import FAILED_NOTE, ToolNames
from abridge.core.model_request import TranslatedRequest
from abridge.providers.catalog import PROFILES
from tests.apis.translation import (
    HELLO,
    Json,
    chat_request,
    messages_request,
    refused_param,
    responses_request,
    to_chat,
    to_messages,
    to_responses,
    unfit,
)
from tests.support.openapi import check

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FLAT = {"type": "function", "name": "f", "description": "d", "parameters": PARAMETERS}
NESTED = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": PARAMETERS},
}
SEARCH = {"type": "web_search"}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
}


def function(written: TranslatedRequest, place: int = 0) -> Json:
    """Return the function that a chat upstream is offered."""
    offered: Json = written.body["tools"][place]["function"]
    return offered


class TestAFunctionNamedAsABuiltInTool:
    """Both are offered, and each call goes to its own."""

    CALLS: ClassVar[list[Json]] = [
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"},
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
    ]

    @pytest.mark.parametrize("first", [0, 1])
    def test_it_has_a_name_of_its_own(self, first: int) -> None:
        tools = [{**FLAT, "name": "shell"}, {"type": "shell"}]
        request = responses_request(
            tools=[tools[first], tools[1 - first]],
            input=[HELLO, *self.CALLS],
            tool_choice={"type": "shell"},
        )
        written = to_chat(request)
        kinds = {name: tool.kind for name, tool in written.tools.items()}
        assert kinds == {"shell": "function", "built_in__shell": "shell"}
        called = [
            call["function"]["name"]
            for message in written.body["messages"]
            for call in message.get("tool_calls", ())
        ]
        assert called == ["shell", "built_in__shell"]
        assert written.body["tool_choice"]["function"]["name"] == "built_in__shell"
        for name, item_type in (("shell", "function_call"), ("built_in__shell", "shell_call")):
            item = write_call(written.tools[name], "c", name, "{}", "i")
            assert item["type"] == item_type

    @pytest.mark.parametrize("tools", [[{"type": "shell"}], [{**FLAT, "name": "shell"}]])
    def test_alone_either_has_the_plain_name(self, tools: list[Json]) -> None:
        written = to_chat(responses_request(tools=tools, input=[HELLO, *self.CALLS]))
        assert [*written.tools] == ["shell"]
        assert "built_in__shell" not in str(written.body)


@pytest.mark.parametrize(("strictness", "strict"), [({}, False), ({"strict": True}, True)])
def test_strict_keeps_its_meaning_toward_responses(strictness: Json, strict: bool) -> None:  # noqa: FBT001
    tool = {"type": "function", "function": {**NESTED["function"], **strictness}}  # type: ignore[dict-item]
    written = to_responses(chat_request(tools=[tool]))
    assert written.body["tools"] == [{**FLAT, "strict": strict}]


@pytest.mark.parametrize(
    ("strictness", "strict"),
    [({}, True), ({"strict": None}, True), ({"strict": True}, True), ({"strict": False}, None)],
)
def test_strict_keeps_its_meaning_toward_chat(strictness: Json, strict: bool | None) -> None:  # noqa: FBT001
    tool = {**FLAT, "parameters": {**PARAMETERS, "additionalProperties": False}}
    written = to_chat(responses_request(tools=[{**tool, **strictness}]))
    assert function(written).get("strict") is strict


@pytest.mark.parametrize(
    "parameters",
    [
        None,
        {"type": "object"},
        PARAMETERS,
        {**PARAMETERS, "additionalProperties": False, "required": []},
        {
            "type": "object",
            "properties": {"at": {"type": "array", "items": PARAMETERS}},
            "required": ["at"],
            "additionalProperties": False,
        },
    ],
)
def test_a_schema_that_cannot_be_strict_is_strict_only_on_request(parameters: Any) -> None:
    """Responses tolerates such a schema, a chat upstream refuses it."""
    tool = {**FLAT, "parameters": parameters}
    assert "strict" not in function(to_chat(responses_request(tools=[tool])))
    assert function(to_chat(responses_request(tools=[{**tool, "strict": True}])))["strict"] is True


def test_a_choice_of_none_keeps_the_tools() -> None:
    written = to_chat(responses_request(tools=[FLAT], tool_choice="none"))
    assert (written.body["tool_choice"], len(written.body["tools"])) == ("none", 1)
    written = to_responses(chat_request(tools=[NESTED], tool_choice="none"))
    assert (written.body["tool_choice"], len(written.body["tools"])) == ("none", 1)


def test_functions_are_read_flat_and_nested_on_both() -> None:
    assert function(to_chat(responses_request(tools=[NESTED])))["name"] == "f"
    assert to_responses(chat_request(tools=[FLAT])).body["tools"][0]["parameters"] == PARAMETERS


def test_a_function_without_parameters() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    expected = to_responses(chat_request(tools=[tool])).body["tools"][0]
    assert expected["parameters"] == {"type": "object", "properties": {}}
    written = to_chat(responses_request(tools=[{**FLAT, "parameters": None}]))
    assert "parameters" not in function(written)


@pytest.mark.parametrize("mode", ["auto", "required", "none"])
def test_a_mode_is_the_same_on_both(mode: str) -> None:
    written = to_chat(responses_request(tools=[FLAT], tool_choice=mode))
    assert written.body["tool_choice"] == mode
    written = to_responses(chat_request(tools=[NESTED], tool_choice=mode))
    assert written.body["tool_choice"] == mode


def test_a_choice_without_tools_is_not_sent() -> None:
    written = to_chat(responses_request(tools=[], tool_choice="auto", parallel_tool_calls=True))
    assert set(written.body) == {"model", "messages"}
    written = to_responses(chat_request(tools=[], tool_choice="auto", parallel_tool_calls=True))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(written.body)


def test_parallel_calls_go_with_tools() -> None:
    written = to_chat(responses_request(tools=[FLAT], parallel_tool_calls=False))
    assert written.body["parallel_tool_calls"] is False


def test_a_forced_function() -> None:
    flat, nested = (
        {"type": "function", "name": "f"},
        {"type": "function", "function": {"name": "f"}},
    )
    written = to_chat(responses_request(tools=[FLAT], tool_choice=flat))
    assert written.body["tool_choice"] == nested
    written = to_responses(chat_request(tools=[NESTED], tool_choice=nested))
    assert written.body["tool_choice"] == flat


def test_a_hosted_tool_that_is_forced_is_refused() -> None:
    search = {"type": "web_search"}
    written = to_responses(chat_request(tools=[NESTED, search], tool_choice=search))
    assert unfit(written) == {"tools[1]": True}


class TestAllowedTools:
    FLAT = ({**FLAT, "name": "a"}, {**FLAT, "name": "b"}, {**FLAT, "name": "c"})
    NAMED = ({"type": "function", "name": "a"}, {"type": "function", "name": "c"})
    CHOICE: ClassVar[Json] = {"type": "allowed_tools", "mode": "auto", "tools": list(NAMED)}

    def test_allowed_tools_are_named_where_the_api_has_them(self) -> None:
        question = responses_request(tools=list(self.FLAT), tool_choice=self.CHOICE)
        written = to_chat(question, "openai")
        assert len(written.body["tools"]) == 3
        assert written.body["tool_choice"] == {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "auto",
                "tools": [
                    {"type": "function", "function": {"name": "a"}},
                    {"type": "function", "function": {"name": "c"}},
                ],
            },
        }
        choice = written.body["tool_choice"]
        back = to_responses(chat_request(tools=list(self.FLAT), tool_choice=choice), "openai")
        assert back.body["tool_choice"] == self.CHOICE

    def test_are_the_only_ones_offered_elsewhere(self) -> None:
        question = responses_request(tools=list(self.FLAT), tool_choice=self.CHOICE)
        written = to_chat(question)
        assert [tool["function"]["name"] for tool in written.body["tools"]] == ["a", "c"]
        assert (written.body["tool_choice"], list(written.tools)) == ("auto", ["a", "c"])

    @pytest.mark.parametrize("mode", ["auto", "required"])
    @pytest.mark.parametrize("provider", ["openai", "vllm"])
    def test_where_none_is_allowed_none_may_be_called(self, mode: str, provider: str) -> None:
        choice = {"type": "allowed_tools", "mode": mode, "tools": []}
        question = responses_request(tools=list(self.FLAT), tool_choice=choice)
        written = to_chat(question, provider)
        assert (written.body["tool_choice"], len(written.tools)) == ("none", 3)


class TestToolsInTheInput:
    """Codex sends its tools so to the models that accept it."""

    ITEM: ClassVar[Json] = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [FLAT, {"type": "namespace", "name": "functions", "tools": [PATCH]}],
    }

    def test_tools_in_an_item_are_offered_and_send_no_message(self) -> None:
        written = to_chat(responses_request(self.ITEM, HELLO))
        assert list(written.tools) == ["f", "functions__apply_patch"]
        assert written.body["messages"] == [HELLO]
        assert not written.unsupported

    def test_are_offered_once(self) -> None:
        written = to_chat(responses_request(self.ITEM, HELLO, self.ITEM, tools=[PATCH, FLAT]))
        assert list(written.tools) == ["apply_patch", "f", "functions__apply_patch"]

    def test_are_refused_like_others(self) -> None:
        item = {**self.ITEM, "tools": [FLAT, {"type": "mcp"}, {"type": "mcp"}]}
        written = to_chat(responses_request(HELLO, item))
        assert unfit(written) == {"input[1].tools[1]": True, "input[1].tools[2]": True}

    def test_are_calls_of_a_namespace(self) -> None:
        written = to_chat(responses_request(self.ITEM, HELLO))
        tool = written.tools["functions__apply_patch"]
        item = write_call(tool, "c", tool.name, '{"input": "x"}', "ctc_1")
        assert (item["namespace"], item["name"], item["input"]) == ("functions", "apply_patch", "x")


class TestNamespace:
    TOOL: ClassVar[Json] = {
        "type": "namespace",
        "name": "mcp__docs",
        "description": "Documents.",
        "tools": [{**FLAT, "name": "find"}, {"type": "custom", "name": "edit"}],
    }

    def test_is_offered_one_by_one(self) -> None:
        written = to_chat(responses_request(tools=[self.TOOL]))
        names = [tool["function"]["name"] for tool in written.body["tools"]]
        assert names == ["mcp__docs__find", "mcp__docs__edit"] == list(written.tools)
        tool = written.tools["mcp__docs__find"]
        assert (tool.client_name, tool.group, tool.kind) == ("find", "mcp__docs", "function")

    def test_calls_made_before_go_by_the_same_names(self) -> None:
        call = {"type": "function_call", "call_id": "c", "namespace": "mcp__docs", "name": "find"}
        written = to_chat(responses_request(call, tools=[self.TOOL]))
        assert written.body["messages"][0]["tool_calls"][0]["function"]["name"] == "mcp__docs__find"

    @pytest.mark.parametrize(
        "choice",
        [
            {"type": "function", "name": "find", "namespace": "mcp__docs"},
            {"type": "function", "name": "find"},
        ],
    )
    def test_a_choice_goes_by_the_same_names(self, choice: Json) -> None:
        written = to_chat(responses_request(tools=[self.TOOL], tool_choice=choice))
        assert written.body["tool_choice"]["function"]["name"] == "mcp__docs__find"

    def test_all_of_one_may_be_allowed(self) -> None:
        choice = {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "namespace", "name": "mcp__docs"}],
        }
        written = to_chat(responses_request(tools=[FLAT, self.TOOL], tool_choice=choice))
        assert list(written.tools) == ["mcp__docs__find", "mcp__docs__edit"]
        assert written.body["tool_choice"] == "required"


class TestNames:
    def test_are_unique(self) -> None:
        tools = [
            {"type": "namespace", "name": "a", "description": "", "tools": [{**FLAT, "name": "b"}]},
            {
                "type": "namespace",
                "name": "a_",
                "description": "",
                "tools": [{**FLAT, "name": "_b"}],
            },
            {**FLAT, "name": "a__b"},
        ]
        written = to_chat(responses_request(tools=tools))
        assert len(written.tools) == 3
        assert written.tools["a__b"].group == ""
        assert {tool.client_name for tool in written.tools.values()} == {"b", "_b", "a__b"}

    @pytest.mark.parametrize(
        ("own", "group"), [("f" * 128, ""), ("f", "g" * 64), ("a.b/c", ""), ("ä", "ö")]
    )
    def test_are_such_as_upstream_takes(self, own: str, group: str) -> None:
        name = ToolNames().assign(own, group)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        assert ToolNames().assign(own, group) == name
        assert ToolNames().assign(own + "x", group) != name

    def test_stay_the_same_if_a_tools_kind_changes(self) -> None:
        call = {"type": "function_call", "call_id": "c", "name": "apply_patch", "arguments": "{}"}
        written = to_chat(responses_request(call, tools=[PATCH]))
        assert written.body["messages"][0]["tool_calls"][0]["function"]["name"] == "apply_patch"

    def test_stay_what_they_are_where_they_may(self) -> None:
        assert ToolNames().assign("get_weather-2") == "get_weather-2"
        assert ToolNames().assign("find", "mcp__docs__") == "mcp__docs__find"


class TestCustom:
    def test_is_a_function_where_there_is_nothing_else(self) -> None:
        written = to_chat(responses_request(tools=[PATCH]))
        offered = function(written)
        assert offered["parameters"]["required"] == ["input"]
        assert "Edits files." in offered["description"]
        assert "start: /x/" in offered["description"]
        assert "strict" not in offered

    def test_custom_tools_stay_custom_where_the_api_has_them(self) -> None:
        written = to_chat(responses_request(tools=[PATCH]), "openai")
        grammar = {"syntax": "lark", "definition": "start: /x/"}
        expected = {
            "type": "custom",
            "custom": {
                "name": "apply_patch",
                "description": "Edits files.",
                "format": {"type": "grammar", "grammar": grammar},
            },
        }
        assert written.body["tools"] == [expected]
        assert to_responses(chat_request(tools=[expected])).body["tools"] == [PATCH]

    def test_can_be_forced(self) -> None:
        choice = {"type": "custom", "name": "apply_patch"}
        question = responses_request(tools=[PATCH], tool_choice=choice)
        expected = {"type": "custom", "custom": {"name": "apply_patch"}}
        assert to_chat(question, "openai").body["tool_choice"] == expected
        assert to_chat(question).body["tool_choice"] == {
            "type": "function",
            "function": {"name": "apply_patch"},
        }
        assert to_responses(chat_request(tools=[PATCH], tool_choice=expected)).body[
            "tool_choice"
        ] == {"type": "custom", "name": "apply_patch"}

    def test_calls_made_before(self) -> None:
        items: list[Json] = [
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "+ä"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
        ]
        question = responses_request(*items, tools=[PATCH])
        call, output = to_chat(question).body["messages"]
        assert call["tool_calls"][0]["function"] == {
            "name": "apply_patch",
            "arguments": '{"input": "+ä"}',
        }
        assert output == {"role": "tool", "tool_call_id": "c", "content": "done"}
        native = to_chat(question, "openai").body["messages"]
        assert native[0]["tool_calls"] == [
            {"id": "c", "type": "custom", "custom": {"name": "apply_patch", "input": "+ä"}}
        ]
        assert to_responses(chat_request(*native)).body["input"] == items


class TestLocalShell:
    ACTION: ClassVar[Json] = {
        "type": "exec",
        "command": ["ls"],
        "working_directory": "/src",
        "env": {"A": "b"},
    }

    def test_is_offered_as_a_function(self) -> None:
        written = to_chat(responses_request(tools=[{"type": "local_shell"}]))
        offered = function(written)
        assert offered["name"] == "local_shell"
        assert list(offered["parameters"]["properties"]) == [
            "command",
            "workdir",
            "timeout_ms",
            "env",
        ]

    def test_is_called_as_it_was_before(self) -> None:
        items: list[Json] = [
            {
                "type": "local_shell_call",
                "id": "lsc_1",
                "call_id": "c",
                "status": "completed",
                "action": self.ACTION,
            },
            {"type": "local_shell_call_output", "id": "c", "output": "README.md"},
        ]
        written = to_chat(responses_request(*items, tools=[{"type": "local_shell"}]))
        call, output = written.body["messages"]
        called = call["tool_calls"][0]
        assert (called["id"], output["tool_call_id"]) == ("c", "c")
        name, arguments = called["function"]["name"], called["function"]["arguments"]
        item = write_call(written.tools[name], "c", name, arguments, "lsc_1")
        assert item == items[0]
        check("LocalShellToolCall", item)


class TestBuiltIn:
    """`shell` and `apply_patch`, which the client runs."""

    SHELL: ClassVar[list[Json]] = [
        {
            "type": "shell_call",
            "call_id": "c",
            "action": {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": 9},
            "environment": {"type": "local"},
            "status": "completed",
        },
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [
                {"stdout": "a\n", "stderr": "b", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
    ]
    PATCH: ClassVar[list[Json]] = [
        {
            "type": "apply_patch_call",
            "call_id": "c",
            "operation": {"type": "update_file", "path": "a", "diff": "@@\n-ä\n+b"},
            "status": "completed",
        },
        {
            "type": "apply_patch_call_output",
            "call_id": "c",
            "status": "failed",
            "output": "No such file.",
        },
    ]

    @pytest.mark.parametrize(
        ("kind", "items", "output"),
        [
            ("shell", SHELL, "a\nb\nExit code: 0\nTimed out."),
            ("apply_patch", PATCH, f"{FAILED_NOTE}\nNo such file."),
        ],
    )
    def test_is_called_as_it_was_before(self, kind: str, items: list[Json], output: str) -> None:
        written = to_chat(responses_request(*items, tools=[{"type": kind}]))
        call, answer = written.body["messages"]
        assert answer["content"] == output
        called = call["tool_calls"][0]["function"]
        assert called["name"] == function(written)["name"] == kind
        item = write_call(written.tools[kind], "c", kind, called["arguments"], "x")
        assert {**item, "id": None} == {**items[0], "id": None}

    def test_is_a_function_of_messages_too(self) -> None:
        question = responses_request(
            HELLO, *self.PATCH, tools=[{"type": "shell"}, {"type": "apply_patch"}]
        )
        written = to_messages(question).body
        assert [tool["name"] for tool in written["tools"]] == ["shell", "apply_patch"]
        assert all(tool["input_schema"]["required"] for tool in written["tools"])
        call, result = (message["content"][0] for message in written["messages"][1:])
        assert (call["name"], call["input"]) == ("apply_patch", self.PATCH[0]["operation"])
        assert (result["content"], result["is_error"]) == ("No such file.", True)

    def test_a_patch_that_says_nothing_says_whether_it_succeeded(self) -> None:
        done = {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"}
        written = to_chat(responses_request(self.PATCH[0], done))
        assert written.body["messages"][1]["content"] == "completed"

    def test_a_shell_has_the_skills_of_the_client(self) -> None:
        skill = {"name": "pdf", "description": "Reads PDFs.", "path": "/skills/pdf"}
        shell = {"type": "shell", "environment": {"type": "local", "skills": [skill]}}
        described = function(to_chat(responses_request(tools=[shell])))["description"]
        assert described.endswith("- pdf, in /skills/pdf: Reads PDFs.")

    def test_a_shell_in_a_container_is_openai_s_to_run(self) -> None:
        shell = {"type": "shell", "environment": {"type": "container_auto"}}
        assert unfit(to_chat(responses_request(tools=[shell]))) == {"tools[0]": True}

    def test_may_be_chosen(self) -> None:
        choice = {"type": "apply_patch"}
        written = to_chat(responses_request(tools=[{"type": "apply_patch"}], tool_choice=choice))
        assert written.body["tool_choice"]["function"]["name"] == "apply_patch"

    def test_a_call_without_an_operation_is_named(self) -> None:
        call = {"type": "apply_patch_call", "call_id": "c", "status": "completed"}
        assert refused_param(lambda: responses_request(call)) == "input[0].operation"


class TestSearch:
    """A search for tools that the client runs itself."""

    TOOL: ClassVar[Json] = {
        "type": "tool_search",
        "execution": "client",
        "description": "Finds tools.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    }
    CALL: ClassVar[Json] = {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "c",
        "arguments": {"query": "edit"},
    }
    FOUND: ClassVar[Json] = {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": "c",
        "tools": [{"type": "namespace", "name": "files", "tools": [PATCH]}],
    }

    def test_is_offered_as_a_function(self) -> None:
        written = to_chat(responses_request(tools=[self.TOOL]))
        assert function(written) == {
            "name": "tool_search",
            "description": "Finds tools.",
            "parameters": self.TOOL["parameters"],
        }
        assert not written.unsupported

    @pytest.mark.parametrize(
        ("arguments", "given"), [('{"query": "edit"}', {"query": "edit"}), ("edit", {})]
    )
    def test_is_called_as_what_it_is(self, arguments: str, given: Json) -> None:
        written = to_chat(responses_request(tools=[self.TOOL]))
        item = write_call(written.tools["tool_search"], "c", "tool_search", arguments, "tsc_1")
        assert item == {**self.CALL, "id": "tsc_1", "status": "completed", "arguments": given}
        check("ToolSearchCall", item)

    def test_the_tools_it_finds_are_offered(self) -> None:
        question = responses_request(HELLO, self.CALL, self.FOUND, tools=[self.TOOL])
        written = to_chat(question)
        assert list(written.tools) == ["tool_search", "files__apply_patch"]
        call, output = written.body["messages"][1:]
        made = call["tool_calls"][0]
        assert made["id"] == output["tool_call_id"] == "c"
        assert made["function"] == {"name": "tool_search", "arguments": '{"query":"edit"}'}
        assert output["content"].endswith(": files__apply_patch")

    def test_it_may_find_nothing(self) -> None:
        found = {**self.FOUND, "tools": []}
        written = to_chat(responses_request(HELLO, self.CALL, found, tools=[self.TOOL]))
        assert written.body["messages"][-1]["content"] == "Found nothing."

    def test_a_search_that_openai_ran_is_dropped_silently(self) -> None:
        items = [{**item, "execution": "server"} for item in (self.CALL, self.FOUND)]
        written = to_chat(responses_request(HELLO, *items, tools=[FLAT]))
        assert unfit(written) == {"input[1]": False, "input[2]": False}
        assert written.body["messages"] == [HELLO]


class TestHosted:
    @pytest.mark.parametrize(
        "kind", ["web_search", "web_search_preview", "web_search_2025_08_26", "tool_search"]
    )
    def test_a_search_is_left_out_beside_other_tools(self, kind: str) -> None:
        tools = [FLAT, {"type": kind}]
        written = to_chat(responses_request(tools=tools, tool_choice="auto"))
        assert list(written.tools) == ["f"]
        assert unfit(written) == {"tools[1]": False}

    def test_a_search_of_anthropic_s_for_tools_is_left_out_beside_them(self) -> None:
        deferred = {"name": "f", "input_schema": PARAMETERS, "defer_loading": True}
        search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
        written = to_chat(messages_request(tools=[deferred, search]))
        assert list(written.tools) == ["f"]
        assert unfit(written) == {"tools.1": False}

    def test_a_search_alone_is_refused(self) -> None:
        written = to_chat(responses_request(tools=[SEARCH]))
        assert unfit(written) == {"tools[0]": True}
        assert "tools" not in written.body

    def test_a_search_that_is_chosen_is_refused(self) -> None:
        written = to_chat(responses_request(tools=[FLAT, SEARCH], tool_choice=SEARCH))
        assert unfit(written) == {"tools[1]": True}

    def test_a_tool_that_may_not_be_called_is_dropped_silently(self) -> None:
        written = to_chat(responses_request(tools=[SEARCH], tool_choice="none"))
        assert unfit(written) == {"tools[0]": False}

    @pytest.mark.parametrize(
        "kind",
        [
            "file_search",
            "code_interpreter",
            "computer_use_preview",
            "mcp",
            "image_generation",
            "slug:unheard_of",
        ],
    )
    def test_others_are_refused(self, kind: str) -> None:
        written = to_chat(responses_request(tools=[FLAT, {"type": kind}]))
        assert unfit(written) == {"tools[1]": True}

    def test_of_a_chat_client_are_refused(self) -> None:
        written = to_responses(chat_request(tools=[NESTED, {"type": "browser_search"}]))
        assert unfit(written) == {"tools[1]": True}

    @pytest.mark.parametrize(
        ("kind", "matters"),
        [
            ("web_search_call", False),
            ("mcp_list_tools", False),
            ("item_reference", True),
            ("compaction", True),
            ("computer_call", True),
            ("computer_call_output", True),
            ("code_interpreter_call", True),
            ("slug:unheard_of", True),
        ],
    )
    def test_what_they_did_before(self, kind: str, matters: bool) -> None:  # noqa: FBT001
        hello: Any = {"role": "user", "content": "Hello"}
        item = {"type": kind, "id": "x", **({"output": {}} if kind.endswith("output") else {})}
        written = to_chat(responses_request(hello, item))
        assert unfit(written) == {"input[1]": matters}
        assert written.body["messages"] == [hello]

    @pytest.mark.parametrize("item", [{"id": "msg_1"}, {"type": "item_reference", "id": "msg_1"}])
    @pytest.mark.parametrize("api", ["chat", "messages"])
    def test_a_reference_is_answered_with_what_to_do(self, item: Json, api: str) -> None:
        options = UpstreamOptions(PROFILES["auto"])
        (left_out,) = UPSTREAM_APIS[api].write_request(responses_request(item), options).unsupported
        assert (left_out.param, left_out.essential) == ("input[0]", True)
        assert "store: false" in left_out.message
