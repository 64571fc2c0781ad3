"""Claims of chosen actions, judged by models that were fitted to rows that did not choose.

The action a(x) that a search finds is the best one under a model; the largest of many uncertain values is
likely to be large by chance, so that the model's claim c(x, a(x)) is too high on average: the optimism of the
choice, s(n) for a model of n rows. Rows that did not choose show it. With K folds of the rows (whole units,
where rows belong together), for each k a model C_k of all other rows and a model F_k of fold k choose for the
same reference cases, and each judges the other's choice:

    e_k = mean [c_C(a_C) - c_F(a_C)] + mean [c_F(a_F) - c_C(a_F)] = s(n - n/K) + s(n/K).

A model of fewer rows is smoother, which lowers what it says of any good action; in the sum this difference of
the two models cancels. As s falls with the root of the number of rows,

    s(n) = mean_k e_k / (sqrt(K / (K - 1)) + sqrt(K)),         at least 0.

The claim for a case is the model's own claim for its chosen action a without the optimism, c = c(a) - s, at
least 0. With f = mean_k c_{F_k}(a), what models of few rows say of that action, its variance is the sum of

    (K - 1) / K sum_k (c_{C_k}(a) - mean)^2    the rows and the hyper-parameters (jackknife of the folds)
    var_k c_{F_k}(a) / K                       disagreement of the fits of the folds
    var_k e_k / (K scale^2)                    error of the optimism, scale as in s(n)
    (c - f)^2                                  what more rows than n/K have changed (smoothing)
    c (1 - c) / draws                          counting error of an estimate that is a share

and the interval is normal, within [0, 1]. What remains is a bias that all fits share: where no row is near,
or the model is wrong in the same way for every part of the rows, a claim from other rows is wrong as well.
So where S exceeds `TOLD_BEYOND`, estimate and gain keep the hull (`objectives.gain`). The actions are those
of the model of all rows.

The gain over changing nothing, c(a) - c(o), gets an interval by the same models: o are the present values of
what is set, or no action where they are unknown. In the formulas each c(a) becomes c(a) - c(o), so that what
a model says too high of both cancels. The optimism, an error of the chosen action alone, is taken off as
above; the counting errors of both add up.

As a by-product each row is predicted, under no action, by a model that has not seen it: a held-out score of
the untouched rows.

Source: Chernozhukov et al. (2018) and Zenati et al. (2025) for cross-fitting; Efron and Stein (1981) for
the jackknife; the symmetric optimism, its rate and the terms of the variance are ours, chosen on simulated
worlds.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.claims.improvement_test import untold
from rehearsal_torch.claims.rows_as_cases import (
    Untouched,
    alterations_for,
    in_batches,
    part_of,
    row_cases,
    untouched_rows,
)
from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.estimate import apart
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.mean_gain import TOLD_BEYOND
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates, difference, normal_quantile
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.seeding import generator, seeded
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.task_pool import results
from rehearsal_torch.training.surrogate_fit import Fold, folds_of

LEVEL = 0.95


class CrossFittedClaims:
    """Replaces the claims of decisions by cross-fitted ones.

    Args:
        complements: The models C_k, each fitted to all rows but those of fold k.
        folds: The models F_k, each fitted to the rows of fold k.
        objective: Builds the objective of the decisions (`objectives.objective.objective_for`).
        excess: e_k, (K,).
        untouched: The rows under no action.
    """

    def __init__(
        self,
        complements: Sequence[Surrogate],
        folds: Sequence[Surrogate],
        objective: Callable[..., Any],
        excess: Tensor,
        untouched: Untouched | None = None,
    ) -> None:
        self.complements, self.folds, self.objective = tuple(complements), tuple(folds), objective
        count = len(self.folds)
        rates = excess / (math.sqrt(count / (count - 1)) + math.sqrt(count))
        self.optimism = max(float(rates.mean()), 0.0)
        self.error = float(rates.std() / math.sqrt(count))
        self.untouched = untouched
        self.score: dict[str, float] = {}
        if untouched is not None:
            own, constant = untouched.brier()
            self.score = {"brier": round(own, 6), "brier_constant": round(constant, 6)}

    def __call__(self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with cross-fitted estimates; where nothing is altered, or the method has no estimate,
        the estimate stays. Their gain over changing nothing is cross-fitted as well.

        Trace: ``claimed_in_sample``, the estimate that is replaced, and ``optimism``; ``brier``, the held-out
        score of the untouched rows, and ``brier_constant``, that of the constant. A claim that is not
        above the one for no action gets a warning; the action stays.
        """
        found = []
        for case, each, error, doubt in zip(cases, decisions, *self._errors(cases, decisions), strict=True):
            if each.estimate is None or error is None:
                found.append(replace(each, trace=each.trace | self.score))
                continue
            point = round(self._point(each.estimate), 6)
            gain = None
            if each.before is not None and doubt is not None:
                apart_by, half = point - each.before.point, normal_quantile(LEVEL) * doubt
                gain = difference(apart_by, apart_by - half, apart_by + half, LEVEL)
            found.append(self._replaced(each, case, point, normal_quantile(LEVEL) * error, gain))
        return found

    def intervals(
        self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision], levels: Sequence[float]
    ) -> list[dict[float, tuple[float, float]]]:
        """The intervals of the claims at some levels, for each decision; empty where there is no claim.

        Args:
            decisions: Their decisions, with the method's own claims.
            levels: Coverage probabilities, in (0, 1).
        """
        found: list[dict[float, tuple[float, float]]] = []
        for each, error in zip(decisions, self._errors(cases, decisions)[0], strict=True):
            if each.estimate is None or error is None:
                found.append({})
                continue
            point = self._point(each.estimate)
            found.append({level: _ends(round(point, 6), normal_quantile(level) * error) for level in levels})
        return found

    def _point(self, estimate: Estimate) -> float:
        return max(estimate.point - self.optimism, 0.0)

    def _errors(
        self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]
    ) -> tuple[list[float | None], list[float | None]]:
        """The standard error of each claim, and of its gain over changing nothing; None where nothing is
        altered, or the method has no estimate.
        """
        (most, idle, _), (few, few_idle, draws) = (
            self._estimates(models, cases, decisions) for models in (self.complements, self.folds)
        )
        points = [math.nan if each.estimate is None else self._point(each.estimate) for each in decisions]
        counting = [_counting(point, count) for point, count in zip(points, draws, strict=True)]
        own = self._spread(most, few, points, counting)
        present = [_left(case, each) for case, each in zip(cases, decisions, strict=True)]
        if any(each.alteration is not None for each in present):
            known = torch.tensor([each.alteration is not None for each in present])
            idle, few_idle = (
                torch.where(known, self._estimates(models, cases, present)[0], without)
                for models, without in ((self.complements, idle), (self.folds, few_idle))
            )
        before = [math.nan if each.before is None else each.before.point for each in decisions]
        gains = [point - less for point, less in zip(points, before, strict=True)]
        both = [
            one + _counting(less, count) for one, less, count in zip(counting, before, draws, strict=True)
        ]
        return own, self._spread(most - idle, few - few_idle, gains, both)

    def _spread(
        self, complements: Tensor, folds: Tensor, points: Sequence[float], counting: Sequence[float]
    ) -> list[float | None]:
        """The standard errors of claims; None where one is not finite."""
        count = len(self.folds)
        varying = (
            (complements - complements.mean(0)).square().sum(0) * (count - 1) / count
            + folds.var(0) / count
            + self.error**2
            + (torch.tensor(points, dtype=torch.float64) - folds.mean(0)).square()
            + torch.tensor(counting, dtype=torch.float64)
        )
        return [math.sqrt(each) if math.isfinite(each) else None for each in varying.tolist()]

    def _replaced(
        self, decision: Decision, case: RehearsalCase, point: float, half: float, gain: Estimate | None
    ) -> Decision:
        assert decision.estimate is not None
        (lower, upper), draws = _ends(point, half), decision.draws
        if draws is not None and draws.beyond > TOLD_BEYOND:
            least, most = decision.trace["hull"]["estimate"]
            lower, upper = min(lower, least), max(upper, most)
        estimate = Estimate(point, decision.estimate.of, lower, upper, LEVEL)
        trace = decision.trace | {
            "claimed_in_sample": decision.estimate.point,
            "optimism": round(self.optimism, 6),
            **self.score,
        }
        findings = decision.findings
        before = decision.before
        paid = (decision.cost or 0.0) / decision.worth if decision.worth else 0.0
        if before is not None and point <= before.point + paid:
            what = "leaving the present values" if decision.unchanged else "no action"
            price = f", and {paid:.3f} for the cost" if paid else ""
            own, other = apart(point, before.point, 3)
            text = (
                f"estimated from rows that did not choose it, no better than {what} ({own} against "
                f"{other}{price})"
            )
            findings = (*findings, Finding("claim", text))
        # A model that predicts nothing is not acted on by itself; by other rows it may be.
        if gain is not None and gain.lower is not None and gain.lower > 0:
            words = "by rows that did not choose it, this one is"
            findings = tuple(
                Finding("note", f"{each.text}; {words}") if each.kind == "score" else each
                for each in findings
            )
        # The method's own interval of the gain is that of a claim that is replaced.
        draws = None if draws is None or gain is None else draws.told(gain)
        if draws is not None and draws.beyond > TOLD_BEYOND:
            gain = draws.estimate()
        findings = tuple(each for each in findings if each.kind != "gain")
        told = replace(decision, estimate=estimate, gain=gain, draws=draws, trace=trace, findings=findings)
        return told.told(untold(told, case))

    def _estimates(
        self, models: Sequence[Surrogate], cases: Sequence[RehearsalCase], decisions: Sequence[Decision]
    ) -> tuple[Tensor, Tensor, list[int | None]]:
        """What models say of the decisions, and of no action, (K, B) each, and the number of draws of each
        estimate.
        """
        points = torch.full((len(models), len(decisions)), math.nan, dtype=torch.float64)
        idle = points.clone()
        draws: list[int | None] = [None] * len(decisions)
        for row, model in enumerate(models):
            made = alterations_for(self.objective, model, cases)
            for index, each in enumerate(made.appraisals(decisions)):
                if each is not None and each.estimate is not None:
                    points[row, index], draws[index] = each.estimate.point, each.draws
                if each is not None and each.baseline is not None:
                    idle[row, index] = each.baseline.point
        return points, idle, draws


