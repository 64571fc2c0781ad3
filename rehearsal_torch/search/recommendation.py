"""What a method would recommend for good: the action with the largest posterior mean of the reward.

    a_r = argmax_a 1/S sum_s r(x(a, u_s)).

What is tried next is chosen for what it may teach as well; the recommendation is not. The climb uses the round's draws; among the
places it arrives at, and the visited actions, other draws choose, so that the answer is not the one that those draws happened to favour.

Source: Ren et al. (2025), Eq. 3; Frazier (2018), Sec. 4.2.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.objectives.causal_objective import CHUNK, SCREEN, CausalObjective
from rehearsal_torch.search.multistart import climb
from rehearsal_torch.spaces.alteration import Alteration

REWARD = "expected reward of the recommendation"


@dataclass(frozen=True)
class Recommendation:
    """The action with the largest posterior mean.

    Attributes:
        action: (k,), in the actions' units.
        predicted: Its posterior mean reward, by draws that did not choose where to climb.
        evaluations: Points at which value and slope were computed.
    """

    action: Tensor
    predicted: float
    evaluations: int


def recommend(objective: CausalObjective, seed: int, raw: int = 256, starts: int = 12, kept: int = 3, steps: int = 60) -> Recommendation:
    """Climbs the posterior mean from the best visited actions and the best of `raw` spread ones."""
    region = objective.region(further=False)
    width, few = len(objective.task.actions), objective.noise[: max(1, len(objective.noise) // SCREEN)]
    visited, frame = objective.starts(starts // 2)[:, :width], objective.reward_frame

    def value(actions: Tensor) -> Tensor:
        return frame.seen(objective.expected(actions))

    def rough(actions: Tensor) -> Tensor:
        return frame.seen(objective.expected(actions, few))

    with torch.no_grad():
        spread = region.spread(raw, seed)
        first = ranked(torch.cat([rough(part) for part in region.units(spread).split(max(1, CHUNK // len(few)))]))
    begin = torch.cat([region.unit(visited), spread[first.topk(min(starts - len(visited), raw)).indices]])
    found = climb(value, region, begin, steps, kept=kept, rough=rough)
    with torch.no_grad():
        actions = torch.cat([region.units(found.points[:kept]), visited])
        values = objective.expected(actions, objective.other)
    best = best_of_all(values)
    return Recommendation(actions[best], float(values[best]), found.evaluations)


def decided(
    objective: CausalObjective, action: Tensor, value: float, recommended: Recommendation, search: str, began: float, facts: Mapping[str, Any]
) -> Decision:
    """A decision to try an action (k,).

    Its estimate is the posterior mean reward of the recommendation. Trace: ``search``, ``acquisition`` (the objective at what is tried),
    ``believed`` (posterior mean reward of what is tried), ``evaluations``, and `facts`.
    """
    with torch.no_grad():
        believed = float(objective.expected(action.unsqueeze(0), objective.other))
    names = objective.task.actions
    trace = {"search": search, "acquisition": value, "believed": believed, "evaluations": recommended.evaluations, **facts}
    predicted = Estimate(recommended.predicted, REWARD) if math.isfinite(recommended.predicted) else None
    return Decision(
        Alteration(names, action.detach().to("cpu", torch.float64)),
        value,
        estimate=predicted,
        recommendation=Alteration(names, recommended.action.detach().to("cpu", torch.float64)),
        trace=trace,
        seconds=time.perf_counter() - began,
    )
