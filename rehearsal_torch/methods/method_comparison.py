"""Methods compared on the same rows: how well each predicts, and what its decisions are worth.

The rows are split into two halves, R times, whole units together. Every method is fitted to each half. The
model of one half

    predicts      each row of the other half at the action that the row really had, and without an action;
    decides       for cases with the contexts of rows of the other half, as it would in a run;
    is a judge    of the decisions of all methods that the *other* half's models made.

The value of a method in half j is the mean over cases of the panel's estimate for its decision,

    v_mj = mean_i sum_q alpha_q c_qj(a_mi; x_i),

c_qj what method q, fitted to the rows that did not choose, says of P(desired) after the action, and without
one where the decision sets nothing. Where the task has costs and a worth, decisions are those with the
largest net value, and c is less the cost in units of the worth; changes count from the usual values of the
actions, since what rows did is no present value. The weights alpha are those of the held-out predictions
(`panel_weights`): a method that predicts badly hardly judges, and no method is its own judge alone.

So v measures what models of other rows think of the decisions of a method fitted to half the rows. It is no
outcome of those decisions: no table has these. Where no row is near a decision, or all methods are wrong in
the same way (a wrong graph, a hidden cause), it is wrong as well. Half the rows favour methods that need few.

Where there are several candidate sets, each row is predicted for one of them, in turn. Its weight makes up
for what drives its action (`row_weights`).

The weights of the panel are the mixture of predictions with the smallest held-out Brier score,

    alpha = argmin sum_i w_i (y_i - sum_m alpha_m p_mi)^2,      alpha >= 0, sum_m alpha_m = 1,

with p_mi the prediction of method m for row i by a model that has not seen the row. A method whose
predictions are poor has hardly a voice when decisions are judged. With G = P W P' it is a quadratic programme
on the simplex, solved as non-negative least squares with a heavy row for the sum.

The weights of rows make observed rows show what setting an action brings. A row had action a, context x and
covariates u. Where u drives both action and outcome, rows with an action are not what setting it would bring:
their u is unusual. With the stabilised weights

    w = f(a | x) / f(a | x, u),

the covariates of rows with the same x and a are distributed as they are given x alone, so that a prediction
of P(desired | x, setting a) may be compared with the outcomes of the rows. Actions that are set one after the
other, with covariates in between, have one factor each. u is what the graph says to adjust for
(`graphs.separation`); without covariates, all weights are 1.

The densities are those of linear regressions with normal errors, whatever the true ones are: a crude choice
for actions with few values. Weights are cut at `LARGEST` and divided by their mean.

Source: Chernozhukov et al. (2018) for rows that did not choose; van der Laan, Polley and Hubbard (2007) and
Breiman (1996) for the weights of the panel, with Lawson and Hanson (1974), Ch. 23 (non-negative least
squares, and the row for the sum); Robins, Hernan and Brumback (2000), Sec. 6, for those of rows; the panel as
judge is ours.
"""

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
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.seeding import generator, round_seed, seeded
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.task_pool import results, worth
from rehearsal_torch.training.surrogate_fit import folds_of


@dataclass(frozen=True)
class Candidate:
    """A method that takes part.

    Attributes:
        fitted: Returns a new model, fitted to some rows.
        objective: Builds the objective of its decisions.
    """

    name: str
    fitted: Callable[[Table], Surrogate]
    objective: Callable[..., Any]
    search: Search[Any]


