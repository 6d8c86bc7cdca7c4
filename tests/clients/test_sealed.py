"""The official client, its strict helpers included, given blobs, and what it sends back."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.apis.api import Api, RequestEcho
from abridge.apis.chat.api import CHAT
from abridge.apis.display import ENVELOPE_PREFIX, Exposure
from abridge.apis.registry import APIS
from abridge.core.model_request import ReasoningPart
from tests.clients.canned import complete, respond
from tests.end_to_end.recordings.recordings import Recording, recordings
from tests.support.pipeline import Pipeline, translating
from tests.support.sealers import sealer, unseal
from tests.support.translated import read_turn

Json = dict[str, Any]

ECHO = RequestEcho({"stream_options": {"include_usage": True}})
STREAMS = [
    recording
    for recording in recordings()
    if recording.streamed and read_turn(str(recording.api), recording.data).ok
]
TAKEN = [recording for recording in STREAMS if not recording.name.startswith("mistral")]
"""All but those whose content is a list, which this client loses in its stream."""
EXPOSURES: list[Exposure] = ["auto", "none"]


async def carried_on(api: Api, stream: bytes) -> Json:
    """The client's next request as upstream gets it, opened by another replica."""
    said: list[Any] = (
        [choice.message for choice in (await complete(stream)).choices]
        if api is CHAT
        else (await respond(stream)).output
    )
    sent = [_sent(each.to_dict(exclude_unset=True)) for each in said]
    carried: Json = unseal(api.history({("messages" if api is CHAT else "input"): sent}))
    assert ENVELOPE_PREFIX not in json.dumps(carried)
    return carried


def _sent(said: Json) -> Json:
    sent: Json = json.loads(json.dumps(said))
    return {key: value for key, value in sent.items() if value is not None}


@pytest.mark.parametrize("recording", TAKEN, ids=lambda recording: recording.name)
@pytest.mark.parametrize("expose", EXPOSURES)
async def test_new_02_every_recording(recording: Recording, expose: Exposure) -> None:
    api = next(api for api in APIS if api.name == recording.api)
    pipeline = Pipeline(api, seal=sealer().seal, expose=expose)
    carried = await carried_on(api, pipeline.stream(recording.data))
    given = carried["messages" if api is CHAT else "input"]
    for heard in pipeline.recorded_turns():
        for original in heard.original if heard.raw.strip() else ():
            assert any(original.items() <= each.items() for each in given)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("recording", STREAMS, ids=lambda recording: recording.name)
@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_new_02_05_every_recording_over_a_bridge(
    recording: Recording, api: Api, expose: Exposure
) -> None:
    pipeline = translating(str(recording.api), api, echo=ECHO, seal=sealer().seal, expose=expose)
    carried = await carried_on(api, pipeline.stream(recording.data))
    parts = [part for speech in api.read_request(carried).messages for part in speech.parts]
    thoughts = [part.text for part in parts if isinstance(part, ReasoningPart)]
    answer = read_turn(str(recording.api), recording.data).answer
    assert "".join(thoughts) == "".join(
        stretch.raw for stretch in answer.stretches if stretch.raw.strip()
    )
