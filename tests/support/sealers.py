"""Sealers for tests: two replicas that share nothing but their keys."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from abridge.apis.history import History
from abridge.apis.responses.history import ResponsesHistory
from abridge.core.events import ProviderState, ReasoningDelta
from abridge.memory.client_envelopes import Sealer
from abridge.memory.keys import Key, Keyring
from abridge.memory.tenants import keyed_digest

NOW = 1_800_000_000.0
USER = {"role": "user", "content": "Hi"}
PLACE = ResponsesHistory({"input": [USER]}).next_place()
OLD, NEW = Key.derive("old", bytes(32)), Key.derive("new", bytes([1] * 32))


def ring(*keys: Key) -> Keyring:
    return Keyring(keys or (OLD,))


def sealer(
    keys: Keyring | None = None,
    tenant: str | None = "anna",
    place: bytes | None = PLACE,
    **terms: Any,
) -> Sealer:
    """Return the sealer of a new replica, for an answer to a request that ends with `USER`."""
    keys = keys or ring()
    known = () if tenant is None else keys.keys
    tenants = {key.id: keyed_digest(key.tenant, str(tenant).encode()) for key in known}
    given = {"api": "chat", "upstream": "default", "model": "thinker-1", "now": NOW}
    made = Sealer(keys, tenants, **{**given, "limit": 1 << 20, **terms})
    made.next_place = place
    return made


def unseal(conversation: History, replica: Sealer | None = None) -> Any:
    """Return the body for upstream, opened by a replica that has never seen the conversation."""
    replica = replica or sealer()
    for turn in conversation.turns:
        if not turn.is_plain:
            conversation.open_envelopes(turn, replica.open)
    return conversation.body()


STRETCHES = st.lists(
    st.one_of(
        st.builds(
            lambda text: ReasoningDelta(0, None, 0, text), st.text(max_size=5).filter(str.strip)
        ),
        st.builds(
            lambda data, signs: ProviderState(0, None, 0, data, signs),
            st.text("0123456789", min_size=1, max_size=3),
            st.booleans(),
        ),
    ),
    max_size=6,
)
"""The events of a stretch of reasoning."""
