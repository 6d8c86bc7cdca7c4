"""Assertions about every request of a conversation."""

from __future__ import annotations

from collections.abc import Callable

from tests.end_to_end.histories.answers import labels
from tests.end_to_end.histories.clients import Client, Sent
from tests.end_to_end.histories.provider import Entry, Provider

OURS = ("sum[", "summary_error", "abr1.")
"""Marks of what Abridge makes, none of which may reach upstream."""

Due = Callable[[Entry, bool], bool | None]
"""Whether an answer's reasoning is due in a request, None if optional. The second argument says
that no user message followed the answer."""


def assert_due(client: Client, due: Due) -> None:
    """Assert that upstream refused nothing and got back, unchanged, exactly the reasoning due."""
    provider = client.provider
    assert not provider.refusals
    assert not provider.complaints
    for sent in client.sent:
        earlier = len(sent.serials) - provider.rounds(sent.body)
        returned_reasoning, wanted = provider.returned_reasoning(sent.body), []
        for place, serial in enumerate(sent.serials):
            entry = provider.ledger[serial]
            is_due = due(entry, place >= earlier)
            if is_due is None:
                is_due = bool(returned_reasoning[place])
            wanted.append(provider.reasoning(entry.written) if is_due else [])
        assert returned_reasoning == wanted
        assert_safe(sent, provider)


def assert_safe(sent: Sent, provider: Provider) -> None:
    """Assert that a request holds no other conversation's reasoning, none twice and nothing of
    Abridge's own, and that the client's text is unchanged."""
    assert not [mark for mark in OURS if mark in sent.text]
    assert [provider.plain(turn) for turn in provider.turns(sent.body)] == sent.plain_turns
    for turn, serial in zip(provider.turns(sent.body), sent.serials, strict=True):
        expected = labels(str(provider.ledger[serial].written))
        assert labels(str(turn)) <= expected
    assert labels(sent.text).keys() <= {
        label for serial in sent.serials for label in labels(str(provider.ledger[serial].written))
    }


def assert_hidden(client: Client, *, vouched: bool = True) -> None:
    """Assert that the client has no raw reasoning in the clear. What is a summary already is none,
    if it is `vouched` for."""
    if client.provider.summarizes and vouched:
        return
    assert not [label for label in labels(str(client.history)) if label.piece == "t"]


def everything(_: Entry, current: bool) -> bool:  # noqa: FBT001 -- a Due
    return True


def demanded(provider: type[Provider]) -> Due:
    """Return what the provider requires: of turns that call tools, all or those of this round."""

    def due(entry: Entry, current: bool) -> bool | None:  # noqa: FBT001 -- a Due
        if not (entry.script.calls and provider.demands):
            return False
        return True if current or provider.demands == "always" else None

    return due