def _counting(point: float, draws: int | None) -> float:
    """The variance of a share of some draws; 0 for an estimate that is none."""
    return 0.0 if draws is None else point * (1 - point) / max(draws, 1)


def _left(case: RehearsalCase, decision: Decision) -> Decision:
    """The present values of what a decision sets, as a decision; none where it is not compared with them."""
    names = () if decision.alteration is None or decision.unchanged is None else decision.alteration.names
    return Decision(case.kept(names), 0.0)


def _ends(point: float, half: float) -> tuple[float, float]:
    """The interval around a claim, within [0, 1]."""
    lower, upper = round(max(point - half, 0.0), 6), round(min(point + half, 1.0), 6)
    return min(lower, point), max(upper, point)


def cross_fitted(
    table: Table,
    units: Sequence[str] | None,
    task: RehearsalTask,
    fitted: Callable[[Table], Surrogate],
    objective: Callable[..., Any],
    search: Search[Any],
    count: int = 5,
    reference: int = 20,
    seed: int = 0,
    told: Callable[[str], None] | None = None,
    workers: int = 1,
) -> CrossFittedClaims:
    """Fits the models of the folds, and estimates the optimism of the choice.

    The work is bounded: 2 K fits, and 2 K searches for the reference cases.

    Args:
        units: The unit of each row, whose rows stay in one fold; None if every row is a unit of its own.
        fitted: Returns a new model, fitted to some rows; what is random in it has seeds of its own.
        objective: Builds the objective of the decisions.
        count: K, the number of folds.
        reference: Number of rows whose contexts are the reference cases.
        seed: Seed of the folds, the reference cases and the searches.
        told: Is told of the progress, one line per fold; None for silence.
        workers: The number of processes that share the folds, each with one thread, if the first fold shows
            that it pays (`shared_tasks`).

    Raises:
        ValueError: if there are too few rows or units for the folds, or a fold cannot be fitted to.
        ClusterError: if joblib's context names a cluster that cannot share the folds.
    """
    folds = _parted(table, units, count, seed)
    places = torch.randperm(len(table), generator=generator(seed))[:reference]
    cases = row_cases(table, task, places)
    eager = copy(search)
    eager.declines = False
    complements, others, excess, parts = [], [], [], []
    work = _Work(table, task, fitted, objective, eager, cases, count, seed)
    found = results(_fold, work, folds, workers, timed=True, ahead=1)
    for fold in folds:
        if told is not None:
            told(f"claims: fold {fold.index + 1} of {count}, two fits and two searches")
        most, few, beyond, part = next(found)
        complements.append(most)
        others.append(few)
        excess.append(beyond)
        parts.append(part)
    whole = [torch.cat(each) for each in zip(*parts, strict=True)]
    order = whole[0].argsort()
    untouched = Untouched(*(each[order] for each in whole))
    return CrossFittedClaims(
        complements,
        others,
        objective,
        torch.tensor(excess, dtype=torch.float64),
        untouched if bool(untouched.predicted.isfinite().all()) else None,
    )


