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
(`method_choice.panel`): a method that predicts badly hardly judges, and no method is its own judge alone.

So v measures what models of other rows think of the decisions of a method fitted to half the rows. It is no
outcome of those decisions: no table has these. Where no row is near a decision, or all methods are wrong in
the same way (a wrong graph, a hidden cause), it is wrong as well. Half the rows favour methods that need few.

Where there are several candidate sets, each row is predicted for one of them, in turn. Its weight makes up
for what drives its action (`method_choice.row_weights`).

Source: Chernozhukov et al. (2018) for rows that did not choose; van der Laan, Polley and Hubbard (2007) for
the weights; the panel as judge is ours.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.method_choice.candidate import Candidate, Limits
from rehearsal_torch.method_choice.panel import panel_weights
from rehearsal_torch.method_choice.row_weights import row_weights
from rehearsal_torch.objectives.candidates import Candidates, appraisals
from rehearsal_torch.objectives.net_value import paid
from rehearsal_torch.objectives.objective import AlterationObjective
from rehearsal_torch.row_cases import alterations_for, in_batches, part_of, row_cases, weighed
from rehearsal_torch.search.alterations.net_value import decided
from rehearsal_torch.search.search import BatchSearch
from rehearsal_torch.seeding import generator, round_seed
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.folds import folds_of

AT_ONCE = 256


