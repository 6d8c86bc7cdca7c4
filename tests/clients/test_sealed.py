"""The official client and its strict helpers, given envelopes, and what it sends back."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Exposure
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import RequestEcho
from abridge.apis.registry import APIS
from abridge.core.envelope import ENVELOPE_PREFIX
from abridge.core.model_request import ReasoningPart
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from tests.clients.canned import complete, converse, respond
from tests.end_to_end.recordings.recordings import Recording, answered_streams
from tests.support.pipeline import Pipeline, translating
from tests.support.sealers import USER, sealer, unseal
from tests.support.translated import read_turn

Json = dict[str, Any]

ECHO = RequestEcho({"stream_options": {"include_usage": True}})
STREAMS = answered_streams()
READABLE = [recording for recording in STREAMS if not recording.name.startswith("mistral")]
"""Those without content lists, which this client loses in streams."""
EXPOSURES: list[Exposure] = ["auto", "none"]


def profile_of(recording: Recording) -> Profile:
    """Return the profile of who vouches for the summaries that were recorded."""
    vouching = (profile for profile in PROFILES.values() if profile.makes_summaries)
    return next((one for one in vouching if recording.name.startswith(one.name)), PROFILES["auto"])


async def next_request(api: Api, stream: bytes) -> Json:
    """Return the client's next request as upstream gets it, opened by another replica."""
    sent = [USER, *(_sent(each.to_dict(exclude_unset=True)) for each in await _said(api, stream))]
    body: Json = unseal(api.history({api.conversation_field: sent}))
    assert ENVELOPE_PREFIX not in json.dumps(body)
    return body


async def _said(api: Api, stream: bytes) -> list[Any]:
    """Return the items of the answer, or its messages."""
    if api is MESSAGES:
        return [await converse(stream)]
    if api is CHAT:
        return [choice.message for choice in (await complete(stream)).choices]
    return list((await respond(stream)).output)


def _sent(items: Json) -> Json:
    sent: Json = json.loads(json.dumps(items))
    return {key: value for key, value in sent.items() if value is not None}


@pytest.mark.parametrize("recording", READABLE, ids=lambda recording: recording.name)
@pytest.mark.parametrize("expose", EXPOSURES)
async def test_every_recording(recording: Recording, expose: Exposure) -> None:
    api = next(api for api in APIS if api.name == recording.api)
    pipeline = Pipeline(api, seal=sealer().seal, expose=expose, profile=profile_of(recording))
    body = await next_request(api, pipeline.stream(recording.data))
    given = body[api.conversation_field]
    for recorded in pipeline.recorded_turns():
        for original in recorded.original if recorded.raw.strip() else ():
            assert any(original.items() <= each.items() for each in given)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("recording", STREAMS, ids=lambda recording: recording.name)
@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_every_recording_translated(recording: Recording, api: Api, expose: Exposure) -> None:
    options = {"echo": ECHO, "seal": sealer().seal, "profile": profile_of(recording)}
    pipeline = translating(str(recording.api), api, expose=expose, **options)
    body = await next_request(api, pipeline.stream(recording.data))
    parts = [part for speech in api.read_request(body).messages for part in speech.parts]
    thoughts = [part.text for part in parts if isinstance(part, ReasoningPart)]
    answer = read_turn(str(recording.api), recording.data).answer
    assert "".join(thoughts) == "".join(
        stretch.raw for stretch in answer.stretches if stretch.raw.strip()
    )
