"""Acquisition search: the next action to try, and the action to recommend.

Both are found by BoTorch's `optimize_acqf` in unit coordinates (`maximised`): many points of the region are
screened, and the best of them and of the visited actions are the starts. Where some coordinates have levels,

    no other coordinate, at most 4096 combinations       all are evaluated
    at most 64 combinations                              the best starts of each ascend at its levels, in one
                                                         batch, by the `fixed_features` of each start
    more                                                 `optimize_acqf_mixed_alternating`; an exchange of
                                                         levels under equalities, which it does not take

The action to try is also chosen for its information, the recommendation is not: the posterior mean is
maximised, and among its maxima and the best visited actions the one with the largest posterior mean by
`CausalObjective.claimed` is recommended.

Its uncertainty (`sureness`) follows from the plausible networks f_e of `claimed`: the recommended action's
expected reward has their mean, and `BEYOND` times their standard deviation, since kernels, noise
distributions and graph are in doubt as well (without it 95 % intervals covered .88 of 60 networks by seed
after the start design, with it .90). The probability that it is better than the best visited action is the
normal approximation Phi(mean / standard deviation) of the difference. Visited actions within 1e-3 of the
recommendation, in the unit cube, count as the recommendation itself.

Space-filling actions are the baselines for the choice of experiments: uniform ones, independent from round to
round, or the points of one scrambled Sobol sequence, after n experiments the (n + 1)-th, so that a resumed
run continues where it stopped. The recommendation is still the maximiser of the posterior mean.

Source: Balandat et al. (2020), Sec. 4 and App. F (raw points, restarts, common draws); Ren et al. (2025),
Alg. 1, line 6; Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean); Wan et al. (2021)
(mixed spaces); Sobol (1967), Owen (1998); Bergstra and Bengio (2012) (random search as a baseline).
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim.optimize import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from scipy.optimize import OptimizeWarning
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.non_finite import best_of_all, ranked
from rehearsal_torch.data.outcome_constraint import INFEASIBLE, ConstraintChance
from rehearsal_torch.objectives import feasibility
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.objectives.feasibility import Constrained
from rehearsal_torch.objectives.objective import normal_quantile
from rehearsal_torch.search.search import UNLIMITED, Budget, Search
from rehearsal_torch.seeding import round_seed, seeded
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.spaces.candidate_region import CandidateRegion, MixedRegion

# Points screened and starts of the ascent to a recommendation, visited actions among them, and steps.
SCREENED, STARTS, INCUMBENTS, STEPS = 256, 8, 4, 60
SAME = 1e-3  # Actions that are this near in the unit cube are one action
BEYOND = 1.2  # Factor of standard deviations
MOVES, SHARE = 33, 0.01  # Values of an action that are compared, and the share of rewards that is no loss
# Most combinations of levels that are all evaluated if there is no other coordinate, and all ascended from.
EVALUATED, ASCENDED = 4096, 64
ONE_BY_ONE = 4  # Starts under linear limits, where BoTorch ascends one by one
WAY = (-0.4, -0.15, 0.1, 0.3)  # Shares of the way from a setting to a safer one
TOGETHER = 256  # Points that are screened in one batch


class InUnitCube(AcquisitionFunction):
    """An acquisition function, of (..., 1, k) in the actions' units, in a region's unit coordinates, that
    counts its evaluations. Where value or gradient is not finite it is flat and lower than all values so far,
    so that a line search turns back; once the budget is spent it is so everywhere, which ends every ascent.
    """

    def __init__(self, function: AcquisitionFunction, region: CandidateRegion, budget: Budget) -> None:
        super().__init__(function.model)
        self.function, self.region, self.budget = function, region, budget
        self.evaluations, self.lowest = 0, 0.0
        # BoTorch's optimisers read it.
        self.X_pending = None  # type: ignore[assignment]

    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates (..., 1, k) in unit coordinates, (...)."""
        if self.budget.out():
            return 0 * X.sum((-2, -1)) - 1 - 2 * abs(self.lowest)
        if X.requires_grad:
            X = X.clone()
            X.register_hook(lambda gradient: gradient.nan_to_num(0.0, 0.0, 0.0))
        values = self.measured(X)
        defined = values.isfinite()
        self.lowest = min(self.lowest, float(values.detach().where(defined, torch.inf).min()))
        return values.where(defined, -1 - 2 * abs(self.lowest))

    def measured(self, X: Tensor) -> Tensor:
        """The unchanged values, (..., 1, k) -> (...), whatever the budget."""
        self.evaluations += X.shape[:-2].numel()
        values: Tensor = self.function(self.region.units(X))
        return values


