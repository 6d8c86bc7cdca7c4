"""Test that no canary gets out where reasoning is hidden.

A canary is planted in a random place of an answer. Run whole, by `--matrix`, that is 20,000 times.
Where nothing is hidden nothing is lost: `test_nothing_lost.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.registry import UPSTREAM_APIS
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.end_to_end.mutations import STREAMS, WHOLE
from tests.support.canaries import CANARY, plant
from tests.support.pipeline import Pipeline
from tests.support.streams import frame

EXAMPLES, FEW = 20_000 // 3 + 1, 150
PROFILES_TRIED = ("auto", "openai", "deepseek", "vllm", "prefilled")


def copied(value: Any) -> Any:
    """Return a copy: what is planted stays in it."""
    return json.loads(json.dumps(value))


APIS = (CHAT, RESPONSES, MESSAGES)


def new_pipeline(random: Random, expose: str, **options: Any) -> Pipeline:
    api = options.pop("api")
    profile = PROFILES[random.choice(PROFILES_TRIED)]
    return Pipeline(
        api, expose=expose, profile=profile, write=lambda _: "**I add**\n\nSaid.", **options
    )


def encode(api: str, payloads: list[dict[str, Any]]) -> bytes:
    names = [None if api == CHAT.name else payload.get("type") for payload in payloads]
    data = b"".join(
        frame(one, name if isinstance(name, str) else None)
        for one, name in zip(payloads, names, strict=True)
    )
    return data + (b"data: [DONE]\n\n" if api == CHAT.name else b"")


def hide_in_stream(random: Random) -> None:
    api = random.choice(APIS)
    payloads = copied(STREAMS[api.name])
    plant(random, random.choice(payloads))
    pipeline = new_pipeline(random, random.choice(["summary", "none"]), api=api)
    out = pipeline.stream(encode(api.name, payloads))
    assert CANARY.encode() not in out


def hide_in_whole(random: Random) -> None:
    api = random.choice(APIS)
    body = copied(WHOLE[api.name])
    plant(random, body)
    pipeline = new_pipeline(random, random.choice(["summary", "none"]), api=api)
    assert CANARY.encode() not in pipeline.whole(json.dumps(body).encode())


def hide_in_translation(random: Random) -> None:
    api = random.choice(APIS)
    source = random.choice([name for name in UPSTREAM_APIS if name != api.name])
    expose = random.choice(["summary", "none"])
    pipeline = new_pipeline(random, expose, api=api, upstream=source)
    if random.random() < 0.5:
        payloads = copied(STREAMS[source])
        plant(random, random.choice(payloads))
        assert CANARY.encode() not in pipeline.stream(encode(source, payloads))
    else:
        body = copied(WHOLE[source])
        plant(random, body)
        assert CANARY.encode() not in pipeline.whole(json.dumps(body).encode())


@pytest.mark.parametrize("check", [hide_in_stream, hide_in_whole, hide_in_translation])
def test_no_canary_gets_out_where_reasoning_is_hidden(
    check: Callable[[Random], None], request: pytest.FixtureRequest
) -> None:
    examples = EXAMPLES if request.config.getoption("--matrix") else FEW

    @settings(max_examples=examples)
    @given(st.integers(0, 1 << 63))
    def run(seed: int) -> None:
        check(Random(seed))

    run()
