"""Acquisition search: the next action to try, and the action to recommend.

What to try is found by a multi-start ascent of the objective, in one tensor. Many points of the box are
screened with some of the draws; the best of them, the visited actions with the largest posterior mean and the
maximiser of the posterior mean are the starts. A few joint quasi-Newton steps show which local maxima are
high; the best starts continue to convergence.

All random numbers come from the seed and the identity of the round.

The action tried next is chosen also for what it may teach; what a method would recommend for good is not. For
the recommendation, the posterior mean is maximised from many starts; among its maxima and the best visited
actions the one is recommended with the largest posterior mean under other draws of the noise than those of
the ascent, so that the answer is not the one that those draws happened to favour.

How sure that is (`sureness`) is said by plausible networks f_e (`objectives.expected_reward`): the
standard deviation over e of the recommended action's expected reward, and the chance that it is better than
the best visited action, from the difference of the two in the same networks by a normal approximation,
Phi(mean / standard deviation). Visited actions within 1e-3 of the recommendation, in the unit cube, count as
the recommendation itself.

Choosing by the mean over e less one standard deviation was compared with this on tables of 18 runs (six
problems, seeds 720 to 723, five rounds each): the regret changed by +.006 +- .051 of the gap of the start
design, so that the simpler rule stays.

Space-filling actions, which ignore what has been learnt, are the baselines without a search. Uniform actions
are independent from round to round. Sobol actions are the points of one scrambled sequence: after n
experiments the (n + 1)-th, so that a resumed run continues where it stopped. The recommendation is still the
maximiser of the posterior mean: these are baselines for the choice of experiments, not for learning from
them.

Source: Balandat et al. (2020), Sec. 4 and App. F (raw points, restarts, common draws); Ren et al. (2025),
Alg. 1, line 6, and Eq. 3; Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean); Sobol
(1967), Owen (1998); Bergstra and Bengio (2012) (random search as a baseline).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.objectives.expected_reward import CHUNK, SCREEN, CausalObjective
from rehearsal_torch.objectives.objective import normal_quantile
from rehearsal_torch.search.search import UNLIMITED, Budget, Search
from rehearsal_torch.search.trials.mixed_ascent import ascend
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.spaces.candidate_region import CandidateRegion

# Actions that are this near in the unit cube are one action.
SAME = 1e-3


@dataclass(frozen=True)
class Recommendation:
    """The action with the largest posterior mean."""

    action: Tensor  # (k,), in the actions' units
    predicted: float  # Its posterior mean reward, estimated with draws other than those of the ascent
    visited: Tensor  # The visited actions with the largest posterior mean within bounds and limits, (m, k)
    evaluations: int  # Number of points at which value and gradient were computed


@dataclass(frozen=True)
class Sureness:
    """What is known of a recommendation, and the best visited action beside it."""

    # The epistemic standard deviation of its expected reward: what is not known of the mechanisms; the noise
    # of a single experiment is averaged out.
    std: float
    tried: bool = False  # Whether the recommended action was visited
    # The best other visited action, (k,), among the best few within bounds and limits; None if there is none.
    runner_up: Tensor | None = None
    runner_up_predicted: float = float("nan")  # Its posterior mean reward
    # The probability that the recommended action's expected reward is larger than the runner-up's.
    chance: float = float("nan")


def recommend(
    objective: CausalObjective,
    seed: int,
    screened: int = 256,
    starts: int = 12,
    kept: int = 3,
    steps: int = 60,
    budget: Budget = UNLIMITED,
) -> Recommendation:
    """Maximises the posterior mean from the best visited actions and the best space-filling points."""
    region = objective.region(further=False)
    width, few = len(objective.task.actions), objective.noise[: max(1, len(objective.noise) // SCREEN)]
    visited, frame = objective.starts(starts // 2)[:, :width], objective.reward_frame

    def value(actions: Tensor) -> Tensor:
        return frame.standardised(objective.expected(actions))

    def rough(actions: Tensor) -> Tensor:
        return frame.standardised(objective.expected(actions, few))

    with torch.no_grad():
        spread = region.spread(screened, seed)
        parts = region.units(spread).split(max(1, CHUNK // len(few)))
        first = ranked(torch.cat([rough(part) for part in parts]))
    promising = spread[first.topk(min(starts - len(visited), screened)).indices]
    begin = torch.cat([region.unit(visited), promising])
    ends = ascend(value, region, begin, steps, kept=kept, rough=rough, budget=budget)
    with torch.no_grad():
        actions = torch.cat([region.units(ends.points[:kept]), visited])
        values = objective.expected(actions, objective.other)
    best = best_of_all(values)
    return Recommendation(actions[best], float(values[best]), visited, ends.evaluations)


@torch.no_grad()
def sureness(objective: CausalObjective, recommended: Recommendation) -> Sureness:
    """How sure a recommendation is, under the objective that found it, and what it is better than."""
    actions = torch.cat([recommended.action.unsqueeze(0), recommended.visited])
    rewards = objective.plausible(actions)
    unit = objective.region(further=False).unit(actions)
    others = ((unit[1:] - unit[0]).abs().amax(-1) > SAME).nonzero()[:, 0] + 1
    std, tried = float(rewards[0].std()), len(others) < len(recommended.visited)
    if not len(others):
        return Sureness(std, tried)
    means = objective.expected(actions[others], objective.other)
    second = best_of_all(means)
    apart = rewards[0] - rewards[others[second]]
    chance = torch.special.ndtr(apart.mean() / apart.std().clamp_min(1e-300))
    return Sureness(std, tried, actions[others[second]], float(means[second]), float(chance))


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
    ``predicted_reward`` (its posterior mean), ``runner_up`` (the best other action that was tried, its
    posterior mean, and the chance that the recommendation is better; see `sureness`), ``evaluations``,
    `facts`, and the entries of a budget that ended the search.
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
@dataclass(eq=False)
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
    """

    screened: int = 512
    starts: int = 32
    incumbents: int = 4
    screening_steps: int = 8
    kept: int = 4
    steps: int = 100
    seed: int = 0
    budget_s: float | None = None

    def __post_init__(self) -> None:
        names, incumbents = ("screened", "starts", "screening_steps", "kept", "steps"), self.incumbents
        fits, wanted = 0 <= incumbents < self.starts <= self.screened, "incumbents < starts <= screened"
        wanted = f"positive numbers and {wanted}"
        self.check_sizes(*names, fits=fits, expected=wanted, incumbents=incumbents)

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


