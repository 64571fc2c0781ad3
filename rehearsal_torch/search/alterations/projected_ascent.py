"""Projected ascent: from many starts inside a box, uphill.

    z <- P(z + s d),    d = g / |g|,    z = (a - location) / scale,

in the objective's standardised coordinates, with P the projection onto the box: what unit an action has, and
how far from zero its box lies, changes nothing. The step s respects the objective's width by adapting to it:
one that goes uphill is kept and the next is longer, one that does not is taken back and the next is shorter;
a start whose steps have become negligible rests. All starts of all situations are one tensor; every ten steps
the worse half of a situation's starts is given up, until few are left. What those have become is judged by
the objective, which may be more cautious than the ascent; the best judged one is the answer, or, where the
objective accepts none of them, the best start that it accepts.

Fixed steps, as in the paper, are an option: z <- P(z + rate g).

Source: Du et al. (2026), Alg. 1 (fixed steps); Riedmiller and Braun (1993) for steps that adapt.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.objective import AlterationObjective
from rehearsal_torch.search.budget import UNLIMITED, Budget, checked_budget
from rehearsal_torch.search.search import ManySearch, chosen, in_time

LONGER, SHORTER = 1.6, 0.4
LEAST = 1e-4
HALVED = 10


class ProjectedAscent(ManySearch[Candidates[AlterationObjective]]):
    """Multi-start projected gradient ascent.

    Args:
        starts: K, how many starts a situation has.
        steps: T, at most how many steps.
        fewest: So many of a situation's starts climb to the end; K gives up none. Fixed steps give up none
            either.
        rate: A fixed factor of the gradient (the paper's learning rate, in standardised actions); None adapts
            the steps.
        single: Climbs in single precision; values are computed again in double precision at the end.
        together: How many situations at once.
        declines: See `Search`; False for the paper's own behaviour.
        budget_s: See `Search`; a step is one of the ascent.

    Raises:
        ValueError: if a number is not positive.
    """

    def __init__(
        self,
        starts: int = 20,
        steps: int = 100,
        fewest: int = 5,
        rate: float | None = None,
        single: bool = True,
        together: int = 32,
        declines: bool = True,
        budget_s: float | None = None,
    ) -> None:
        if min(starts, steps, fewest, together) < 1 or (rate is not None and rate <= 0):
            raise ValueError(
                f"expected positive numbers; got starts={starts}, steps={steps}, fewest={fewest}, "
                f"rate={rate}, together={together}"
            )
        self.starts, self.steps, self.fewest, self.rate, self.single, self.together = (
            starts,
            steps,
            fewest,
            rate,
            single,
            together,
        )
        self.declines, self.budget_s = declines, checked_budget(budget_s)

    @torch.no_grad()
    def many(self, objective: Candidates[AlterationObjective]) -> list[Decision]:
        """See `ManySearch.many`. Trace: ``starts``, ``steps`` used."""
        budget = Budget(self.budget_s)
        found, values, used = [], [], 0
        for one in in_time(objective.sets, budget):
            actions, steps = self.ascend(one, budget)
            judged, acceptable = ranked(one.judged(actions)), one.acceptable(actions)
            if not bool(acceptable.any(0).all()):
                actions, judged, acceptable = self._with_starts(one, actions, judged, acceptable)
            # The best acceptable action; where there is none, the best end of an ascent.
            allowed = torch.where(acceptable.any(0), acceptable, torch.ones_like(acceptable))
            best = judged.where(allowed, -torch.inf).argmax(0)
            which = torch.arange(len(best), device=best.device)
            found.append(actions[best, which])
            values.append(judged[best, which])
            used = max(used, steps)
        facts = [{"starts": self.starts, "steps": used} for _ in objective.situations]
        return chosen(objective, found, torch.stack(values), "projected_ascent", budget, facts, self.declines)

    def _with_starts(
        self, objective: AlterationObjective, ends: Tensor, judged: Tensor, acceptable: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ends of ascents with the starts behind them; starts count only in situations without an acceptable
        end, and where they are acceptable.
        """
        starts = objective.starts(self.starts)
        of_use = objective.acceptable(starts) & ~acceptable.any(0)
        worth = ranked(objective.judged(starts)).where(of_use, -torch.inf)
        return torch.cat((ends, starts)), torch.cat((judged, worth)), torch.cat((acceptable, of_use))

    def ascend(self, objective: AlterationObjective, budget: Budget = UNLIMITED) -> tuple[Tensor, int]:
        """Where the starts end that were not given up, (n, B, k) in the actions' units, and how many steps
        were made. A budget ends it after a step.
        """
        inside = _Frame.of(objective, torch.float32 if self.single else torch.float64)
        points = inside.points(objective.starts(self.starts))
        value, slope = objective.value_and_slope_in_frame(points)
        if self.rate is not None:
            for step in range(self.steps):
                if budget.out():
                    return inside.units(points), step
                moved = inside.clipped(points + self.rate * slope)
                value, steeper = objective.value_and_slope_in_frame(moved)
                if bool(value.isfinite().all()):
                    points, slope = moved, steeper
                    continue
                # A step to where nothing is defined is not made, and what stands there stays.
                defined = value.isfinite().unsqueeze(-1)
                points, slope = (
                    torch.where(defined, moved, points),
                    torch.where(defined, steeper, torch.zeros_like(slope)),
                )
            return inside.units(points), self.steps
        value, length = ranked(value), torch.full_like(value, 0.1)
        for step in range(self.steps):
            if budget.out():
                return inside.units(points), step
            towards = slope / slope.norm(dim=-1, keepdim=True).clamp_min(1e-12)
            moved = inside.clipped(points + length.unsqueeze(-1) * towards)
            other, steeper = objective.value_and_slope_in_frame(moved)
            better = other > value
            points, slope = (
                torch.where(better.unsqueeze(-1), moved, points),
                torch.where(better.unsqueeze(-1), steeper, slope),
            )
            value, length = (
                torch.where(better, other, value),
                torch.where(better, length * LONGER, length * SHORTER),
            )
            if bool((length < LEAST).all()):
                return inside.units(points), step + 1
            if (step + 1) % HALVED == 0 and len(points) > self.fewest:
                kept = value.topk(max(self.fewest, len(points) // 2), dim=0).indices
                wide = kept.unsqueeze(-1).expand(*kept.shape, points.shape[-1])
                points, slope, value, length = (
                    points.gather(0, wide),
                    slope.gather(0, wide),
                    value.gather(0, kept),
                    length.gather(0, kept),
                )
        return inside.units(points), self.steps


@dataclass(frozen=True)
class _Frame:
    """The box in the coordinates in which an ascent works.

    Attributes:
        objective: Whose box.
        location: (k,), in units.
        scale: (k,), in units.
        lower: (B, k), in the frame, in the ascent's precision.
        upper: (B, k).
    """

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
        return torch.minimum(torch.maximum(points, self.lower), self.upper)

    def points(self, actions: Tensor) -> Tensor:
        """Units to the frame, (..., B, k)."""
        return self.clipped(((actions - self.location) / self.scale).to(self.lower))

    def units(self, points: Tensor) -> Tensor:
        """The frame to units, (..., B, k), within the box; what lies on a bound of the frame lies on the
        bound itself, whatever the precision.
        """
        objective = self.objective
        inner = objective.project(self.location + self.scale * points.to(self.scale))
        inner = torch.where(points >= self.upper, objective.upper, inner)
        return torch.where(points <= self.lower, objective.lower, inner)