@dataclass(frozen=True)
class _Work:
    """What the work of all folds has in common; see `cross_fitted`."""

    table: Table
    task: RehearsalTask
    fitted: Callable[[Table], Surrogate]
    objective: Callable[..., Any]
    search: Search[Any]
    cases: Sequence[RehearsalCase]
    count: int
    seed: int


def _fold(work: _Work, fold: Fold) -> tuple[Surrogate, Surrogate, float, tuple[Tensor, ...]]:
    """The models C_k and F_k of a fold, e_k, and its untouched rows."""
    try:
        most, few = (work.fitted(part_of(work.table, rows)) for rows in (fold.train, fold.held_out))
    except ValueError as error:
        raise ValueError(
            f"claims=cross_fitted: fold {fold.index + 1} of {work.count} ({len(fold.held_out)} rows) cannot "
            f"be fitted to: {error}. Use claims=in_sample, or more rows"
        ) from error
    with in_numbers("the models of the folds"), seeded(work.seed):
        excess = sum(
            _excess(chooser, judge, work.objective, work.search, work.cases)
            for chooser, judge in ((most, few), (few, most))
        )
        return most, few, excess, _untouched(most, work.objective, work.table, work.task, fold)


def _parted(table: Table, units: Sequence[str] | None, count: int, seed: int) -> list[Fold]:
    """The folds."""
    try:
        folds = folds_of(len(table), units, count, seed)
    except ValueError as error:
        raise ValueError(f"claims=cross_fitted: {error}, or claims=in_sample") from error
    fewest = min(len(fold.held_out) for fold in folds)
    if fewest < MIN_ROWS:
        raise ValueError(
            f"claims=cross_fitted: each of {count} folds is fitted to by itself, with at least {MIN_ROWS} "
            f"rows; got a fold of {fewest} (of {len(table)} rows): use claims=in_sample, or more rows"
        )
    return folds


