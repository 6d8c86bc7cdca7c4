"""The protocol of summarizers.

A summarizer takes a passage of reasoning and yields the text of one summary part as it is written,
then, if known, the usage of the call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from inspect import iscoroutinefunction
from typing import Protocol, TypeGuard

from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.errors import SettingsError
from abridge.summarizers.checks import Checks


class Summarizer(Protocol):
    """Writes one part of a summary per call; several calls may run at once."""

    @property
    def name(self) -> str:
        """The label in metrics."""
        ...

    def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        """Yield the part's text in pieces, then at most one `SummarizerUsage`.

        Raises SummarizerError on failure; any other exception counts as `upstream_error`. Each call
        runs in a task of its own, which is cancelled when the part is no longer needed; then the
        iterator is closed (`aclose`).
        """
        ...


class CheckedSummarizer:
    """A summarizer of Abridge's whose text a model writes, which may write anything. It says what
    its text is checked against, since it alone knows its prompt."""

    def new_checks(self, passage: Passage) -> Checks:
        raise NotImplementedError


class UserSummarizer:
    """A summarizer of a user's, under a name: its own, or its class's if it has none."""

    def __init__(self, summarizer: Summarizer) -> None:
        """Raises SettingsError for what is no summarizer."""
        method = None if isinstance(summarizer, type) else getattr(summarizer, "summarize", None)
        if not callable(method) or iscoroutinefunction(method):
            raise SettingsError(
                "summarizer: must be an object with a method summarize(passage), which yields text "
                "(async def, with yield)"
            )
        self._summarizer = summarizer
        self.name = _find_name(summarizer)

    def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        return self._summarizer.summarize(passage)


def _find_name(summarizer: Summarizer) -> str:
    try:
        name: object = summarizer.name
    except Exception:  # noqa: BLE001 -- it may be missing, or a property that fails
        name = None
    return name if is_name(name) else type(summarizer).__name__


def is_name(value: object) -> TypeGuard[str]:
    """Return whether a value may stand as a name in metrics and in a line of a log."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()
