"""What one route remembers, looked up as later versions look it up."""

from __future__ import annotations

from typing import Any

from abridge.apis.gemini.history import GeminiHistory
from abridge.apis.gemini.messages import MADE_ID
from abridge.core.conversation import PrefixDigest
from abridge.memory.originals import Original
from abridge.memory.policy import HistoryPolicy, HistoryRewriter
from abridge.memory.registry import MemoryRegistry
from abridge.memory.route_memory import ConversationOwner, RouteMemory
from abridge.memory.stores.store import observe_nothing
from abridge.providers.catalog import PROFILES
from tests.apis.gemini.scripts import function_call, signed, text, thought
from tests.support.deployments import ORIGIN, settings_for

Json = dict[str, Any]
ANSWER = [thought("Hm."), signed(function_call(a=1), "c2ln")]
LATER = [thought("So."), signed(text("It is there."), "c2ln")]


def contents(identity: str = "") -> list[Json]:
    """Return a question, a call without an id of the model's, its result and a text."""
    named = {"id": identity} if identity else {}
    result = {"functionResponse": {**named, "name": "look", "response": {"output": "7"}}}
    return [
        {"role": "user", "parts": [text("Where?")]},
        {"role": "model", "parts": [function_call(identity, a=1)]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [text("It is there.")]},
        {"role": "user", "parts": [text("Sure?")]},
    ]


def make() -> tuple[RouteMemory, ConversationOwner]:
    settings = settings_for(upstreams=[{"base_url": f"{ORIGIN}/v1"}])
    memory = MemoryRegistry(settings, observe_nothing, None).for_route(settings.routes[0])
    tags = {memory.keyring.primary.id: b"anna"}
    return memory, ConversationOwner(tags, "default", "m")


async def test_what_earlier_versions_remembered_of_calls_without_ids_is_found() -> None:
    memory, owner = make()
    before = GeminiHistory({"contents": contents()}).turns
    for index, parts in ((2, ANSWER), (4, LATER)):
        prefix = PrefixDigest().extended_by(before[:index])
        original = Original.from_reasoning(parts, "Hm.", altered=True)
        await memory.remember(owner, before[index], prefix, original)
    history = GeminiHistory({"contents": contents(f"{MADE_ID}0123456789abcdef01")})
    rewriter = HistoryRewriter(
        history, HistoryPolicy("client", "altered", PROFILES["gemini-native"], translated=True)
    )
    rewriter.strip(lambda _: False)
    found = await memory.recall(owner, rewriter.find_missing())
    assert [original and original.reasoning for original in found] == [ANSWER, LATER]
