"""The most informative alteration among those that satisfy the chance constraint.

    maximise I(G, Theta; Z, Y | D, x, z)     subject to     P(Y in S | D, x, z) >= tau,

over every candidate set of variables. First the constraint reduces each set to a pool of qualifying points;
then Bayesian optimisation finds the most informative point of each pool, all sets in one batch.

Information is largest where an alteration is most extreme, and so where it just reaches tau. Therefore, among
points whose information falls short of the best by at most `indifference`, the most probable one is taken; 0
is the problem as stated in the paper.

If no set has a qualifying point, the decision is refused, unless `fallback` drops the constraint, as in the
paper's experiments, or takes the most probable alteration.

Search of pools. Each of b functions, to be maximised over its own pool of m points with few evaluations, has
a Gaussian process with a Matern-5/2 kernel, all fitted in one batch; the next point to evaluate has the
largest upper confidence bound

    mu(z) + kappa sigma(z),

as in the paper, or the largest log expected improvement. On a finite pool the acquisition is evaluated at
every point, and infeasible points are not in the pool. The functions are smooth and deterministic; apparent
noise is interpolated.

Pools. In both samples of scenarios, the one used for the search and the one used for validation, at least a
share tau must be desired. For one variable the qualifying points form unions of closed intervals, found
exactly on each sample and intersected (Alg. 1 and 3); for several variables candidates come from programs,
sweeps and lines (`mixed_integer`). The most probable point of each set is reported, too.

Source: Qin et al. (2023), Eq. 5-6, Sec. 4.2 (refusal), Alg. 1 and 3, App. B.2 and C (UCB; kappa 2.576 in the
released code); Ament et al. (2023), Unexpected improvements (log EI).
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.interval_sweep import Cover, intervals, meet, spread, swept
from rehearsal_torch.search.alterations.mixed_integer import AlterationBudget, joint_candidates
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, check_worth, chosen, in_time


@dataclass(frozen=True)
class Points:
    """Points of one candidate set."""

    points: Tensor  # (m, k), the most probable first; m may be 0
    share: float  # Desired validation scenarios at the most probable affordable point; -1 if there is none


@dataclass(frozen=True)
class Qualifying:
    """Finds qualifying alterations."""

    tau: float  # The required share of desired scenarios
    pool: int  # Maximum number of points returned
    budget: AlterationBudget | None  # Upper bound on the cost of an alteration; None for no bound
    programs: tuple[int, int, int]  # For several variables: their number, scenarios and nodes of each

    def points(self, candidate: SuccessProbability, index: int, budget: Budget = UNLIMITED) -> Points:
        """The qualifying points of one set in one case, as far as the time budget allows."""
        if len(candidate.names) == 1:
            covers = self._covers(candidate, index)
            steps = spread(self._pieces(covers).to(candidate.lower), self.pool)
            points, likeliest = steps.unsqueeze(-1), self._likeliest(candidate, index, covers[0][0])
            return self._first(candidate, index, candidate.origin[index] + points, likeliest)
        joint = joint_candidates(candidate, index, self.tau, *self.programs, budget=budget)
        points = self._affordable(candidate, joint)
        return self._first(candidate, index, points, self.best(candidate, index, budget).points)

    def pieces(self, candidate: SuccessProbability, index: int) -> Tensor:
        """The qualifying values of a set of one variable in one case: disjoint closed intervals, (p, 2)."""
        return candidate.origin[index] + self._pieces(self._covers(candidate, index)).to(candidate.lower)

    def _pieces(self, covers: Sequence[tuple[Cover, int]]) -> Tensor:
        """The intervals relative to the origin."""
        return meet(*(cover.at_least(math.ceil(self.tau * count - 1e-9)) for cover, count in covers))

    def best(self, candidate: SuccessProbability, index: int, budget: Budget = UNLIMITED) -> Points:
        """The most probable affordable point found in one set for one case, (1, k), or none, (0, k)."""
        if len(candidate.names) == 1:
            points = self._likeliest(candidate, index, self._covers(candidate, index)[0][0])
        else:
            swept_point = self._affordable(candidate, swept(candidate, 4, 5, 500, budget)[[index]])
            points = torch.cat([self.anywhere(candidate, index), swept_point])
            if len(points):
                shares = candidate.share_of(index, points, validating=False)
                points = points[shares.argsort(descending=True)[:1]]
        return Points(points, float(candidate.share_of(index, points).max()) if len(points) else -1.0)

    def anywhere(self, candidate: SuccessProbability, index: int) -> Tensor:
        """Affordable points spread over the box, (m, k)."""
        if len(candidate.names) > 1:
            return self._affordable(candidate, candidate.starts(self.pool)[:, index])
        lower, upper = self._bounds(candidate, index)
        if not bool(lower <= upper):
            return candidate.lower.new_empty(0, 1)
        return candidate.origin[index] + spread(torch.stack([lower, upper], -1), self.pool).unsqueeze(-1)

    def _covers(self, candidate: SuccessProbability, index: int) -> list[tuple[Cover, int]]:
        """The intervals of both samples, relative to the origin, and the numbers of scenarios."""
        lower, upper = self._bounds(candidate, index)
        covers = []
        for sample in (candidate.search_scenarios, candidate.validation_scenarios):
            left, right = intervals(sample.gains[..., 0], sample.slack[:, [index]], lower, upper)
            covers.append((Cover.of(left[:, 0], right[:, 0]), len(left)))
        return covers

    def _likeliest(self, candidate: SuccessProbability, index: int, cover: Cover) -> Tensor:
        """The affordable value under which most scenarios are desired, or any, (1, 1); (0, 1) if none is."""
        point, count = cover.deepest()
        if not count:
            return self.anywhere(candidate, index)[:1]
        return candidate.origin[index] + candidate.lower.new_tensor([[point]])

    def _bounds(self, candidate: SuccessProbability, index: int) -> tuple[Tensor, Tensor]:
        """Bounds of one variable, relative to the origin, (1,) each; lower > upper if none is affordable."""
        lower, upper, origin = candidate.lower[index], candidate.upper[index], candidate.origin[index]
        if self.budget is not None:
            first, last = self.budget.reach(candidate.names[0])
            lower, upper = lower.clamp_min(first), upper.clamp_max(last)
        return lower - origin, upper - origin

    def _affordable(self, candidate: SuccessProbability, points: Tensor) -> Tensor:
        return points if self.budget is None else points[self.budget.affordable(candidate.names, points)]

    def _first(self, candidate: SuccessProbability, index: int, points: Tensor, best: Tensor) -> Points:
        """The points, led by the most probable one if it qualifies, and the share that this one reaches."""
        if not len(best):
            return Points(points, float(candidate.share_of(index, points).max()) if len(points) else -1.0)
        reached = candidate.share_of(index, best)
        searched = candidate.share_of(index, best, validating=False)
        if not (bool(reached[0] >= self.tau) and bool(searched[0] >= self.tau)):
            return Points(points[: self.pool], float(reached[0]))
        others = points[: self.pool - 1]
        if len(candidate.names) > 1:
            others = apart(points, best, self.pool - 1, candidate.upper[index] - candidate.lower[index])
        return Points(torch.cat([best, others]), float(reached[0]))


def apart(points: Tensor, begin: Tensor, count: int, width: Tensor) -> Tensor:
    """At most `count` of points (m, k) by farthest-point sampling in widths (k,), beside `begin` (b, k)."""
    widths = width.where(width > 0, 1.0)
    distances = torch.cdist(points / widths, begin / widths).amin(-1) if len(points) else points.new_empty(0)
    chosen: list[int] = []
    for _ in range(min(count, len(points))):
        chosen.append(int(distances.argmax()))
        distances = torch.minimum(distances, ((points - points[chosen[-1]]) / widths).norm(dim=-1))
        distances[chosen[-1]] = -1.0
    return points[chosen]


Acquisition = Literal["log_ei", "ucb", "every"]
ACQUISITIONS: tuple[Acquisition, ...] = ("log_ei", "ucb", "every")
NOISE = 1e-6


class Evaluated(NamedTuple):
    """The q evaluated points of each pool, in the order of evaluation; a point may occur twice."""

    places: Tensor  # (b, q), indices in the pools
    values: Tensor  # (b, q)


def explored(
    function: Callable[[Tensor], Tensor],
    pools: Tensor,
    valid: Tensor,
    probes: int,
    iterations: int,
    acquisition: Acquisition,
    kappa: float = 2.576,
    budget: Budget = UNLIMITED,
) -> Evaluated:
    """Searches each of b pools (b, m, k), with a `valid` point each, (b, m), for its best point by a function
    (b, q, k) -> (b, q): evaluates the first `probes` points, then `iterations` others one by one while there
    is time, or all if the acquisition is `every`.
    """
    pool_size = pools.shape[1]
    exhaustive = acquisition == "every" or probes + iterations >= pool_size
    initial = torch.arange(pool_size if exhaustive else probes, device=pools.device).expand(len(pools), -1)
    # In a pool with fewer valid points than requested, the first valid one is evaluated again.
    initial = torch.where(valid.gather(1, initial), initial, valid.long().argmax(1, keepdim=True))
    places, values = initial, function(_gather(pools, initial))
    if not exhaustive:
        lower, upper = pools.amin(1, keepdim=True), pools.amax(1, keepdim=True)
        unit_pools = (pools - lower) / (upper - lower).where(upper > lower, 1.0)
        state: dict[str, Tensor] | None = None
        for _ in range(iterations):
            if budget.out():
                break
            scores, state = _acquisition_values(unit_pools, places, values, acquisition, kappa, state)
            scores = scores.masked_fill(~valid, -torch.inf).scatter(1, places, -torch.inf)
            next_places = scores.argmax(1).where(scores.isfinite().any(1), places[:, 0]).unsqueeze(1)
            places = torch.cat([places, next_places], 1)
            values = torch.cat([values, function(_gather(pools, next_places))], 1)
    return Evaluated(places, values)


def _gather(pools: Tensor, places: Tensor) -> Tensor:
    return pools.gather(1, places.unsqueeze(-1).expand(-1, -1, pools.shape[-1]))


def _acquisition_values(
    scaled: Tensor,
    places: Tensor,
    values: Tensor,
    acquisition: Acquisition,
    kappa: float,
    kernel_state: dict[str, Tensor] | None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The acquisition at every point, (b, m), and the state of the kernel, which the first points fit."""
    # Undefined values are replaced by the smallest finite one.
    lowest = values.where(values.isfinite(), torch.inf).amin(1, keepdim=True)
    values = values.where(values.isfinite(), lowest).nan_to_num(0.0, 0.0, 0.0)
    std = values.std(1, keepdim=True)
    standardised = ((values - values.mean(1, keepdim=True)) / std.where(std > 0, 1.0)).unsqueeze(-1)
    with warnings.catch_warnings():
        # Imported here since it takes seconds; a dependency raises a deprecation warning on import.
        warnings.simplefilter("ignore", DeprecationWarning)
        from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
        from botorch.exceptions.warnings import BotorchWarning
        from botorch.models import SingleTaskGP
        from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
        from botorch.optim.fit import fit_gpytorch_mll_scipy
        from gpytorch.mlls import ExactMarginalLogLikelihood
    kernel = get_matern_kernel_with_gamma_prior(scaled.shape[-1], torch.Size([len(scaled)])).to(scaled)
    with warnings.catch_warnings(), torch.enable_grad():
        # Few steps are enough to choose among points; the missing convergence is intended.
        warnings.simplefilter("ignore", BotorchWarning)
        noise = torch.full_like(standardised, NOISE)
        points = _gather(scaled, places)
        gp = SingleTaskGP(points, standardised, noise, covar_module=kernel, outcome_transform=None)
        if kernel_state is None:
            fit_gpytorch_mll_scipy(ExactMarginalLogLikelihood(gp.likelihood, gp), options={"maxiter": 25})
        else:
            gp.covar_module.load_state_dict(kernel_state)
    gp.eval()
    function = (
        UpperConfidenceBound(gp, beta=kappa**2)
        if acquisition == "ucb"
        else LogExpectedImprovement(gp, best_f=standardised.amax(1))
    )
    with torch.no_grad():
        return function(scaled.transpose(0, 1).unsqueeze(-2)).T, gp.covar_module.state_dict()


