"""Request fields by which thinking may come into a text without its tag."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.shapes import DropCount
from abridge.apis.thinking_switches import ENDINGS, drop_thinking_switches
from abridge.providers.catalog import PROFILES
from abridge.stages.tag_forms import PHRASES

Json = dict[str, Any]

GRAMMAR = 'root ::= "yes"'


def kept(body: Json, profile: str) -> tuple[Json, int]:
    """Return what is kept of a body, and how much was dropped."""
    drops = DropCount()
    return drop_thinking_switches(body, PROFILES[profile], drops), drops.count


SWITCHES: tuple[Json, ...] = (
    {"reasoning_effort": "none"},
    {"reasoning": {"effort": "none"}},
    {"reasoning": {"enabled": False}},
    {"enable_thinking": False},
    {"think": False},
    {"disable_reasoning": True},
    {"thinking": {"type": "disabled"}},
    {"chat_template_kwargs": {"thinking": False}},
    {"guided_grammar": GRAMMAR},
    {"guided_regex": "[a-z ]+"},
    {"grammar": GRAMMAR},
    {"regex": "[a-z ]+"},
    {"ebnf": GRAMMAR},
    {"structured_outputs": {"regex": "[a-z ]+"}},
    {"structured_outputs": {"grammar": GRAMMAR}},
    {"response_format": {"type": "grammar", "grammar": GRAMMAR}},
    {"text": {"format": {"type": "grammar", "grammar": GRAMMAR}}},
)


@pytest.mark.parametrize("profile", ["auto", "vllm", "sglang"])
@pytest.mark.parametrize("switch", SWITCHES, ids=json.dumps)
def test_they_are_dropped_and_counted(switch: Json, profile: str) -> None:
    body = {"model": "m", **switch}
    assert kept(body, profile) == ({"model": "m"}, 1)
    assert body == {"model": "m", **switch}


def test_an_item_of_the_input_does_not_switch_it_off_either() -> None:
    update = {"type": "configuration_update", "text": {}}
    off, low = ({**update, "reasoning": {"effort": effort}} for effort in ("none", "low"))
    assert kept({"input": [off, low, "x"]}, "vllm") == ({"input": [update, low, "x"]}, 1)


STOPS: tuple[Json, ...] = (
    *({"stop": stop} for stop in ("ANSWER", "\nANS", "FINAL ", "RESPONSE:", "assistant", "final")),
    {"stop": ["assistantf"]},
    {"stop_sequences": ["\nFINAL ANSW"]},
    {"generationConfig": {"stopSequences": ["SPONSE"]}},
)


@pytest.mark.parametrize("stop", STOPS, ids=json.dumps)
def test_a_stop_that_cuts_off_what_ends_thinking_is_dropped(stop: Json) -> None:
    assert kept({"model": "m", **stop}, "vllm") == ({"model": "m"}, 1)
    assert kept({"model": "m", **stop}, "auto") == ({"model": "m"}, 1)


def test_the_other_stops_of_a_list_stay() -> None:
    stops = ["\nclass", "ANSWER", "Observation:", "finally"]
    body = {"stop": stops, "generationConfig": {"stopSequences": stops, "topK": 1}}
    rest = ["\nclass", "Observation:", "finally"]
    expected = {"stop": rest, "generationConfig": {"stopSequences": rest, "topK": 1}}
    assert kept(body, "vllm") == (expected, 2)
    assert body["stop"] == stops


HARMLESS: tuple[Json, ...] = (
    {"stop": ["\n\n", "\nclass", "Answer:", "A", "User:", "Human", "###"]},
    {"stop": "\n", "stop_sequences": ["a", "pass"], "generationConfig": {"stopSequences": []}},
    {"reasoning_effort": "low"},
    {"reasoning": {"effort": "minimal", "enabled": True, "summary": "auto"}},
    {"enable_thinking": True, "think": True, "disable_reasoning": False},
    {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    {"chat_template_kwargs": {"enable_thinking": True}},
    {"chat_template_kwargs": None, "thinking": "disabled", "response_format": ["grammar"]},
    {"guided_json": {"type": "object"}, "guided_choice": ["a"], "guided_regex": None},
    {"structured_outputs": {"choice": ["a"]}, "json_schema": {"regex": {}}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
    {"text": {"format": {"type": "text"}, "verbosity": "low"}},
)


@pytest.mark.parametrize("profile", ["auto", "vllm", "sglang"])
@pytest.mark.parametrize("fields", HARMLESS, ids=json.dumps)
def test_others_stay(fields: Json, profile: str) -> None:
    assert kept(fields, profile) == (fields, 0)


@pytest.mark.parametrize("profile", [name for name, one in PROFILES.items() if one.thinking_off])
def test_the_switch_of_the_profiles_own_stays(profile: str) -> None:
    own = dict(PROFILES[profile].thinking_off)
    assert kept(own, profile) == (own, 0)


def test_what_stands_beside_one_stays() -> None:
    body = {
        "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
        "text": {"format": {"type": "grammar"}, "verbosity": "low"},
    }
    left = {"chat_template_kwargs": {"enable_thinking": False}, "text": {"verbosity": "low"}}
    assert kept(body, "vllm") == (left, 2)


def test_the_endings_are_those_of_the_phrases_after_which_something_is_shown() -> None:
    """Of a phrase whose last paragraph is shown, and of harmony, which its end alone tells."""
    closings = [phrase.closing for phrase in PHRASES if phrase.ends_last]
    closings += [phrase.closing for phrase in PHRASES if "analysis" in phrase.examples]
    assert all(any(closing.fullmatch(each) for each in ENDINGS) for closing in closings)
    assert all(any(closing.fullmatch(each) for closing in closings) for each in ENDINGS)