@dataclass(frozen=True)
class Found:
    """Points of large value, best first."""

    points: Tensor  # (R, k), in unit coordinates
    values: Tensor  # (R,)
    evaluations: int  # Number of points that were evaluated


def maximised(
    acquisition: AcquisitionFunction,
    region: CandidateRegion,
    known: Tensor,
    screened: int,
    starts: int,
    steps: int,
    seed: int,
    budget: Budget = UNLIMITED,
) -> Found:
    """Maximises a function from screened points and actions (m, k); NoFiniteValueError if none is finite."""
    function, limits = InUnitCube(acquisition, region, budget), _botorch_constraints(region)
    with torch.no_grad():
        if isinstance(region, MixedRegion) and not region.free and region.combinations <= EVALUATED:
            combinations = region.every()
            return _evaluate_ranked(function, combinations[region.contains(combinations)], budget)
        screened_points = torch.cat([region.into(region.unit(known)), region.spread(screened, seed)])
        if isinstance(region, MixedRegion) and region.combinations <= ASCENDED:
            screened_points = _cross_levels(region, screened_points)
        result = _evaluate_ranked(function, screened_points, budget)
        best_of_all(result.values)
    if budget.out():
        return result
    count = min(starts, len(screened_points), ONE_BY_ONE if region.limited else starts)
    start_points = result.points[:count]
    ends = list[Tensor]()
    with torch.enable_grad(), seeded(seed), warnings.catch_warnings():
        # Ascents end at undefined values, or with the budget; SciPy does not know all that BoTorch asks for.
        for category in (BotorchWarning, OptimizeWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        if isinstance(region, MixedRegion) and region.combinations > ASCENDED:
            if len(region.equalities[0]):
                # BoTorch takes no equality that a coordinate with levels is in.
                start_points = _exchange_levels(function, region, start_points, steps, budget)
            else:
                point = _alternating(function, region, limits, count, screened, steps)
                start_points = torch.cat([start_points, point])
        elif isinstance(region, MixedRegion):
            start_points = _first_of_levels(region, result.points, count)
        if not isinstance(region, MixedRegion) or region.free:
            settings: dict[str, Any] = {"options": {"maxiter": steps}, **limits}
            if isinstance(region, MixedRegion):
                settings["fixed_features"] = {column: start_points[:, column] for column in region.places}
                # One by one, where they do not ascend in parallel: BoTorch asks for it.
                settings["options"]["max_optimization_problem_aggregation_size"] = 1
            ascended, _ = optimize_acqf(
                function,
                torch.stack([torch.zeros_like(start_points[0]), torch.ones_like(start_points[0])]),
                q=1,
                num_restarts=len(start_points),
                batch_initial_conditions=start_points.unsqueeze(1),
                return_best_only=False,
                retry_on_optimization_warning=False,
                **settings,
            )
            ends.append(region.into(ascended[:, 0]))
    return _evaluate_ranked(function, torch.cat([*ends, start_points]), budget)


def _alternating(
    function: InUnitCube, region: MixedRegion, limits: dict[str, Any], starts: int, screened: int, steps: int
) -> Tensor:
    """A point where neither another level of one coordinate nor a step of the others is better, (1, k)."""
    levels = {column: list(values) for column, values in region.unit_levels.items()}
    bounds = torch.stack([torch.zeros_like(region.lower), torch.ones_like(region.lower)])
    for column, values in levels.items():
        bounds[:, column] = bounds.new_tensor([values[0], values[-1]])
    classes = {column: levels.pop(column) for column in region.classes if len(levels[column]) > 1}
    # Between levels the function is flat, and the model's rows are in the actions' units.
    options = {"maxiter_continuous": steps, "max_discrete_values": region.combinations, "num_spray_points": 0}
    points, _ = optimize_acqf_mixed_alternating(
        function,
        bounds,
        discrete_dims=levels or None,
        cat_dims=classes or None,
        options=options,
        num_restarts=starts,
        raw_samples=screened,
        inequality_constraints=limits.get("inequality_constraints"),
    )
    return region.into(points)


def _exchange_levels(
    function: InUnitCube, region: MixedRegion, points: Tensor, steps: int, budget: Budget
) -> Tensor:
    """The best of points and their neighbours, as many as there were, until none of them is new."""
    for _ in range(steps):
        candidates = torch.cat([points, region.neighbours(points, ASCENDED)[0]]).unique(dim=0)
        best = _evaluate_ranked(function, candidates, budget).points[: len(points)]
        if budget.out() or torch.equal(best, points):
            break
        points = best
    return points


def _botorch_constraints(region: CandidateRegion) -> dict[str, Any]:
    if not region.limited:
        return {}
    columns = torch.arange(len(region.lower), device=region.lower.device)
    equalities, inequalities = (
        [(columns, sign * normal, sign * float(offset)) for normal, offset in zip(*rows, strict=True)]
        for sign, rows in ((1, region.equalities), (-1, region.inequalities))
    )
    return {"equality_constraints": equalities or None, "inequality_constraints": inequalities or None}


@torch.no_grad()
def _evaluate_ranked(function: InUnitCube, points: Tensor, budget: Budget) -> Found:
    """Points, best first: those that are evaluated before the budget is spent."""
    values = list[Tensor]()
    for part in points.split(TOGETHER):
        if values and budget.out():
            break
        values.append(function.measured(part.unsqueeze(-2)))
    all_values = torch.cat(values)
    order = ranked(all_values).argsort(descending=True, stable=True)
    return Found(points[order], all_values[order], function.evaluations)


def _cross_levels(region: MixedRegion, points: Tensor) -> Tensor:
    """Points at every feasible combination of levels, about as many as there were, and these."""
    combinations = region.every()
    count = max(1, len(points) // len(combinations))
    crossed = points[:count].unsqueeze(0).repeat(len(combinations), 1, 1)
    crossed[..., region.places] = combinations.unsqueeze(1)
    moved, feasible = region.slices(crossed.flatten(0, 1))
    return torch.cat([points, moved[feasible]])


def _first_of_levels(region: MixedRegion, points: Tensor, count: int) -> Tensor:
    """The first points, best first, and the first at each other combination of levels."""
    levels = points[:, region.places]
    unseen = ~(levels.unsqueeze(1) == levels).all(-1).tril(-1).any(-1)
    unseen[:count] = True
    return points[unseen]


@dataclass(frozen=True)
class Recommendation:
    """The action with the largest posterior mean."""

    action: Tensor  # (k,), in the actions' units
    predicted: float  # Its posterior mean reward, as claimed
    visited: Tensor  # The visited feasible actions with the largest posterior mean, (m, k)
    evaluations: int  # Number of points that were evaluated
    constraints: tuple[ConstraintChance, ...] = ()  # What is claimed of them at the action


@dataclass(frozen=True)
class Sureness:
    """The uncertainty of a recommendation, and the best visited action beside it."""

    std: float  # The epistemic standard deviation of its expected reward
    tried: bool = False  # Whether the recommended action was visited
    runner_up: Tensor | None = None  # The best other visited action, (k,), if any
    runner_up_predicted: float = float("nan")  # Its posterior mean reward
    chance: float = float("nan")  # P(the recommended action's expected reward exceeds the runner-up's)
    margins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # Values that do nearly as well
    tolerance: float = float("nan")  # The loss up to which a value does


def recommend(objective: CausalObjective, seed: int, budget: Budget = UNLIMITED) -> Recommendation:
    """Maximises the posterior mean from the best visited actions and the best space-filling points, where
    nodes are settable in each set of them; a ValueError for two rewards (`search.trials.front`).
    """
    if labels := objective.task.reward.labels:
        raise ValueError(f"two rewards, {' and '.join(labels)}, {ONLY_FRONT}")
    results = [_recommend_in_set(each, seed, budget) for each in objective.by_set()]
    best = max(results, key=lambda r: (all(c.kept for c in r.constraints), r.predicted))
    visited = torch.cat([result.visited for result in results])
    return replace(best, visited=visited, evaluations=sum(result.evaluations for result in results))


def _recommend_in_set(objective: CausalObjective, seed: int, budget: Budget) -> Recommendation:
    region, visited = objective.region(), objective.starts(INCUMBENTS)
    result = maximised(objective.mean_reward(), region, visited, SCREENED, STARTS, STEPS, seed, budget)
    if objective.constrained is not None:
        return _recommend_feasible(objective, objective.constrained, result, visited, seed, budget)
    actions = torch.cat([region.units(result.points[:3]), visited])
    values = objective.expected(actions)
    best = best_of_all(values)
    return Recommendation(actions[best], float(values[best]), visited, result.evaluations)


def _recommend_feasible(
    objective: CausalObjective, model: Constrained, result: Found, visited: Tensor, seed: int, budget: Budget
) -> Recommendation:
    """The action of the largest posterior mean among those, and those on the way to the safest of them, that
    are claimed to be feasible; if none is, that with the largest probability of keeping all constraints.
    """
    region, constraints, evaluations = objective.region(), objective.task.constraints, result.evaluations
    points = torch.cat([region.unit(visited), result.points[:3]])
    for attempt in range(2):
        with torch.no_grad():
            samples = model.posterior(region.units(points).unsqueeze(-2)).values[..., 0, :]
        safest, share = points[model.violation(samples).argmin()], points.new_tensor(WAY).unsqueeze(-1)
        way = region.into(torch.lerp(result.points[:2].unsqueeze(1), safest, share).flatten(0, 1))
        actions = region.units(torch.cat([points, way]))
        outcomes = feasibility.outcomes(objective.claimed, constraints, actions)
        feasible = feasibility.kept_as_asked(outcomes[..., 2:], constraints)
        if attempt or bool(feasible.any()):
            break
        ascent = SCREENED, STARTS, STEPS, seed, budget
        likely = maximised(model.log_probability(), region, visited, *ascent)
        points, evaluations = torch.cat([points, likely.points[:3]]), evaluations + likely.evaluations
    values = outcomes[..., 0].mean(0)
    if bool(feasible.any()):
        best, visited = best_of_all(values.where(feasible, -torch.inf)), visited[feasible[: len(visited)]]
    else:
        # No other action is its rival by the reward.
        best = best_of_all(outcomes[..., 1].mean(0))
        visited = visited[best : best + 1]
    claimed = feasibility.claimed_chances(outcomes[:, best, 2:], constraints)
    return Recommendation(actions[best], float(values[best]), visited, evaluations, claimed)


def sureness(objective: CausalObjective, recommended: Recommendation) -> Sureness:
    """The uncertainty of a recommendation under the objective that found it."""
    actions = torch.cat([recommended.action.unsqueeze(0), recommended.visited])
    rewards = objective.plausible(actions)
    unit_actions, unset = objective.region().unit(actions), actions.isnan()
    other = (unit_actions[1:] - unit_actions[0]).abs().amax(-1) > SAME
    rivals = (other | (unset[1:] != unset[0]).any(-1)).nonzero()[:, 0] + 1
    std, tried = BEYOND * float(rewards[0].std()), len(rivals) < len(recommended.visited)
    means = objective.tried[1].mean(0) if len(objective.visited) else rewards[:1, 0]
    tolerance = max(std, SHARE * float(means.max() - means.min()))
    kept = all(chance.kept for chance in recommended.constraints)
    flat = margins(objective, recommended.action, tolerance) if kept else {}, tolerance
    rivals = rivals[rewards[rivals].mean(-1).isfinite()]
    if not len(rivals):
        return Sureness(std, tried, margins=flat[0], tolerance=tolerance)
    means = rewards[rivals].mean(-1)
    second = best_of_all(means)
    differences = rewards[0] - rewards[rivals[second]]
    chance = torch.special.ndtr(differences.mean() / differences.std().clamp_min(1e-300))
    return Sureness(std, tried, actions[rivals[second]], float(means[second]), float(chance), *flat)


@torch.no_grad()
def margins(objective: CausalObjective, best: Tensor, tolerance: float) -> dict[str, tuple[float, ...]]:
    """How far each action that is set can move alone from the `best` (k,) while it is claimed to keep the
    constraints, and no more likely than not that the expected reward falls by more than the tolerance, by
    joint draws in tables: ends, or all texts.
    """
    constraints, model = objective.task.constraints, objective.claimed.tabulated()
    bounds, ranges = objective.box.bounds(), dict[str, tuple[float, ...]]()
    for name in objective.task.named(best[: len(objective.task.actions)]):
        index = objective.task.actions.index(name)
        values = best.new_tensor(objective.levels[name]) if name in objective.levels else None
        values = objective.task.grid(name, bounds[name], MOVES).to(best) if values is None else values
        values = torch.cat([values, best[index].unsqueeze(0)]).unique()
        moved = best.repeat(len(values), 1)
        moved[:, index] = values
        bad = ~objective.allowed(moved)
        if constraints:
            outcomes = feasibility.outcomes(model, constraints, moved)
            bad |= ~feasibility.kept_as_asked(outcomes[..., 2:], constraints)
            rewards = outcomes[..., 0]
        else:
            rewards = model.posterior(moved.unsqueeze(-2)).values[..., 0, 0]
        place = int((values - best[index]).abs().argmin())
        bad |= (rewards[:, place : place + 1] - rewards > tolerance).double().mean(0) >= 0.5
        if name in objective.task.coded:
            ranges[name] = tuple(values[~bad].tolist())
            continue
        below, above = bad[:place].nonzero(), bad[place + 1 :].nonzero()
        low = int(below[-1]) + 1 if len(below) else 0
        high = place + int(above[0]) if len(above) else len(values) - 1
        ranges[name] = float(values[low]), float(values[high])
    return ranges


ONLY_FRONT = "have no single best setting: go on by rehearsal suggest, recommend and explore"
REWARD = "expected reward of the recommendation"
LEVEL = 0.95


@dataclass(frozen=True)
class Proposal:
    """The action that a search proposes to try."""

    action: Tensor  # (k,), in the actions' units
    value: float  # Of the acquisition function
    facts: Mapping[str, Any]  # Entries of a decision's trace


def decided(
    objective: CausalObjective, proposal: Proposal, recommended: Recommendation, budget: Budget
) -> Decision:
    """The decision to try a proposal; its estimate is the posterior mean reward of the recommendation, with a
    normal interval.

    Trace: ``acquisition`` (the objective at the proposed action), ``predicted_reward`` (its posterior mean),
    ``runner_up`` (the best other visited action, its posterior mean, and the chance that the recommendation
    is better), ``constraints`` (what is claimed of them at the recommendation), ``nearly`` (the values of
    each action that do nearly as well, and the loss), ``cost`` (of the experiment), ``evaluations``, the
    proposal's facts, and the entries of a budget that ended the search.
    """
    task, width = objective.task, len(objective.task.actions)
    certainty = sureness(objective, recommended) if math.isfinite(recommended.predicted) else None
    trace = {
        **proposal.facts,
        "acquisition": proposal.value,
        "predicted_reward": float(objective.expected(proposal.action.unsqueeze(0))),
        **_runner_up(task, certainty),
        **({"constraints": list(map(asdict, recommended.constraints))} if recommended.constraints else {}),
        **_nearly(certainty),
        **({} if task.costs is None else {"cost": float(task.costs.of(proposal.action))}),
        "evaluations": recommended.evaluations + proposal.facts.get("evaluations", 0),
        **budget.facts(),
    }
    nodes = objective.surrogate.contradicted()
    text = (
        f"the experiments contradict what the model assumes of {', '.join(nodes)}: what is "
        "claimed through it may be wrong; look for a missing arrow, or at the curve of its rows"
    )
    findings = [Finding("bad_fit", text)] if nodes else []
    if not all(each.kept for each in recommended.constraints):
        findings.append(Finding("constraint", INFEASIBLE))
    return Decision(
        _altered(task, proposal.action[:width]),
        proposal.value,
        estimate=None if certainty is None else _claim(recommended.predicted, certainty.std),
        recommendation=_altered(task, recommended.action[:width]),
        trace=trace,
        seconds=budget.spent(),
    ).told(findings)


def _claim(predicted: float, std: float) -> Estimate:
    """The expected reward with its interval, without one if the standard deviation is not finite."""
    if not math.isfinite(std):
        return Estimate(predicted, REWARD)
    half = normal_quantile(LEVEL) * std
    return Estimate(predicted, REWARD, predicted - half, predicted + half, LEVEL)


def _altered(task: CausalTask, action: Tensor) -> Alteration:
    values = task.named(action)
    return Alteration(tuple(values), torch.tensor(list(values.values()), dtype=torch.float64))


def _nearly(certainty: Sureness | None) -> dict[str, Any]:
    if certainty is None or not certainty.margins or not math.isfinite(certainty.tolerance):
        return {}
    ranges = {name: list(ends) for name, ends in certainty.margins.items()}
    return {"nearly": {"ranges": ranges, "loss": certainty.tolerance}}


def _runner_up(task: CausalTask, certainty: Sureness | None) -> dict[str, Any]:
    if certainty is None or certainty.runner_up is None or not math.isfinite(certainty.chance):
        return {}
    action = task.named(certainty.runner_up[: len(task.actions)])
    predicted, chance = certainty.runner_up_predicted, round(certainty.chance, 6)
    return {"runner_up": {"action": action, "predicted": predicted, "chance": chance}}


class TrialSearch(Search[CausalObjective]):
    """A search for the next action to try; as a search of the loop it also recommends one."""

    seed: int

    @abstractmethod
    def propose(self, objective: CausalObjective, budget: Budget) -> Proposal:
        """The action to try, where the objective has a set of nodes to set in that."""

    def best(self, objective: CausalObjective, budget: Budget) -> Proposal:
        """The action to try in the set where it has the largest value."""
        proposals = [self.propose(each, budget) for each in objective.by_set()]
        return proposals[best_of_all(torch.tensor([proposal.value for proposal in proposals]))]

    def __call__(self, objective: CausalObjective) -> Decision:
        """Returns the action to try, and the recommendation."""
        budget = Budget(self.budget_s)
        proposal = self.best(objective, budget)
        recommended = recommend(objective, round_seed(self.seed, objective.case.identity), budget)
        return decided(objective, proposal, recommended, budget)


@final
@dataclass(eq=False)
class AcquisitionSearch(TrialSearch):
    """Screening, then BoTorch's ascents (`maximised`).

    Args:
        screened: Number of points that are screened.
        starts: R, number of starts of the ascent.
        incumbents: How many visited actions are screened as well.
        steps: Maximum number of steps.
        seed: Together with the identity of the round, determines the screened points.
        budget_s: See `Search`; a step is one evaluation of all starts.
    """

    screened: int = 256
    starts: int = 8
    incumbents: int = 4
    steps: int = 60
    seed: int = 0
    budget_s: float | None = None

    def __post_init__(self) -> None:
        names, incumbents = ("screened", "starts", "steps"), self.incumbents
        valid, expected = incumbents >= 0 and self.starts <= self.screened, "starts <= screened"
        expected = f"positive numbers and {expected}"
        self.check_sizes(*names, fits=valid, expected=expected, incumbents=incumbents)

    def propose(self, objective: CausalObjective, budget: Budget) -> Proposal:
        """The best candidate found."""
        region, seed = objective.region(), round_seed(self.seed, objective.case.identity) + 1
        incumbents, sizes = objective.starts(self.incumbents), (self.screened, self.starts, self.steps)
        result = maximised(objective.acquisition, region, incumbents, *sizes, seed, budget)
        facts = {"search": "acquisition", "screened": self.screened, "starts": self.starts}
        facts["evaluations"] = result.evaluations
        return Proposal(region.units(result.points[0]), float(result.values[0]), facts)


@final
class SpaceFilling(TrialSearch):
    """Uniform or Sobol actions.

    Args:
        sampling: ``uniform`` or ``sobol``.
        seed: Determines the actions; uniform ones together with the identity of the round.
        budget_s: See `Search`; a step is one evaluation in the ascent to the recommendation.
    """

    def __init__(self, sampling: str = "uniform", seed: int = 0, budget_s: float | None = None) -> None:
        if sampling not in ("uniform", "sobol"):
            raise ValueError(f"expected sampling in ['uniform', 'sobol']; got {sampling!r}")
        super().__init__(budget_s)
        self.sampling, self.seed = sampling, seed

    def best(self, objective: CausalObjective, budget: Budget) -> Proposal:
        """The action to try in a set drawn at random."""
        sets, seed = objective.by_set(), round_seed(self.seed, f"set {objective.case.identity}")
        return self.propose(sets[seed % len(sets)], budget)

    @torch.no_grad()
    def propose(self, objective: CausalObjective, budget: Budget) -> Proposal:  # noqa: ARG002
        """The next action."""
        region, uniform = objective.region(), self.sampling == "uniform"
        # The first point of a scrambled sequence is uniform over the box, cut off by the linear limits.
        count = 1 if uniform else len(objective.visited) + 1
        seed = round_seed(self.seed, f"uniform {objective.case.identity}" if uniform else "sobol")
        action = region.units(region.spread(count, seed)[-1])
        value = float(objective.expected(action.unsqueeze(0)))
        return Proposal(action, value, {"search": f"{self.sampling}_actions"})
