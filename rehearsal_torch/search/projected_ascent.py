"""Projected ascent: from many starts inside a box, uphill.

    a <- P(a + s d),    d = g / |g| in units of each action's scale,

with P the projection onto the box. The step s respects the objective's width by adapting to it: one that goes uphill is
kept and the next is longer, one that does not is taken back and the next is shorter; a start whose steps have become
negligible rests. All starts of all situations are one tensor; every ten steps the worse half of a situation's starts is
given up, until few are left. What those have become is judged by the objective, which may be more cautious than the
ascent; the best judged one is the answer, or, where the objective accepts none of them, the best start that it accepts.

Fixed steps, as in the paper, are an option: a <- P(a + rate g).

Source: Du et al. (2026), Alg. 1 (fixed steps); Riedmiller and Braun (1993) for steps that adapt.
"""

import time

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.alternatives import AlterationObjective, Alternatives
from rehearsal_torch.search.many import ManySearch, chosen

LONGER, SHORTER = 1.6, 0.4
LEAST = 1e-4
HALVED = 10


class ProjectedAscent(ManySearch[Alternatives]):
    """Multi-start projected gradient ascent.

    Args:
        starts: K, how many starts a situation has.
        steps: T, at most how many steps.
        fewest: So many of a situation's starts climb to the end; K gives up none. Fixed steps give up none either.
        rate: A fixed factor of the gradient (the paper's learning rate, in standardised actions); None adapts the steps.
        single: Climbs in single precision; values are computed again in double precision at the end.
        together: How many situations at once.
        declines: See `Search`; False for the paper's own behaviour.

    Raises:
        ValueError: if a number is not positive.
    """

    def __init__(
        self, starts: int = 20, steps: int = 100, fewest: int = 5, rate: float | None = None, single: bool = True, together: int = 32, declines: bool = True
    ) -> None:
        if min(starts, steps, fewest, together) < 1 or (rate is not None and rate <= 0):
            raise ValueError(f"expected positive numbers; got starts={starts}, steps={steps}, fewest={fewest}, rate={rate}, together={together}")
        self.starts, self.steps, self.fewest, self.rate, self.single, self.together = starts, steps, fewest, rate, single, together
        self.declines = declines

    @torch.no_grad()
    def many(self, objective: Alternatives) -> list[Decision]:
        """See `ManySearch.many`. Trace: ``starts``, ``steps`` used."""
        began = time.perf_counter()
        found, values, used = [], [], 0
        for one in objective.objectives():
            actions, steps = self.ascend(one)
            judged, acceptable = one.judged(actions), one.acceptable(actions)
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
        return chosen(objective, found, torch.stack(values), "projected_ascent", began, facts, self.declines)

    def _with_starts(self, objective: AlterationObjective, ends: Tensor, judged: Tensor, acceptable: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ends of ascents with the starts behind them; starts count only in situations without an acceptable end, and where they are acceptable."""
        starts = objective.starts(self.starts)
        of_use = objective.acceptable(starts) & ~acceptable.any(0)
        worth = objective.judged(starts).where(of_use, -torch.inf)
        return torch.cat((ends, starts)), torch.cat((judged, worth)), torch.cat((acceptable, of_use))

    def ascend(self, objective: AlterationObjective) -> tuple[Tensor, int]:
        """Where the starts end that were not given up, (n, B, k), and how many steps were made."""
        actions = objective.starts(self.starts)
        precise = actions.dtype
        if self.single:
            actions = actions.to(torch.float32)
        scale = objective.step().to(actions) / 0.1
        value, slope = objective.value_and_slope(actions)
        if self.rate is not None:
            for _ in range(self.steps):
                actions = objective.project(actions + self.rate * scale.square() * slope)
                value, slope = objective.value_and_slope(actions)
            return objective.project(actions.to(precise)), self.steps
        length = torch.full_like(value, 0.1)
        for step in range(self.steps):
            uphill = slope * scale
            towards = scale * uphill / uphill.norm(dim=-1, keepdim=True).clamp_min(1e-12)
            moved = objective.project(actions + length.unsqueeze(-1) * towards)
            other, steeper = objective.value_and_slope(moved)
            better = other > value
            actions, slope = torch.where(better.unsqueeze(-1), moved, actions), torch.where(better.unsqueeze(-1), steeper, slope)
            value, length = torch.where(better, other, value), torch.where(better, length * LONGER, length * SHORTER)
            if bool((length < LEAST).all()):
                return objective.project(actions.to(precise)), step + 1
            if (step + 1) % HALVED == 0 and len(actions) > self.fewest:
                kept = value.topk(max(self.fewest, len(actions) // 2), dim=0).indices
                wide = kept.unsqueeze(-1).expand(*kept.shape, actions.shape[-1])
                actions, slope, value, length = actions.gather(0, wide), slope.gather(0, wide), value.gather(0, kept), length.gather(0, kept)
        return objective.project(actions.to(precise)), self.steps
