"""Test the fields in which providers put their reasoning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from abridge.providers.catalog import TEXT_FIELDS


def test_the_text_fields_are_those_that_rows_name() -> None:
    """A misspelt field in a row would count as another field."""
    assert TEXT_FIELDS == ("reasoning_content", "reasoning")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Return how a field that only a new row names is handled."""
    command = [sys.executable, "-m", "tests.apis.chat.newcomer"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=paths)  # noqa: S603 -- fixed
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("profile", ["newcomer", "auto"])
class TestNewTextField:
    """Test that one more row is enough."""

    def test_reasoning_in_a_new_text_field_is_found(
        self, found: dict[str, Any], profile: str
    ) -> None:
        assert found[f"{profile} both"]["reasoning"] == found["thought"]
        assert found[f"{profile} both"]["reasoning_content"].startswith("**Part**")
        assert found[f"{profile} seen"] == "thoughts"

    def test_a_summary_replaces_a_new_text_field(self, found: dict[str, Any], profile: str) -> None:
        assert found[f"{profile} summary"].keys() == {"thoughts", "content"}
        assert found[f"{profile} summary"]["thoughts"].startswith("**Part**")
        assert found[f"{profile} whole"]["thoughts"].startswith("**Part**")

    def test_a_new_text_field_is_hidden(self, found: dict[str, Any], profile: str) -> None:
        assert "thoughts" not in found[f"{profile} hidden"]
        assert not any(text in found[f"{profile} hidden"] for text in found["thought"].split(". "))

    def test_a_new_text_field_is_remembered(self, found: dict[str, Any], profile: str) -> None:
        assert found[f"{profile} recorded"] == [[{"thoughts": found["thought"]}]]


def test_reasoning_goes_back_in_a_field_that_no_answer_has(found: dict[str, Any]) -> None:
    assert found["placed"] == "moved"
    assert found["replayed"] == {"role": "assistant", "earlier_thoughts": found["thought"]}


def test_reasoning_is_found_in_a_field_that_no_answer_has(found: dict[str, Any]) -> None:
    assert found["read again"] == [found["thought"]]
    assert found["dropped"] == {"role": "assistant"}


def test_a_new_text_field_is_noticed_in_a_request(found: dict[str, Any]) -> None:
    assert found["noticed"]


def test_a_new_text_field_is_translated(found: dict[str, Any]) -> None:
    assert found["translated"] == {"thoughts": found["thought"], "content": "Yes"}
