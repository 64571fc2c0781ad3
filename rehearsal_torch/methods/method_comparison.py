"""Comparison of methods on the same rows by cross-fitting: held-out predictions, and the value of decisions.

The rows are split into two halves, R times, whole units together. Every method is fitted to each half. The
model of one half

    predicts      each row of the other half at the row's own action, and without an action;
    decides       for cases with the contexts of rows of the other half, as it would in a run;
    is a judge    of the decisions of all methods that the *other* half's models made.

The value of a method in half j is the mean over cases of the panel's estimate for its decision,

    v_mj = mean_i sum_q alpha_q c_qj(a_mi; x_i),

c_qj the estimate of P(desired) after the action, or without one where the decision sets nothing, by method q
fitted to the rows that did not choose. Where the task has costs and a worth, decisions are those with the
largest net value, and c is less the cost in units of the worth; changes count from the usual values of the
actions, since those of the rows are no present values.

So v is the mean judgement of models of other rows on the decisions of a method fitted to half the rows. It is
no outcome of those decisions: no table has these. Where no row is near a decision, or all methods are wrong
in the same way (a wrong graph, a hidden cause), so is v. Half the rows favour methods that need few.

The weights of the panel are the mixture of predictions with the smallest held-out Brier score,

    alpha = argmin sum_i w_i (y_i - sum_m alpha_m p_mi)^2,      alpha >= 0, sum_m alpha_m = 1,

with p_mi the prediction of method m for row i by a model that has not seen the row: a method that predicts
badly hardly judges. With G = P W P' it is a quadratic programme on the simplex, solved as non-negative least
squares with a heavy row for the sum. Of several candidate sets, each row is predicted for one, in turn.

The weights of rows correct for confounding. A row had action a, context x and covariates u. Where u drives
both action and outcome, rows with an action differ from the effect of setting it: their u is unusual. With
the stabilised weights

    w = f(a | x) / f(a | x, u),

the covariates of rows with the same x and a are distributed as they are given x alone, so that a prediction
of P(desired | x, setting a) may be compared with the outcomes of the rows. Actions that are set one after the
other, with covariates in between, have one factor each. u is the adjustment set of the graph
(`graphs.separation`); without covariates, all weights are 1.

The densities are those of linear regressions with normal errors, whatever the true ones are: a crude choice
for actions with few values. Weights are cut at `LARGEST` and divided by their mean.

Source: Chernozhukov et al. (2018) for rows that did not choose; van der Laan, Polley and Hubbard (2007) and
Breiman (1996) for the weights of the panel, with Lawson and Hanson (1974), Ch. 23 (non-negative least
squares, and the row for the sum); Robins, Hernan and Brumback (2000), Sec. 6, for those of rows; the panel as
judge is ours.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.claims.improvement_test import paid
from rehearsal_torch.claims.rows_as_cases import alterations_for, in_batches, part_of, row_cases, weighed
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates
from rehearsal_torch.progress import Progress, duration
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.seeding import generator, round_seed, seeded
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.task_pool import results, worth
from rehearsal_torch.training.surrogate_fit import folds_of


@dataclass(frozen=True)
class Candidate:
    """A method to compare; `fitted` returns a new model fitted to a table."""

    name: str
    fitted: Callable[[Table], Surrogate]
    objective: Callable[..., Any]
    search: Search[Any]


@dataclass(frozen=True)
class Limits:
    """Bounds on the comparison's cost.

    Attributes:
        rows: The largest number of rows; of more, some are drawn, whole units together.
        cases: The largest number of cases in each half.
        repeats: R, how often the rows are split in two.
    """

    rows: int = 1000
    cases: int = 40
    repeats: int = 3

    def __post_init__(self) -> None:
        for name, low in (("rows", 2 * MIN_ROWS), ("cases", 1), ("repeats", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ValueError(f"choose.{name}: expected a whole number of at least {low}; got {value}")


AT_ONCE = 256


@dataclass(frozen=True)
class Comparison:
    """The common input of all splits; `sets` has the candidate set for which each row is predicted."""

    table: Table
    task: RehearsalTask
    sets: Sequence[tuple[str, ...]]
    candidates: Sequence[Candidate]
    limits: Limits
    seed: int


@dataclass
class Split:
    """The result of one split.

    Attributes:
        refused: Method to the reason why it cannot be compared.
        predictions: Method to its predictions with and without an action for all rows, (2, n).
        constant: The share of desired rows in the half that predicted, (n,).
        judged: By half: (chooser, judge) to the mean estimate over cases.
        baselines: By half: judge to its mean estimate without an action.
        seconds: Method to the duration of all that it did.
        steady: The part of all seconds that does not grow with the rows: decisions and judgements.
    """

    names: tuple[str, ...]
    refused: dict[str, str]
    predictions: dict[str, Tensor]
    constant: Tensor
    judged: list[dict[tuple[str, str], float]]
    baselines: list[dict[str, float]]
    seconds: dict[str, float]
    steady: float


def split(comparison: Comparison, task: tuple[int, Sequence[Tensor]]) -> Split:
    """The result of a split; the task is its number, and the rows of its two halves."""
    return OneSplit(comparison, *task).result()


# The half of the models, and the half of the rows that they predict or decide for.
_HALF_PAIRS = ((0, 1), (1, 0))


class OneSplit:
    """The computation of one split."""

    def __init__(self, comparison: Comparison, repeat: int, halves: Sequence[Tensor]) -> None:
        self.table, self.task, self.sets = comparison.table, comparison.task, comparison.sets
        self.limits, self.seed = comparison.limits, comparison.seed
        self.repeat, self.halves = repeat, halves
        self.candidates = list(comparison.candidates)
        self.refused = dict[str, str]()
        self.seconds = {candidate.name: 0.0 for candidate in self.candidates}
        self.steady = 0.0

    def result(self) -> Split:
        """Fits every method to both halves, and lets the models predict, decide and judge."""
        pairs = [(candidate, self._fit(candidate)) for candidate in self.candidates]
        models = {candidate.name: fitted for candidate, fitted in pairs if fitted}
        predicted = {method.name: self._predictions(method, fitted) for method, fitted in pairs if fitted}
        for name, tensor in predicted.items():
            if not bool(tensor.isfinite().all()):
                reason = "it has no estimate of the probability of a desired outcome for every action"
                self.refused[name] = reason
        self.candidates = [candidate for candidate in self.candidates if candidate.name not in self.refused]
        desired = self.task.region.contains(self.table.columns(self.task.outcomes)).to(torch.float64)
        constant = torch.zeros(len(self.table), dtype=torch.float64)
        for half, other in _HALF_PAIRS:
            constant[self.halves[other]] = desired[self.halves[half]].mean()
        began = time.perf_counter()
        outcomes = [self._decide(models, half, other) for half, other in _HALF_PAIRS if self.candidates]
        self.steady = time.perf_counter() - began
        judged, baselines = [points for points, _ in outcomes], [untouched for _, untouched in outcomes]
        names = tuple(candidate.name for candidate in self.candidates)
        return Split(names, self.refused, predicted, constant, judged, baselines, self.seconds, self.steady)

    def _predictions(self, candidate: Candidate, models: Sequence[Surrogate]) -> Tensor:
        """The predictions for all rows, each by the model of the other half, (2, n)."""
        predicted = torch.zeros(2, len(self.table), dtype=torch.float64)
        for half, other in _HALF_PAIRS:
            rows = self.halves[other]
            with self._measured(candidate.name, f"predict {self.repeat} {half}"):
                predicted[:, rows] = self._predict_rows(candidate, models[half], rows)
        return predicted

    def _fit(self, candidate: Candidate) -> list[Surrogate]:
        """The models of both halves; none if the method cannot be fitted to one of them."""
        try:
            with self._measured(candidate.name, "fit"):
                return [candidate.fitted(part_of(self.table, rows)) for rows in self.halves]
        except ValueError as error:
            self.refused[candidate.name] = f"it cannot be fitted to half of the rows: {error}"
            return []

    def _predict_rows(self, candidate: Candidate, model: Surrogate, rows: Tensor) -> Tensor:
        """P(desired) of rows at their actions, and by their contexts alone, (2, m)."""
        points = []
        for batch in rows.split(AT_ONCE):
            cases = row_cases(self.table, self.task, batch)
            actions = [
                Decision(Alteration(self.sets[row], self.table.columns(self.sets[row])[row]), 0.0)
                for row in batch.tolist()
            ]
            points.append(_estimates(alterations_for(candidate.objective, model, cases), actions))
        return torch.cat(points, 1)

    def _decide(
        self, models: Mapping[str, Sequence[Surrogate]], half: int, other: int
    ) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
        """The other half's judgements of the decisions by models of `half`: (chooser, judge) to mean
        estimate, and judge to mean estimate without an action.
        """
        repeat, rows = self.repeat, self.halves[other]
        stream = generator(round_seed(self.seed, f"choose a method, cases {repeat} {half}"))
        count = min(self.limits.cases, len(self.table) // 2)
        sample = rows[torch.randperm(len(rows), generator=stream)[:count]]
        cases = row_cases(self.table, self.task, sample, weighed(self.task))
        by_method = {}
        for candidate in self.candidates:
            with self._measured(candidate.name, f"decide {repeat} {half}"):
                by_method[candidate.name] = self._decisions(candidate, models[candidate.name][half], cases)
        judged, baselines = dict[tuple[str, str], float](), dict[str, float]()
        for candidate in self.candidates:
            with self._measured(candidate.name, f"judge {repeat} {half}"):
                objective = alterations_for(candidate.objective, models[candidate.name][other], cases)
                for chooser, decisions in by_method.items():
                    points, untouched = _estimates(objective, decisions)
                    shares = [paid(case, decision) for case, decision in zip(cases, decisions, strict=True)]
                    costs = torch.tensor(shares, dtype=torch.float64)
                    values = points.where(points.isfinite(), untouched) - costs
                    judged[chooser, candidate.name] = float(values.mean())
                    baselines[candidate.name] = float(untouched.mean())
        return judged, baselines

    def _decisions(
        self, candidate: Candidate, model: Surrogate, cases: Sequence[RehearsalCase]
    ) -> list[Decision]:
        """The decisions of a model, as a run makes them."""
        search = candidate.search
        decisions: list[Decision] = []
        for batch in in_batches(cases, search.batch_size if isinstance(search, BatchSearch) else 1):
            objective = alterations_for(candidate.objective, model, batch)
            decided = (
                search.batch_search(objective) if isinstance(search, BatchSearch) else [search(objective)]
            )
            decisions += ruled(objective, decided, search.declines)
        return decisions

    @contextmanager
    def _measured(self, name: str, purpose: str) -> Iterator[None]:
        """Adds the duration of a block to a method's seconds, and seeds the block by its purpose."""
        began = time.perf_counter()
        try:
            block_seed = round_seed(self.seed, f"choose a method, {purpose}")
            with seeded(block_seed), in_numbers("half of the rows"):
                yield
        finally:
            self.seconds[name] += time.perf_counter() - began


