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

Source: Qin et al. (2023), Eq. 5-6, Alg. 1, App. C; refusal: Sec. 4.2. The indifference is ours.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.joint_candidates import AlterationBudget
from rehearsal_torch.search.alterations.pool_bayes_opt import ACQUISITIONS, Acquisition, explored
from rehearsal_torch.search.alterations.qualifying import Points, Programs, Qualifying
from rehearsal_torch.search.budget import Budget, checked_budget
from rehearsal_torch.search.search import BatchSearch, chosen, in_time

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
            trace["refused"] = (
                "no affordable candidate alteration was found before budget_s was spent: raise budget_s"
                if allowed.ran_out
                else "the cost budget allows none of the candidate alterations: raise its limit"
            )
            return [each.points for each in found]
        sentence = (
            f"nothing found reaches tau={self.tau:g}; the most probable, {sets[place].label()}, "
            f"reaches {found[place].share:.3f}"
        )
        if self.fallback == "drop":
            trace["dropped"] = f"{sentence}: the constraint is dropped"
            return [self.qualifying.anywhere(one, index) for one in sets]
        trace["refused" if self.fallback == "refuse" else "dropped"] = (
            f"{sentence}: {'lower tau if that is enough' if self.fallback == 'refuse' else 'taken'}"
        )
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
