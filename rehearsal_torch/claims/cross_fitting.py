"""Cross-fitted claims: the value of a chosen action, estimated from rows that did not choose it.

The action a(x) that a search finds is the best one under a model; the largest of many uncertain values is
likely to be large by chance, so that the model's claim c(x, a(x)) is too high on average (the winner's
curse): the optimism of the choice, s(n) for a model of n rows. With K folds of the rows (whole units, where
rows belong together), for each k a model C_k of all other rows and a model F_k of fold k choose for the same
reference cases, and each judges the other's choice:

    e_k = mean [c_C(a_C) - c_F(a_C)] + mean [c_F(a_F) - c_C(a_F)] = s(n - n/K) + s(n/K).

A model of fewer rows is smoother, which lowers its estimates of all good actions; in the sum this difference
of the two models cancels. As s falls with the root of the number of rows,

    s(n) = mean_k e_k / (sqrt(K / (K - 1)) + sqrt(K)),         at least 0.

The claim for a case is the model's own claim for its chosen action a without the optimism, c = c(a) - s, at
least 0. With f = mean_k c_{F_k}(a), the mean estimate by models of few rows, its variance is the sum of

    (K - 1) / K sum_k (c_{C_k}(a) - mean)^2    the rows and the hyper-parameters (jackknife of the folds)
    var_k c_{F_k}(a) / K                       disagreement of the fits of the folds
    var_k e_k / (K scale^2)                    error of the optimism, scale as in s(n)
    (c - f)^2                                  what more rows than n/K have changed (smoothing)
    c (1 - c) / draws                          counting error of an estimate that is a share

and the interval is normal, within [0, 1]. What remains is a bias that all fits share: where no row is near,
or the model is wrong in the same way for every part of the rows, a claim from other rows is wrong as well.
So where S, the share of cases without a near row (`data.mean_gain`), exceeds `TOLD_BEYOND`, estimate and gain
keep the hull (`objectives.gain`). The actions are those of the model of all rows. Used by
`methods.run_parts`.

The gain over changing nothing, c(a) - c(o), gets an interval by the same models: o are the present values of
what is set, or no action where they are unknown. In the formulas each c(a) becomes c(a) - c(o), so that an
error that both share cancels. The optimism, an error of the chosen action alone, is subtracted as above; the
counting errors of both add up.

As a by-product each row is predicted, under no action, by a model that has not seen it: a held-out score of
the untouched rows.

Source: Chernozhukov et al. (2018) and Zenati et al. (2025) for cross-fitting; Efron and Stein (1981) for
the jackknife. The symmetric optimism, its rate and the terms of the variance were chosen on simulated worlds.
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
    """Replaces the claims of decisions by cross-fitted ones, given the models C_k and F_k, e_k, (K,), and a
    function that builds the objective of the decisions (`objectives.objective.objective_for`).
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
            brier, brier_constant = untouched.brier()
            self.score = {"brier": round(brier, 6), "brier_constant": round(brier_constant, 6)}

    def __call__(self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with cross-fitted estimates and gains where the method has estimates; a claim that is
        not above the one for no action gets a warning, and the action stays.

        Trace: ``claimed_in_sample``, the estimate that is replaced, and ``optimism``; ``brier``, the held-out
        score of the untouched rows, and ``brier_constant``, that of the constant.
        """
        claimed, errors = [], self._errors(cases, decisions)
        for case, decision, error, gain_error in zip(cases, decisions, *errors, strict=True):
            if decision.estimate is None or error is None:
                claimed.append(replace(decision, trace=decision.trace | self.score))
                continue
            point = round(self._corrected(decision.estimate), 6)
            gain = None
            if decision.before is not None and gain_error is not None:
                excess, half = point - decision.before.point, normal_quantile(LEVEL) * gain_error
                gain = difference(excess, excess - half, excess + half, LEVEL)
            claimed.append(self._with_claim(decision, case, point, normal_quantile(LEVEL) * error, gain))
        return claimed

    def intervals(
        self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision], levels: Sequence[float]
    ) -> list[dict[float, tuple[float, float]]]:
        """The intervals at coverage `levels`, in (0, 1), for decisions with the method's own claims."""
        intervals: list[dict[float, tuple[float, float]]] = []
        for decision, error in zip(decisions, self._errors(cases, decisions)[0], strict=True):
            if decision.estimate is None or error is None:
                intervals.append({})
                continue
            point = round(self._corrected(decision.estimate), 6)
            intervals.append({level: _clipped(point, normal_quantile(level) * error) for level in levels})
        return intervals

    def _corrected(self, estimate: Estimate | None) -> float:
        return math.nan if estimate is None else max(estimate.point - self.optimism, 0.0)

    def _errors(
        self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]
    ) -> tuple[list[float | None], list[float | None]]:
        """The standard errors of each claim and of its gain; None where there is no estimate."""
        (complements, complements_idle, _), (folds, folds_idle, draws) = (
            self._estimates(models, cases, decisions) for models in (self.complements, self.folds)
        )
        points = [self._corrected(decision.estimate) for decision in decisions]
        counting = [_counting(point, count) for point, count in zip(points, draws, strict=True)]
        errors = self._spread(complements, folds, points, counting)
        present = [_at_present(case, decision) for case, decision in zip(cases, decisions, strict=True)]
        if any(kept.alteration is not None for kept in present):
            altered = torch.tensor([kept.alteration is not None for kept in present])
            complements_idle, folds_idle = (
                torch.where(altered, self._estimates(models, cases, present)[0], idle)
                for models, idle in ((self.complements, complements_idle), (self.folds, folds_idle))
            )
        baselines = [math.nan if decision.before is None else decision.before.point for decision in decisions]
        gains = [point - base for point, base in zip(points, baselines, strict=True)]
        counting_both = [
            variance + _counting(base, count)
            for variance, base, count in zip(counting, baselines, draws, strict=True)
        ]
        return errors, self._spread(complements - complements_idle, folds - folds_idle, gains, counting_both)

    def _spread(
        self, complements: Tensor, folds: Tensor, points: Sequence[float], counting: Sequence[float]
    ) -> list[float | None]:
        """The standard errors of claims; None where one is not finite."""
        count = len(self.folds)
        variances = (
            (complements - complements.mean(0)).square().sum(0) * (count - 1) / count
            + folds.var(0) / count
            + self.error**2
            + (torch.tensor(points, dtype=torch.float64) - folds.mean(0)).square()
            + torch.tensor(counting, dtype=torch.float64)
        )
        return [math.sqrt(variance) if math.isfinite(variance) else None for variance in variances.tolist()]

    def _with_claim(
        self, decision: Decision, case: RehearsalCase, point: float, half: float, gain: Estimate | None
    ) -> Decision:
        assert decision.estimate is not None
        (lower, upper), draws = _clipped(point, half), decision.draws
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
            alternative = "leaving the present values" if decision.unchanged else "no action"
            price = f", and {paid:.3f} for the cost" if paid else ""
            claimed, compared = apart(point, before.point, 3)
            text = (
                f"estimated from rows that did not choose it, no better than {alternative} ({claimed} "
                f"against {compared}{price})"
            )
            findings = (*findings, Finding("claim", text))
        # The finding that the model predicts nothing does not stand against a gain by other rows.
        if gain is not None and gain.lower is not None and gain.lower > 0:
            note = "by rows that did not choose it, this one is"
            findings = tuple(
                Finding("note", f"{finding.text}; {note}") if finding.kind == "score" else finding
                for finding in findings
            )
        # The method's own interval of the gain belongs to the claim that is replaced.
        draws = None if draws is None or gain is None else draws.told(gain)
        if draws is not None and draws.beyond > TOLD_BEYOND:
            gain = draws.estimate()
        findings = tuple(finding for finding in findings if finding.kind != "gain")
        updated = replace(decision, estimate=estimate, gain=gain, draws=draws, trace=trace, findings=findings)
        return updated.told(untold(updated, case))

    def _estimates(
        self, models: Sequence[Surrogate], cases: Sequence[RehearsalCase], decisions: Sequence[Decision]
    ) -> tuple[Tensor, Tensor, list[int | None]]:
        """The models' estimates of decisions and of no action, (K, B) each, with their numbers of draws."""
        points = torch.full((len(models), len(decisions)), math.nan, dtype=torch.float64)
        idle = points.clone()
        draws: list[int | None] = [None] * len(decisions)
        for row, model in enumerate(models):
            built = alterations_for(self.objective, model, cases)
            for index, appraisal in enumerate(built.appraisals(decisions)):
                if appraisal is not None and appraisal.estimate is not None:
                    points[row, index], draws[index] = appraisal.estimate.point, appraisal.draws
                if appraisal is not None and appraisal.baseline is not None:
                    idle[row, index] = appraisal.baseline.point
        return points, idle, draws


