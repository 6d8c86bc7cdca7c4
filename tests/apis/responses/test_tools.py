"""Test tools of Responses' own kinds, and calls to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.responses.tools import BUILT_IN_TOOLS, write_call
from abridge.apis.tools import AS_FUNCTION_NOTE, as_function, wrap_free_text
from abridge.core.model_request import Tool
from tests.support.openapi import check

PATCH = as_function(Tool("apply_patch", "custom", client_name="apply_patch"))
SHELL = Tool("local_shell", "local_shell", client_name="local_shell")
LOCAL_SHELL = BUILT_IN_TOOLS["local_shell"]


class TestSpellCall:
    def test_of_a_tool_nobody_offered(self) -> None:
        item = write_call(None, "c1", "guess", "{}", "fc_1")
        assert item == {
            "type": "function_call",
            "id": "fc_1",
            "status": "completed",
            "call_id": "c1",
            "name": "guess",
            "arguments": "{}",
        }
        check("FunctionToolCall", item)

    def test_of_a_namespace_by_the_client_s_own_name(self) -> None:
        tool = Tool("mcp__docs__find", client_name="find", group="mcp__docs")
        item = write_call(tool, "c1", "mcp__docs__find", '{"q": 1}', "fc_1")
        assert (item["namespace"], item["name"]) == ("mcp__docs", "find")
        assert item["arguments"] == '{"q": 1}'
        check("FunctionToolCall", item)

    @pytest.mark.parametrize("text", ["*** Begin Patch\n+ä", '{"input": "x"}', ""])
    def test_of_a_custom_tool_unwraps_its_input(self, text: str) -> None:
        item = write_call(PATCH, "c1", "apply_patch", wrap_free_text(text), "ctc_1")
        assert (item["type"], item["name"], item["input"]) == (
            "custom_tool_call",
            "apply_patch",
            text,
        )
        check("CustomToolCall", item)

    def test_of_a_custom_tool_offered_as_one_is_free_text_already(self) -> None:
        tool = Tool("apply_patch", "custom", client_name="apply_patch")
        item = write_call(tool, "c1", "apply_patch", '{"input": "x"}', "ctc_1")
        assert item["input"] == '{"input": "x"}'

    @pytest.mark.parametrize("arguments", ["*** Begin Patch", '{"patch": 1}', '["x"]', '"x"'])
    def test_of_a_custom_tool_with_arguments_of_another_shape(self, arguments: str) -> None:
        assert write_call(PATCH, "c1", "apply_patch", arguments, "i")["input"] == arguments

    def test_of_a_local_shell(self) -> None:
        arguments = {
            "command": ["ls", "-l"],
            "workdir": "/src",
            "timeout_ms": 1000,
            "env": {"A": "b"},
        }
        item = write_call(SHELL, "c1", "local_shell", json.dumps(arguments), "lsc_1")
        assert item["type"] == "local_shell_call"
        assert item["action"] == {
            "type": "exec",
            "command": ["ls", "-l"],
            "timeout_ms": 1000,
            "working_directory": "/src",
            "env": {"A": "b"},
        }
        check("LocalShellToolCall", item)

    def test_that_has_only_begun(self) -> None:
        item = write_call(SHELL, "c1", "local_shell", "", "lsc_1", status="in_progress")
        assert (item["status"], item["action"]["command"]) == ("in_progress", [])
        check("LocalShellToolCall", item)

    @pytest.mark.parametrize(
        ("arguments", "command"),
        [
            ('{"command": "ls | wc"}', ["bash", "-lc", "ls | wc"]),
            ("ls | wc", ["bash", "-lc", "ls | wc"]),
            ('{"command": ["sleep", 1]}', ["sleep", "1"]),
            ('{"command": 1}', []),
            ("{}", []),
        ],
    )
    def test_of_a_local_shell_with_a_command_line(self, arguments: str, command: Any) -> None:
        assert LOCAL_SHELL.read(arguments)["command"] == command

    @pytest.mark.parametrize(
        ("arguments", "commands"),
        [
            ('{"commands": ["ls", "pwd"]}', ["ls", "pwd"]),
            ('{"commands": "ls | wc"}', ["ls | wc"]),
            ("ls | wc", ["ls | wc"]),
            ('{"commands": [1]}', ["1"]),
            ('{"commands": 1}', []),
            ("", []),
        ],
    )
    def test_of_a_shell(self, arguments: str, commands: Any) -> None:
        tool = Tool("shell", "shell", client_name="shell")
        item = write_call(tool, "c1", "shell", arguments, "sh_1", status="incomplete")
        assert item["action"]["commands"] == commands
        assert item["status"] == "incomplete"
        check("FunctionShellCall", item)

    @pytest.mark.parametrize(
        ("arguments", "operation"),
        [
            (
                '{"type": "create_file", "path": "a", "diff": "+x"}',
                {"type": "create_file", "path": "a", "diff": "+x"},
            ),
            ('{"type": "delete_file", "path": "a"}', {"type": "delete_file", "path": "a"}),
            ('{"path": "a"}', {"type": "update_file", "path": "a", "diff": ""}),
            ("+x", {"type": "update_file", "path": "", "diff": "+x"}),
            ("", {"type": "update_file", "path": "", "diff": ""}),
        ],
    )
    def test_of_a_patch(self, arguments: str, operation: Any) -> None:
        tool = Tool("apply_patch", "apply_patch", client_name="apply_patch")
        item = write_call(tool, "c1", "apply_patch", arguments, "apc_1", status="incomplete")
        assert item["operation"] == operation
        assert item["status"] == "in_progress"
        check("ApplyPatchToolCall", item)


def test_a_shell_action_comes_back_as_it_was() -> None:
    action = {
        "type": "exec",
        "command": ["ls"],
        "timeout_ms": 5,
        "working_directory": "/src",
        "env": {"A": "b"},
    }
    assert LOCAL_SHELL.read(LOCAL_SHELL.read_item(action)) == action


def test_the_grammar_of_a_custom_tool_is_in_the_description() -> None:
    grammar = {"syntax": "lark", "definition": 'start: "a"+'}
    tool = as_function(Tool("t", "custom", description="Edits.", grammar=grammar))
    lines = ["Edits.", AS_FUNCTION_NOTE, '`input` must match this lark grammar:\nstart: "a"+']
    assert tool.description == "\n\n".join(lines)
    assert tool.parameters is not None
    assert tool.parameters["required"] == ["input"]


def test_a_function_is_one_already() -> None:
    tool = Tool("f", parameters={"type": "object"})
    assert as_function(tool) is tool
