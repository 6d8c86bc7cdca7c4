"""The atlas: that its rows are sound, and that what was recorded of a provider bears them out."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, get_args

import pytest

import abridge
from abridge.apis import sse
from abridge.apis.chat.api import CHAT
from abridge.apis.credentials import credential_header
from abridge.apis.display import Display
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES, TEXT_FIELDS
from abridge.providers.learned import Observation
from abridge.providers.profile import ApiName, Profile, ReasoningReturn, StructuredPlace
from tests.recorded.recordings import Recording, recordings, said_in
from tests.shared import RECORDINGS, needs_recordings

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(params=PROFILES.values(), ids=lambda profile: profile.name)
def profile(request: pytest.FixtureRequest) -> Profile:
    return request.param  # type: ignore[no-any-return]


# The rows


def test_each_row_is_sound(profile: Profile) -> None:
    assert profile.source
    places = {*TEXT_FIELDS, *get_args(StructuredPlace)}
    assert set(profile.reasoning_in) <= places - {"nothing", "extra_content"}
    assert len(set(profile.reasoning_in)) == len(profile.reasoning_in)
    assert "tags" not in profile.reasoning_in or profile.tags
    assert set(profile.apis) <= set(get_args(ApiName))
    assert "chat" in profile.apis
    assert profile.key_header == profile.key_header.lower()
    returns = profile.returns
    assert {returns.place, *returns.rejects} <= places
    assert returns.place not in returns.rejects
    assert returns.required_on_calls or not returns.required_even_empty
    assert returns.place != "nothing" or returns == ReasoningReturn("nothing")
    assert not profile.prefilled or profile.tags
    for refusal in profile.rejects:
        assert refusal.fields
        assert refusal.models


def test_auto_comes_first_and_the_others_in_order() -> None:
    first, *others = PROFILES
    assert first == "auto"
    assert others == sorted(others)
    assert [name for name, row in PROFILES.items() if row.learns] == ["auto"]


def test_a_tag_begins_as_whoever_looks_for_one_expects() -> None:
    """See `abridge.apis.chat.inline.split_inline`."""
    assert {tag.opening[0] for row in PROFILES.values() for tag in row.tags} <= set("<◁")


def test_the_readme_names_each() -> None:
    told = README.read_text().partition("## Profiles")[2].partition("\n## ")[0]
    assert all(f"`{name}`" in told for name in PROFILES)


def test_no_provider_is_named_anywhere_else_in_the_code() -> None:
    """Docstrings and comments may name one as a source."""
    names = PROFILES.keys() - {"auto"}
    package = Path(abridge.__file__).parent
    for file in package.rglob("*.py"):
        if file.name != "profiles.py":
            constants = {
                node.value for node in ast.walk(ast.parse(file.read_text())) if _is_text(node)
            }
            assert not constants & names, file


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# What a profile says of a request


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("auto", (b"authorization", b"Bearer k")),
        ("anthropic", (b"x-api-key", b"k")),
        ("azure", (b"api-key", b"k")),
    ],
)
def test_a_key_goes_where_the_provider_looks_for_it(name: str, header: tuple[bytes, bytes]) -> None:
    assert credential_header(b"k", PROFILES[name]) == header


@pytest.mark.parametrize(
    ("name", "effort", "said"),
    [
        ("auto", "low", {"reasoning_effort": "low"}),
        ("auto", "none", {"reasoning_effort": "none"}),
        ("deepseek", "none", {"thinking": {"type": "disabled"}}),
        ("deepseek", "max", {"reasoning_effort": "max"}),
        ("qwen", "none", {"enable_thinking": False}),
        ("qwen", "high", {}),
    ],
)
def test_how_much_to_think_is_said_in_the_providers_words(
    name: str, effort: str, said: dict[str, Any]
) -> None:
    assert PROFILES[name].thinking_fields(effort) == said


def test_it_is_nested_where_the_provider_nests_it() -> None:
    said = Profile("p", effort_field="output_config.effort").thinking_fields("high")
    assert said == {"output_config": {"effort": "high"}}


SAMPLED = {"temperature": 0.2, "top_p": 0.9, "frequency_penalty": 1, "stop": ["x"], "seed": 7}
SAMPLERS = ("temperature", "top_p", "frequency_penalty")
THINKS = {"reasoning_effort": "low"}
THINKS_THERE = {"reasoning": {"effort": "low"}}


@pytest.mark.parametrize(
    ("name", "model", "asks", "dropped"),
    [
        ("auto", "gpt-5", THINKS, ()),
        ("openai", "gpt-4.1", {}, ()),
        ("openai", "o3", {}, (*SAMPLERS, "stop")),
        ("openai", "o1-pro", {}, SAMPLERS),
        ("openai", "gpt-5-mini", {}, (*SAMPLERS, "stop")),
        ("openai", "GPT-5", {}, (*SAMPLERS, "stop")),
        ("azure", "openai/gpt-5", {}, (*SAMPLERS, "stop")),
        ("openai", "gpt-5-chat-latest", {}, ()),
        ("openai", "gpt-5.2-pro", {}, SAMPLERS),
        ("openai", "gpt-5.2", {}, ()),
        ("openai", "gpt-5.2", {"reasoning_effort": "none"}, ()),
        ("openai", "gpt-5.2", THINKS, SAMPLERS),
        ("openai", "gpt-5.2", THINKS_THERE, SAMPLERS),
        ("openai", "gpt-5.5", {}, SAMPLERS),
        ("openai", "gpt-5.5", {"reasoning": {"summary": "auto"}}, SAMPLERS),
        ("openai", "gpt-5.5", {"reasoning": {"effort": "none"}}, ()),
        ("openai", "gpt-5.6-sol", {"reasoning_effort": "none"}, ()),
        ("moonshot", "kimi-k2.6", {}, SAMPLERS),
        ("moonshot", "kimi-k2-thinking", {}, ()),
        ("xai", "grok-4-fast-reasoning", {}, ("frequency_penalty", "stop")),
        ("xai", "grok-4-fast-reasoning", THINKS, ("frequency_penalty", "stop", "reasoning_effort")),
        (
            "xai",
            "grok-4.20-0309-reasoning",
            THINKS_THERE,
            ("frequency_penalty", "stop", "reasoning.effort"),
        ),
        ("xai", "grok-3-mini", THINKS, ("frequency_penalty", "stop")),
        ("xai", "grok-4-fast-non-reasoning", {}, ()),
        ("groq", "openai/gpt-oss-120b", {"logprobs": True, "n": 2}, ("logprobs",)),
        ("cerebras", "zai-glm-4.7", {}, ("frequency_penalty",)),
        ("anthropic", "claude-sonnet-4-5", {}, ()),
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "enabled"}}, ("temperature",)),
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "disabled"}}, ()),
        ("anthropic", "claude-opus-4-7", {}, ("temperature", "top_p")),
        ("deepseek", "deepseek-v4-pro", THINKS, ()),
    ],
)
def test_ols_08_what_a_reasoning_model_refuses_is_removed(
    name: str, model: str, asks: dict[str, Any], dropped: tuple[str, ...]
) -> None:
    body = {"model": model, **SAMPLED, **asks}
    assert set(PROFILES[name].drop_rejected(body, model)) == set(dropped)
    kept = {**SAMPLED, **asks}.keys() - {field.partition(".")[0] for field in dropped}
    assert body.keys() == {"model", *kept}


def test_what_stands_beside_a_nested_field_stays() -> None:
    body = {"reasoning": {"effort": "low", "summary": "auto"}}
    assert PROFILES["xai"].drop_rejected(body, "grok-4") == ("reasoning.effort",)
    assert body == {"reasoning": {"summary": "auto"}}


def test_a_null_is_no_parameter() -> None:
    body = {"temperature": None, "reasoning": "low"}
    assert PROFILES["openai"].drop_rejected(body, "o3") == ()
    assert PROFILES["xai"].drop_rejected(body, "grok-4") == ()
    assert body == {"temperature": None, "reasoning": "low"}


# What was recorded

RECORDED = {
    "alibaba-": "qwen",
    "azure-deepseek": "azure",
    "azure-reasoning": "azure",
    "cerebras_": "cerebras",
    "deepseek": "deepseek",
    "groq": "groq",
    "hf_": "huggingface",
    "lmstudio": "lmstudio",
    "mistral": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "openrouter": "openrouter",
    "reasoning_summary_auto": "openai",
    "xai": "xai",
    "zai": "zai",
}


def recorded(recording: Recording) -> Profile:
    known = (name for start, name in RECORDED.items() if recording.name.startswith(start))
    return PROFILES[next(known)]


def read(recording: Recording, profile: Profile) -> tuple[str, str, Observation]:
    """The reasoning and the answer that a row's reader finds, and what it saw."""
    api = CHAT if recording.api == "chat" else RESPONSES
    reader = api.reader(profile, Display(), 1 << 22)
    if recording.streamed:
        decoder = sse.FrameDecoder(1 << 24)
        frames = [*decoder.feed(recording.data), *decoder.end()]
        events = [event for frame in frames for event in reader.read(frame)] + reader.end()
    else:
        events = reader.read_whole(recording.data)
    texts = {
        kind: "".join(event.text for event in events if type(event).__name__ == kind)  # type: ignore[attr-defined]
        for kind in ("Raw", "Said")
    }
    return texts["Raw"], texts["Said"], reader.observed()