@dataclass(frozen=True)
class Compared:
    """What the comparison found; m methods, n rows, R repeats, J = 2 R halves.

    Attributes:
        methods: The m methods that were fitted.
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
        cases: The number of cases in each half.
        seconds: The duration of all fits and decisions of each method.
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
) -> Compared:
    """Fits every method to both halves of the rows, and lets the models predict, decide and judge.

    The work is bounded: 2 R fits, and 2 R times the cases to decide for and to judge, for each method.

    Args:
        table: The observations.
        units: The unit of each row; None if every row is a unit of its own.
        task: The roles of the variables.
        candidates: The methods.
        limits: How much is compared.
        seed: Determines rows, halves, cases and the draws of the searches.
        told: Is told of the progress, one line per half with the time that is left; None for silence.

    Raises:
        ValueError: if there are too few rows or units for two halves, or no method can be fitted to them.
    """
    rows = _drawn(len(table), units, limits.rows, seed)
    table, units = part_of(table, rows), None if units is None else [units[row] for row in rows.tolist()]
    sets = task.candidates
    places = [sets[row % len(sets)] for row in range(len(table))]
    every = {names: row_weights(table, task, names) for names in dict.fromkeys(places)}
    weights = torch.stack([every[names][row] for row, names in enumerate(places)])
    desired = task.region.contains(table.columns(task.outcomes)).to(torch.float64)
    work = _Work(table, task, places, list(candidates), limits, seed)
    began = time.perf_counter()
    for repeat in range(limits.repeats):
        halves = folds_of(len(table), units, 2, round_seed(seed, f"choose a method, halves {repeat}"))
        fewest = min(len(fold.held_out) for fold in halves)
        if fewest < MIN_ROWS:
            raise ValueError(
                f"each half of the rows is fitted to by itself, with at least {MIN_ROWS} rows; got a half of "
                f"{fewest} (of {len(table)} rows): name the method instead of auto, or use more rows"
            )
        work.split([fold.held_out for fold in halves], repeat)
        done, spent = repeat + 1, time.perf_counter() - began
        if told is not None:
            left = spent / done * (limits.repeats - done)
            told(
                f"auto: split {done} of {limits.repeats}, {len(work.candidates)} methods fitted to both "
                f"halves, {spent:.0f} s, about {left:.0f} s left"
            )
    return work.result(desired, weights, units)


class _Work:
    """The comparison so far."""

    def __init__(
        self,
        table: Table,
        task: RehearsalTask,
        places: Sequence[tuple[str, ...]],
        candidates: list[Candidate],
        limits: Limits,
        seed: int,
    ) -> None:
        self.table, self.task, self.places, self.limits, self.seed = table, task, places, limits, seed
        self.candidates, self.refused = candidates, dict[str, str]()
        self.seconds = {each.name: 0.0 for each in candidates}
        # By repeat: name to (2, n), predictions and baselines of all rows.
        self.predictions: list[dict[str, Tensor]] = []
        self.constants: list[Tensor] = []
        # By half: (chooser, judge) to the mean estimate over cases; judge to its mean baseline.
        self.judged: list[dict[tuple[str, str], float]] = []
        self.baselines: list[dict[str, float]] = []

    def split(self, halves: Sequence[Tensor], repeat: int) -> None:
        """One split of the rows: fits, predictions, decisions and judgements."""
        models: dict[str, list[Surrogate]] = {}
        for each in sorted(self.candidates, key=lambda one: one.within is not None):
            if found := self._models(each, halves, models):
                models[each.name] = found
        self._keep(models)
        predicted, constant = {}, torch.zeros(len(self.table), dtype=torch.float64)
        desired = self.task.region.contains(self.table.columns(self.task.outcomes)).to(torch.float64)
        for name, found in models.items():
            predicted[name] = torch.zeros(2, len(self.table), dtype=torch.float64)
            for one, other in ((0, 1), (1, 0)):
                with self._timed(name, f"predict {repeat} {one}"):
                    predicted[name][:, halves[other]] = self._predicted(name, found[one], halves[other])
        for one, other in ((0, 1), (1, 0)):
            constant[halves[other]] = desired[halves[one]].mean()
        silent = [name for name, each in predicted.items() if not bool(each.isfinite().all())]
        for name in silent:
            self.refused[name] = "it has no estimate of the probability of a desired outcome for every action"
        self._keep({name: found for name, found in models.items() if name not in silent})
        self.predictions.append(predicted)
        self.constants.append(constant)
        for one, other in ((0, 1), (1, 0)):
            self._decide(
                {each.name: models[each.name] for each in self.candidates}, halves, one, other, repeat
            )

    def result(self, desired: Tensor, weights: Tensor, units: Sequence[str] | None) -> Compared:
        """What was found."""
        names = tuple(each.name for each in self.candidates)
        both = torch.stack([torch.stack([each[name] for name in names]) for each in self.predictions])
        predicted, untouched = both[:, :, 0].clamp(0, 1), both[:, :, 1].clamp(0, 1)
        repeats, count = len(self.predictions), len(desired)
        panel = panel_weights(
            predicted.transpose(0, 1).reshape(len(names), repeats * count),
            desired.repeat(repeats),
            weights.repeat(repeats),
        )
        values = torch.tensor(
            [[[each[name, judge] for judge in names] for each in self.judged] for name in names],
            dtype=torch.float64,
        )
        nothing = torch.tensor(
            [[each[judge] for judge in names] for each in self.baselines], dtype=torch.float64
        )
        places = {unit: place for place, unit in enumerate(dict.fromkeys(units or ()))}
        return Compared(
            names,
            self.refused,
            values,
            nothing,
            panel,
            predicted,
            untouched,
            torch.stack(self.constants),
            desired,
            weights,
            torch.arange(count) if units is None else torch.tensor([places[unit] for unit in units]),
            min(self.limits.cases, count // 2),
            self.seconds,
            self.task.worth if weighed(self.task) else None,
        )

    def _keep(self, models: Mapping[str, Any]) -> None:
        """Goes on with the methods that have models.

        Raises:
            ValueError: if there is none.
        """
        self.candidates = [each for each in self.candidates if each.name in models]
        if not self.candidates:
            why = "; ".join(f"{name}: {words}" for name, words in self.refused.items())
            raise ValueError(f"no method can be compared on these rows: {why}")

    def _models(
        self, candidate: Candidate, halves: Sequence[Tensor], known: Mapping[str, Sequence[Surrogate]]
    ) -> list[Surrogate]:
        """The models of both halves; none if it cannot be fitted to one of them."""
        if candidate.within is not None and candidate.within[0] in known:
            whole, part = candidate.within
            return [each.get_submodule(part) for each in known[whole]]  # type: ignore[misc]
        try:
            with self._timed(candidate.name, "fit"):
                return [candidate.fitted(part_of(self.table, rows)) for rows in halves]
        except ValueError as error:
            self.refused[candidate.name] = f"it cannot be fitted to half of the rows: {error}"
            return []

    def _predicted(self, name: str, model: Surrogate, rows: Tensor) -> Tensor:
        """P(desired) of rows at their actions, and by their contexts alone, (2, m)."""
        found = []
        for batch in rows.split(AT_ONCE):
            objective = self._objective(name, model, row_cases(self.table, self.task, batch))
            sets = [self.places[row] for row in batch.tolist()]
            actions = [
                Decision(Alteration(names, self.table.columns(names)[row]), 0.0)
                for row, names in zip(batch.tolist(), sets, strict=True)
            ]
            found.append(_points(objective, actions))
        return torch.cat(found, 1)

    def _decide(
        self,
        models: Mapping[str, Sequence[Surrogate]],
        halves: Sequence[Tensor],
        one: int,
        other: int,
        repeat: int,
    ) -> None:
        """The models of half `one` decide for cases of the other half, whose models judge them."""
        stream = generator(round_seed(self.seed, f"choose a method, cases {repeat} {one}"))
        count = min(self.limits.cases, len(self.table) // 2)
        places = halves[other][torch.randperm(len(halves[other]), generator=stream)[:count]]
        cases = row_cases(self.table, self.task, places, weighed(self.task))
        made = {}
        for each in self.candidates:
            with self._timed(each.name, f"decide {repeat} {one}"):
                made[each.name] = self._decisions(each, models[each.name][one], cases)
        judged, baselines = dict[tuple[str, str], float](), dict[str, float]()
        for each in self.candidates:
            with self._timed(each.name, f"judge {repeat} {one}"):
                objective = self._objective(each.name, models[each.name][other], cases)
                for chooser, decisions in made.items():
                    points, untouched = _points(objective, decisions)
                    shares = [paid(case, one) for case, one in zip(cases, decisions, strict=True)]
                    values = points.where(points.isfinite(), untouched) - torch.tensor(shares).double()
                    judged[chooser, each.name] = float(values.mean())
                    baselines[each.name] = float(untouched.mean())
        self.judged.append(judged)
        self.baselines.append(baselines)

    def _decisions(
        self, candidate: Candidate, model: Surrogate, cases: Sequence[RehearsalCase]
    ) -> list[Decision]:
        """The decisions of a model, as a run makes them."""
        search = candidate.search
        found: list[Decision] = []
        for batch in in_batches(cases, search.batch_size if isinstance(search, BatchSearch) else 1):
            objective = self._objective(candidate.name, model, batch)
            made = decided(search, objective) if isinstance(search, BatchSearch) else [search(objective)]
            found += objective.guarded(made, search.declines)
        return found

    def _objective(
        self, name: str, model: Surrogate, cases: Sequence[RehearsalCase]
    ) -> Candidates[AlterationObjective]:
        (candidate,) = (each for each in self.candidates if each.name == name)
        return alterations_for(candidate.objective, model, cases)

    @contextmanager
    def _timed(self, name: str, what: str) -> Iterator[None]:
        """Adds the duration of a block to a method's seconds; the block has random states of its own."""
        began = time.perf_counter()
        try:
            with torch.random.fork_rng(devices=[]), in_numbers("half of the rows"):
                torch.manual_seed(round_seed(self.seed, f"choose a method, {what}"))
                yield
        finally:
            self.seconds[name] += time.perf_counter() - began


def _points(objective: Candidates[AlterationObjective], decisions: Sequence[Decision]) -> Tensor:
    """What an objective says of decisions, and of no action, (2, B); NaN where nothing is altered, or where
    it says nothing.
    """
    found = torch.full((2, len(decisions)), torch.nan, dtype=torch.float64)
    appraised = appraisals(objective.whole, decisions)
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
