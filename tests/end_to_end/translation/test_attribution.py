"""The attribution of calls through the whole application, for each pair of APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end_to_end.translation.turn import ALL_UPSTREAMS, CLIENTS, PATHS, request_body
from tests.support.asgi import call
from tests.support.attribution import (
    MARKS,
    Step,
    attribution_texts,
    encode_turn,
    expected_texts,
    read_attributions,
)
from tests.support.deployments import FORMS, ORIGIN, PREFIX, Form, build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

ON: dict[str, Any] = {"attribution": {"enabled": True}}
SUMMARY = "**Adding up**\n\nI add the numbers."
TURN: list[Step] = [("think", "A secret."), ("say", "Hm"), ("call", ""), ("call", "")]
LATER: list[Step] = [*TURN, ("think", "Another secret."), ("call", "")]
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize("upstream", ALL_UPSTREAMS)
ANY = pytest.mark.parametrize("client", CLIENTS)


async def ask(
    client: str,
    upstream: str,
    steps: list[Step],
    *,
    stream: bool,
    form: Form = "mounted",
    summary: str | None = "auto",
    **tables: Any,
) -> bytes:
    """Return the body of a client's answer."""
    kind = {"content-type": "text/event-stream" if stream else "application/json"}
    played = Upstream(Answer([encode_turn(upstream, steps, stream=stream)], headers=kind))
    entry = {"api": upstream, "base_url": f"{ORIGIN}/v1"}
    app = build_app(form, played, writer=Scripted(SUMMARY), upstreams=[entry], **tables)
    body = request_body(client, stream=stream, summary=summary)
    return (await call(app, PREFIX[form] + PATHS[client], body)).data


@BOTH
@EACH
@ANY
@pytest.mark.parametrize("form", FORMS)
async def test_calls_are_attributed_on_every_pair_of_apis(
    form: Form, client: str, upstream: str, *, stream: bool
) -> None:
    how: dict[str, Any] = {**ON, "reasoning": {"expose": "both"}}
    out = await ask(client, upstream, LATER, stream=stream, form=form, **how)
    attributions = attribution_texts(read_attributions(client, out, stream=stream))
    if upstream == "chat" and not stream:
        assert attributions == [["A secret.Another secret."], True, True]
    else:
        assert attributions == expected_texts(LATER)


@BOTH
@EACH
@ANY
async def test_without_a_summary_raw_reasoning_is_attributed(
    client: str, upstream: str, *, stream: bool
) -> None:
    out = await ask(client, upstream, TURN, stream=stream, summary=None, **ON)
    raw = [{"type": "reasoning_text", "text": "A secret."}]
    attributions = read_attributions(client, out, stream=stream)
    assert attributions[0] == raw
    assert isinstance(attributions[1], str)


@BOTH
@EACH
@ANY
@pytest.mark.parametrize("expose", ["summary", "none"])
async def test_hidden_reasoning_is_in_no_byte(
    expose: str, client: str, upstream: str, *, stream: bool
) -> None:
    out = await ask(client, upstream, LATER, stream=stream, **ON, reasoning={"expose": expose})
    assert b"secret" not in out
    attributions = read_attributions(client, out, stream=stream)
    if expose == "none":
        assert attributions == [None] * 3
    else:
        assert attributions[0] == [{"type": "summary_text", "text": SUMMARY}]


@BOTH
@EACH
@ANY
async def test_attribution_is_off_by_default(client: str, upstream: str, *, stream: bool) -> None:
    out = await ask(client, upstream, LATER, stream=stream)
    assert read_attributions(client, out, stream=stream) == [None] * 3
    assert b"reasoning_ref" not in out


@BOTH
@pytest.mark.parametrize("enabled", [True, False])
@ANY
async def test_attribution_of_an_inner_abridge_is_hidden(
    client: str, *, enabled: bool, stream: bool
) -> None:
    behind = await ask(client, client, LATER, stream=stream, summary=None, **ON)
    assert behind.count(b"secret") > 2
    kind = {"content-type": "text/event-stream" if stream else "application/json"}
    app = build_app(
        "mounted",
        Upstream(Answer([behind], headers=kind)),
        writer=Scripted(SUMMARY),
        reasoning={"expose": "none"},
        attribution={"enabled": enabled},
    )
    out = (await call(app, PATHS[client], request_body(client, stream=stream, summary=None))).data
    assert b"secret" not in out
    assert read_attributions(client, out, stream=stream) == [None] * 3
    assert not any(f'"{mark}":[' in out.decode() for mark in MARKS)


async def test_a_failed_summary_that_fails_the_answer_leaves_it_attributed() -> None:
    kind = {"content-type": "application/json"}
    for client in CLIENTS:
        played = Upstream(Answer([encode_turn(client, TURN, stream=False)], headers=kind))
        app = build_app(
            "mounted",
            played,
            writer=Scripted(error=RuntimeError("broken"), text=""),
            summary={"on_failure": "fail"},
            reasoning={"expose": "both"},
            **ON,
        )
        reply = await call(app, PATHS[client], request_body(client, stream=False))
        assert reply.status == 502
        held = json.dumps(reply.json["error"]["response"]).encode()
        assert attribution_texts(read_attributions(client, held, stream=False)) == [
            ["A secret."],
            True,
        ]
