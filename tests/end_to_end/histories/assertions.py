"""What has to hold of every request of a conversation."""

from __future__ import annotations

from collections.abc import Callable

from tests.end_to_end.histories.answers import labels
from tests.end_to_end.histories.clients import Client, Sent
from tests.end_to_end.histories.provider import Entry, Provider

OURS = ("sum[", "summary_error", "abr1.")
"""What Abridge makes; none of it is for upstream."""

Due = Callable[[Entry, bool], bool | None]
"""Whether an answer's reasoning is due in a request, None where it may be there or not; the second:
the user has not spoken since."""


def assert_due(client: Client, due: Due) -> None:
    """Upstream took it all; of every answer it got back what is due, as it had said it, and of
    no other anything."""
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
    """Whatever is put back: nothing is another's, nothing comes twice, nothing is of Abridge's
    own making, and what the client said stands as it said it."""
    assert not [mark for mark in OURS if mark in sent.text]
    assert [provider.plain(turn) for turn in provider.turns(sent.body)] == sent.plain_turns
    for turn, serial in zip(provider.turns(sent.body), sent.serials, strict=True):
        expected = labels(str(provider.ledger[serial].written))
        assert labels(str(turn)) <= expected
    assert labels(sent.text).keys() <= {
        label for serial in sent.serials for label in labels(str(provider.ledger[serial].written))
    }


def assert_hidden(client: Client) -> None:
    """Nothing the client has says in the clear what was thought."""
    assert not [label for label in labels(str(client.history)) if label.piece == "t"]


def everything(_: Entry, current: bool) -> bool:  # noqa: FBT001 -- a Due
    return True


def demanded(provider: type[Provider]) -> Due:
    """What the provider refuses to go on without, and nothing else: of turns that call tools, all
    or those since the user last spoke."""

    def due(entry: Entry, current: bool) -> bool | None:  # noqa: FBT001 -- a Due
        if not (entry.script.calls and provider.demands):
            return False
        return True if current or provider.demands == "always" else None

    return due
