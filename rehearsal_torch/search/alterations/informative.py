"""The most informative alteration among those that satisfy the chance constraint.

    maximise I(G, Theta; Z, Y | D, x, z)     subject to     P(Y in S | D, x, z) >= tau,

over every candidate set of variables. First the constraint reduces each set to a pool of qualifying points
(`qualifying`); then Bayesian optimisation finds the most informative point of each pool, all sets in one
batch.

Information is largest where an alteration is most extreme, and so where it just reaches tau. Once there is
next to nothing left to learn, that is a poor bargain; therefore, among points whose information falls short
of the best by at most `indifference`, the most probable one is taken. 0 is the problem as stated in the
paper.

If no set has a qualifying point, the answer is a refusal, unless `fallback` says to drop the constraint, as
in the paper's experiments, or to take the most probable alteration.

Bayesian optimisation over finite pools, several functions in one batch.

The aim is to find, with few evaluations, the maximum of each of b functions over its own pool of m points.
Each function has a Gaussian process with a Matern-5/2 kernel, all fitted in one batch; the next point to
evaluate has the largest upper confidence bound

    mu(z) + kappa sigma(z),

as in the paper, or the largest log expected improvement, computed in a numerically stable way. On a finite
pool the acquisition is evaluated at every point: no inner optimisation is needed, and infeasible points are
simply not in the pool.

The functions are smooth and deterministic; apparent noise is interpolated.

Pools of alterations that satisfy the chance constraint.

In both samples of scenarios, the one used for the search and the one used for validation, at least a share
tau must be desired. For one variable the qualifying points form unions of closed intervals, found exactly on
each sample and intersected (Alg. 1 and 3); for several variables candidates come from programs, sweeps and
lines (`joint_candidates`). In addition, the most probable point of each set shows how far the set stays below
tau.

Source: Qin et al. (2023), Eq. 5-6, Alg. 1, App. C; refusal: Sec. 4.2. The indifference is ours; Qin et al.
(2023), App. C (UCB; kappa 2.576 in the released code); Ament et al. (2023), Unexpected improvements (log
EI); Qin et al. (2023), Sec. 4.2, Alg. 1 and 3, App. B.2.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.interval_sweep import Cover, intervals, meet, spread, swept
from rehearsal_torch.search.alterations.joint_candidates import AlterationBudget, joint_candidates
from rehearsal_torch.search.budget import UNLIMITED, Budget, checked_budget
from rehearsal_torch.search.search import BatchSearch, chosen, in_time


@dataclass(frozen=True)
class Programs:
    """Settings of the mixed-integer programs for candidates of several variables.

    Attributes:
        count: Number of programs.
        scenarios: Number of scenarios in each.
        nodes: Maximum number of nodes of a branch-and-bound tree.
    """

    count: int
    scenarios: int
    nodes: int


@dataclass(frozen=True)
class Points:
    """Points of one candidate set.

    Attributes:
        points: (m, k), the most probable first; m may be 0.
        share: The share of desired validation scenarios at the most probable affordable point, whether it
            qualifies or not; -1 if no point is affordable.
    """

    points: Tensor
    share: float


@dataclass(frozen=True)
class Qualifying:
    """Finds qualifying alterations.

    Attributes:
        tau: The required share of desired scenarios.
        pool: Maximum number of points returned.
        budget: Upper bound on the cost of an alteration; None for no bound.
        programs: Settings of the search for candidates of several variables.
    """

    tau: float
    pool: int
    budget: AlterationBudget | None
    programs: Programs

    def points(self, one: SuccessProbability, index: int, budget: Budget = UNLIMITED) -> Points:
        """The qualifying points of one set in one case, as far as the time budget allows."""
        if len(one.names) == 1:
            covers = self._covers(one, index)
            pieces = meet(*(cover.at_least(self._required_count(count)) for cover, count in covers)).to(
                one.lower
            )
            return self._first(
                one,
                index,
                one.origin[index] + spread(pieces, self.pool).unsqueeze(-1),
                self._likeliest(one, index, covers[0][0]),
            )
        how = self.programs
        found = joint_candidates(one, index, self.tau, how.count, how.scenarios, how.nodes, budget=budget)
        return self._first(one, index, self._affordable(one, found), self.best(one, index, budget).points)

    def pieces(self, one: SuccessProbability, index: int) -> Tensor:
        """The qualifying values of a set of one variable in one case: disjoint closed intervals, (p, 2)."""
        return one.origin[index] + meet(
            *(cover.at_least(self._required_count(count)) for cover, count in self._covers(one, index))
        ).to(one.lower)

    def best(self, one: SuccessProbability, index: int, budget: Budget = UNLIMITED) -> Points:
        """The most probable affordable point that sweeps find in one set for one case, (1, k); (0, k) if
        there is none.
        """
        if len(one.names) == 1:
            found = self._likeliest(one, index, self._covers(one, index)[0][0])
        else:
            whole = [self.anywhere(one, index), self._affordable(one, swept(one, 4, 5, 500, budget)[[index]])]
            found = torch.cat(whole)
            found = (
                found[one.share_of(index, found, validating=False).argsort(descending=True)[:1]]
                if len(found)
                else found
            )
        return Points(found, float(one.share_of(index, found).max()) if len(found) else -1.0)

    def anywhere(self, one: SuccessProbability, index: int) -> Tensor:
        """Affordable points spread over the box, (m, k)."""
        if len(one.names) > 1:
            return self._affordable(one, one.starts(self.pool)[:, index])
        lower, upper = self._bounds(one, index)
        if not bool(lower <= upper):
            return one.lower.new_empty(0, 1)
        return one.origin[index] + spread(torch.stack([lower, upper], -1), self.pool).unsqueeze(-1)

    def _covers(self, one: SuccessProbability, index: int) -> list[tuple[Cover, int]]:
        """The intervals of both samples, relative to the origin, and the numbers of scenarios."""
        lower, upper = self._bounds(one, index)
        found = []
        for part in (one.search_scenarios, one.validation_scenarios):
            left, right = intervals(part.gains[..., 0], part.slack[:, [index]], lower, upper)
            found.append((Cover.of(left[:, 0], right[:, 0]), len(left)))
        return found

    def _required_count(self, count: int) -> int:
        return math.ceil(self.tau * count - 1e-9)

    def _likeliest(self, one: SuccessProbability, index: int, cover: Cover) -> Tensor:
        """The affordable value of one variable under which most scenarios are desired, (1, 1), or any where
        none is; (0, 1) if none is affordable.
        """
        point, count = cover.deepest()
        if not count:
            return self.anywhere(one, index)[:1]
        return one.origin[index] + one.lower.new_tensor([[point]])

    def _bounds(self, one: SuccessProbability, index: int) -> tuple[Tensor, Tensor]:
        """Bounds of one variable, relative to the origin, (1,) each; lower > upper if none is affordable."""
        lower, upper, origin = one.lower[index], one.upper[index], one.origin[index]
        if self.budget is not None:
            first, last = self.budget.reach(one.names[0])
            lower, upper = lower.clamp_min(first), upper.clamp_max(last)
        return lower - origin, upper - origin

    def _affordable(self, one: SuccessProbability, points: Tensor) -> Tensor:
        return points if self.budget is None else points[self.budget.affordable(one.names, points)]

    def _first(self, one: SuccessProbability, index: int, points: Tensor, best: Tensor) -> Points:
        """The points, led by the most probable one if it qualifies, and the share that this one reaches."""
        if not len(best):
            return Points(points, float(one.share_of(index, points).max()) if len(points) else -1.0)
        reached = one.share_of(index, best)
        fits = bool(reached[0] >= self.tau) and bool(
            one.share_of(index, best, validating=False)[0] >= self.tau
        )
        kept = (
            apart(points, best, self.pool - 1, one.upper[index] - one.lower[index])
            if len(one.names) > 1
            else points[: self.pool - 1]
        )
        return Points(torch.cat([best, kept]) if fits else points[: self.pool], float(reached[0]))


def apart(points: Tensor, begin: Tensor, count: int, width: Tensor) -> Tensor:
    """Selects at most `count` points by farthest-point sampling, in units of the box.

    Args:
        points: (m, k).
        begin: Points that count as already selected, (b, k).
        count: Maximum number of points.
        width: Widths of the box, (k,).
    """
    unit = torch.where(width > 0, width, torch.ones_like(width))
    near = torch.cdist(points / unit, begin / unit).amin(-1) if len(points) else points.new_empty(0)
    chosen: list[int] = []
    for _ in range(min(count, len(points))):
        chosen.append(int(near.argmax()))
        near = torch.minimum(near, ((points - points[chosen[-1]]) / unit).norm(dim=-1))
        near[chosen[-1]] = -1.0
    return points[chosen]


Acquisition = Literal["log_ei", "ucb", "every"]
ACQUISITIONS: tuple[Acquisition, ...] = ("log_ei", "ucb", "every")
NOISE = 1e-6


@dataclass(frozen=True)
class Evaluated:
    """The evaluated points of each pool.

    Attributes:
        places: Indices of the q evaluated points in their pools, (b, q), in the order of evaluation; an index
            may occur twice.
        values: (b, q).
    """

    places: Tensor
    values: Tensor


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
    """Searches each of b pools for its best point; each pool has at least one valid point.

    Args:
        function: (b, q, k) -> (b, q), one function per pool.
        pools: (b, m, k).
        valid: Which points are valid, (b, m) bool.
        probes: Number of leading points that are evaluated at the start.
        iterations: Number of further, sequential evaluations.
        acquisition: The acquisition function; `every` evaluates all valid points at once.
        kappa: Width of the upper confidence bound.
        budget: No further evaluation begins once it is spent.
    """
    pool_size = pools.shape[1]
    everything = acquisition == "every" or probes + iterations >= pool_size
    first = torch.arange(pool_size if everything else probes, device=pools.device).expand(len(pools), -1)
    # In a pool with fewer valid points than requested, the first valid one is evaluated again.
    first = torch.where(valid.gather(1, first), first, valid.long().argmax(1, keepdim=True))
    asked, values = first, function(_at(pools, first))
    if not everything:
        low, high = pools.amin(1, keepdim=True), pools.amax(1, keepdim=True)
        unit = (pools - low) / torch.where(high > low, high - low, torch.ones_like(high))
        state: dict[str, Tensor] | None = None
        for _ in range(iterations):
            if budget.out():
                break
            acquisition_values, state = _acquisition_values(unit, asked, values, acquisition, kappa, state)
            acquisition_values = acquisition_values.masked_fill(~valid, -torch.inf).scatter(
                1, asked, -torch.inf
            )
            following = torch.where(
                acquisition_values.isfinite().any(1), acquisition_values.argmax(1), asked[:, 0]
            ).unsqueeze(1)
            asked, values = (
                torch.cat([asked, following], 1),
                torch.cat([values, function(_at(pools, following))], 1),
            )
    return Evaluated(asked, values)


def _at(pools: Tensor, places: Tensor) -> Tensor:
    return pools.gather(1, places.unsqueeze(-1).expand(-1, -1, pools.shape[-1]))


def _acquisition_values(
    unit: Tensor,
    asked: Tensor,
    values: Tensor,
    acquisition: Acquisition,
    kappa: float,
    state: dict[str, Tensor] | None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The acquisition at every point of the pools, (b, m), and the state of the kernel, which is fitted to
    the first points and kept from then on.
    """
    # Undefined values are replaced by the smallest finite one.
    values = values.where(
        values.isfinite(), values.where(values.isfinite(), torch.inf).amin(1, keepdim=True)
    ).nan_to_num(0.0, 0.0, 0.0)
    spread = values.std(1, keepdim=True)
    standardised = (
        (values - values.mean(1, keepdim=True)) / torch.where(spread > 0, spread, torch.ones_like(spread))
    ).unsqueeze(-1)
    with warnings.catch_warnings():
        # Imported here since it takes seconds; a dependency raises a deprecation warning on import.
        warnings.simplefilter("ignore", DeprecationWarning)
        from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
        from botorch.exceptions.warnings import BotorchWarning
        from botorch.models import SingleTaskGP
        from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
        from botorch.optim.fit import fit_gpytorch_mll_scipy
        from gpytorch.mlls import ExactMarginalLogLikelihood
    kernel = get_matern_kernel_with_gamma_prior(unit.shape[-1], torch.Size([len(unit)])).to(unit)
    with warnings.catch_warnings(), torch.enable_grad():
        # Few steps are enough to choose among points; the missing convergence is intended.
        warnings.simplefilter("ignore", BotorchWarning)
        gp = SingleTaskGP(
            _at(unit, asked),
            standardised,
            train_Yvar=torch.full_like(standardised, NOISE),
            covar_module=kernel,
            outcome_transform=None,
        )
        if state is None:
            fit_gpytorch_mll_scipy(ExactMarginalLogLikelihood(gp.likelihood, gp), options={"maxiter": 25})
        else:
            gp.covar_module.load_state_dict(state)
    gp.eval()
    acquisition_function = (
        UpperConfidenceBound(gp, beta=kappa**2)
        if acquisition == "ucb"
        else LogExpectedImprovement(gp, best_f=standardised.amax(1))
    )
    with torch.no_grad():
        return acquisition_function(unit.transpose(0, 1).unsqueeze(-2)).T, gp.covar_module.state_dict()


