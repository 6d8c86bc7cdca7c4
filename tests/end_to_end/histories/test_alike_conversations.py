"""Conversations that are alike in their questions, texts and calls, of one tenant, at one time.

They differ in nothing but the ids of their calls and what was thought. None gets anything of
another's, and each gets its own back.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.end_to_end.histories.answers import labels
from tests.end_to_end.histories.chat_dialects import VLLM
from tests.end_to_end.histories.clients import Client
from tests.end_to_end.histories.gemini_provider import GeminiNative
from tests.end_to_end.histories.interactions_provider import GeminiInteractions
from tests.end_to_end.histories.messages_provider import Raw
from tests.end_to_end.histories.provider import Provider
from tests.end_to_end.histories.responses_provider import Open
from tests.end_to_end.histories.stage import stage
from tests.support.matrix import some

KINDS: dict[str, type[Provider]] = {
    "chat": VLLM,
    "responses": Open,
    "messages": Raw,
    "gemini": GeminiNative,
    "interactions": GeminiInteractions,
}
KEPT: dict[str, Any] = {
    "store": {},
    "keys": {"store": "none", "seal_keys_env": "SEAL"},
    "both": {"seal_keys_env": "SEAL"},
}
THINKS = st.lists(st.booleans(), min_size=1, max_size=8)
ORDERS = st.lists(st.integers(0, 1), max_size=8)


@pytest.fixture(autouse=True, scope="module")
def _key() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")
        yield


def alike(upstream: str, thinks: list[bool]) -> Provider:
    """Return a provider whose answers differ only in call ids and reasoning, if they have any."""

    class Alike(KINDS[upstream]):  # type: ignore[misc]
        distinct = False

        def thinks(self, serial: int, done: int) -> bool:
            del done
            return thinks[serial % len(thinks)]

        def which(self, questions: list[str]) -> str:
            return f", {len(questions)}"

    return Alike()


async def converse(clients: list[Client], order: list[int]) -> None:
    """Let the clients send their requests in this order, and then one after the other."""
    for rounds in (2, 0, 1):
        for client in clients:
            client.question(rounds)
        going, next_ones = list(clients), iter(order)
        while going:
            client = going[next(next_ones, 0) % len(going)]
            if not await client.step():
                going.remove(client)


def assert_own(client: Client, *, kept: str) -> None:
    """Assert that each of its turns went upstream with all that was thought for it, and no more.

    No Messages client can carry the signature of a text: nothing may follow that.
    """
    provider = client.provider
    is_lost = (kept, provider.api, client.api) == ("keys", "gemini", "messages")
    assert not provider.refusals
    for sent in client.sent:
        for turn, serial in zip(provider.turns(sent.body), sent.serials, strict=True):
            entry = provider.ledger[serial]
            due = [] if is_lost and not entry.script.calls else provider.reasoning(entry.written)
            assert labels(str(provider.reasoning(turn))) == labels(str(due))


@settings(max_examples=some(6), deadline=None)
@given(thinks=THINKS, order=ORDERS, stream=st.booleans())
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("upstream", KINDS)
@pytest.mark.parametrize("kept", KEPT)
async def test_each_gets_its_own_reasoning_back_and_none_of_anothers(
    kept: str, upstream: str, api: str, *, thinks: list[bool], order: list[int], stream: bool
) -> None:
    provider = alike(upstream, thinks)
    app = stage(provider, "summary", history=KEPT[kept])
    keeps = "keeps answers" if kept == "store" else "keeps everything"
    clients = [Client(app, provider, api, keeps, stream) for _ in range(2)]
    await converse(clients, order)
    for client in clients:
        assert_own(client, kept=kept)