def _estimates(objective: Candidates[AlterationObjective], decisions: Sequence[Decision]) -> Tensor:
    """An objective's estimates for decisions, and for no action, (2, B); NaN where there is none."""
    estimates = torch.full((2, len(decisions)), torch.nan, dtype=torch.float64)
    appraised = objective.appraisals(decisions)
    if any(appraisal is None for appraisal in appraised):
        first = objective.whole[0]
        no_action = first.appraise(first.starts(1)[0])
    for index, appraisal in enumerate(appraised):
        if appraisal is not None and appraisal.estimate is not None:
            estimates[0, index] = appraisal.estimate.point
        baseline = (no_action[index] if appraisal is None else appraisal).baseline
        if baseline is not None:
            estimates[1, index] = baseline.point
    return estimates


@dataclass(frozen=True)
class Compared:
    """The result of a comparison; m methods, n rows, R repeats, J = 2 R halves.

    Attributes:
        refused: Method to the reason why it could not be fitted, or does not predict.
        values: The value of each method in each half by each judge, (m, J, m).
        nothing: That of doing nothing, (J, m).
        panel: alpha, the weight of each judge, (m,).
        predicted: P(desired) at each row's action, (R, m, n).
        untouched: P(desired) of each row by its context alone, (R, m, n).
        constant: The share of desired rows in the half that predicted, (R, n).
        desired: Whether each outcome is desired, (n,), 0 or 1.
        weights: The weight of each row, (n,).
        units: The number of each row's unit, (n,) long.
        worth: The worth of a desired outcome, where values are less the costs of decisions; else None.
    """

    methods: tuple[str, ...]
    refused: Mapping[str, str]
    values: Tensor
    nothing: Tensor
    panel: Tensor
    predicted: Tensor
    untouched: Tensor
    constant: Tensor
    desired: Tensor
    weights: Tensor
    units: Tensor
    cases: int
    seconds: Mapping[str, float]
    worth: float | None = None


