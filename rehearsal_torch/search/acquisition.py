"""The action that is worth most to try: a multi-start ascent of the objective, in one tensor.

Many points of the box are screened with some of the draws; the best of them, the visited actions that are believed to be best and the
maximiser of the posterior mean are the starts. A few quasi-Newton steps of all starts together show which hills are high; the best go
on to the top.

Everything random comes from the seed and the round's identity.

Source: Balandat et al. (2020), Sec. 4 and App. F (raw points, restarts, common draws); Ren et al. (2025), Alg. 1, line 6.
"""

import time
from typing import Any, final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.causal_objective import CausalObjective, round_seed
from rehearsal_torch.search.multistart import climb
from rehearsal_torch.search.recommendation import decided, recommend
from rehearsal_torch.search.search import Search


@final
class AcquisitionSearch(Search[CausalObjective]):
    """Screening, then batched L-BFGS-B.

    Args:
        raw: Points that are screened.
        starts: R, from how many the ascent begins.
        incumbents: How many of them are visited actions.
        glance: Steps after which the starts are compared.
        kept: How many starts go on.
        steps: At most so many further steps.
        seed: With the round's identity, decides the screened points.

    Raises:
        ValueError: if a number is out of range.
    """

    def __init__(self, raw: int = 512, starts: int = 32, incumbents: int = 4, glance: int = 8, kept: int = 4, steps: int = 100, seed: int = 0) -> None:
        if min(raw, starts, glance, kept, steps) < 1 or not 0 <= incumbents < starts <= raw:
            given = f"raw={raw}, starts={starts}, incumbents={incumbents}, glance={glance}, kept={kept}, steps={steps}"
            raise ValueError(f"expected positive numbers and incumbents < starts <= raw; got {given}")
        self.raw, self.starts, self.incumbents, self.glance, self.kept, self.steps, self.seed = raw, starts, incumbents, glance, kept, steps, seed

    def __call__(self, objective: CausalObjective) -> Decision:
        """The best candidate found; its action is what is tried."""
        began = time.perf_counter()
        seed, width = round_seed(self.seed, objective.situation.identity), len(objective.task.actions)
        recommended = recommend(objective, seed)
        region = objective.region()
        spread = region.spread(self.raw, seed + 1)
        known = torch.cat([torch.nn.functional.pad(recommended.action.unsqueeze(0), (0, objective.further)), objective.starts(self.incumbents)])
        first = spread[ranked(objective.screened(region.units(spread))).topk(self.starts - len(known) + 1).indices]
        frame = objective.frame

        def value(points: Tensor) -> Tensor:
            return frame.seen(objective(points))

        def rough(points: Tensor) -> Tensor:
            return frame.seen(objective.rough(points))

        found = climb(value, region, torch.cat([region.unit(known), first]), self.steps, self.glance, self.kept, rough, sure=1)
        best, facts = region.units(found.points[0]), dict[str, Any]({"screened": self.raw, "starts": len(known) + len(first)})
        if objective.further:
            facts["pushes"] = best[width:].tolist()
        facts["evaluations"] = found.evaluations + recommended.evaluations
        return decided(objective, best[:width], frame.units(float(found.values[0])), recommended, "acquisition", began, facts)
