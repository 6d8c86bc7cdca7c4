"""Test the names of models: to upstream, back to clients, and in answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from abridge.apis.model_names import AnsweredNames, ModelRenames

RENAMES = ModelRenames.parse(
    {
        "claude-opus": "big/model",
        "claude-*": "anthropic/claude-{}",
        "*-mini": "small-{}-v1",
        "gpt-[45]*": "gpt-oss",
        "any-*": "one",
    }
)


@pytest.mark.parametrize(
    ("client", "upstream"),
    [
        ("claude-opus", "big/model"),
        ("claude-opus-4", "anthropic/claude-opus-4"),
        ("claude-", "anthropic/claude-"),
        ("o4-mini", "small-o4-v1"),
        ("gpt-5", "gpt-oss"),
        ("any-thing", "one"),
        ("Claude-4", "Claude-4"),
        ("other", "other"),
        ("", ""),
    ],
)
def test_the_first_rule_that_matches_gives_upstreams_name(client: str, upstream: str) -> None:
    assert RENAMES.to_upstream(client) == upstream


@pytest.mark.parametrize(
    ("upstream", "clients"),
    [
        ("big/model", ("claude-opus",)),
        ("anthropic/claude-opus-4", ("claude-opus-4",)),
        ("anthropic/claude-opus", ("anthropic/claude-opus",)),  # `claude-opus` leads elsewhere
        ("small-o4-v1", ("o4-mini",)),
        ("small-v1", ("small-v1",)),  # too short for what stands around `{}`
        ("gpt-oss", ("gpt-oss",)),
        ("gpt-5", ()),  # no name leads there
        ("one", ("one",)),
        ("other", ("other",)),
    ],
)
def test_a_model_is_listed_under_names_that_lead_to_it(
    upstream: str, clients: tuple[str, ...]
) -> None:
    assert RENAMES.to_client(upstream) == clients


def test_what_is_empty_is_no_name() -> None:
    assert ModelRenames.parse({"*": "m"}).to_upstream("") == ""


def test_a_model_may_have_several_names() -> None:
    renames = ModelRenames.parse({"fast": "m", "smart": "m", "*": "m"})
    assert renames.to_client("m") == ("fast", "smart")


NAMES = st.text("ab/-", max_size=6)
WITH_MATCH = st.tuples(NAMES, NAMES, NAMES, NAMES)


@given(WITH_MATCH, NAMES)
def test_a_name_that_went_to_upstream_comes_back(
    around: tuple[str, str, str, str], matched: str
) -> None:
    head, tail, upstreams_head, upstreams_tail = around
    assume(head + matched + tail)  # what is empty is no name
    renames = ModelRenames.parse({f"{head}*{tail}": f"{upstreams_head}{{}}{upstreams_tail}"})
    upstream = renames.to_upstream(head + matched + tail)
    assert upstream == upstreams_head + matched + upstreams_tail
    assert renames.to_client(upstream) == (head + matched + tail,)


@given(st.lists(WITH_MATCH, max_size=3), st.dictionaries(NAMES, NAMES, max_size=2), NAMES)
def test_each_name_that_is_listed_leads_to_the_model(
    rules: list[tuple[str, str, str, str]], plain: dict[str, str], name: str
) -> None:
    table = {f"{a}*{b}": f"{c}{{}}{d}" for a, b, c, d in rules}
    table |= {glob: target for glob, target in plain.items() if glob and target}
    renames = ModelRenames.parse(table)
    clients = renames.to_client(name)
    assert len(set(clients)) == len(clients)
    assert {renames.to_upstream(client) for client in clients} <= {name}


@pytest.mark.parametrize(
    ("glob", "name", "problem"),
    [
        ("", "x", "must be given"),
        ("x", "", "must be given"),
        ("x", "y-{}", "one [*]"),
        ("*-*", "y-{}", "one [*]"),
        ("x?*", "y-{}", "one [*]"),
        ("x-*", "{}-{}", "can stand once"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_refused(glob: str, name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as error:
        ModelRenames.parse({glob: name})
    assert str(error.value).startswith(repr(glob))


ANSWERED = AnsweredNames({"up/m": "client", "ü": "u"})


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ('{"id":"1","model":"up/m","choices":[]}', '{"id":"1","model":"client","choices":[]}'),
        ('{"model" : "up/m"}', '{"model" : "client"}'),
        ('{"model":"up\\/m"}', '{"model":"client"}'),
        ('{"model":"\\u00fc"}', '{"model":"u"}'),
        ('{"choices":[{"a":"}{"}],"model":"up/m"}', '{"choices":[{"a":"}{"}],"model":"client"}'),
        (
            '{"type":"response.created","response":{"a":[1],"model":"up/m"}}',
            '{"type":"response.created","response":{"a":[1],"model":"client"}}',
        ),
        (
            '{"type":"message_start","message":{"model":"up/m"}}',
            '{"type":"message_start","message":{"model":"client"}}',
        ),
        ('{"model":"up/m-2024"}', None),  # another name is upstream's to say
        ('{"metadata":{"model":"up/m"}}', None),
        ('{"choices":[{"model":"up/m"}]}', None),
        ('{"x":"\\"model\\":\\"up/m\\""}', None),
        ('{"x\\"model":"up/m"}', None),
        (
            '{"response":{"tools":[{"model":"up/m"}],"model":"up/m"}}',
            '{"response":{"tools":[{"model":"up/m"}],"model":"client"}}',
        ),
    ],
)
def test_a_name_is_replaced_where_an_answer_says_which_model_gave_it(
    sent: str, seen: str | None
) -> None:
    assert ANSWERED.replace_in_text(sent.encode()).decode() == (seen or sent)
    line = f'data: {{"model":"up/m"}}\n\ndata: {sent}\n'
    expected = f'data: {{"model":"client"}}\n\ndata: {seen or sent}\n'
    assert ANSWERED.replace_in_lines(line.encode()).decode() == expected


def test_text_over_many_lines_is_one_text() -> None:
    text = json.dumps({"metadata": {"model": "up/m"}, "model": "up/m"}, indent=2)
    expected = json.dumps({"metadata": {"model": "up/m"}, "model": "client"}, indent=2)
    assert ANSWERED.replace_in_text(text.encode()).decode() == expected


JSON = st.recursive(
    st.sampled_from(["up/m", "model", '"model":"up/m"', 1, None]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "x", 'y"', "{"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["model", "choices", "usage", "id"]), JSON, max_size=4))
def test_nothing_else_is_replaced(answer: dict[str, Any]) -> None:
    expected = {**answer, "model": "client"} if answer.get("model") == "up/m" else answer
    assert json.loads(ANSWERED.replace_in_text(json.dumps(answer).encode())) == expected
