"""Recommendations of a campaign in the order in which they were given, and what became of each.

A recommendation claims an expected reward. It is recorded with the number of experiments that it was based
on, so that later experiments at its settings can be compared with what was claimed: a campaign that is asked
again after every experiment changes its mind, and only the record says how often it was right.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rehearsal_torch.data.trials.trial import MOST, ExpectedReward, Set
from rehearsal_torch.spaces.box import setting_text


class PastRecommendation(ExpectedReward, BaseModel):
    """Recommended settings, action to value, with the posterior mean and the epistemic standard deviation of
    their expected reward, `after` so many completed experiments; the `reward`, as plain data if it is known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    after: Annotated[int, Field(ge=1, le=MOST)]
    action: Set
    predicted: float
    std: Annotated[float, Field(ge=0)]
    reward: Any = None


@dataclass(frozen=True)
class FollowedUp:
    """A recommendation, and the completed experiments at its settings.

    Attributes:
        trials: Their numbers, those before the recommendation included; empty if it was never tried.
        reward: Their mean reward; None without one, or where the claim is of another reward than today's.
    """

    recommendation: PastRecommendation
    trials: tuple[int, ...] = ()
    reward: float | None = None

    def __str__(self) -> str:
        """One sentence."""
        claim, count = self.recommendation, len(self.trials)
        action = ", ".join(f"{name} = {setting_text(value)}" for name, value in claim.action.items())
        span = f"{claim.predicted:.4g} ({claim.low:.4g} to {claim.high:.4g})"
        numbers = f"trial{'s' * (count > 1)} {', '.join(map(str, self.trials))}"
        result = "tried for another reward" if self.reward is None else f"{self.reward:.4g}"
        tried = f"{result} in {numbers}" if count else "not tried"
        return f"After {claim.after} experiments: {action}, expected {span}: {tried}"