Fallback = Literal["refuse", "drop", "most_probable"]
FALLBACKS: tuple[Fallback, ...] = ("refuse", "drop", "most_probable")


class Informative(BatchSearch[Candidates[SuccessProbability]]):
    """The most informative alteration whose probability of success is at least tau.

    Args:
        tau: The required probability of success, in both samples of scenarios.
        fallback: What to do if no point reaches it: `refuse`, `drop` the constraint, or take the
            `most_probable`.
        indifference: How much information may be given up for a more probable success, in nats.
        acquisition: How points of a pool are selected: `log_ei`, `ucb`, or `every` to evaluate all.
        kappa: Width of the confidence bound of `ucb`.
        pool: Maximum number of points in a pool.
        probes: Number of initial evaluations: the most probable point, the ends of intervals, then others.
        iterations: Number of further, sequential evaluations.
        programs: For several variables, the number of mixed-integer programs that search for candidates.
        scenarios: Number of scenarios in each program.
        nodes: Maximum number of nodes of a program's branch-and-bound tree.
        budget: Upper bound on the cost of an alteration, as {limit, costs, reference} (see
            `AlterationBudget`); None for no bound.
        batch_size: Maximum number of cases that the loop passes in one call; a certificate needs 1.
        declines: See `Search`; False for the behaviour in the paper.
        budget_s: See `Search`; a program gets the remaining time, and a step is a candidate set, a program, a
            line, or an evaluation.

    Raises:
        ValueError: if a number is out of range or a name is unknown.
    """

    kind: Kind | None = "rehearse"
    # It looks for information among what is probable enough.
    weighs: bool = False

    def __init__(
        self,
        tau: float = 0.7,
        fallback: Fallback = "refuse",
        indifference: float = 0.0,
        acquisition: Acquisition = "log_ei",
        kappa: float = 2.576,
        pool: int = 64,
        probes: int = 6,
        iterations: int = 4,
        programs: int = 3,
        scenarios: int = 100,
        nodes: int = 200,
        budget: Mapping[str, Any] | None = None,
        batch_size: int = 1,
        declines: bool = True,
        budget_s: float | None = None,
    ) -> None:
        if not 0 < tau <= 1:
            raise ValueError(f"expected 0 < tau <= 1; got {tau}: it is a probability")
        if fallback not in FALLBACKS or acquisition not in ACQUISITIONS:
            raise ValueError(
                f"expected a fallback of {list(FALLBACKS)} and an acquisition of {list(ACQUISITIONS)}; got "
                f"{fallback!r} and {acquisition!r}"
            )
        if (
            min(pool, probes, scenarios, nodes, batch_size) < 1
            or min(iterations, programs) < 0
            or min(kappa, indifference) < 0
        ):
            given = (
                f"pool={pool}, probes={probes}, iterations={iterations}, programs={programs}, "
                f"scenarios={scenarios}, nodes={nodes}"
            )
            raise ValueError(
                f"expected positive numbers; got {given}, kappa={kappa}, "
                f"indifference={indifference}, batch_size={batch_size}"
            )
        self.tau, self.fallback, self.indifference, self.acquisition, self.kappa = (
            tau,
            fallback,
            indifference,
            acquisition,
            kappa,
        )
        self.probes, self.iterations, self.batch_size, self.declines = (
            probes,
            iterations,
            batch_size,
            declines,
        )
        cost = None if budget is None else AlterationBudget.of(budget)
        self.qualifying = Qualifying(tau, pool, cost, Programs(programs, scenarios, nodes))
        self.budget_s = checked_budget(budget_s)

    @torch.no_grad()
    def batch_search(self, objective: Candidates[SuccessProbability]) -> list[Decision]:
        """Returns the most informative qualifying alteration for each case."""
        allowed = Budget(self.budget_s)
        sets, count = objective.sets, len(objective.cases)
        actions = [(one.lower + one.upper) / 2 for one in sets]
        values = actions[0].new_full((len(sets), count), -torch.inf)
        facts: list[dict[str, Any]] = []
        for index in range(count):
            found = [self.qualifying.points(one, index, allowed) for one in in_time(sets, allowed)]
            found += [Points(one.lower.new_empty(0, len(one.names)), -1.0) for one in sets[len(found) :]]
            reach = {
                one.label(): round(float(each.share), 4)
                for one, each in zip(sets, found, strict=True)
                if each.share >= 0
            }
            trace: dict[str, Any] = {
                "tau": self.tau,
                "most_probable": reach,
                "qualifying": [list(o.names) for o, e in zip(sets, found, strict=True) if len(e.points)],
            }
            pools = [each.points for each in found]
            if not trace["qualifying"]:
                pools = self._fallen_back(sets, index, trace, allowed)
            self._take(sets, pools, index, actions, values, trace, allowed)
            facts.append(trace)
        return chosen(objective, actions, ranked(values), "informative", allowed, facts, self.declines)

    def _fallen_back(
        self, sets: Sequence[SuccessProbability], index: int, trace: dict[str, Any], allowed: Budget
    ) -> list[Tensor]:
        """The pools if no point qualifies; writes the reason into `trace`. A refusal still reports what it
        would have set.
        """
        found = [self.qualifying.best(one, index, allowed) for one in in_time(sets, allowed)]
        found += [Points(one.lower.new_empty(0, len(one.names)), -1.0) for one in sets[len(found) :]]
        place = max(range(len(sets)), key=lambda which: found[which].share)
        if found[place].share < 0:
            trace["refused"] = Finding(
                "unqualified",
                "no affordable candidate alteration was found before budget_s was spent: raise budget_s"
                if allowed.ran_out
                else "the cost budget allows none of the candidate alterations: raise its limit",
            )
            return [each.points for each in found]
        sentence = (
            f"nothing found reaches tau={self.tau:g}; the most probable, {sets[place].label()}, "
            f"reaches {found[place].share:.3f}"
        )
        if self.fallback == "drop":
            trace["dropped"] = f"{sentence}: the constraint is dropped"
            return [self.qualifying.anywhere(one, index) for one in sets]
        if self.fallback == "refuse":
            trace["refused"] = Finding("unqualified", f"{sentence}: lower tau if that is enough")
        else:
            trace["dropped"] = f"{sentence}: taken"
        return [each.points if which == place else each.points[:0] for which, each in enumerate(found)]

    def _take(
        self,
        sets: Sequence[SuccessProbability],
        pools: list[Tensor],
        index: int,
        actions: list[Tensor],
        values: Tensor,
        trace: dict[str, Any],
        allowed: Budget,
    ) -> None:
        """Writes the best point of each pool into `actions` and its information into `values`; a set without
        a contending point keeps minus infinity.
        """
        evaluated: list[tuple[int, Tensor, Tensor]] = []
        for width in sorted({len(one.names) for one in sets}):
            places = [
                place for place, one in enumerate(sets) if len(one.names) == width and len(pools[place])
            ]
            if places:
                evaluated += self._informed(
                    [sets[place] for place in places],
                    [pools[place] for place in places],
                    places,
                    index,
                    allowed,
                )
        trace["evaluations"] = sum(len(each) for _, _, each in evaluated)
        if not evaluated:
            return
        largest = max(float(each.max()) for _, _, each in evaluated)
        contenders = [
            (place, points[each >= largest - self.indifference], each[each >= largest - self.indifference])
            for place, points, each in evaluated
        ]
        if self.indifference > 0:
            probabilities = [sets[place].share_of(index, points) for place, points, _ in contenders]
            likeliest = max(float(each.max()) for each in probabilities if len(each))
            contenders = [
                (p, points[c >= likeliest], each[c >= likeliest])
                for (p, points, each), c in zip(contenders, probabilities, strict=True)
            ]
        for place, points, each in contenders:
            if len(points):
                actions[place][index] = points[each.argmax()]
                values[place, index] = each.max()

    def _informed(
        self,
        sets: Sequence[SuccessProbability],
        pools: list[Tensor],
        places: list[int],
        index: int,
        allowed: Budget,
    ) -> list[tuple[int, Tensor, Tensor]]:
        """For sets with the same number of variables: their indices, the evaluated points, and the
        information of each.
        """
        largest = max(len(pool) for pool in pools)
        padded = torch.stack([torch.cat([pool, pool[:1].expand(largest - len(pool), -1)]) for pool in pools])
        valid = torch.stack([torch.arange(largest, device=padded.device) < len(pool) for pool in pools])

        def information(points: Tensor) -> Tensor:
            return torch.stack(
                [one.information.at(index, each) for one, each in zip(sets, points, strict=True)]
            )

        found = explored(
            information, padded, valid, self.probes, self.iterations, self.acquisition, self.kappa, allowed
        )
        return [
            (place, padded[row][found.places[row]], ranked(found.values[row]))
            for row, place in enumerate(places)
        ]
