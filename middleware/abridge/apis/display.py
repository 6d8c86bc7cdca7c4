"""The display of reasoning to a client: what is shown, in which fields, and what is sealed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from abridge.core.conversation import Json
from abridge.core.envelope import SealEnvelope
from abridge.core.hidden import HiddenCount

Exposure = Literal["auto", "both", "summary", "raw", "none"]

FieldChoice = Literal["auto", "reasoning_content", "reasoning"]

ListField = Literal["reasoning_details", "thinking_blocks"]


@dataclass(slots=True, frozen=True)
class Display:
    """The settings for the display of reasoning."""

    show_raw: bool = True  # raw reasoning is shown
    hides_raw: bool = False
    """Raw reasoning must not get through, so nothing may that was not understood. Without it, raw
    reasoning that is not shown is replaced, and everything beside it passes."""
    hidden: HiddenCount = field(default_factory=Counter, compare=False)
    """Counts what is left out of the answer for that."""
    echoed: Json = field(default_factory=dict)
    """The body sent upstream, as far as an answer repeats it where raw reasoning is hidden."""
    trusts_state: bool = True
    """Upstream vouches that nobody can read its opaque state. Else that stays here, or is sealed,
    where raw reasoning is hidden."""
    native: bool = False  # what upstream calls reasoning is a summary already
    replaces_native: bool = False
    """A summary that upstream makes beside its reasoning is read as that, and replaced."""
    restores: bool = False
    """What a client drops of the reasoning is restored, although it was shown all of it: as where a
    summary replaces raw reasoning."""
    drops_inline: bool = False
    """Thinking inside texts is left out where raw reasoning is hidden: unlike the reasoning beside
    them, it is no summary."""
    show_summary: bool = True  # summaries are shown
    style: str | None = "auto"  # the requested summary; None if none is made
    merge_usage: bool = True  # the totals include the summarizer's tokens
    summary_field: FieldChoice = "auto"  # for summaries on Chat Completions
    raw_field: FieldChoice = "auto"  # for raw reasoning on Chat Completions
    add_details: bool = False  # adds `reasoning_details` on Chat Completions
    ends_with_text: bool = False  # an answer of the client's API has no reasoning after its text
    carries_images: bool = False  # the client's API has a form for images of an answer
    seal: SealEnvelope | None = None
    """Seals what is not shown, if that is to travel with the client."""
    envelope_field: ListField = "reasoning_details"  # the list for envelopes on Chat Completions
    drops_reasoning: bool = False
    """Nothing of reasoning is written, not even an empty block: the client did not ask for any."""
    tells_progress: bool = False
    """The client sees nothing of the thinking, and wants to be told how far it is."""
    hides_usage: bool = False
    """A chunk with nothing but usage is left out on Chat Completions: the client did not ask for
    one, and many take it that each has a choice."""
    obfuscate: bool = False  # fill up the streamed deltas that Abridge writes
    attribution_limit: int | None = None
    """The characters of reasoning that are kept to say of each call what led to it; None if that is
    not said."""

    @property
    def withholds_state(self) -> bool:
        """No opaque state of upstream's is shown."""
        return self.hides_raw and not self.trusts_state

    @property
    def shows_thinking(self) -> bool:
        """The client is shown the reasoning, or a summary of it."""
        return self.show_raw or (self.show_summary and self.style is not None)

    @property
    def is_plain(self) -> bool:
        """Everything is shown as upstream sends it: no summary is made and nothing is hidden."""
        return self.show_raw and self.show_summary and self.style is None
