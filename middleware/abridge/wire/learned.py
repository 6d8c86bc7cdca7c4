"""Learn from the responses of an upstream, for the profile `auto`.

A reader reports what one response showed of its provider's behaviour (`Observation`). An upstream's
`Learned` keeps that per model, since one address may serve many, and refines the profile of later
requests. No content is kept. Text, which a model can be talked into, counts for less than what only
its server can show.
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
    """Observations from one response, or from several in a row."""

    place: Place | None = None  # location of the reasoning
    masked: bool | None = None
    """True if its "summary" was the reasoning itself; None if it had no summary."""
    unopened: int = 0  # answers in a row whose text closed a block that nothing opened

    def after(self, earlier: Seen) -> Seen:
        """Merge with earlier observations."""
        place = self.place
        if place is None or (place == "tags" and earlier.place is not None):
            place = earlier.place
        masked = earlier.masked if self.masked is None else self.masked
        return Seen(place, masked, earlier.unopened + 1 if self.unopened else 0)


NOTHING = Seen()


class Learned:
    """Observations of one upstream, for the models that were used last."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, Seen] = OrderedDict()

    def note(self, model: str, seen: Seen) -> bool:
        """Record an observation; return True if the model begins to seem prefilled."""
        seemed = self.seems_prefilled(model)
        self._models[model] = seen.after(self._models.pop(model, NOTHING))
        if len(self._models) > MOST_MODELS:
            self._models.popitem(last=False)
        return self.seems_prefilled(model) and not seemed

    def refine(self, profile: Profile, model: str) -> Profile:
        """Return the profile with the observations of the model applied, if the profile learns."""
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
        """Return True if the model's answers seem to begin inside reasoning.

        Only the settings can make a reader treat them so: by mistake, a whole answer would become
        reasoning.
        """
        return self._models.get(model, NOTHING).unopened >= SURE
