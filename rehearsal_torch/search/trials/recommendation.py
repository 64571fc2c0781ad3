"""The recommendation: the action that a method would choose for good, and how sure it is of it.

The posterior mean is maximised from many starts; among its maxima and the best visited actions the one is
recommended with the largest posterior mean under other draws of the noise than those of the ascent, so that
the answer is not the one that those draws happened to favour.

How sure that is (`sureness`) is said by plausible networks f_e (`objectives.trials.expected_reward`): the
standard deviation over e of the recommended action's expected reward, and the chance that it is better than
the best visited action, from the difference of the two in the same networks by a normal approximation,
Phi(mean / standard deviation). Visited actions within 1e-3 of the recommendation, in the unit cube, count as
the recommendation itself.

Choosing by the mean over e less one standard deviation was compared with this on tables of 18 runs (six
problems, seeds 720 to 723, five rounds each): the regret changed by +.006 +- .051 of the gap of the start
design, so that the simpler rule stays.

Source: Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean); the rest is ours.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.objectives.trials.expected_reward import CHUNK, SCREEN, CausalObjective
from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.search.trials.mixed_ascent import ascend

# Actions that are this near in the unit cube are one action.
SAME = 1e-3


@dataclass(frozen=True)
class Recommendation:
    """The action with the largest posterior mean.

    Attributes:
        action: (k,), in the actions' units.
        predicted: Its posterior mean reward, estimated with draws other than those of the ascent.
        visited: The visited actions with the largest posterior mean within bounds and limits, (m, k).
        evaluations: Number of points at which value and gradient were computed.
    """

    action: Tensor
    predicted: float
    visited: Tensor
    evaluations: int


@dataclass(frozen=True)
class Sureness:
    """What is known of a recommendation, and the best visited action beside it.

    Attributes:
        std: The epistemic standard deviation of its expected reward: what is not known of the mechanisms; the
            noise of a single experiment is averaged out.
        tried: Whether the recommended action was visited.
        runner_up: The best other visited action, (k,), among the best few within bounds and limits; None if
            there is none.
        runner_up_predicted: Its posterior mean reward.
        chance: The probability that the recommended action's expected reward is larger than the runner-up's.
    """

    std: float
    tried: bool = False
    runner_up: Tensor | None = None
    runner_up_predicted: float = float("nan")
    chance: float = float("nan")


def recommend(
    objective: CausalObjective,
    seed: int,
    screened: int = 256,
    starts: int = 12,
    kept: int = 3,
    steps: int = 60,
    budget: Budget = UNLIMITED,
) -> Recommendation:
    """Maximises the posterior mean from the best visited actions and the best of `screened` space-filling
    points, within the time budget.
    """
    region = objective.region(further=False)
    width, few = len(objective.task.actions), objective.noise[: max(1, len(objective.noise) // SCREEN)]
    visited, frame = objective.starts(starts // 2)[:, :width], objective.reward_frame

    def value(actions: Tensor) -> Tensor:
        return frame.standardised(objective.expected(actions))

    def rough(actions: Tensor) -> Tensor:
        return frame.standardised(objective.expected(actions, few))

    with torch.no_grad():
        spread = region.spread(screened, seed)
        parts = region.units(spread).split(max(1, CHUNK // len(few)))
        first = ranked(torch.cat([rough(part) for part in parts]))
    promising = spread[first.topk(min(starts - len(visited), screened)).indices]
    begin = torch.cat([region.unit(visited), promising])
    ends = ascend(value, region, begin, steps, kept=kept, rough=rough, budget=budget)
    with torch.no_grad():
        actions = torch.cat([region.units(ends.points[:kept]), visited])
        values = objective.expected(actions, objective.other)
    best = best_of_all(values)
    return Recommendation(actions[best], float(values[best]), visited, ends.evaluations)


@torch.no_grad()
def sureness(objective: CausalObjective, recommended: Recommendation) -> Sureness:
    """How sure a recommendation is, under the objective that found it, and what it is better than."""
    actions = torch.cat([recommended.action.unsqueeze(0), recommended.visited])
    rewards = objective.plausible(actions)
    unit = objective.region(further=False).unit(actions)
    others = ((unit[1:] - unit[0]).abs().amax(-1) > SAME).nonzero()[:, 0] + 1
    std, tried = float(rewards[0].std()), len(others) < len(recommended.visited)
    if not len(others):
        return Sureness(std, tried)
    means = objective.expected(actions[others], objective.other)
    second = best_of_all(means)
    apart = rewards[0] - rewards[others[second]]
    chance = torch.special.ndtr(apart.mean() / apart.std().clamp_min(1e-300))
    return Sureness(std, tried, actions[others[second]], float(means[second]), float(chance))
