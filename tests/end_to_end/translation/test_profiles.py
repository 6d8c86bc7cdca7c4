"""The effects of a provider's profile and its settings, whether a request passes, is engaged, or
goes out on another API.
"""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.errors import SettingsError
from tests.end_to_end.translation.test_translation import KEY, bridge
from tests.end_to_end.translation.turn import CLIENTS, PATHS, UPSTREAMS, answer, request_body
from tests.support.asgi import call
from tests.support.streams import completion
from tests.support.upstream import Answer, Upstream

Json = dict[str, Any]
WAYS = [(client, upstream) for client in CLIENTS for upstream in ("same", *UPSTREAMS)]
SAID: dict[str, Json] = {
    "chat": {"reasoning_effort": "low", "verbosity": "low"},
    "responses": {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}},
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 3276}},
}
OWN: dict[str, Json] = {
    "chat": {"reasoning_effort": "high"},
    "responses": {"reasoning": {"effort": "high"}},
}


async def upstream_request(
    client: str, upstream: str, summary: str | None, entry: Json, **more: Any
) -> Json:
    """Return the request body that upstream receives."""
    speaks = client if upstream == "same" else upstream
    played = Upstream(answer(speaks, stream=False))
    registry = more.pop("registry", None)
    app = bridge(played, upstream, entry=entry, registry=registry)
    body = request_body(client, stream=False, summary=summary)
    reasoning = {**body.pop("reasoning", {}), **more.pop("reasoning", {})}
    body |= {"reasoning": reasoning} if reasoning else {}
    assert (await call(app, PATHS[client], {**body, **more}, KEY)).status == 200
    sent: Json = played.requests[0].json
    return sent


@pytest.mark.parametrize("summary", [None, "concise"])
@pytest.mark.parametrize(("client", "upstream"), WAYS)
async def test_defaults_of_the_settings_reach_every_api(
    client: str, upstream: str, summary: str | None
) -> None:
    sent = await upstream_request(client, upstream, summary, {"effort": "low", "verbosity": "low"})
    for key, value in SAID[client if upstream == "same" else upstream].items():
        assert sent[key] == value or value.items() <= sent[key].items()


@pytest.mark.parametrize("summary", [None, "concise"])
@pytest.mark.parametrize(("client", "upstream"), WAYS)
async def test_the_clients_own_fields_win_over_the_settings(
    client: str, upstream: str, summary: str | None
) -> None:
    sent = await upstream_request(client, upstream, summary, {"effort": "low"}, **OWN[client])
    assert "low" not in str(sent)
    assert "3276" not in str(sent)


@pytest.mark.parametrize("summary", [None, "concise"])
@pytest.mark.parametrize(
    ("client", "upstream"), [("chat", "responses"), ("responses", "chat"), ("chat", "chat")]
)
async def test_fields_that_the_model_rejects_are_removed_and_counted(
    client: str, upstream: str, summary: str | None
) -> None:
    registry = CollectorRegistry()
    entry = {"profile": "openai", "effort": "low"}
    more = {"model": "gpt-5", "temperature": 0.5, "top_p": 0.5, "registry": registry}
    sent = await upstream_request(client, upstream, summary, entry, **more)
    assert not {"temperature", "top_p"} & sent.keys()
    assert registry.get_sample_value("abridge_dropped_fields_total", {"api": client}) == 2


async def test_nothing_is_removed_from_a_request_that_passes() -> None:
    """Upstream's own refusal is the client's to see."""
    more = {"model": "gpt-5", "temperature": 0.5}
    sent = await upstream_request("chat", "same", None, {"profile": "openai"}, **more)
    assert sent["temperature"] == 0.5


@pytest.mark.parametrize("setting", [{"effort": "much"}, {"verbosity": "chatty"}])
def test_a_bad_value_is_refused_at_start(setting: Json) -> None:
    with pytest.raises((SettingsError, ValueError), match=next(iter(setting))):
        bridge(Upstream(), "chat", entry=setting)


@pytest.mark.parametrize("place", ["reasoning", "reasoning_content"])
async def test_reasoning_returns_in_the_field_an_unknown_upstream_used(
    place: str,
) -> None:
    played = Upstream(Answer.json(completion({"content": "So.", place: "I think."})))
    app = bridge(played, "chat")
    thought = {"type": "reasoning_text", "text": "I thought so."}
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [thought]}
    earlier = {"role": "assistant", "content": "Earlier."}
    question = {"role": "user", "content": "Hi"}
    for _ in range(2):
        body = {"model": "m", "input": [question, item, earlier, question]}
        assert (await call(app, PATHS["responses"], body, KEY)).status == 200
    assert played.requests[1].json["messages"][1] == {**earlier, place: "I thought so."}
