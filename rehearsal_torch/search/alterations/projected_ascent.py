"""Maximisers on a box for any objective: projected gradient ascent, and random search without gradients.

Projected gradient ascent, from many starts, steps by

    z <- P(z + s d),    d = g / |g|,    z = (a - location) / scale,

in the objective's standardised coordinates, with P the projection onto the box: units and location of the box
do not matter. The step size s adapts: a step that improves the objective is kept and the next one is longer,
one that does not is undone and the next one is shorter. All starts of all cases form one tensor; every ten
steps the worse half of the starts of a case is dropped, until few are left. The end points are evaluated by
the objective's comparison value, which may be more conservative than the ascended function; the best one is
the answer, or, if the objective accepts none of them, the best start that it accepts. Fixed steps, as in the
paper, are an option: z <- P(z + rate g).

Random search with shrinking neighbourhoods is for objectives that are counted and have no gradient. The first
candidates of every case are starts of the objective and Sobol points of the box. Then, in each of R rounds,
the m best candidates so far are perturbed,

    z <- P(z_i + r_t s e),    e ~ N(0, I),    r_t = 2^-t,    s = min(half the box, the frame's scale),

in the actions' units, with the scale of the objective's frame (one standard deviation of the action over the
observations, say): a neighbourhood is never wider than the resolution of the observations. The last
candidates are compared by the objective's comparison value; the best one that it accepts is the answer. Where
it accepts none, a smaller search prefers acceptable candidates to all others. A share of draws is a step
function with gradient zero, but with the same draws for all actions it is smooth enough on the scale of the
neighbourhoods, and a hundred evaluations in one batch cost less than an ascent step by step.

Source: Du et al. (2026), Alg. 1 (fixed steps); Riedmiller and Braun (1993) for adaptive steps; Rastrigin
(1963) and Solis and Wets (1981) (random search); Boender and Rinnooy Kan (1987), Sec. 3 (multistart).
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, chosen, in_time
from rehearsal_torch.seeding import generator, sobol

LONGER, SHORTER = 1.6, 0.4
MIN_STEP = 1e-4
HALVED = 10
MIN_STARTS = 5  # per case that continue to the end; fixed steps drop none


@dataclass(eq=False)
class ProjectedAscent(BatchSearch[Candidates[AlterationObjective]]):
    """Multi-start projected gradient ascent.

    Args:
        starts: K, number of starts per case.
        steps: T, maximum number of steps.
        rate: Fixed learning rate (as in the paper, for standardised actions); None for adaptive steps.
        single: Ascend in single precision; values are computed again in double precision at the end.
        declines: See `Search`; False for the behaviour in the paper.
        budget_s: See `Search`; a step is one step of the ascent.
    """

    starts: int = 20
    steps: int = 100
    rate: float | None = None
    single: bool = True
    batch_size: int = 32
    declines: bool = True
    budget_s: float | None = None

    def __post_init__(self) -> None:
        valid = self.rate is None or self.rate > 0
        self.check_sizes("starts", "steps", "batch_size", fits=valid, rate=self.rate)

    @torch.no_grad()
    def batch_search(self, objective: Candidates[AlterationObjective]) -> list[Decision]:
        """See `BatchSearch.batch_search`. Trace: ``starts``, ``steps`` used."""
        budget = Budget(self.budget_s)
        ends, values, most_steps = [], [], 0
        for candidate in in_time(objective.sets, budget):
            actions, steps = self.ascend(candidate, budget)
            compared, acceptable = ranked(candidate.sought_at_last(actions)), candidate.acceptable(actions)
            if not bool(acceptable.any(0).all()):
                actions, compared, acceptable = self._append_starts(candidate, actions, compared, acceptable)
            # The best acceptable action; if there is none, the best end point of an ascent.
            compared = compared.where(acceptable | ~acceptable.any(0), -torch.inf)
            value, best = compared.max(0)
            ends.append(actions[best, torch.arange(len(best), device=best.device)])
            values.append(value)
            most_steps = max(most_steps, steps)
        facts = [{"starts": self.starts, "steps": most_steps} for _ in objective.cases]
        return chosen(objective, ends, torch.stack(values), "projected_ascent", budget, facts, self.declines)

    def _append_starts(
        self, objective: AlterationObjective, ends: Tensor, compared: Tensor, acceptable: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """End points of the ascents, then the starts, which count where no end point is acceptable."""
        starts = objective.starts(self.starts)
        usable = objective.acceptable(starts) & ~acceptable.any(0)
        start_values = ranked(objective.sought_at_last(starts)).where(usable, -torch.inf)
        return torch.cat((ends, starts)), torch.cat((compared, start_values)), torch.cat((acceptable, usable))

    def ascend(self, objective: AlterationObjective, budget: Budget = UNLIMITED) -> tuple[Tensor, int]:
        """The end points of the remaining starts, (n, B, k) in the actions' units, and their steps."""
        frame = _Frame.of(objective, torch.float32 if self.single else torch.float64)
        points = frame.points(objective.starts(self.starts))
        value, gradients = objective.sought_with_gradient_in_frame(points)
        if self.rate is not None:
            for step in range(self.steps):
                if budget.out():
                    return frame.units(points), step
                moved = frame.clipped(points + self.rate * gradients)
                value, new_gradients = objective.sought_with_gradient_in_frame(moved)
                if bool(value.isfinite().all()):
                    points, gradients = moved, new_gradients
                    continue
                # A step to an undefined value is not made; that start stays where it is.
                defined = value.isfinite().unsqueeze(-1)
                points, gradients = moved.where(defined, points), new_gradients.where(defined, 0.0)
            return frame.units(points), self.steps
        value, length = ranked(value), torch.full_like(value, 0.1)
        for step in range(self.steps):
            if budget.out():
                return frame.units(points), step
            ascent_direction = gradients / gradients.norm(dim=-1, keepdim=True).clamp_min(1e-12)
            moved = frame.clipped(points + length.unsqueeze(-1) * ascent_direction)
            moved_value, new_gradients = objective.sought_with_gradient_in_frame(moved)
            better = moved_value > value
            mask = better.unsqueeze(-1)
            points, gradients = moved.where(mask, points), new_gradients.where(mask, gradients)
            value = moved_value.where(better, value)
            length = torch.where(better, length * LONGER, length * SHORTER)
            if bool((length < MIN_STEP).all()):
                return frame.units(points), step + 1
            if (step + 1) % HALVED == 0 and len(points) > MIN_STARTS:
                best = value.topk(max(MIN_STARTS, len(points) // 2), dim=0).indices
                index = best.unsqueeze(-1).expand(*best.shape, points.shape[-1])
                points, gradients = points.gather(0, index), gradients.gather(0, index)
                value, length = value.gather(0, best), length.gather(0, best)
        return frame.units(points), self.steps


@dataclass(frozen=True)
class _Frame:
    """The box (B, k) in standardised coordinates; location and scale (k,) in the actions' units."""

    objective: AlterationObjective
    location: Tensor
    scale: Tensor
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, objective: AlterationObjective, precision: torch.dtype) -> "_Frame":
        location, scale = objective.frame()
        lower, upper = ((bound - location) / scale for bound in (objective.lower, objective.upper))
        return cls(objective, location, scale, lower.to(precision), upper.to(precision))

    def clipped(self, points: Tensor) -> Tensor:
        """The nearest points of the box, (..., B, k)."""
        return points.clamp(self.lower, self.upper)

    def points(self, actions: Tensor) -> Tensor:
        """From the actions' units to the frame, (..., B, k)."""
        return self.clipped(((actions - self.location) / self.scale).to(self.lower))

    def units(self, points: Tensor) -> Tensor:
        """From the frame to the actions' units, (..., B, k), in the box; a bound is mapped to the bound."""
        objective = self.objective
        inner = objective.project(self.location + self.scale * points.to(self.scale))
        inner = torch.where(points >= self.upper, objective.upper, inner)
        return torch.where(points <= self.lower, objective.lower, inner)


REFUSED = 1e6  # Subtracted from values of candidates that are not accepted: more than values differ by


@dataclass(eq=False)
class SampledRefinement(BatchSearch[Candidates[AlterationObjective]]):
    """Candidates, then rounds of perturbations of the best.

    Args:
        starts: Maximum number of starts of the objective.
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
        most_evaluations = torch.zeros(len(objective.cases), dtype=torch.long)
        for candidate in in_time(objective.sets, budget):
            action, value, mask, count = self._best_accepted(candidate, budget)
            evaluations = torch.full_like(most_evaluations, count)
            if not bool(mask.all()) and not candidate.ranks_acceptable:
                retry, retry_value, retry_mask, retry_count = self._halved()._best_accepted(
                    candidate, budget, accepting=True
                )
                # Only where nothing was accepted: cases beside others are decided as if alone.
                better = retry_mask & ~mask
                evaluations = evaluations + retry_count * ~mask.cpu()
                action = torch.where(better.unsqueeze(-1), retry, action)
                value, mask = torch.where(better, retry_value, value), mask | better
            actions.append(action)
            values.append(value)
            accepted.append(mask)
            most_evaluations = torch.maximum(most_evaluations, evaluations)
        facts = [{"evaluations": count} for count in most_evaluations.tolist()]
        stacked, mask = torch.stack(values), torch.stack(accepted)
        return chosen(objective, actions, stacked, "sampled_refinement", budget, facts, self.declines, mask)

    def _halved(self) -> Self:
        """With half of everything but rounds, since acceptance costs more than a value."""
        names = ("starts", "samples", "kept", "perturbations")
        return replace(self, **{name: -(-getattr(self, name) // 2) for name in names})

    def _best_accepted(
        self, objective: AlterationObjective, budget: Budget, accepting: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """The best acceptable of the last candidates, or the best: actions, values, acceptance, count."""
        actions, evaluations = self.refined(objective, budget, accepting)
        compared, acceptable = ranked(objective.sought_at_last(actions)), objective.acceptable(actions)
        value, best = compared.where(acceptable | ~acceptable.any(0), -torch.inf).max(0)
        cases = torch.arange(len(best), device=best.device)
        return actions[best, cases], value, acceptable.any(0), evaluations

    def refined(
        self, objective: AlterationObjective, budget: Budget = UNLIMITED, accepting: bool = False
    ) -> tuple[Tensor, int]:
        """The best candidates, (m, B, k), if `accepting` acceptable ones first, and the evaluations."""

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
        points, values = _keep_best(points, values, self.kept)
        for step in range(self.rounds):
            if budget.out():
                break
            # The same perturbations in every case: the answer for a case does not depend on the others.
            shape = (len(points) * self.perturbations, 1, width.shape[-1])
            moves = torch.randn(shape, dtype=torch.float64, generator=stream).to(width)
            around = points.repeat(self.perturbations, 1, 1)
            moved = objective.project(around + 0.5**step * scale * moves)
            values = torch.cat((values, value(moved)))
            points, values = _keep_best(torch.cat((points, moved)), values, self.kept)
            count += len(moved)
        return points, count


def _keep_best(points: Tensor, values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best `count` points of each case, (n, B, k) and (n, B) -> (count, B, k) and (count, B)."""
    best = values.topk(min(count, len(points)), dim=0).indices
    return points.gather(0, best.unsqueeze(-1).expand(*best.shape, points.shape[-1])), values.gather(0, best)