Fallback = Literal["refuse", "drop", "most_probable"]
FALLBACKS: tuple[Fallback, ...] = ("refuse", "drop", "most_probable")


@dataclass(eq=False)
class Informative(BatchSearch[Candidates[SuccessProbability]]):
    """The most informative alteration whose probability of success is at least tau.

    Args:
        tau: The required probability of success, in both samples of scenarios.
        fallback: If no point reaches it: `refuse`, `drop` the constraint, or take the `most_probable`.
        indifference: How much information may be given up for a more probable success, in nats.
        acquisition: How points of a pool are selected: `log_ei`, `ucb`, or `every` to evaluate all.
        kappa: Width of the confidence bound of `ucb`.
        pool: Maximum number of points in a pool.
        probes: Number of initial evaluations: the most probable point, the ends of intervals, then others.
        iterations: Number of further, sequential evaluations.
        programs: For several variables, the number of mixed-integer programs that search for candidates.
        scenarios: Number of scenarios in each program.
        nodes: Maximum number of nodes of a program's branch-and-bound tree.
        budget: Largest cost of an alteration, {limit, costs, reference} (`AlterationBudget`); None for any.
        batch_size: Maximum number of cases that the loop passes in one call; a certificate needs 1.
        declines: See `Search`; False for the behaviour in the paper.
        budget_s: See `Search`; programs get the remaining time; steps are sets, programs, lines, evaluations.
    """

    tau: float = 0.7
    fallback: Fallback = "refuse"
    indifference: float = 0.0
    acquisition: Acquisition = "log_ei"
    kappa: float = 2.576
    pool: int = 64
    probes: int = 6
    iterations: int = 4
    programs: int = 3
    scenarios: int = 100
    nodes: int = 200
    budget: Mapping[str, Any] | None = None
    batch_size: int = 1
    declines: bool = True
    budget_s: float | None = None
    weighs = False  # It looks for information

    def __post_init__(self) -> None:
        require(0 < self.tau <= 1, "0 < tau <= 1, a probability", tau=self.tau)
        valid = self.fallback in FALLBACKS and self.acquisition in ACQUISITIONS
        expected = f"a fallback of {list(FALLBACKS)} and an acquisition of {list(ACQUISITIONS)}"
        require(valid, expected, fallback=self.fallback, acquisition=self.acquisition)
        names = ("iterations", "programs", "kappa", "indifference")
        numbers = {name: getattr(self, name) for name in names}
        sizes = ("pool", "probes", "scenarios", "nodes", "batch_size")
        self.check_sizes(*sizes, fits=min(numbers.values()) >= 0, **numbers)
        cost = None if self.budget is None else AlterationBudget.of(self.budget)
        self.qualifying = Qualifying(self.tau, self.pool, cost, (self.programs, self.scenarios, self.nodes))

    @torch.no_grad()
    def batch_search(self, objective: Candidates[SuccessProbability]) -> list[Decision]:
        """Returns the most informative qualifying alteration for each case."""
        budget = Budget(self.budget_s)
        sets, count = objective.sets, len(objective.cases)
        if any(candidate.charge for candidate in sets):
            check_worth(type(sets[0]), self)
        actions = [(candidate.lower + candidate.upper) / 2 for candidate in sets]
        values = actions[0].new_full((len(sets), count), -torch.inf)
        facts: list[dict[str, Any]] = []
        for index in range(count):
            case = _OneCase(self, sets, index, budget)
            for row, points, information in case.contenders():
                if len(points):
                    actions[row][index] = points[information.argmax()]
                    values[row, index] = information.max()
            facts.append(case.trace)
        return chosen(objective, actions, values, "informative", budget, facts, self.declines)