SAMPLINGS = ("uniform", "sobol")


@final
class SpaceFilling(Search[CausalObjective]):
    """Uniform or Sobol actions.

    Args:
        sampling: ``uniform`` or ``sobol``.
        seed: Determines the actions; uniform ones together with the identity of the round.
        budget_s: See `Search`; a step is one evaluation in the ascent to the recommendation.
    """

    def __init__(self, sampling: str = "uniform", seed: int = 0, budget_s: float | None = None) -> None:
        if sampling not in SAMPLINGS:
            raise ValueError(f"expected sampling in {list(SAMPLINGS)}; got {sampling!r}")
        super().__init__(budget_s)
        self.sampling, self.seed = sampling, seed

    @torch.no_grad()
    def __call__(self, objective: CausalObjective) -> Decision:
        """Returns the next action."""
        budget, identity = Budget(self.budget_s), objective.case.identity
        recommended = recommend(objective, round_seed(self.seed, identity), budget=budget)
        action = self._next(objective, objective.region(further=False), identity)
        with torch.no_grad():
            value = float(objective.expected(action.unsqueeze(0)))
        return decided(objective, action, value, recommended, f"{self.sampling}_actions", budget, {})

    def _next(self, objective: CausalObjective, region: CandidateRegion, identity: str) -> Tensor:
        if self.sampling == "uniform":
            # The first point of a scrambled sequence is uniform over the box, cut off by the linear limits.
            return region.units(region.spread(1, round_seed(self.seed, f"uniform {identity}"))[0])
        count = len(objective.visited)
        return region.units(region.spread(count + 1, round_seed(self.seed, "sobol"))[count])