def compared(
    table: Table,
    units: Sequence[str] | None,
    task: RehearsalTask,
    candidates: Sequence[Candidate],
    limits: Limits,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int = 1,
) -> Compared:
    """Compares methods on the rows of a table, by 2 R fits, decisions and judgements of each.

    Args:
        units: The unit of each row; None if every row is a unit of its own.
        seed: Determines rows, halves, cases and the draws of the searches.
        progress: A phase that is told what will be compared, how long that may take, and of each split.
        workers: The number of processes that share the later splits, if that pays (`task_pool`).

    Raises:
        ValueError: if there are too few rows or units for two halves, or no method can be fitted to them.
        ClusterError: if joblib's context names a cluster that cannot share the splits.
    """
    rows = _sample_rows(len(table), units, limits.rows, seed)
    table, units = part_of(table, rows), None if units is None else [units[row] for row in rows.tolist()]
    sets = [task.candidates[row % len(task.candidates)] for row in range(len(table))]
    weights_by_set = {names: row_weights(table, task, names) for names in dict.fromkeys(sets)}
    weights = torch.stack([weights_by_set[names][row] for row, names in enumerate(sets)])
    desired = task.region.contains(table.columns(task.outcomes)).to(torch.float64)
    tasks = []
    for repeat in range(limits.repeats):
        halves = folds_of(len(table), units, 2, round_seed(seed, f"choose a method, halves {repeat}"))
        fewest = min(len(fold.held_out) for fold in halves)
        if fewest < MIN_ROWS:
            raise ValueError(
                f"each half of the rows is fitted to by itself, with at least {MIN_ROWS} rows; got a half of "
                f"{fewest} (of {len(table)} rows): name the method instead of auto, or use more rows"
            )
        tasks.append((repeat, [fold.held_out for fold in halves]))
    work = Comparison(table, task, sets, list(candidates), limits, seed)
    if progress is not None:
        names = ", ".join(method.name for method in candidates)
        progress.aside(
            f"auto compares {names}: {limits.repeats} times, each fitted to two halves of {len(table)} rows"
        )
    seconds = None if progress is None else forecast(work, workers)
    if progress is not None and seconds is not None:
        progress.expect(seconds)
        progress.aside(f"auto: this takes about {duration(seconds)}")
    began = time.perf_counter()
    splits: list[Split] = []
    for finished in _splits(work, tasks, workers):
        splits.append(finished)
        names_left = tuple(
            method.name for method in candidates if all(method.name in part.names for part in splits)
        )
        # The first reason of each method that a split refused.
        refused = {name: reason for earlier in reversed(splits) for name, reason in earlier.refused.items()}
        if not names_left:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
            raise ValueError(f"no method can be compared on these rows: {reasons}")
        elapsed = time.perf_counter() - began
        if len(splits) == 1:
            due = elapsed + _together(elapsed, limits.repeats - 1, workers)
        if progress is not None:
            progress.expect(due - elapsed)
            # A comparison that takes longer than was foretold says how long it has taken alone.
            known = len(splits) < limits.repeats and due > elapsed
            time_left = f", about {duration(due - elapsed)} left" if known else ""
            progress.aside(
                f"auto: {len(splits)} of {limits.repeats} compared, {duration(elapsed)}{time_left}"
            )
    return _summary(work, splits, names_left, refused, desired, weights, units)