@needs_recordings
@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.name)
def test_a_row_reads_what_was_recorded(recording: Recording) -> None:
    profile, said = recorded(recording), said_in(recording, recording.data)
    raw, text, seen = read(recording, profile)
    assert raw.split() == ("" if said.native else said.raw).split()
    assert said.text.split() == text.split() or recording.api == "responses"
    if recording.api == "chat" and (said.raw.strip() or said.native):
        assert seen.place in profile.reasoning_in
    if recording.api == "responses":
        assert seen == Observation(summary_is_raw=False if said.native else None)
        assert recording.api in profile.apis


@needs_recordings
def test_whoever_was_recorded_is_in_the_atlas() -> None:
    assert {recorded(recording).name for recording in recordings()} == set(RECORDED.values())


def returned(name: str) -> list[dict[str, Any]]:
    """The assistant's messages in a recorded request that was answered."""
    body = json.loads((RECORDINGS / f"{name}.request.json").read_text())
    return [message for message in body["messages"] if message["role"] == "assistant"]


@needs_recordings
@pytest.mark.parametrize(
    ("recording", "name"),
    [
        ("deepseek_deferred_capability_with_thinking.3", "deepseek"),
        ("zai_preserved_thinking_round_trip.2", "zai"),
    ],
)
def test_reasoning_came_back_in_its_field(recording: str, name: str) -> None:
    returns = PROFILES[name].returns
    said = [message[returns.place] for message in returned(recording)]
    assert any(said)
    assert returns.required_even_empty or all(said)


@needs_recordings
@pytest.mark.parametrize(
    ("recording", "name"),
    [
        ("cerebras_zai_reasoning_replayed_as_think_tags.2", "cerebras"),
        ("hf_model_thinking_part.2", "huggingface"),
    ],
)
def test_reasoning_came_back_between_tags(recording: str, name: str) -> None:
    assert PROFILES[name].returns.place == "tags"
    (message,) = returned(recording)
    assert message["content"].startswith("<think>\n")
    assert not message.keys() & PROFILES[name].returns.rejects
