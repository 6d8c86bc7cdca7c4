"""What has to hold of every request of a conversation."""

from __future__ import annotations

from collections.abc import Callable

from tests.conversations.clients import Client, Sent
from tests.conversations.provider import Entry, Provider
from tests.conversations.said import labels

OURS = ("sum[", "summary_error", "abr1.")
"""What Abridge makes; none of it is for upstream."""

Due = Callable[[Entry], bool]


def assert_due(client: Client, due: Due) -> None:
    """Of all its answers upstream got back what is due, as it had said it, and of no other
    anything."""
    provider = client.provider
    for sent in client.sent:
        answers = [provider.ledger[serial] for serial in sent.serials]
        wanted = [provider.reasoning(one.spelled) if due(one) else [] for one in answers]
        assert provider.heard(sent.body) == wanted
        assert_safe(sent, provider)
    assert not provider.refusals
    assert not provider.complaints


def assert_safe(sent: Sent, provider: Provider) -> None:
    """Whatever is put back: nothing is another's, nothing comes twice, nothing is of Abridge's
    own making, and what the client said stands as it said it."""
    assert not [mark for mark in OURS if mark in sent.text]
    assert [provider.plain(turn) for turn in provider.turns(sent.body)] == sent.said
    for turn, serial in zip(provider.turns(sent.body), sent.serials, strict=True):
        said = labels(str(provider.ledger[serial].spelled))
        assert labels(str(turn)) <= said
    assert labels(sent.text).keys() <= {
        label for serial in sent.serials for label in labels(str(provider.ledger[serial].spelled))
    }


def everything(_: Entry) -> bool:
    return True


def nothing(_: Entry) -> bool:
    return False


def calling(entry: Entry) -> bool:
    """Turns that call tools, which some providers refuse without what was thought."""
    return bool(entry.said.calls)