# Rows of the comparison that foretells how long the whole takes.
PILOT = 160


def forecast(work: Comparison, workers: int) -> float | None:
    """The seconds that the splits take, by one of `PILOT` rows: fits and predictions take seconds in
    proportion to the rows, decisions and judgements those of the cases. None where that would hardly be
    shorter than the splits themselves, or a method cannot be fitted to so few rows.
    """
    count = len(work.table)
    if count < 2 * PILOT:
        return None
    rows = torch.linspace(0, count - 1, PILOT).round().long()
    sample = replace(work, table=part_of(work.table, rows), sets=[work.sets[row] for row in rows.tolist()])
    began = time.perf_counter()
    pilot = split(sample, (0, list(torch.arange(PILOT).view(-1, 2).T)))
    if pilot.refused:
        return None
    growing = time.perf_counter() - began - pilot.steady
    each = growing * count / PILOT + pilot.steady
    return each + _together(each, work.limits.repeats - 1, workers)


def _together(each: float, count: int, workers: int) -> float:
    """The seconds of tasks of `each` seconds by processes that share them where that pays (`task_pool`)."""
    return each * math.ceil(count / worth(each, count, workers))


def _splits(work: Comparison, tasks: Sequence[tuple[int, Sequence[Tensor]]], workers: int) -> Iterator[Split]:
    """The splits; methods that cannot be fitted in the first one, computed here, take no part in others."""
    began = time.perf_counter()
    first = split(work, tasks[0])
    yield first
    further = replace(work, candidates=[method for method in work.candidates if method.name in first.names])
    workers = worth(time.perf_counter() - began, len(tasks) - 1, workers)
    yield from results(split, further, tasks[1:], workers, ahead=1)