@dataclass
class _OneCase:
    """The search in one case within a time budget, and its trace."""

    how: Informative
    sets: Sequence[SuccessProbability]
    index: int
    allowed: Budget
    trace: dict[str, Any] = field(default_factory=dict)

    def contenders(self) -> list[tuple[int, Tensor, Tensor]]:
        """The points of each set among which information decides: set, points, information."""
        pools, evaluated = self.pools(), list[tuple[int, Tensor, Tensor]]()
        for width in sorted({len(candidate.names) for candidate in self.sets}):
            same_width = [row for row, candidate in enumerate(self.sets) if len(candidate.names) == width]
            if rows := [row for row in same_width if len(pools[row])]:
                evaluated += self._inform(pools, rows)
        self.trace["evaluations"] = sum(len(information) for _, _, information in evaluated)
        if not evaluated:
            return []
        threshold = max(float(information.max()) for _, _, information in evaluated) - self.how.indifference
        contenders = [
            (row, points[information >= threshold], information[information >= threshold])
            for row, points, information in evaluated
        ]
        if not self.how.indifference:
            return contenders
        shares = [self.sets[row].share_of(self.index, points) for row, points, _ in contenders]
        likeliest = max(float(share.max()) for share in shares if len(share))
        return [
            (row, points[share >= likeliest], information[share >= likeliest])
            for (row, points, information), share in zip(contenders, shares, strict=True)
        ]

    def pools(self) -> list[Tensor]:
        """The qualifying points of each set, or those of the fallback."""
        sets, qualifying = self.sets, self._of_sets(self.how.qualifying.points)
        pairs = list(zip(sets, qualifying, strict=True))
        shares = {candidate.label(): entry.share for candidate, entry in pairs if entry.share >= 0}
        self.trace |= {
            "tau": self.how.tau,
            "most_probable": {label: round(float(share), 4) for label, share in shares.items()},
            "qualifying": [list(candidate.names) for candidate, entry in pairs if len(entry.points)],
        }
        return [entry.points for entry in qualifying] if self.trace["qualifying"] else self._fallback_pools()

    def _of_sets(self, find: Callable[[SuccessProbability, int, Budget], Points]) -> list[Points]:
        """The points of each set, none once the time is up."""
        points = [find(candidate, self.index, self.allowed) for candidate in in_time(self.sets, self.allowed)]
        skipped = self.sets[len(points) :]
        empty = [candidate.lower.new_empty(0, len(candidate.names)) for candidate in skipped]
        return points + [Points(none, -1.0) for none in empty]

    def _fallback_pools(self) -> list[Tensor]:
        """The pools if no point qualifies, and the reason in the trace; a refusal keeps the best points."""
        likeliest = self._of_sets(self.how.qualifying.best)
        best_set = max(range(len(self.sets)), key=lambda row: likeliest[row].share)
        if likeliest[best_set].share < 0:
            self.trace["refused"] = Finding(
                "unqualified",
                "no affordable candidate alteration was found before budget_s was spent: raise budget_s"
                if self.allowed.ran_out
                else "the cost budget allows none of the candidate alterations: raise its limit",
            )
            return [points.points for points in likeliest]
        sentence = (
            f"nothing found reaches tau={self.how.tau:g}; the most probable, {self.sets[best_set].label()}, "
            f"reaches {likeliest[best_set].share:.3f}"
        )
        if self.how.fallback == "drop":
            self.trace["dropped"] = f"{sentence}: the constraint is dropped"
            return [self.how.qualifying.anywhere(candidate, self.index) for candidate in self.sets]
        if self.how.fallback == "refuse":
            self.trace["refused"] = Finding("unqualified", f"{sentence}: lower tau if that is enough")
        else:
            self.trace["dropped"] = f"{sentence}: taken"
        return [best.points if row == best_set else best.points[:0] for row, best in enumerate(likeliest)]

    def _inform(self, pools: Sequence[Tensor], slots: Sequence[int]) -> list[tuple[int, Tensor, Tensor]]:
        """The set, the evaluated points and their information, for sets of the same number of variables."""
        pools, how = [pools[slot] for slot in slots], self.how
        largest = max(len(pool) for pool in pools)
        padded = torch.stack([torch.cat([pool, pool[:1].expand(largest - len(pool), -1)]) for pool in pools])
        valid = torch.stack([torch.arange(largest, device=padded.device) < len(pool) for pool in pools])

        def information(points: Tensor) -> Tensor:
            pairs = zip(slots, points, strict=True)
            return torch.stack([self.sets[slot].information.at(self.index, part) for slot, part in pairs])

        settings = (how.probes, how.iterations, how.acquisition, how.kappa, self.allowed)
        indices, values = explored(information, padded, valid, *settings)
        return [(slot, padded[row][indices[row]], ranked(values[row])) for row, slot in enumerate(slots)]