@dataclass(frozen=True)
class Limits:
    """How much is compared, so that the time is bounded.

    Attributes:
        rows: The largest number of rows; of more, some are drawn, whole units together.
        cases: The largest number of cases in each half.
        repeats: R, how often the rows are split in two.
    """

    rows: int = 1000
    cases: int = 40
    repeats: int = 3

    def __post_init__(self) -> None:
        for name, least in (("rows", 2 * MIN_ROWS), ("cases", 1), ("repeats", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"choose.{name}: expected a whole number of at least {least}; got {value}")


AT_ONCE = 256


@dataclass(frozen=True)
class Comparison:
    """What all splits have in common; `sets` are the candidate sets for which each row is predicted."""

    table: Table
    task: RehearsalTask
    sets: Sequence[tuple[str, ...]]
    candidates: Sequence[Candidate]
    limits: Limits
    seed: int


@dataclass
class Split:
    """What one split found.

    Attributes:
        predictions: Method to its predictions and baselines of all rows, (2, n).
        constant: The share of desired rows in the half that predicted, (n,).
        judged: By half: (chooser, judge) to the mean estimate over cases.
        baselines: By half: judge to its mean baseline.
    """

    names: tuple[str, ...]
    refused: dict[str, str]
    predictions: dict[str, Tensor]
    constant: Tensor
    judged: list[dict[tuple[str, str], float]]
    baselines: list[dict[str, float]]
    seconds: dict[str, float]


def split(comparison: Comparison, task: tuple[int, Sequence[Tensor]]) -> Split:
    """Fits every method to both halves, and lets the models predict, decide and judge; the task is the number
    of the split, and the rows of its two halves.
    """
    return OneSplit(comparison, *task).result()


# One half, and the other.
_TURNS = ((0, 1), (1, 0))


class OneSplit:
    """The split so far."""

    def __init__(self, comparison: Comparison, repeat: int, halves: Sequence[Tensor]) -> None:
        self.table, self.task, self.sets = comparison.table, comparison.task, comparison.sets
        self.limits, self.seed = comparison.limits, comparison.seed
        self.repeat, self.halves = repeat, halves
        self.candidates = list(comparison.candidates)
        self.refused = dict[str, str]()
        self.seconds = {each.name: 0.0 for each in self.candidates}

    def result(self) -> Split:
        """What it found; without names if no method went through it."""
        models: dict[str, list[Surrogate]] = {}
        for each in self.candidates:
            if fitted := self._models(each):
                models[each.name] = fitted
        fit = [each for each in self.candidates if each.name in models]
        predicted = {each.name: self._both(each, models[each.name]) for each in fit}
        silent = [name for name, each in predicted.items() if not bool(each.isfinite().all())]
        for name in silent:
            self.refused[name] = "it has no estimate of the probability of a desired outcome for every action"
        self.candidates = [each for each in fit if each.name not in silent]
        desired = self.task.region.contains(self.table.columns(self.task.outcomes)).to(torch.float64)
        constant = torch.zeros(len(self.table), dtype=torch.float64)
        for one, other in _TURNS:
            constant[self.halves[other]] = desired[self.halves[one]].mean()
        turns = [self._decide(models, one, other) for one, other in _TURNS if self.candidates]
        judged, baselines = [points for points, _ in turns], [untouched for _, untouched in turns]
        names = tuple(each.name for each in self.candidates)
        return Split(names, self.refused, predicted, constant, judged, baselines, self.seconds)

    def _both(self, candidate: Candidate, models: Sequence[Surrogate]) -> Tensor:
        """The predictions and baselines of all rows, each by the model of the other half, (2, n)."""
        predicted = torch.zeros(2, len(self.table), dtype=torch.float64)
        for one, other in _TURNS:
            with self._timed(candidate.name, f"predict {self.repeat} {one}"):
                predicted[:, self.halves[other]] = self._predicted(candidate, models[one], self.halves[other])
        return predicted

    def _models(self, candidate: Candidate) -> list[Surrogate]:
        """The models of both halves; none if it cannot be fitted to one of them."""
        try:
            with self._timed(candidate.name, "fit"):
                return [candidate.fitted(part_of(self.table, rows)) for rows in self.halves]
        except ValueError as error:
            self.refused[candidate.name] = f"it cannot be fitted to half of the rows: {error}"
            return []

    def _predicted(self, candidate: Candidate, model: Surrogate, rows: Tensor) -> Tensor:
        """P(desired) of rows at their actions, and by their contexts alone, (2, m)."""
        points = []
        for batch in rows.split(AT_ONCE):
            cases = row_cases(self.table, self.task, batch)
            actions = [
                Decision(Alteration(self.sets[row], self.table.columns(self.sets[row])[row]), 0.0)
                for row in batch.tolist()
            ]
            points.append(_points(alterations_for(candidate.objective, model, cases), actions))
        return torch.cat(points, 1)

    def _decide(
        self, models: Mapping[str, Sequence[Surrogate]], one: int, other: int
    ) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
        """The models of half `one` decide for cases of the other half, whose models judge them, and what is
        there without an action.
        """
        repeat, rows = self.repeat, self.halves[other]
        stream = generator(round_seed(self.seed, f"choose a method, cases {repeat} {one}"))
        count = min(self.limits.cases, len(self.table) // 2)
        drawn = rows[torch.randperm(len(rows), generator=stream)[:count]]
        cases = row_cases(self.table, self.task, drawn, weighed(self.task))
        by_method = {}
        for each in self.candidates:
            with self._timed(each.name, f"decide {repeat} {one}"):
                by_method[each.name] = self._decisions(each, models[each.name][one], cases)
        judged, baselines = dict[tuple[str, str], float](), dict[str, float]()
        for each in self.candidates:
            with self._timed(each.name, f"judge {repeat} {one}"):
                objective = alterations_for(each.objective, models[each.name][other], cases)
                for chooser, decisions in by_method.items():
                    points, untouched = _points(objective, decisions)
                    shares = [paid(case, decision) for case, decision in zip(cases, decisions, strict=True)]
                    costs = torch.tensor(shares, dtype=torch.float64)
                    values = points.where(points.isfinite(), untouched) - costs
                    judged[chooser, each.name] = float(values.mean())
                    baselines[each.name] = float(untouched.mean())
        return judged, baselines

    def _decisions(
        self, candidate: Candidate, model: Surrogate, cases: Sequence[RehearsalCase]
    ) -> list[Decision]:
        """The decisions of a model, as a run makes them."""
        search = candidate.search
        decisions: list[Decision] = []
        for batch in in_batches(cases, search.batch_size if isinstance(search, BatchSearch) else 1):
            objective = alterations_for(candidate.objective, model, batch)
            chosen = (
                search.batch_search(objective) if isinstance(search, BatchSearch) else [search(objective)]
            )
            decisions += ruled(objective, chosen, search.declines)
        return decisions

    @contextmanager
    def _timed(self, name: str, what: str) -> Iterator[None]:
        """Adds the duration of a block to a method's seconds; the block has random states of its own."""
        began = time.perf_counter()
        try:
            own = round_seed(self.seed, f"choose a method, {what}")
            with seeded(own), in_numbers("half of the rows"):
                yield
        finally:
            self.seconds[name] += time.perf_counter() - began


def _points(objective: Candidates[AlterationObjective], decisions: Sequence[Decision]) -> Tensor:
    """What an objective says of decisions, and of no action, (2, B); NaN where nothing is altered, or where
    it says nothing.
    """
    found = torch.full((2, len(decisions)), torch.nan, dtype=torch.float64)
    appraised = objective.appraisals(decisions)
    if any(each is None for each in appraised):
        first = objective.whole[0]
        idle = first.appraise(first.starts(1)[0])
    for index, each in enumerate(appraised):
        if each is not None and each.estimate is not None:
            found[0, index] = each.estimate.point
        baseline = (idle[index] if each is None else each).baseline
        if baseline is not None:
            found[1, index] = baseline.point
    return found


@dataclass(frozen=True)
class Compared:
    """What the comparison found; m methods, n rows, R repeats, J = 2 R halves.

    Attributes:
        refused: Method to why it could not be fitted, or does not predict.
        values: The value of each method in each half by each judge, (m, J, m).
        nothing: That of doing nothing, (J, m).
        panel: alpha, the weight of each judge, (m,).
        predicted: P(desired) at each row's action, (R, m, n).
        untouched: P(desired) of each row by its context alone, (R, m, n).
        constant: The share of desired rows in the half that predicted, (R, n).
        desired: Whether each outcome is desired, (n,), 0 or 1.
        weights: The weight of each row, (n,).
        units: The number of each row's unit, (n,) long.
        worth: What a desired outcome is worth, where values are less the costs of decisions; else None.
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
    told: Callable[[str], None] | None = None,
    workers: int = 1,
) -> Compared:
    """Fits every method to both halves of the rows, and lets the models predict, decide and judge.

    The work is bounded: 2 R fits, and 2 R times the cases to decide for and to judge, for each method.

    Args:
        units: The unit of each row; None if every row is a unit of its own.
        seed: Determines rows, halves, cases and the draws of the searches.
        told: Is told of the progress, one line per half with the time that is left; None for silence.
        workers: The number of processes that share the splits after the first one, each with one thread, if
            it shows that this pays (`shared_tasks`).

    Raises:
        ValueError: if there are too few rows or units for two halves, or no method can be fitted to them.
        ClusterError: if joblib's context names a cluster that cannot share the splits.
    """
    rows = _drawn(len(table), units, limits.rows, seed)
    table, units = part_of(table, rows), None if units is None else [units[row] for row in rows.tolist()]
    sets = [task.candidates[row % len(task.candidates)] for row in range(len(table))]
    every = {names: row_weights(table, task, names) for names in dict.fromkeys(sets)}
    weights = torch.stack([every[names][row] for row, names in enumerate(sets)])
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
    began = time.perf_counter()
    splits: list[Split] = []
    for each in _splits(work, tasks, workers):
        splits.append(each)
        names = tuple(each.name for each in candidates if all(each.name in one.names for one in splits))
        # The first reason of each method that did not go through all splits.
        refused = {name: why for one in reversed(splits) for name, why in one.refused.items()}
        if not names:
            why = "; ".join(f"{name}: {words}" for name, words in refused.items())
            raise ValueError(f"no method can be compared on these rows: {why}")
        done, spent = len(splits), time.perf_counter() - began
        if told is not None:
            left = spent / done * (limits.repeats - done)
            told(
                f"auto: split {done} of {limits.repeats}, {len(names)} methods fitted to both "
                f"halves, {spent:.0f} s, about {left:.0f} s left"
            )
    return _result(work, splits, names, refused, desired, weights, units)


def _splits(work: Comparison, tasks: Sequence[tuple[int, Sequence[Tensor]]], workers: int) -> Iterator[Split]:
    """What the splits found. The first one is made here: it shows what a split costs, and which methods
    cannot be fitted to half of the rows, which the others leave out.
    """
    began = time.perf_counter()
    first = split(work, tasks[0])
    yield first
    rest = replace(work, candidates=[each for each in work.candidates if each.name in first.names])
    workers = worth(time.perf_counter() - began, len(tasks) - 1, workers)
    yield from results(split, rest, tasks[1:], workers, ahead=1)


def _result(
    work: Comparison,
    splits: Sequence[Split],
    names: tuple[str, ...],
    refused: Mapping[str, str],
    desired: Tensor,
    weights: Tensor,
    units: Sequence[str] | None,
) -> Compared:
    """What was found, of the methods that went through all splits."""
    both = torch.stack([torch.stack([each.predictions[name] for name in names]) for each in splits])
    predicted, untouched = both[:, :, 0].clamp(0, 1), both[:, :, 1].clamp(0, 1)
    repeats, count = len(splits), len(desired)
    panel = panel_weights(
        predicted.transpose(0, 1).reshape(len(names), repeats * count),
        desired.repeat(repeats),
        weights.repeat(repeats),
    )
    judged = [half for each in splits for half in each.judged]
    baselines = [half for each in splits for half in each.baselines]
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
        torch.stack([each.constant for each in splits]),
        desired,
        weights,
        torch.arange(count) if units is None else torch.tensor([numbers[unit] for unit in units]),
        min(work.limits.cases, count // 2),
        {each.name: sum(one.seconds.get(each.name, 0.0) for one in splits) for each in work.candidates},
        work.task.worth if weighed(work.task) else None,
    )


def _drawn(count: int, units: Sequence[str] | None, most: int, seed: int) -> Tensor:
    """The rows that are compared, in ascending order: all, or whole units drawn until there are enough."""
    if count <= most:
        return torch.arange(count)
    stream = generator(round_seed(seed, "choose a method, rows"))
    if units is None:
        return torch.randperm(count, generator=stream)[:most].sort().values
    places: dict[str, list[int]] = {}
    for row, unit in enumerate(units):
        places.setdefault(unit, []).append(row)
    names, found = sorted(places), list[int]()
    for place in torch.randperm(len(names), generator=stream).tolist():
        if len(found) >= most:
            break
        found += places[names[place]]
    return torch.tensor(sorted(found))


# The weight of the row for the sum, relative to the largest entry of the others.
HEAVY = 1e4


def panel_weights(predicted: Tensor, desired: Tensor, weights: Tensor) -> Tensor:
    """The weight of each method, (m,), at least 0 and with sum 1, from its predicted probabilities, (m, n),
    whether each outcome is desired, (n,), 0 or 1, and the weights of the rows, (n,).
    """
    from scipy.optimize import nnls

    root = weights.sqrt()
    left, right = (predicted * root).mT, desired * root
    # n rows become m + 1 at most, with the same sums of squares.
    _, triangle = torch.linalg.qr(torch.cat([left, right[:, None]], 1))
    heavy = HEAVY * float(triangle.abs().max())
    matrix = torch.cat([triangle[:, :-1], torch.full((1, len(predicted)), heavy, dtype=torch.float64)])
    target = torch.cat([triangle[:, -1], torch.tensor([heavy], dtype=torch.float64)])
    found = torch.from_numpy(nnls(matrix.numpy(), target.numpy())[0])
    return found / found.sum()


LARGEST = 10.0
# Relative to the variance of an action: keeps the density of one that its covariates determine defined.
SMALLEST = 1e-6


def row_weights(table: Table, task: RehearsalTask, names: tuple[str, ...]) -> Tensor:
    """The weight of each of n observed rows for an alteration, (n,), with mean 1."""
    found = adjustment(task.graph, task.context, names, task.outcomes)
    later = tuple(name for name in names if name not in found.first)
    before = (*task.context, *found.before)
    # Altered variables, what they are given in the numerator, and in the denominator.
    blocks = (
        [
            (found.first, task.context, before),
            (later, (*task.context, *found.first), (*before, *found.first, *found.between)),
        ]
        if found.first
        else [(names, task.context, before)]
    )
    total = torch.zeros(len(table), dtype=torch.float64)
    for actions, few, many in blocks:
        if set(few) != set(many):
            values = table.columns(actions)
            total += _log_density(values, table.columns(few)) - _log_density(values, table.columns(many))
    weights = total.exp().clamp_max(LARGEST)
    return weights / weights.mean()


def _log_density(values: Tensor, given: Tensor) -> Tensor:
    """Log density of each row's action (n, k) in a linear regression on what is given (n, p), (n,)."""
    count = len(values)
    scale = values.std(0)
    scaled = (values - values.mean(0)) / torch.where(scale > 0, scale, torch.ones_like(scale))
    inputs = torch.cat([torch.ones(count, 1, dtype=torch.float64), _standardised(given)], 1)
    gram = inputs.mT @ inputs + count * 1e-10 * torch.eye(inputs.shape[1], dtype=torch.float64)
    residuals = scaled - inputs @ torch.linalg.solve(gram, inputs.mT @ scaled)
    covariance = residuals.mT @ residuals / max(count - inputs.shape[1], 1)
    root = torch.linalg.cholesky(covariance + SMALLEST * torch.eye(values.shape[1], dtype=torch.float64))
    white = torch.linalg.solve_triangular(root, residuals.mT, upper=False)
    return -0.5 * white.square().sum(0) - root.diagonal().log().sum()


def _standardised(values: Tensor) -> Tensor:
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))
