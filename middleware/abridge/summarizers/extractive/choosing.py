"""Choose the runs of neighbouring sentences that make an extract.

Sentences that stood beside each other make a paragraph; single ones, however good, do not. So the
best run comes first, of at most four sentences, then the next best as far as the room goes. A run
does not begin with a sentence that leans on the one before it. What an earlier part has said is not
said again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from abridge.core.styles import ExtractRules
from abridge.summarizers.extractive.scoring import UNSOUND_SCORE, Candidate

FLOOR = -1.0  # the least score of a sentence among others, and the least worth of another run
FIRST_FLOOR = -1.5  # the least score of one that is shown alone
LEANT_ON_FLOOR = -3.0  # the least score of one that a conclusion leans on
SHORT_FLOOR = -3.5  # the same where there are fewer characters than a part should have
MAX_RUN = 4  # the most sentences that are taken together
LONG_STYLE = 6  # sentences from which a style has room for a third run
SENTENCE_COST = 1.2  # what a sentence must score to be worth its place in a run
NEIGHBOUR_SCORE = 0.8  # for a run beside a chosen one, which it continues
OPENING_SCORE = 1.4  # for a run that begins where a paragraph begins
CONNECTIVE_SCORE = -1.2  # for a run that begins with a connective, which is left out there
TURNED_SCORE = -1.0  # for a run that ends where the reasoning turns against it
UNASKED_SCORE = -0.3  # for a run that answers a question which is left out
COVERED_SCORE = -0.8  # for a run from a paragraph of which another is told already
CONCLUDED_SCORE = 1.5  # for a run that ends with a conclusion
SAME_SHARE = 0.62  # share of its words from which a sentence says the same as another
LATE_SCORE = 3.0  # for a conclusion at the end, beside one at the start
FOUND_SCORE = 1.2  # the least score of a finding that ends an extract without a conclusion
MAX_FOUND_RUN = 2  # the most sentences that are taken with it
LATE_SHARE = 1.5  # one part in so many comes before a finding that may end an extract

MAX_OPENING = 4  # the most sentences that state the task
MIN_OPENING_PLACES = 3  # sentences of a part from which it has such an opening
OPENING_SHARE = 0.5  # of the room, which they may take
SHORT_SHARE = 0.3  # of the room, up to which there are two of them

Run = list[Candidate]


@dataclass(slots=True)
class Choice:
    """The sentences chosen so far, and the room that is left."""

    candidates: dict[int, Candidate]  # by position
    told: Sequence[frozenset[str]]  # words of the sentences that were told before
    room: float
    min_size: int  # up to which a run is added that is worth less
    places: int
    runs: int  # the most that may be added
    is_last: bool  # nothing follows: the conclusion of all belongs here
    chosen: dict[int, Candidate] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)  # of the sentences chosen
    run_count: int = 0  # of those
    said: set[int] = field(default_factory=set)  # positions of sentences that one chosen repeats
    is_short: bool = False  # fewer than 40 words are chosen
    is_lenient: bool = False  # what is tentative may be told, too

    def find_opening(self) -> Run:
        """Return the sentences that state the task, up to its question; none where an earlier part
        told it, or where there is room for little else."""
        early = [one for one in self.candidates.values() if one.position < MAX_OPENING]
        stating = [one for one in early if one.states and not one.leans]
        first = max(stating, key=lambda one: one.is_task, default=None)
        if self.told or first is None or self.places < MIN_OPENING_PLACES:
            return []
        run, end = [first], 1
        for position in range(first.position + 1, first.position + min(MAX_OPENING, self.places)):
            one = self.candidates.get(position)
            if one is None or one.block != first.block or not (one.sound or one.asks):
                break
            if (position in self.said or repeats(one, run)) and not one.asks:
                break
            run.append(one)
            size = sum(each.size for each in run)
            if one.asks or (
                end == len(run) - 1 and (one.is_task or size < SHORT_SHARE * self.room)
            ):
                end = len(run)
            if one.asks:
                break
        fits = sum(one.size for one in run[:end]) <= OPENING_SHARE * self.room
        return run[: end if fits else 1]

    def find_conclusion(self) -> Run:
        """Return the best run that ends with a conclusion, else one with a late finding: a later
        one before an earlier.

        It leaves room for what the stretch is about. What all comes to is told at the end also if
        an earlier part told it, in another sentence.
        """
        end = max(self.candidates, default=0) + 1
        for one in sorted(
            self._find_ends(end),
            key=lambda one: one.score + LATE_SCORE * one.position / end,
            reverse=True,
        ):
            runs = islice(self._runs_to(one), MAX_RUN if one.concludes else MAX_FOUND_RUN)
            fitting = [run for run in runs if not run[0].leans and self.fits(run)]
            if fitting:
                return max(fitting, key=self.value)
        return []

    def _find_ends(self, end: int) -> Run:
        """Return the sentences with which an extract may end."""
        sound = [
            one
            for one in self.candidates.values()
            if one.score > 0
            and one.position not in self.said
            and not (one.words in self.told if self.is_last else self.is_told(one))
        ]
        concluding = [one for one in sound if one.concludes]
        if any(2 * one.position > end for one in concluding):
            return concluding
        late = [one for one in sound if LATE_SHARE * one.position > end]
        return concluding + [one for one in late if one.score > FOUND_SCORE]

    def _runs_to(self, last: Candidate) -> Iterator[Run]:
        """Yield the runs that end with a sentence."""
        run = [last]
        yield run
        for position in range(last.position - 1, last.position - max(1, self.places - 2), -1):
            one = self.candidates.get(position)
            needed = run[0].leans
            if one is None or (run[0].announces and not run[0].sound) or repeats(one, run):
                return
            if one.words in self.told:
                return
            if one.score <= (LEANT_ON_FLOOR if needed else FLOOR) or (
                not needed and self.is_told(one)
            ):
                return
            run = [one, *run]
            yield run

    def find_runs(self) -> Iterator[Run]:
        """Yield the runs that may be added."""
        floor = FIRST_FLOOR if self.is_short else FLOOR
        for start, first in self.candidates.items():
            if first.leans and start - 1 not in self.chosen:
                continue
            run: Run = []
            for position in range(start, start + min(MAX_RUN, max(1, self.places))):
                one = self.candidates.get(position)
                if one is None or position in self.said:
                    break
                if repeats(one, run) or self.is_told(one):
                    break
                if run and one.announces and not one.sound and not self.is_lenient:
                    break
                run.append(one)
                if not one.sound and not (
                    one.tentative and self.is_lenient and one.withdrawn > UNSOUND_SCORE
                ):
                    continue
                yield list(run)
                if one.score <= floor:
                    break

    def value(self, run: Run) -> float:
        """Return what adding a run is worth."""
        first, last = run[0], run[-1]
        worth = sum([one.score - SENTENCE_COST for one in run])
        worth -= sum([one.withdrawn for one in run[:-1] if not one.sound]) / 2
        worth += TURNED_SCORE * (first.turned + last.turned) + CONCLUDED_SCORE * last.concludes
        before, after = first.position - 1 in self.chosen, last.position + 1 in self.chosen
        if before or after:
            worth += NEIGHBOUR_SCORE
        elif first.block in self.blocks:
            worth += COVERED_SCORE
        if not before:
            asked = self.candidates.get(first.position - 1)
            worth += UNASKED_SCORE * (asked is not None and asked.announces and not asked.sound)
            cut_off = first.tied != first.text and first.position - 1 in self.candidates
            worth += OPENING_SCORE * first.opens + CONNECTIVE_SCORE * cut_off
        return worth

    def fill(self) -> None:
        while (self.places > 0 or self.is_short) and self.add_best():
            pass

    def add_best(self) -> bool:
        """Add the run that is worth most; return false if none is worth it."""
        floor = FLOOR if self.chosen else FIRST_FLOOR - 2 * SENTENCE_COST
        floor = SHORT_FLOOR if self.is_short else floor
        best: Run = []
        for run in self.find_runs():
            if self.fits(run) and (value := self.value(run)) > floor:
                best, floor = run, value
        self.take(best)
        return bool(best)

    def take(self, run: Run) -> None:
        self.chosen |= {one.position: one for one in run}
        self.blocks.update(one.block for one in run)
        self.run_count = sum(position - 1 not in self.chosen for position in self.chosen)
        self.note_said(run)
        self.room -= sum(one.size for one in run)
        self.places -= len(run)
        self.is_short = sum(one.size for one in self.chosen.values()) < self.min_size

    def fits(self, run: Run) -> bool:
        if not self.chosen and len(run) == 1:
            return True
        if sum([one.size for one in run]) > self.room or len(run) > max(1, self.places):
            return False
        if run[0].position - 1 in self.chosen or run[-1].position + 1 in self.chosen:
            return True
        opens = run[0].opens and len(run) > 1  # a paragraph of its own
        return self.run_count < self.runs + self.is_short + opens

    def note_said(self, run: Run) -> None:
        """Note which sentences say no more than those of a run that are chosen."""
        for position, one in self.candidates.items():
            if position not in self.said and repeats(one, run):
                self.said.add(position)

    def hangs(self, one: Candidate) -> bool:
        """Return true for a question or an intention of which nothing that follows was chosen."""
        is_last = one.position + 1 not in self.chosen
        return one.announces and not one.sound and is_last and len(self.chosen) > 1

    def is_told(self, one: Candidate) -> bool:
        """Return true if a sentence of an earlier part says as much."""
        if one.told < SAME_SHARE:
            return False
        words, count = one.words, len(one.words)
        for other in self.told:  # noqa: SIM110 -- `any` takes twice as long
            if len(words & other) / count >= SAME_SHARE:
                return True
        return False


def repeats(one: Candidate, run: Run) -> bool:
    """Return true if a sentence of a run says as much."""
    words, count = one.words, len(one.words)
    for other in run:
        fewer = min(count, len(other.words))
        if other.text == one.text or (fewer and len(words & other.words) >= SAME_SHARE * fewer):
            return True
    return False


def choose_sentences(
    candidates: Sequence[Candidate],
    rules: ExtractRules,
    told: Sequence[frozenset[str]],
    *,
    is_last: bool = False,
) -> list[Candidate]:
    """Return the sentences to copy; none if nothing is worth it."""
    sound = {one.position: one for one in candidates if one.sound or one.announces}
    size = sum(one.size for one in candidates)
    places = min(
        rules.max_sentences, max(rules.min_sentences, int(size // rules.chars_per_sentence) + 1)
    )
    runs = 3 if rules.max_sentences > LONG_STYLE else 2
    choice = Choice(sound, told, rules.max_chars, rules.min_chars, places, runs, is_last)
    opening = choice.find_opening()
    choice.take(opening)
    start = opening[0].position if opening else 0
    candidates = [one for one in candidates if one.position >= start or one.sound]
    choice.candidates = {one.position: one for one in candidates if one.sound or one.announces}
    choice.take(choice.find_conclusion())
    choice.fill()
    if choice.is_short:
        choice.is_lenient = True
        choice.candidates |= {one.position: one for one in candidates if one.tentative}
        choice.note_said(list(choice.chosen.values()))
        choice.fill()
    return [one for one in choice.chosen.values() if one in opening or not choice.hangs(one)]
