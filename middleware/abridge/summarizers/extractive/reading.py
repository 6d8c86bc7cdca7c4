"""Read a sentence once, for all that is to be found out about it."""

from __future__ import annotations

from abridge.summarizers.extractive import openings
from abridge.summarizers.extractive.blocks import Sentence
from abridge.summarizers.extractive.words import split_words

_CLOSING = " .!…。！\"'”’)]»」』）*_"  # what may stand after a question mark


class Reading:
    """A sentence without fillers."""

    following: Reading | None = None

    def __init__(self, sentence: Sentence) -> None:
        self.block, self.hangs = sentence.block, sentence.hangs
        self.raw = self.lower = sentence.text.lower()  # with fillers
        self.text = openings.strip(sentence.text, openings.FILLERS.match(self.raw))
        if self.text is not sentence.text:
            self.lower = self.text.lower()
        self.words, self.topics, self.numbers, self.wide = split_words(self.lower)
        self.thinks = openings.THINKING_ALOUD.match(self.lower) is not None
        self.draws = openings.CONSEQUENCE.match(self.lower) is not None
        self.asks = self.lower.rstrip(_CLOSING).endswith(("?", "？"))

    @property
    def settles(self) -> bool:
        """Whether it is a consequence that ends its paragraph or is followed by a question."""
        following = self.following
        ends = not following or following.block != self.block or following.asks
        return self.draws and not self.asks and ends
