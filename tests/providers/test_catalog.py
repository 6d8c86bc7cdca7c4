"""Test the catalog: its rows are sound and agree with recordings of the providers."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

import abridge
from abridge.apis import sse
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES, TEXT_FIELDS
from abridge.providers.learned import Observation
from abridge.providers.profile import (
    GOOGLES,
    ApiName,
    Profile,
    ReasoningReturn,
    RejectedFields,
    StructuredPlace,
    Tag,
)
from tests.end_to_end.recordings.recordings import Recording, recordings
from tests.support.shared import RECORDINGS, needs_recordings

PACKAGE = Path(abridge.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "bridges.md"


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
    assert "chat" in profile.apis or profile.apis == GOOGLES
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


def test_every_tag_begins_with_a_character_that_readers_look_for() -> None:
    """See `abridge.apis.chat.texts.split_inline`."""
    assert {tag.opening[0] for row in PROFILES.values() for tag in row.tags} <= set("<◁")


def test_the_documentation_names_each_profile() -> None:
    section = PAGE.read_text().partition("## Profiles")[2].partition("\n## ")[0]
    assert all(f"`{name}`" in section for name in PROFILES)


def test_no_provider_is_named_anywhere_else_in_the_code() -> None:
    """Docstrings and comments may name one as a source."""
    names = PROFILES.keys() - {"auto"} - set(get_args(ApiName))
    quoted = re.compile(rf"""["']({"|".join(names)})["']""")
    for file in PACKAGE.rglob("*.py"):
        if file.name != "catalog.py" and quoted.search(text := file.read_text()):
            constants = {
                node.value
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            assert not constants & names, file


def test_every_column_is_read_by_the_code() -> None:
    tables = (Profile, ReasoningReturn, RejectedFields, Tag)
    unread = {column.name for table in tables for column in fields(table)}
    for text in (file.read_text() for file in sorted(PACKAGE.rglob("*.py"))):
        if any(f".{name}" in text for name in unread):
            nodes = ast.walk(ast.parse(text))
            unread -= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not unread


# Recordings

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
    """Return the reasoning and answer that a row's reader finds, and its observations."""
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
        for kind in ("ReasoningDelta", "ContentDelta")
    }
    return texts["ReasoningDelta"], texts["ContentDelta"], reader.observed()


@needs_recordings
@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.name)
def test_a_row_reads_what_was_recorded(recording: Recording) -> None:
    profile, expected = recorded(recording), recording.content
    raw, text, seen = read(recording, profile)
    assert raw.split() == ("" if expected.native else expected.raw).split()
    assert expected.text.split() == text.split() or recording.api == "responses"
    if recording.api == "chat" and (expected.raw.strip() or expected.native):
        assert seen.place in profile.reasoning_in
    if recording.api == "responses":
        assert seen == Observation(summary_is_raw=False if expected.native else None)
        assert recording.api in profile.apis


@needs_recordings
def test_every_recorded_provider_has_a_row() -> None:
    assert {recorded(recording).name for recording in recordings()} == set(RECORDED.values())


def returned(name: str) -> list[dict[str, Any]]:
    """Return the assistant's messages in a recorded request that succeeded."""
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
    expected = [message[returns.place] for message in returned(recording)]
    assert any(expected)
    assert returns.required_even_empty or all(expected)


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
