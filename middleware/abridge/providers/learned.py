"""Learn from the responses of an upstream, for the profile `auto`.

A reader reports what one response showed of its provider's behaviour (`Observation`). An upstream's
`Learned` keeps that per model, since one address may serve many, and refines the profile of later
requests. No content is kept. Text, which a model can be talked into, counts for less than what only
its server can show.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from abridge.caches import LEARNED_MODELS, is_short
from abridge.providers.profile import Profile, ReasoningPlace

PREFILLED_THRESHOLD = 2
"""So many answers in a row that close a block which nothing opened are no coincidence."""


@dataclass(slots=True, frozen=True)
class Observation:
    """Observations from one response, or from several in a row."""

    place: ReasoningPlace | None = None  # location of the reasoning
    summary_is_raw: bool | None = None
    """True if its "summary" was the reasoning itself; None if it had no summary."""
    unopened_tags: int = 0  # answers in a row whose text closed a block that nothing opened
    inline_on_responses: bool = False
    """A message on Responses began with reasoning in tags."""

    def merged_with(self, earlier: Observation) -> Observation:
        """Merge with earlier observations."""
        place = self.place
        if place is None or (place == "tags" and earlier.place is not None):
            place = earlier.place
        is_raw = earlier.summary_is_raw if self.summary_is_raw is None else self.summary_is_raw
        return Observation(
            place,
            is_raw,
            earlier.unopened_tags + 1 if self.unopened_tags else 0,
            self.inline_on_responses or earlier.inline_on_responses,
        )


NO_OBSERVATION = Observation()


class Learned:
    """Observations of one upstream, for the models that were used last."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, Observation] = OrderedDict()

    def record(self, model: str, observation: Observation) -> bool:
        """Record an observation; return True if the model begins to seem prefilled."""
        if not is_short(model):
            return False
        seemed_prefilled = self.seems_prefilled(model)
        self._models[model] = observation.merged_with(self._models.pop(model, NO_OBSERVATION))
        if len(self._models) > LEARNED_MODELS:
            self._models.popitem(last=False)
        return self.seems_prefilled(model) and not seemed_prefilled

    def refine(self, profile: Profile, model: str) -> Profile:
        """Return the profile with the observations of the model applied, if the profile learns."""
        observation = self._models.get(model, NO_OBSERVATION)
        if not profile.learns or observation == NO_OBSERVATION:
            return profile
        if (place := observation.place) is not None:
            others = (other for other in profile.reasoning_in if other != place)
            required = profile.returns.required_on_calls or place == "extra_content"
            returns = replace(profile.returns, place=place, required_on_calls=required)
            profile = replace(profile, reasoning_in=(place, *others), returns=returns)
        if observation.summary_is_raw is not None:
            profile = replace(profile, summary_is_raw=observation.summary_is_raw)
        if observation.inline_on_responses:
            profile = replace(profile, inline_on_responses=True)
        return profile

    def seems_prefilled(self, model: str) -> bool:
        """Return whether the model's answers seem to begin inside reasoning.

        Only the settings can make a reader treat them so: by mistake, a whole answer would become
        reasoning.
        """
        return self._models.get(model, NO_OBSERVATION).unopened_tags >= PREFILLED_THRESHOLD
