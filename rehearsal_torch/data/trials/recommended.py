"""What an optimiser recommends: an action, how good it is expected to be, and the best tried one beside it.

    action, expected = optimiser.recommend()
    found = optimiser.recommend()
    found.std, found.runner_up, found.chance

Source: predictions with a standard deviation as in Ax and BayBE.
"""

from collections.abc import Mapping
from typing import Any, Self


class Recommended(tuple[dict[str, float], float]):
    """An action and its expected reward: a pair that also holds what is known of both.

    Attributes:
        action: The recommended settings, action to value, in the actions' units.
        predicted: Posterior mean of its expected reward, in the reward's unit.
        std: The epistemic standard deviation of that: how far the expected reward may lie from it because few
            experiments were run; the noise of a single experiment is not in it.
        runner_up: The settings of the completed trial that would be recommended next, among the best few
            within bounds and limits; None if there is no other.
        runner_up_predicted: The posterior mean of its expected reward; None without a runner-up.
        chance: The probability that the recommended action's expected reward is larger than the runner-up's;
            None without a runner-up. By a normal approximation over 32 plausible networks.
        tried: Whether the recommended settings were tried themselves, up to a thousandth of their ranges.
    """

    action: dict[str, float]
    predicted: float
    std: float
    runner_up: dict[str, float] | None
    runner_up_predicted: float | None
    chance: float | None
    tried: bool

    def __new__(
        cls,
        action: Mapping[str, float],
        predicted: float,
        std: float,
        runner_up: Mapping[str, float] | None = None,
        runner_up_predicted: float | None = None,
        chance: float | None = None,
        tried: bool = False,
    ) -> Self:
        """The pair."""
        made = super().__new__(cls, (dict(action), predicted))
        made.action, made.predicted, made.std = made[0], predicted, std
        made.runner_up = None if runner_up is None else dict(runner_up)
        made.runner_up_predicted, made.chance, made.tried = runner_up_predicted, chance, tried
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """For copies."""
        beside = self.runner_up, self.runner_up_predicted, self.chance
        return self.action, self.predicted, self.std, *beside, self.tried

    def __str__(self) -> str:
        """One sentence."""
        sentence = (
            f"{_named(self.action)}{' (tried)' if self.tried else ''}: expected reward {self.predicted:.4g} "
            f"(standard deviation {self.std:.2g})"
        )
        if self.runner_up is None or self.runner_up_predicted is None or self.chance is None:
            return f"{sentence}; no other action within the bounds was tried"
        return (
            f"{sentence}; the best {'other ' if self.tried else ''}tried action is {_named(self.runner_up)} "
            f"(expected {self.runner_up_predicted:.4g}); the recommended one is better with a probability of "
            f"{_percent(self.chance)}"
        )


def _percent(chance: float) -> str:
    if 0.01 <= chance <= 0.99:
        return f"{chance:.0%}"
    return "less than 1%" if chance < 0.5 else "more than 99%"


def _named(action: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:.4g}" for name, value in action.items())