def _counting(point: float, draws: int | None) -> float:
    """The variance of a share of draws; 0 for an estimate that is not a share."""
    return 0.0 if draws is None else point * (1 - point) / max(draws, 1)


def _at_present(case: RehearsalCase, decision: Decision) -> Decision:
    """The decision to keep the present values of what is set; no action where they are not compared with."""
    names = () if decision.alteration is None or decision.unchanged is None else decision.alteration.names
    return Decision(case.kept(names), 0.0)


def _clipped(point: float, half: float) -> tuple[float, float]:
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
    """Estimates the optimism of the choice, by 2 K fits, and 2 K searches for the reference cases.

    Args:
        units: The unit of each row, whose rows stay in one fold; None if every row is a unit of its own.
        fitted: Returns a new model, fitted to some rows; what is random in it has seeds of its own.
        objective: As in `CrossFittedClaims`.
        count: K.
        reference: Number of rows whose contexts are the reference cases.
        seed: Seed of the folds, the reference cases and the searches.
        told: Receives the progress, one line per fold; None for silence.
        workers: The number of processes that share the folds, each with one thread, if the first fold shows
            that it pays (`shared_tasks`).

    Raises:
        ValueError: if there are too few rows or units for the folds, or a fold cannot be fitted to.
        ClusterError: if joblib's context names a cluster that cannot share the folds.
    """
    folds = _checked_folds(table, units, count, seed)
    reference_rows = torch.randperm(len(table), generator=generator(seed))[:reference]
    cases = row_cases(table, task, reference_rows)
    undeclining = copy(search)
    undeclining.declines = False
    fitted_folds = []
    shared = _Shared(table, task, fitted, objective, undeclining, cases, count, seed)
    fits = results(_fit_fold, shared, folds, workers, timed=True, ahead=1)
    for fold in folds:
        if told is not None:
            told(f"claims: fold {fold.index + 1} of {count}, two fits and two searches")
        fitted_folds.append(next(fits))
    complements, fold_models, excess, untouched_parts = zip(*fitted_folds, strict=True)
    columns = [torch.cat(pieces) for pieces in zip(*untouched_parts, strict=True)]
    order = columns[0].argsort()
    untouched = Untouched(*(column[order] for column in columns))
    return CrossFittedClaims(
        complements,
        fold_models,
        objective,
        torch.tensor(excess, dtype=torch.float64),
        untouched if bool(untouched.predicted.isfinite().all()) else None,
    )


