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
        fits = self.screened >= self.starts
        self.check_sizes(*names, fits=fits, expected="positive numbers and screened >= starts")

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
            reached = ranked(candidate.share(finer, VALIDATION))
            better = reached >= values[row]
            actions[row] = torch.where(better.unsqueeze(-1), finer, actions[row])
            values[row] = torch.where(better, reached, values[row])
        return chosen(objective, actions, values, "adam_in_box", budget, declines=self.declines)

    def coarse(self, objective: CentreDistance, budget: Budget = UNLIMITED) -> Tensor:
        """The best actions of one set under some of the draws, (B, k)."""
        points = objective.starts(self.screened)
        with torch.no_grad():
            first, _ = objective.values_and_shares(points, self.screening_draws)
        places = ranked(first).topk(min(self.starts, len(points)), 0).indices
        starts = points.gather(0, places.unsqueeze(-1).expand(-1, -1, points.shape[-1]))
        everywhere = torch.arange(starts.shape[1], device=starts.device)
        ends = self.descend(
            objective, starts, self.screening_draws, everywhere, self.rate, self.steps, budget
        )
        winner = ranked(objective.share(ends, VALIDATION)).argmax(0)
        return ends[winner, everywhere]

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
        """Runs Adam from starts (R, B, k), with the first `draws` or all, for the cases `which`; returns the
        best action of each start, (R, B, k), and the starts themselves in other cases.
        """
        lower, upper = objective.lower.to(starts), objective.upper.to(starts)
        middle, half = (upper + lower) / 2, (upper - lower) / 2
        unit = torch.where(half > 0, half, torch.ones_like(half))
        free = torch.atanh(((starts - middle) / unit).clamp(-0.995, 0.995))
        mean, square = torch.zeros_like(free), torch.zeros_like(free)
        best_value = free.new_full(free.shape[:-1], -math.inf)
        best_share = free.new_full(free.shape[:-1], -1.0)
        answer, waited = starts.clone(), torch.zeros_like(best_value)
        left = which
        for step in range(steps):
            at = free[:, left].detach().requires_grad_(True)
            actions = middle[left] + half[left] * torch.tanh(at)
            value, share = objective.values_and_shares(actions, draws, left)
            gradients = gradient(value, at).nan_to_num(0.0, 0.0, 0.0)
            value, actions = value.detach(), actions.detach()
            better = value > best_value[:, left] + 1e-6 * value.abs()
            kept = better & (share >= best_share[:, left])
            best_value[:, left] = torch.where(better, value, best_value[:, left])
            best_share[:, left] = torch.where(kept, share, best_share[:, left])
            answer[:, left] = torch.where(kept.unsqueeze(-1), actions, answer[:, left])
            waited[:, left] = torch.where(better, torch.zeros_like(value), waited[:, left] + 1)
            mean[:, left] = 0.9 * mean[:, left] + 0.1 * gradients
            square[:, left] = 0.999 * square[:, left] + 0.001 * gradients.square()
            length = rate * (1 + math.cos(math.pi * step / steps)) / 2
            size = (square[:, left] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-12
            free[:, left] = at.detach() + length * (mean[:, left] / (1 - 0.9 ** (step + 1)) / size)
            left = left[(waited[:, left] < self.patience).any(0)]
            if not len(left) or (step + 1 < steps and budget.out()):
                break
        return answer
