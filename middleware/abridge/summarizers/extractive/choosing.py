"""Choose the sentences that make an extract, so that they can be read one after the other.

The best sentences come first, as far as the room goes. One that leans on the sentence before it is
taken only together with that. A sentence beside a chosen one has an edge over others. What a part
before has said is not said again, except for the conclusion in the last part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from abridge.core.styles import ExtractRules
from abridge.summarizers.extractive.scoring import Candidate

FLOOR = 0.0
"""The least score of a sentence that is added to others."""

FIRST_FLOOR = -1.5
"""The least score of one that is shown alone."""

NEIGHBOUR_SCORE = 0.8

SAME_SHARE = 0.65
"""Share of its words from which a sentence says the same as another."""

LATE_SCORE = 3.0
"""What a conclusion at the end of all is worth beyond one at the start of the last part."""

MAX_GROUP = 3
"""The most sentences that are taken together, because each leans on the one before."""

NEVER = float("-inf")
"""Worth of a sentence that leans on one that cannot be shown."""


@dataclass(slots=True)
class Choice:
    """The sentences chosen so far, and the room that is left."""

    candidates: dict[int, Candidate]  # by position
    told: Sequence[frozenset[str]]  # words of the sentences that were told before
    room: float
    places: int
    keep: Candidate | None = None  # the conclusion, which may be said again
    chosen: dict[int, Candidate] = field(default_factory=dict)
    values: dict[int, tuple[float, list[Candidate]]] = field(default_factory=dict)
    """Of those that are not chosen: see `value`."""

    def find_conclusion(self) -> list[Candidate]:
        """Return the best of the sentences that conclude, after those that it needs: a later one
        before an earlier."""
        found = [one for one in self.candidates.values() if one.concludes and one.score > 0]
        end = max(self.candidates, default=0) + 1
        best: list[Candidate] = []
        highest = 0.0
        for one in found:
            _, group = self.value(one)
            worth = one.score + LATE_SCORE * one.position / end
            if worth > highest and not group[0].leans:
                best, highest = group, worth
        return best

    def value(self, one: Candidate) -> tuple[float, list[Candidate]]:
        """Return what adding a candidate is worth, and the sentences that it takes."""
        if one.position - 1 in self.chosen:
            return one.score + NEIGHBOUR_SCORE, [one]
        if not one.leans:
            return one.score + NEIGHBOUR_SCORE / 2 * (one.position + 1 in self.chosen), [one]
        group = [one]
        while group[0].leans and len(group) < MAX_GROUP and group[0].position not in self.chosen:
            before = self.candidates.get(group[0].position - 1)
            if before is None or before.score < FIRST_FLOOR:
                break
            group.insert(0, before)
        if group[0].position in self.chosen:
            group = group[1:]
        elif group[0].leans:
            return NEVER, [one]
        return sum(each.score for each in group) / len(group) + NEIGHBOUR_SCORE / 2, group

    def add_best(self) -> bool:
        """Add what is worth most; return false if nothing is."""
        floor = FLOOR if self.chosen else FIRST_FLOOR
        worthy = [each for each in self.values.values() if each[0] > floor]
        for _, group in sorted(worthy, key=itemgetter(0), reverse=True):
            if not self.fits(group):
                continue
            said = [one for one in group if self.is_said(one)]
            if not said:
                for one in group:
                    self.take(one)
                return True
            if said[-1] is group[-1]:  # it stays said, whatever else is chosen
                del self.values[group[-1].position]
        return False

    def take(self, one: Candidate) -> None:
        self.chosen[one.position] = one
        self.room -= one.size
        self.places -= 1
        self.values.pop(one.position, None)
        for position in range(one.position - 1, one.position + MAX_GROUP):
            if position in self.values:
                self.values[position] = self.value(self.candidates[position])

    def value_all(self) -> None:
        self.values = {
            position: self.value(one)
            for position, one in self.candidates.items()
            if position not in self.chosen
        }

    def fits(self, group: Sequence[Candidate]) -> bool:
        if not self.chosen:
            return len(group) <= self.places or len(group) == 1
        return len(group) <= self.places and sum(one.size for one in group) <= self.room

    def is_said(self, one: Candidate) -> bool:
        """Return true if a chosen sentence, or one told before, says as much."""
        for other in self.chosen.values():
            fewer = min(len(one.words), len(other.words))
            if fewer and len(one.words & other.words) / fewer >= SAME_SHARE:
                return True
        return one is not self.keep and self.is_told(one)

    def is_told(self, one: Candidate) -> bool:
        """Return true if a sentence of an earlier part says as much."""
        if one.told < SAME_SHARE:
            return False
        words, count = one.words, len(one.words)
        for other in self.told:  # noqa: SIM110 -- `any` takes twice as long
            if len(words & other) / count >= SAME_SHARE:
                return True
        return False


def choose_sentences(
    candidates: Sequence[Candidate],
    rules: ExtractRules,
    told: Sequence[frozenset[str]],
    *,
    last: bool,
) -> list[Candidate]:
    """Return the sentences to copy, best first; none if nothing is worth it."""
    sound = [one for one in candidates if one.sound]
    size = sum(one.size for one in candidates)
    places = min(
        rules.max_sentences, max(rules.min_sentences, int(size // rules.chars_per_sentence) + 1)
    )
    choice = Choice({one.position: one for one in sound}, told, rules.max_chars, places)
    if last and (group := choice.find_conclusion()):
        choice.keep = group[-1]
        for one in group if len(group) <= places else group[-1:]:
            choice.take(one)
    choice.value_all()
    while choice.places > 0 and choice.add_best():
        pass
    return list(choice.chosen.values())