def _summary(
    work: Comparison,
    splits: Sequence[Split],
    names: tuple[str, ...],
    refused: Mapping[str, str],
    desired: Tensor,
    weights: Tensor,
    units: Sequence[str] | None,
) -> Compared:
    """The result for the methods that every split could compare."""
    predictions = torch.stack([torch.stack([part.predictions[name] for name in names]) for part in splits])
    predicted, untouched = predictions[:, :, 0].clamp(0, 1), predictions[:, :, 1].clamp(0, 1)
    repeats, count = len(splits), len(desired)
    panel = panel_weights(
        predicted.transpose(0, 1).reshape(len(names), repeats * count),
        desired.repeat(repeats),
        weights.repeat(repeats),
    )
    judged = [half for part in splits for half in part.judged]
    baselines = [half for part in splits for half in part.baselines]
    numbers_of = partial(torch.tensor, dtype=torch.float64)
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(units or ()))}
    return Compared(
        names,
        refused,
        numbers_of([[[half[name, judge] for judge in names] for half in judged] for name in names]),
        numbers_of([[half[judge] for judge in names] for half in baselines]),
        panel,
        predicted,
        untouched,
        torch.stack([part.constant for part in splits]),
        desired,
        weights,
        torch.arange(count) if units is None else torch.tensor([numbers[unit] for unit in units]),
        min(work.limits.cases, count // 2),
        {name: sum(part.seconds.get(name, 0.0) for part in splits) for name in splits[0].seconds},
        work.task.worth if weighed(work.task) else None,
    )


def _sample_rows(count: int, units: Sequence[str] | None, limit: int, seed: int) -> Tensor:
    """The rows to compare on, in ascending order: all, or whole units drawn until there are enough."""
    if count <= limit:
        return torch.arange(count)
    stream = generator(round_seed(seed, "choose a method, rows"))
    if units is None:
        return torch.randperm(count, generator=stream)[:limit].sort().values
    rows_of_unit: dict[str, list[int]] = {}
    for row, unit in enumerate(units):
        rows_of_unit.setdefault(unit, []).append(row)
    unit_names, sample = sorted(rows_of_unit), list[int]()
    for index in torch.randperm(len(unit_names), generator=stream).tolist():
        if len(sample) >= limit:
            break
        sample += rows_of_unit[unit_names[index]]
    return torch.tensor(sorted(sample))


# The weight of the row for the sum, relative to the largest entry of the others.
HEAVY = 1e4


def panel_weights(predicted: Tensor, desired: Tensor, weights: Tensor) -> Tensor:
    """The weight of each method, (m,), at least 0 and with sum 1, from predicted probabilities, (m, n),
    outcomes, (n,), 1 if desired, else 0, and weights of the rows, (n,).
    """
    from scipy.optimize import nnls

    root_weights = weights.sqrt()
    design, response = (predicted * root_weights).mT, desired * root_weights
    # n rows become m + 1 at most, with the same sums of squares.
    _, triangle = torch.linalg.qr(torch.cat([design, response[:, None]], 1))
    heavy = HEAVY * float(triangle.abs().max())
    matrix = torch.cat([triangle[:, :-1], torch.full((1, len(predicted)), heavy, dtype=torch.float64)])
    target = torch.cat([triangle[:, -1], torch.tensor([heavy], dtype=torch.float64)])
    solution = torch.from_numpy(nnls(matrix.numpy(), target.numpy())[0])
    return solution / solution.sum()


LARGEST = 10.0
# Relative to the variance of an action: keeps the density of one that its covariates determine defined.
SMALLEST = 1e-6


def row_weights(table: Table, task: RehearsalTask, names: tuple[str, ...]) -> Tensor:
    """The weight of each of n observed rows for an alteration, (n,), with mean 1."""
    adjusted = adjustment(task.graph, task.context, names, task.outcomes)
    later = tuple(name for name in names if name not in adjusted.first)
    covariates = (*task.context, *adjusted.before)
    # Altered variables, and the conditions of their densities in numerator and denominator.
    blocks = (
        [
            (adjusted.first, task.context, covariates),
            (later, (*task.context, *adjusted.first), (*covariates, *adjusted.first, *adjusted.between)),
        ]
        if adjusted.first
        else [(names, task.context, covariates)]
    )
    total = torch.zeros(len(table), dtype=torch.float64)
    for actions, marginal, full in blocks:
        if set(marginal) != set(full):
            values = table.columns(actions)
            total += _log_density(values, table.columns(marginal)) - _log_density(values, table.columns(full))
    weights = total.exp().clamp_max(LARGEST)
    return weights / weights.mean()


def _log_density(values: Tensor, predictors: Tensor) -> Tensor:
    """Log density of each row's action (n, k) in a linear regression on the predictors (n, p), (n,)."""
    count = len(values)
    scale = values.std(0)
    scaled = (values - values.mean(0)) / torch.where(scale > 0, scale, torch.ones_like(scale))
    design = torch.cat([torch.ones(count, 1, dtype=torch.float64), _standardised(predictors)], 1)
    gram = design.mT @ design + count * 1e-10 * torch.eye(design.shape[1], dtype=torch.float64)
    residuals = scaled - design @ torch.linalg.solve(gram, design.mT @ scaled)
    covariance = residuals.mT @ residuals / max(count - design.shape[1], 1)
    factor = torch.linalg.cholesky(covariance + SMALLEST * torch.eye(values.shape[1], dtype=torch.float64))
    whitened = torch.linalg.solve_triangular(factor, residuals.mT, upper=False)
    return -0.5 * whitened.square().sum(0) - factor.diagonal().log().sum()


def _standardised(values: Tensor) -> Tensor:
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))
