"""What `auto` learns from what it sees.

A reader says what one response showed of its provider's ways (`Seen`); an upstream's `Learned`
keeps that by model, since one address may serve many, and refines the profile of later requests.
Nothing of what anyone said is kept, and text, which a model can be talked into, counts for less
than what only its server can show.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from abridge.wire.profile import Place, Profile

MOST_MODELS = 256

SURE = 2
"""So many answers in a row that close a block which nothing opened are no coincidence."""


@dataclass(slots=True, frozen=True)
class Seen:
    """What a response showed, or several in a row.

    `place`: where its reasoning was. `masked`: whether its "summary" is the reasoning itself; None
    where it held none. `unopened`: how often a text closed a block that nothing opened.
    """

    place: Place | None = None
    masked: bool | None = None
    unopened: int = 0

    def after(self, earlier: Seen) -> Seen:
        """What is known of both."""
        place = self.place
        if place is None or (place == "tags" and earlier.place is not None):
            place = earlier.place
        masked = earlier.masked if self.masked is None else self.masked
        return Seen(place, masked, earlier.unopened + 1 if self.unopened else 0)


NOTHING = Seen()


class Learned:
    """One upstream's memory, of the models it was last asked for."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, Seen] = OrderedDict()

    def note(self, model: str, seen: Seen) -> bool:
        """A response of a model showed this. Returns whether it now, and before did not, seem
        prefilled."""
        seemed = self.seems_prefilled(model)
        self._models[model] = seen.after(self._models.pop(model, NOTHING))
        if len(self._models) > MOST_MODELS:
            self._models.popitem(last=False)
        return self.seems_prefilled(model) and not seemed

    def refine(self, profile: Profile, model: str) -> Profile:
        """The profile, with what is known of a model, if it is one that learns."""
        seen = self._models.get(model, NOTHING)
        if not profile.learns or seen == NOTHING:
            return profile
        if seen.place is not None:
            holds = (seen.place, *(place for place in profile.holds if place != seen.place))
            on_calls = profile.returns.on_calls or seen.place == "extra_content"
            returns = replace(profile.returns, place=seen.place, on_calls=on_calls)
            profile = replace(profile, holds=holds, returns=returns)
        if seen.masked is not None:
            profile = replace(profile, summary_is_raw=seen.masked)
        return profile

    def seems_prefilled(self, model: str) -> bool:
        """Whether a model's answers seem to begin in the midst of reasoning. To read them so is for
        settings to say: if it is a mistake, a whole answer is taken for reasoning."""
        return self._models.get(model, NOTHING).unopened >= SURE