def _excess(
    chooser: Surrogate,
    judge: Surrogate,
    objective: Callable[..., Any],
    search: Search[Any],
    cases: Sequence[RehearsalCase],
) -> float:
    """By how much the chooser's claims for its choices exceed the judge's, on average over the cases; 0 if no
    case has an estimate.
    """
    size = search.batch_size if isinstance(search, BatchSearch) else 1
    found = []
    for batch in in_batches(cases, size):
        own = alterations_for(objective, chooser, batch)
        decisions = search.batch_search(own) if isinstance(search, BatchSearch) else [search(own)]
        other = alterations_for(objective, judge, batch)
        found.append(_points(own, decisions) - _points(other, decisions))
    return float(torch.cat(found).nanmean().nan_to_num(0.0))


def _points(objective: Candidates[AlterationObjective], decisions: Sequence[Decision]) -> Tensor:
    """An objective's estimates for given decisions, (B,); NaN where nothing is altered."""
    estimates = [None if each is None else each.estimate for each in objective.appraisals(decisions)]
    points = [math.nan if each is None else each.point for each in estimates]
    return torch.tensor(points, dtype=torch.float64)


def _untouched(
    model: Surrogate, objective: Callable[..., Any], table: Table, task: RehearsalTask, fold: Fold
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See `Untouched`, for the held-out rows of a fold."""
    desired = task.region.contains(table.columns(task.outcomes)[fold.train]).to(torch.float64)
    found = untouched_rows(model, objective, part_of(table, fold.held_out), task, float(desired.mean()))
    return fold.held_out, found.desired, found.predicted, found.constant
