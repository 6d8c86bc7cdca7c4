"""Choose the sentences that make an extract, as editors would.

Whether a sentence is copied depends on its neighbours, too: those that stood together read as a
paragraph. So all choices are weighed as a whole. A choice is worth what its sentences are worth
(`scoring`), and what each run of neighbours begins with, goes on with and ends with. The best one
is found by dynamic programming, in time that grows with the number of sentences.

The weights here and in `scoring` were fitted to what editors had chosen from 184 stretches of
reasoning, as those of a conditional random field are. Then readers compared extracts blind: they
preferred fewer and longer runs, and did not miss most traits, which are gone. `BEGIN`, `TASK`,
`LAST` and `MUST` were set by hand. No run may begin with a sentence that leans on the one before
it, nor end with a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TypeAlias

from abridge.core.styles import ExtractRules
from abridge.summarizers.extractive.scoring import Candidate

BEGIN = -2.0  # for a run
GO_ON, GO_ON_LEANING = -0.3, 0.45
"""For a further sentence of a run, and if it leans on the one before it."""

TASK = 2.0  # for what usually states the task: the first sentence of all, and an early question
MAX_OPENING = 5  # the first sentences of all that state the task
MIN_OPENING_PLACES = 3  # sentences of an extract from which it has to state the task
MUST = 9.0  # for the conclusion of all
LAST = 2.0  # for what a passage says last, and what it concludes last
MAX_PRICE = 10.0  # of a hundred characters
LEAST_SHARE = 0.6  # of a short stretch that is told as far as it may be
PRICES = 10  # that are tried
ROUNDS = 2  # in which sentences that say the same are left out
SAME_SHARE = 0.62  # share of its words from which a sentence says the same as another


_Step = tuple[Candidate, bool, float, float, float, float, float]
"""A sentence: whether it stands beside the one before it; what it is worth if a run begins with
it, if it follows on that one, and by itself; hundreds of characters; and what if a run ends."""

_Chain: TypeAlias = "tuple[Candidate, _Chain] | None"
"""The last sentence of a choice, and the chain of those before it."""


def choose_sentences(
    candidates: Sequence[Candidate],
    rules: ExtractRules,
    told: Sequence[frozenset[str]],
    *,
    is_last: bool = False,
) -> list[Candidate]:
    """Return the sentences to copy, in order; none if there is nothing to tell.

    What an earlier part has told is not told again, but for the conclusion of all.
    """
    found = [one for one in candidates if one.sound and one.concludes and one.words not in told]
    again = found[-1:] if is_last else []
    shown = [
        one
        for one in candidates
        if (one.sound or one.asks) and (one in again or not _is_told(one, told))
    ]
    size = sum([one.size for one in candidates])
    least = min(rules.min_chars, LEAST_SHARE * size)
    places = min(rules.max_sentences, int(size // rules.chars_per_sentence) + 1)

    judge = partial(_judge, rules, least, places)
    more = _add_worth(shown, opens=not told and places >= MIN_OPENING_PLACES, is_last=is_last)
    for _ in range(ROUNDS):
        chosen = _choose_within(shown, more, judge)
        kept = _without_repeated(chosen)
        if len(kept) == len(chosen):
            return chosen
        shown = [one for one in shown if one in kept or not any(repeats(one, it) for it in kept)]
    return kept


def _judge(rules: ExtractRules, least: float, places: int, chosen: Sequence[Candidate]) -> int:
    """Return 1 for too much, -1 for too little, else 0."""
    size = sum([one.size for one in chosen])
    if size > rules.max_chars or len(chosen) > places:
        return len(chosen) > 1
    return -1 if not chosen or (size < least and len(chosen) < places) else 0


def _add_worth(shown: Sequence[Candidate], *, opens: bool, is_last: bool) -> dict[int, float]:
    """Return what some sentences are worth beside their scores, by position: what states the task,
    what is said last, and what is concluded last."""
    early = [one for one in shown if opens and one.position < MAX_OPENING]
    more = {one.position: TASK for one in early if one.asks or not one.position}
    sound = [one for one in shown if one.sound]
    more |= {one.position: LAST for one in sound[-1:]}
    found = [one.position for one in sound if one.concludes][-1:]
    return more | dict.fromkeys(found, MUST if is_last else LAST)


def _choose_within(
    shown: Sequence[Candidate], more: dict[int, float], judge: Callable[[Sequence[Candidate]], int]
) -> list[Candidate]:
    """Return the best choice that fits. The price of characters that makes it as long as it should
    be is as near to nothing as possible."""
    steps = _weigh(shown, more)
    low, price, high = -MAX_PRICE, 0.0, MAX_PRICE
    found: dict[int, list[Candidate]] = {}  # the latest choice that was too short, fit, or too long
    for _ in range(PRICES):
        chosen = _choose(steps, price)
        verdict = judge(chosen)
        found[verdict] = chosen
        if price == verdict == 0:
            break
        if verdict > 0 or (not verdict and price < 0):
            low = price
        else:
            high = price
        price = (low + high) / 2
    if 0 in found:
        return found[0]
    short = {one.position: one for one in found.get(-1, [])}  # topped up with the best as they fit
    long = found.get(1, [])
    for one in sorted(long, key=lambda it: it.score + more.get(it.position, 0.0), reverse=True):
        stands = not one.asks and (not one.leans or one.position - 1 in short)
        if stands and judge([*short.values(), one]) <= 0:
            short[one.position] = one
    return [short[position] for position in sorted(short)]


def _weigh(shown: Sequence[Candidate], more: dict[int, float]) -> list[_Step]:
    return [
        (
            one,
            one.position == before + 1,
            -inf if one.leans else BEGIN,
            GO_ON + GO_ON_LEANING * one.leans,
            one.score + more.get(one.position, 0.0),
            one.size / 100,
            -inf if one.asks else 0.0,
        )
        for before, one in zip([-9, *[one.position for one in shown]], shown, strict=False)
    ]


def _choose(steps: Sequence[_Step], price: float) -> list[Candidate]:
    """Return the choice that is worth most where a hundred characters cost a price."""
    without, taken, ending = 0.0, -inf, 0.0  # worth of the best without and with the latest
    others: _Chain = None
    chain: _Chain = None  # that ends with the latest
    for one, follows, begins, goes_on, own, size, ends in steps:
        before, earlier = without, others
        if taken + ending > without:
            without, others = taken + ending, chain
        if not follows:
            before, earlier = without, others
        if follows and taken + goes_on > before + begins:
            taken += goes_on
        else:
            taken, chain = before + begins, earlier
        taken = taken + own - price * size
        chain = one, chain
        ending = ends
    chosen: list[Candidate] = []
    rest = chain if taken + ending > without else others
    while rest:
        one, rest = rest
        chosen.append(one)
    return chosen[::-1]


def _is_told(one: Candidate, told: Sequence[frozenset[str]]) -> bool:
    """Return true if a sentence of an earlier part says as much, be it with other numbers."""
    least = SAME_SHARE * len(one.words)
    return one.told >= SAME_SHARE and any(len(one.words & other) >= least for other in told)


def _without_repeated(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Return what was chosen, of sentences that say the same the one that tells most; and nothing
    that leaned on one that is gone."""
    best: list[Candidate] = []
    for one in sorted(chosen, key=lambda one: one.score, reverse=True):
        if not any(repeats(one, other) for other in best):
            best.append(one)
    kept: list[Candidate] = []
    for one in chosen:
        follows = bool(kept) and kept[-1].position == one.position - 1
        if one in best and (follows or not one.leans):
            kept.append(one)
    places = {one.position for one in kept}
    return [one for one in kept if not one.asks or one.position + 1 in places]


def repeats(one: Candidate, other: Candidate) -> bool:
    """Return true if two sentences say the same. A question and its answer have the same words and
    do not, nor do two steps with different numbers."""
    if one.asks != other.asks:
        return False
    fewer = min(len(one.words), len(other.words))
    if not 1 < fewer <= len(one.words & other.words) / SAME_SHARE:
        return one.text == other.text
    numbers, others = ({word for word in it.words if word[0].isdigit()} for it in (one, other))
    return numbers <= others or others <= numbers
