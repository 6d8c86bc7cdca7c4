"""Test `abridge profiles`, which prints what is known of providers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from abridge.sidecar.cli.commands import main

PAGE = Path(__file__).parents[3] / "docs" / "bridges.md"


def profiles(*words: str) -> str:
    result = CliRunner().invoke(main, ["profiles", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_has_a_line_for_each() -> None:
    titles, *lines = profiles().splitlines()
    assert titles.split()[0] == "profile"
    assert [line.split()[0] for line in lines] == list(PROFILES)
    starts = [titles.index(title) for title in ("reasoning in", "sent back in", "APIs")]
    for line, row in zip(lines, PROFILES.values(), strict=True):
        assert all(line[start - 1] == " " != line[start] for start in starts)
        assert row.returns.place in line
        assert all(place in line for place in (*row.reasoning_in, *row.apis))


@pytest.mark.parametrize("row", PROFILES.values(), ids=list(PROFILES))
def test_one_profile_is_printed_in_full(row: Profile) -> None:
    report = profiles(row.name)
    assert report.splitlines()[0] == row.name
    assert all(
        word in report
        for word in (row.source, row.effort_field, row.max_tokens_field, row.key_header)
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deepseek", "required on turns that call tools, even if empty"),
        ("gemini", "required on turns that call tools\n"),
        ("minimax", "without it, answers get worse"),
        ("groq", "rejects reasoning_content"),
        ("ollama", "its summaries on Responses are raw reasoning"),
        ("prefilled", "the prompt template opens <think>"),
        ("gemini", "already a summary: gemini-2.5-*, "),
        ("anthropic", "its summaries are written for readers\n"),
        ("auto", "learned from what the upstream sends"),
        ("openai", "reasoning in   no readable field"),
        ("openai", "gpt-5.[1-4]* except *-chat*, if thinking is requested\n"),
        ("openai", "unless thinking is off\n"),
        ("groq", "logprobs, top_logprobs, logit_bias: *\n"),
        ("anthropic", "key in         x-api-key: …\n"),
        ("qwen", "effort in      -\n"),
        ("fireworks", "rejects        -\n"),
    ],
)
def test_a_profiles_details_name_its_peculiarities(name: str, text: str) -> None:
    assert text in profiles(name)


def test_json_has_every_field_of_every_profile() -> None:
    report = {row["name"]: row for row in json.loads(profiles("--json"))}
    assert list(report) == list(PROFILES)
    assert report["deepseek"]["returns"]["required_even_empty"] is True
    assert report["deepseek"]["thinking_off"] == {"thinking": {"type": "disabled"}}
    assert report["prefilled"]["tags"][0]["opening"] == "<think>"
    assert report["xai"]["rejects"][0]["fields"][-1] == "stop"
    assert json.loads(profiles("zai", "--json")) == [report["zai"]]


def test_an_unknown_name_is_reported_in_one_line() -> None:
    result = CliRunner().invoke(main, ["profiles", "nobody"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: NAME: got 'nobody'; must be one of anthropic, auto, ")


def test_the_documentation_shows_the_output() -> None:
    documented = PAGE.read_text().partition("$ abridge profiles moonshot\n")[2].partition("```")[0]
    assert documented == profiles("moonshot")