@dataclass(frozen=True)
class _Shared:
    """The arguments of `_fit_fold` that all folds share; see `cross_fitted`."""

    table: Table
    task: RehearsalTask
    fitted: Callable[[Table], Surrogate]
    objective: Callable[..., Any]
    search: Search[Any]
    cases: Sequence[RehearsalCase]
    count: int
    seed: int


def _fit_fold(shared: _Shared, fold: Fold) -> tuple[Surrogate, Surrogate, float, tuple[Tensor, ...]]:
    """The models C_k and F_k of a fold, e_k, and its untouched rows."""
    try:
        complement, fold_model = (
            shared.fitted(part_of(shared.table, rows)) for rows in (fold.train, fold.held_out)
        )
    except ValueError as error:
        raise ValueError(
            f"claims=cross_fitted: fold {fold.index + 1} of {shared.count} ({len(fold.held_out)} rows) "
            f"cannot be fitted to: {error}. Use claims=in_sample, or more rows"
        ) from error
    with in_numbers("the models of the folds"), seeded(shared.seed):
        excess = sum(
            _excess(chooser, judge, shared.objective, shared.search, shared.cases)
            for chooser, judge in ((complement, fold_model), (fold_model, complement))
        )
        untouched = _held_out_fields(complement, shared.objective, shared.table, shared.task, fold)
    return complement, fold_model, excess, untouched


def _checked_folds(table: Table, units: Sequence[str] | None, count: int, seed: int) -> list[Fold]:
    """The folds, each with rows enough for a model of its own."""
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
    """The mean excess of the chooser's claims for its choices over the judge's; 0 without estimates."""
    size = search.batch_size if isinstance(search, BatchSearch) else 1
    excesses = []
    for batch in in_batches(cases, size):
        chosen_by = alterations_for(objective, chooser, batch)
        decisions = search.batch_search(chosen_by) if isinstance(search, BatchSearch) else [search(chosen_by)]
        judged_by = alterations_for(objective, judge, batch)
        excesses.append(_points(chosen_by, decisions) - _points(judged_by, decisions))
    return float(torch.cat(excesses).nanmean().nan_to_num(0.0))


def _points(objective: Candidates[AlterationObjective], decisions: Sequence[Decision]) -> Tensor:
    """An objective's estimates for given decisions, (B,); NaN where nothing is altered."""
    appraisals = objective.appraisals(decisions)
    points = [math.nan if row is None or row.estimate is None else row.estimate.point for row in appraisals]
    return torch.tensor(points, dtype=torch.float64)


def _held_out_fields(
    model: Surrogate, objective: Callable[..., Any], table: Table, task: RehearsalTask, fold: Fold
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The fields of `Untouched` for the held-out rows of a fold."""
    desired = task.region.contains(table.columns(task.outcomes)[fold.train]).to(torch.float64)
    untouched = untouched_rows(model, objective, part_of(table, fold.held_out), task, float(desired.mean()))
    return fold.held_out, untouched.desired, untouched.predicted, untouched.constant
