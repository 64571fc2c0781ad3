"""The estimated front of two rewards: settings of which none is better in both.

It is chosen among the visited actions, space-filling ones, and the best of augmented Chebyshev scalarisations

    min_j w_j y_j + 0.05 sum_j w_j y_j,      y the rewards between their least and largest expectation so far,

by several weights, whose maxima are on the front, whatever its shape. Those that no other dominates by the
posterior means as claimed are the front; of many, those that are spread over it. Each reward has an interval
as that of a recommendation (`acquisition.BEYOND`).

Source: Knowles (2006), "ParEGO", Sec. 3 (scalarisations); Daulton et al. (2021) (fronts of posterior means).
"""

import torch
from botorch.utils.multi_objective.pareto import is_non_dominated
from botorch.utils.multi_objective.scalarization import get_chebyshev_scalarization
from torch import Tensor

from rehearsal_torch.data.trials.trial import WIDTH, Recommended
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.objectives.reward_pair import RewardPair
from rehearsal_torch.objectives.upper_bounds import NetworkAcquisition
from rehearsal_torch.search.trials.acquisition import BEYOND, SAME, SCREENED, STEPS, maximised

WEIGHTS = (0.02, 0.25, 0.5, 0.75, 0.98)  # Of the first reward
STARTS, MOST = 2, 12  # Starts of each ascent; the most settings of a front


def front(objective: CausalObjective, seed: int) -> list[Recommended]:
    """The front of an objective's model, ascending in the first reward."""
    reward, task = objective.task.reward, objective.task
    pair = RewardPair(objective, reward)
    region, visited = objective.region(), objective.visited[objective.allowed(objective.visited)]
    spread = region.finite()
    points = [region.unit(visited), region.spread(SCREENED, seed) if spread is None else spread]
    with torch.no_grad():
        so_far = pair.expected(region.units(torch.cat(points)))
    for weight in WEIGHTS if spread is None else ():
        acquisition = _scalarised(weight, so_far, pair)
        ends = maximised(acquisition, region, visited, SCREENED, STARTS, STEPS, seed)
        points.append(ends.points[:2])
    candidates = torch.cat(points)
    with torch.no_grad():
        likely = is_non_dominated(pair.expected(region.units(candidates)))
    likely[: len(visited)] = True
    actions = region.units(candidates[likely])
    rewards = pair.plausible(actions)
    best = is_non_dominated(rewards.mean(0)).nonzero()[:, 0]
    best = best[rewards.mean(0)[best, 0].argsort()]
    settings = region.unit(actions[best])
    same = (settings.unsqueeze(1) - settings).abs().amax(-1) <= SAME
    best = best[~same.tril(-1).any(-1)]
    best = best[torch.linspace(0, len(best) - 1, min(MOST, len(best))).round().long().unique()]
    gaps = (region.unit(actions[best]).unsqueeze(1) - region.unit(visited)).abs().amax(-1)
    tried = (gaps <= SAME).any(-1).tolist()
    means, stds = rewards.mean(0)[best], BEYOND * rewards.std(0)[best]
    intervals = torch.stack([means, means - WIDTH * stds, means + WIDTH * stds], -1).tolist()
    return [
        Recommended(
            task.shown(dict(zip(task.actions, action, strict=False))),
            claims[0][0],
            std,
            tried=known,
            contradicted=objective.surrogate.contradicted(),
            context=task.shown(dict(zip(task.context, action[len(task.actions) :], strict=True))),
            rewards=dict(zip(reward.labels, map(tuple, claims), strict=True)),
        )
        for action, claims, std, known in zip(
            actions[best].tolist(), intervals, stds[:, 0].tolist(), tried, strict=True
        )
    ]


def _scalarised(weight: float, so_far: Tensor, pair: RewardPair) -> NetworkAcquisition:
    scalar = get_chebyshev_scalarization(so_far.new_tensor([weight, 1 - weight]), so_far)
    return NetworkAcquisition(lambda actions: scalar(pair.expected(actions), None))
