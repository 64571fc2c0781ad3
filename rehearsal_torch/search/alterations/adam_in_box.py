"""Adam in a box, by a tanh parametrisation.

An action z in [l, h] is written as

    z = (h + l) / 2 + (h - l) / 2 tanh(lambda),

so that lambda is unconstrained, and Adam maximises an objective with fixed noise over lambda. Objective and
probability differ: among the iterates that improve the objective, the one with the largest share of desired
draws is kept. The step size decays along a half cosine.

First many points of the box are screened, and Adam starts from the best of them with some of the draws; it
then continues from its best point with all draws, for those sets that come close to the best set. All cases
share each step; a case whose objective has stopped improving leaves the batch.

Source: Qin et al. (2025), Alg. 1 (their rates are 0.01 to 1 by data set, with one start near the middle).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.objectives.centre_distance import VALIDATION, CentreDistance
from rehearsal_torch.objectives.objective import Candidates, gradient
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, chosen, in_time


@dataclass(eq=False)
class AdamInBox(BatchSearch[Candidates[CentreDistance]]):
    """Adam over lambda, from several starts.

    Args:
        rate: Initial learning rate, in lambda.
        steps: Maximum number of steps.
        patience: Steps without an improvement after which a start is abandoned.
        starts: Number of starts per case.
        screened: Number of points that are screened for the starts.
        screening_draws: Number of draws in the screening and in the first ascent.
        near: A set whose share of desired draws is smaller than the best by more than this is not refined.
        budget_s: See `Search`; a step is one step of Adam, or the screening of a candidate set.
    """

    rate: float = 0.1
    steps: int = 100
    patience: int = 20
    starts: int = 2
    screened: int = 64
    screening_draws: int = 250
    near: float = 0.1
    batch_size: int = 16
    budget_s: float | None = None

    def __post_init__(self) -> None:
        names = ("rate", "near", "steps", "patience", "starts", "screening_draws", "screened", "batch_size")
        valid = self.screened >= self.starts
        self.check_sizes(*names, fits=valid, expected="positive numbers and screened >= starts")

    def batch_search(self, objective: Candidates[CentreDistance]) -> list[Decision]:
        """Returns the best set and action for each case."""
        budget = Budget(self.budget_s)
        sets = objective.sets
        actions = [self.coarse(candidate, budget) for candidate in in_time(sets, budget)]
        shares = [candidate.share(best, VALIDATION) for candidate, best in zip(sets, actions, strict=False)]
        values = ranked(torch.stack(shares))
        best = values.amax(0)
        for row, candidate in enumerate(sets[: len(actions)]):
            promising = torch.nonzero(values[row] >= best - self.near).squeeze(-1)
            if not len(promising):
                continue
            if budget.out():
                break
            starts, steps = actions[row].unsqueeze(0), max(self.steps // 2, 1)
            finer = self.descend(candidate, starts, None, promising, self.rate / 4, steps, budget)[0]
            finer_shares = ranked(candidate.share(finer, VALIDATION))
            better = finer_shares >= values[row]
            actions[row] = torch.where(better.unsqueeze(-1), finer, actions[row])
            values[row] = torch.where(better, finer_shares, values[row])
        return chosen(objective, actions, values, "adam_in_box", budget, declines=self.declines)

    def coarse(self, objective: CentreDistance, budget: Budget = UNLIMITED) -> Tensor:
        """The best actions of one set under some of the draws, (B, k)."""
        points = objective.starts(self.screened)
        with torch.no_grad():
            values, _ = objective.values_and_shares(points, self.screening_draws)
        indices = ranked(values).topk(min(self.starts, len(points)), 0).indices
        starts = points.gather(0, indices.unsqueeze(-1).expand(-1, -1, points.shape[-1]))
        cases = torch.arange(starts.shape[1], device=starts.device)
        ends = self.descend(objective, starts, self.screening_draws, cases, self.rate, self.steps, budget)
        return ends[ranked(objective.share(ends, VALIDATION)).argmax(0), cases]

    def descend(
        self,
        objective: CentreDistance,
        starts: Tensor,
        draws: int | None,
        which: Tensor,
        rate: float,
        steps: int,
        budget: Budget = UNLIMITED,
    ) -> Tensor:
        """Adam from (R, B, k), with `draws` or all, for cases `which`; the best actions, likewise."""
        lower, upper = objective.lower.to(starts), objective.upper.to(starts)
        middle, half = (upper + lower) / 2, (upper - lower) / 2
        half_or_one = torch.where(half > 0, half, torch.ones_like(half))
        free = torch.atanh(((starts - middle) / half_or_one).clamp(-0.995, 0.995))
        mean, square = torch.zeros_like(free), torch.zeros_like(free)
        best_value = free.new_full(free.shape[:-1], -math.inf)
        best_share = free.new_full(free.shape[:-1], -1.0)
        best_actions, stalled = starts.clone(), torch.zeros_like(best_value)
        active = which
        for step in range(steps):
            point = free[:, active].detach().requires_grad_(True)
            actions = middle[active] + half[active] * torch.tanh(point)
            value, share = objective.values_and_shares(actions, draws, active)
            gradients = gradient(value, point).nan_to_num(0.0, 0.0, 0.0)
            value, actions = value.detach(), actions.detach()
            better = value > best_value[:, active] + 1e-6 * value.abs()
            accepted = better & (share >= best_share[:, active])
            best_value[:, active] = torch.where(better, value, best_value[:, active])
            best_share[:, active] = torch.where(accepted, share, best_share[:, active])
            best_actions[:, active] = torch.where(accepted.unsqueeze(-1), actions, best_actions[:, active])
            stalled[:, active] = torch.where(better, torch.zeros_like(value), stalled[:, active] + 1)
            mean[:, active] = 0.9 * mean[:, active] + 0.1 * gradients
            square[:, active] = 0.999 * square[:, active] + 0.001 * gradients.square()
            step_length = rate * (1 + math.cos(math.pi * step / steps)) / 2
            rms = (square[:, active] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-12
            free[:, active] = point.detach() + step_length * (mean[:, active] / (1 - 0.9 ** (step + 1)) / rms)
            active = active[(stalled[:, active] < self.patience).any(0)]
            if not len(active) or (step + 1 < steps and budget.out()):
                break
        return best_actions
