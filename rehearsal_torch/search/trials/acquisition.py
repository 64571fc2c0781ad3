"""Acquisition search: the next action to try, and the action to recommend.

What to try is found by a multi-start ascent of the objective, in one tensor. Many points of the box are
screened with some of the draws; the best of them, the visited actions with the largest posterior mean and the
maximiser of the posterior mean are the starts. A few joint quasi-Newton steps show which local maxima are
high; the best starts continue to convergence.

The action tried next is chosen also for what it may teach; what a method would recommend for good is not
(`recommendation`).

All random numbers come from the seed and the identity of the round.

Source: Balandat et al. (2020), Sec. 4 and App. F (raw points, restarts, common draws); Ren et al. (2025),
Alg. 1, line 6, and Eq. 3.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.objective import normal_quantile
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.search.budget import Budget, checked_budget
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.mixed_ascent import ascend
from rehearsal_torch.search.trials.recommendation import Recommendation, Sureness, recommend, sureness
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Alteration

REWARD = "expected reward of the recommendation"
LEVEL = 0.95


def decided(
    objective: CausalObjective,
    action: Tensor,
    value: float,
    recommended: Recommendation,
    search: str,
    budget: Budget,
    facts: Mapping[str, Any],
) -> Decision:
    """The decision to try an action (k,).

    Its estimate is the posterior mean reward of the recommendation, with a normal interval from its epistemic
    standard deviation. Trace: ``search``, ``acquisition`` (the objective at the action tried),
    ``predicted_reward`` (posterior mean reward of the action tried), ``runner_up`` (the best other action
    that was tried, its posterior mean reward, and the chance that the recommendation is better; see
    `recommendation.sureness`), ``evaluations``, `facts`, and the entries of a budget that ended the search.
    """
    with torch.no_grad():
        predicted_reward = float(objective.expected(action.unsqueeze(0), objective.other))
    names = objective.task.actions
    sure = sureness(objective, recommended) if math.isfinite(recommended.predicted) else None
    trace = {
        "search": search,
        "acquisition": value,
        "predicted_reward": predicted_reward,
        **_runner_up(names, sure),
        "evaluations": recommended.evaluations,
        **facts,
        **budget.facts(),
    }
    return Decision(
        Alteration(names, action.detach().to("cpu", torch.float64)),
        value,
        estimate=None if sure is None else _claim(recommended.predicted, sure.std),
        recommendation=Alteration(names, recommended.action.detach().to("cpu", torch.float64)),
        trace=trace,
        seconds=budget.spent(),
    )


def _claim(predicted: float, std: float) -> Estimate:
    """The expected reward with its interval, without one if the standard deviation is not finite."""
    if not math.isfinite(std):
        return Estimate(predicted, REWARD)
    half = normal_quantile(LEVEL) * std
    return Estimate(predicted, REWARD, predicted - half, predicted + half, LEVEL)


def _runner_up(names: Sequence[str], sure: Sureness | None) -> dict[str, Any]:
    if sure is None or sure.runner_up is None or not math.isfinite(sure.chance):
        return {}
    action = dict(zip(names, sure.runner_up.tolist(), strict=True))
    predicted, chance = sure.runner_up_predicted, round(sure.chance, 6)
    return {"runner_up": {"action": action, "predicted": predicted, "chance": chance}}


@final
class AcquisitionSearch(Search[CausalObjective]):
    """Screening, then batched L-BFGS-B.

    Args:
        screened: Number of points that are screened.
        starts: R, number of starts of the ascent besides the maximiser of the posterior mean, which continues
            in any case.
        incumbents: How many of the starts are visited actions.
        screening_steps: Steps after which the starts are compared.
        kept: Number of starts that continue.
        steps: Maximum number of further steps.
        seed: Together with the identity of the round, determines the screened points, which are spread from
            the seed after that of the round.
        budget_s: See `Search`; a step is one evaluation of all starts.

    Raises:
        ValueError: if a number is out of range.
    """

    kind: Kind | None = "optimise"

    def __init__(
        self,
        screened: int = 512,
        starts: int = 32,
        incumbents: int = 4,
        screening_steps: int = 8,
        kept: int = 4,
        steps: int = 100,
        seed: int = 0,
        budget_s: float | None = None,
    ) -> None:
        sizes = {"screened": screened, "starts": starts, "screening_steps": screening_steps}
        sizes |= {"kept": kept, "steps": steps}
        require(
            min(sizes.values()) > 0 and 0 <= incumbents < starts <= screened,
            "positive numbers and incumbents < starts <= screened",
            **sizes,
            incumbents=incumbents,
        )
        self.screened, self.starts, self.incumbents = screened, starts, incumbents
        self.screening_steps, self.kept, self.steps = screening_steps, kept, steps
        self.seed, self.budget_s = seed, checked_budget(budget_s)

    def __call__(self, objective: CausalObjective) -> Decision:
        """Returns the best candidate found; its action is the one to try."""
        budget = Budget(self.budget_s)
        seed, width = round_seed(self.seed, objective.case.identity), len(objective.task.actions)
        recommended = recommend(objective, seed, budget=budget)
        region = objective.region()
        spread, frame = region.spread(self.screened, seed + 1), objective.frame
        best = torch.nn.functional.pad(recommended.action.unsqueeze(0), (0, objective.further))
        known = torch.cat([best, objective.starts(self.incumbents)])
        screened = ranked(objective.screened(region.units(spread)))
        first = spread[screened.topk(self.starts - len(known) + 1).indices]

        def value(points: Tensor) -> Tensor:
            return frame.standardised(objective(points))

        def rough(points: Tensor) -> Tensor:
            return frame.standardised(objective.rough(points))

        begin, steps = torch.cat([region.unit(known), first]), (self.steps, self.screening_steps, self.kept)
        ends = ascend(value, region, begin, *steps, rough, sure=1, budget=budget)
        point = region.units(ends.points[0])
        facts: dict[str, Any] = {"screened": self.screened, "starts": len(begin)}
        if objective.further:
            facts["perturbations"] = point[width:].tolist()
        facts["evaluations"] = ends.evaluations + recommended.evaluations
        reached = frame.units(float(ends.values[0]))
        return decided(objective, point[:width], reached, recommended, "acquisition", budget, facts)
