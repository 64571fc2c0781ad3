"""The recommendation: the action that a method would choose for good, and how sure it is of it.

The posterior mean is maximised from many starts; among its maxima and the visited actions the one is
recommended with the largest posterior mean f_0(a) under other draws of the noise than those of the ascent, so
that the answer is not the one that those draws happened to favour. With caution c > 0 it is the one with the
largest

    mean_e f_e(a) - c sd_e f_e(a),        f_e(a) = E_u[r(x(a, u, e))],

over E plausible networks e (`objectives.expected_reward`), since the largest of many uncertain predictions is
too high on average. The mean over few draws of the noise is corrected by the posterior mean under many,
mean_e f_e(a; few) + f_0(a; many) - f_0(a; few).

c = 0 is the default. On tables of 18 runs (six problems, seeds 720 to 723, five rounds each) c = 1 changed
the regret of the recommendation by +.006 +- .051 of the gap of the start design: it was smaller on Alpine2
(non_dgm) and larger on Dropwave, where all candidates are about equally uncertain and the posterior mean
itself is wrong.

The chance that the recommendation is better than the best visited action is the share of the same networks,
in which both are compared, in which it is.

Source: Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean); caution, chance and their
study are ours.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.objectives.expected_reward import CHUNK, SCREEN, CausalObjective
from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.search.trials.box_ascent import ascend

# Standard deviations over plausible networks that are subtracted when candidates are compared.
CAUTION = 0.0


@dataclass(frozen=True)
class Recommendation:
    """The recommended action, and the best visited action beside it.

    Attributes:
        action: (k,), in the actions' units.
        predicted: Its posterior mean reward.
        std: The epistemic standard deviation of its expected reward: what is not known of the mechanisms; the
            noise of a single experiment is averaged out.
        evaluations: Number of points at which value and gradient were computed.
        runner_up: The visited action that would be recommended next, (k,); None if no other was visited.
        runner_up_predicted: Its posterior mean reward.
        chance: The probability that the recommended action's expected reward is larger than the runner-up's.
    """

    action: Tensor
    predicted: float
    std: float = float("nan")
    evaluations: int = 0
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
    caution: float = CAUTION,
) -> Recommendation:
    """Maximises the posterior mean from the best visited actions and the best of `screened` space-filling
    points, within the time budget, and recommends the best of the maxima and visited actions.

    Args:
        objective: The fitted network, its draws and the visited actions.
        seed: Seed of the space-filling points.
        screened: Their number.
        starts: Number of starts of the ascent.
        kept: Number of starts that continue to convergence, and of maxima that are compared.
        steps: Maximum number of steps.
        budget: The time budget.
        caution: Standard deviations that are subtracted; 0 recommends the largest posterior mean.
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
        first = ranked(
            torch.cat([rough(part) for part in region.units(spread).split(max(1, CHUNK // len(few)))])
        )
    begin = torch.cat(
        [region.unit(visited), spread[first.topk(min(starts - len(visited), screened)).indices]]
    )
    found = ascend(value, region, begin, steps, kept=kept, rough=rough, budget=budget)
    return _best(
        objective,
        torch.cat([region.units(found.points[:kept]), visited]),
        visited,
        caution,
        found.evaluations,
    )


@torch.no_grad()
def _best(
    objective: CausalObjective, actions: Tensor, visited: Tensor, caution: float, evaluations: int
) -> Recommendation:
    """The recommendation among actions (n, k), of which the last are the visited ones (m, k)."""
    rewards = objective.plausible(actions)
    means, stds = objective.expected(actions, objective.other), rewards.std(-1)
    values = rewards.mean(-1) - caution * stds if caution else means
    best = best_of_all(values)
    tried = torch.arange(len(actions) - len(visited), len(actions), device=actions.device)
    tried = tried[(actions[tried] != actions[best]).any(-1)]
    if not len(tried):
        return Recommendation(actions[best], float(means[best]), float(stds[best]), evaluations)
    second = int(tried[best_of_all(values[tried])])
    chance = float((rewards[best] > rewards[second]).double().mean())
    return Recommendation(
        actions[best],
        float(means[best]),
        float(stds[best]),
        evaluations,
        actions[second],
        float(means[second]),
        chance,
    )
