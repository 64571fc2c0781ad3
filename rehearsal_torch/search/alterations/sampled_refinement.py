"""Random search with shrinking neighbourhoods, for objectives that are counted and have no gradient.

The first candidates of every case are starts of the objective and Sobol points of the box. Then, in each
of R rounds, the m best candidates so far are perturbed,

    z <- P(z_i + r_t s e),    e ~ N(0, I),    r_t = 2^-t,    s = min(half the box, the frame's scale),

in the actions' units, with P the projection onto the box and the scale of the objective's frame (one
standard deviation of the action over the observations, say): a neighbourhood is never wider than what the
observations resolve. All cases and candidates form one tensor. The last best candidates are compared by
the objective's comparison value; the best one that the objective accepts is the answer. Where it accepts none
of them, a smaller search is made among what it accepts: a candidate that it accepts comes before any other.

A share of draws is a step function: its gradient is zero. With the same draws for all actions it is
nevertheless smooth enough on the scale of the neighbourhoods, and a hundred evaluations in one batch cost
less than an ascent step by step.

Source: Rastrigin (1963) and Solis and Wets (1981) (random search); Boender and Rinnooy Kan (1987), Sec. 3
(multistart); the schedule is ours.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, chosen, in_time
from rehearsal_torch.seeding import generator, sobol

# By how much a candidate that is not accepted is worth less: more than values differ by.
REFUSED = 1e6


@dataclass(eq=False)
class SampledRefinement(BatchSearch[Candidates[AlterationObjective]]):
    """Candidates, then rounds of perturbations of the best.

    Args:
        starts: Maximum number of starts that the objective is asked for.
        samples: Number of Sobol points in the box.
        rounds: R.
        kept: m, the number of candidates that are perturbed in a round.
        perturbations: Number of perturbations of each.
        seed: Seed of the points and the perturbations.
        budget_s: See `Search`; a step is one round.
    """

    starts: int = 40
    samples: int = 40
    rounds: int = 5
    kept: int = 4
    perturbations: int = 5
    seed: int = 0
    batch_size: int = 16
    declines: bool = True
    budget_s: float | None = None
    pools = True

    def __post_init__(self) -> None:
        self.check_sizes("starts", "samples", "rounds", "kept", "perturbations", "batch_size")

    @torch.no_grad()
    def batch_search(self, objective: Candidates[AlterationObjective]) -> list[Decision]:
        """See `BatchSearch.batch_search`. Trace: ``evaluations`` of the objective in a case and set."""
        budget = Budget(self.budget_s)
        actions, values, accepted = [], [], []
        used = torch.zeros(len(objective.cases), dtype=torch.long)
        for candidate in in_time(objective.sets, budget):
            table = candidate.tabulated()
            action, value, may, count = self._best_accepted(table, budget)
            evaluations = torch.full_like(used, count)
            if not bool(may.all()):
                other, among, allowed, more = self._halved()._best_accepted(table, budget, accepting=True)
                # Only where nothing was accepted: cases beside others are decided as if alone.
                better, evaluations = allowed & ~may, evaluations + more * ~may.cpu()
                action = torch.where(better.unsqueeze(-1), other, action)
                value, may = torch.where(better, among, value), may | better
            actions.append(action)
            values.append(value)
            accepted.append(may)
            used = torch.maximum(used, evaluations)
        facts = [{"evaluations": count} for count in used.tolist()]
        stacked, may = torch.stack(values), torch.stack(accepted)
        return chosen(objective, actions, stacked, "sampled_refinement", budget, facts, self.declines, may)

    def _halved(self) -> Self:
        """With half as many of everything but rounds: what is acceptable costs more than a value."""
        names = ("starts", "samples", "kept", "perturbations")
        return replace(self, **{name: -(-getattr(self, name) // 2) for name in names})

    def _best_accepted(
        self, table: AlterationObjective, budget: Budget, accepting: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """The best acceptable of the last candidates, or the best: actions, values, whether acceptable,
        count.
        """
        actions, evaluations = self.refined(table, budget, accepting)
        compared, acceptable = ranked(table.sought_at_last(actions)), table.acceptable(actions)
        value, best = compared.where(acceptable | ~acceptable.any(0), -torch.inf).max(0)
        which = torch.arange(len(best), device=best.device)
        return actions[best, which], value, acceptable.any(0), evaluations

    def refined(
        self, objective: AlterationObjective, budget: Budget = UNLIMITED, accepting: bool = False
    ) -> tuple[Tensor, int]:
        """The best candidates of each case, (m, B, k) in the actions' units, and the number of evaluations.
        With `accepting`, candidates that the objective accepts come before all others.
        """

        def value(points: Tensor) -> Tensor:
            values = ranked(objective.sought(points))
            return values - REFUSED * (~objective.acceptable(points)).to(values) if accepting else values

        stream = generator(self.seed)
        unit = sobol(len(objective.names), self.seed).draw(self.samples, dtype=torch.float64)
        width = objective.upper - objective.lower
        spread = objective.project(objective.lower + unit.to(width).unsqueeze(1) * width)
        points = torch.cat((objective.starts(self.starts).to(spread), spread))
        values, count = value(points), len(points)
        scale = torch.minimum(width / 2, objective.frame()[1].to(width).expand_as(width))
        points, values = _best(points, values, self.kept)
        for step in range(self.rounds):
            if budget.out():
                break
            # The same perturbations in every case: the answer for a case does not depend on the others.
            shape = (len(points) * self.perturbations, 1, width.shape[-1])
            moves = torch.randn(shape, dtype=torch.float64, generator=stream).to(width)
            around = points.repeat(self.perturbations, 1, 1)
            moved = objective.project(around + 0.5**step * scale * moves)
            values = torch.cat((values, value(moved)))
            points, values = _best(torch.cat((points, moved)), values, self.kept)
            count += len(moved)
        return points, count


def _best(points: Tensor, values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best `count` points of each case, (n, B, k) and (n, B) -> (count, B, k) and (count, B)."""
    kept = values.topk(min(count, len(points)), dim=0).indices
    return points.gather(0, kept.unsqueeze(-1).expand(*kept.shape, points.shape[-1])), values.gather(0, kept)
