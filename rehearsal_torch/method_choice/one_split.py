"""One split of the rows into halves: every method is fitted to both, predicts, decides, and judges.

What is found depends on the rows, the methods, the seed and the number of the split alone, so that several
processes may share the splits (`shared_tasks`). A method that cannot be fitted to a half, or has no estimate
for some action, is refused, and the others go on.

See `method_choice.comparison`.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.claims.improvement import paid
from rehearsal_torch.claims.row_cases import alterations_for, in_batches, part_of, row_cases, weighed
from rehearsal_torch.claims.rules import ruled
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.seeding import generator, round_seed, seeded
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.surrogate import Surrogate


@dataclass(frozen=True)
class Candidate:
    """A method that takes part.

    Attributes:
        fitted: Returns a new model, fitted to some rows.
        objective: Builds the objective of its decisions.
        search: Finds the actions.
        within: The method whose models contain its own, and the name of the attribute that holds it, so that
            nothing is fitted twice; None if there is none.
    """

    name: str
    fitted: Callable[[Table], Surrogate]
    objective: Callable[..., Any]
    search: Search[Any]
    within: tuple[str, str] | None = None


@dataclass(frozen=True)
class Limits:
    """How much is compared, so that the time is bounded.

    Attributes:
        rows: The largest number of rows; of more, some are drawn, whole units together.
        cases: The largest number of cases in each half.
        repeats: R, how often the rows are split in two.

    Raises:
        ValueError: if a number is too small.
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
    """What all splits have in common.

    Attributes:
        table: The n rows.
        places: The candidate set for which each row is predicted.
        limits: How much is compared.
        seed: Determines cases and the draws of fits and searches.
    """

    table: Table
    task: RehearsalTask
    places: Sequence[tuple[str, ...]]
    candidates: Sequence[Candidate]
    limits: Limits
    seed: int


@dataclass
class Split:
    """What one split found.

    Attributes:
        names: The methods that went through it.
        refused: Method to why it did not.
        predictions: Method to its predictions and baselines of all rows, (2, n).
        constant: The share of desired rows in the half that predicted, (n,).
        judged: By half: (chooser, judge) to the mean estimate over cases.
        baselines: By half: judge to its mean baseline.
        seconds: The duration of all fits and decisions of each method.
    """

    names: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    predictions: dict[str, Tensor] = field(default_factory=dict)
    constant: Tensor = field(default_factory=lambda: torch.zeros(0))
    judged: list[dict[tuple[str, str], float]] = field(default_factory=list)
    baselines: list[dict[str, float]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def split(comparison: Comparison, task: tuple[int, Sequence[Tensor]]) -> Split:
    """Fits every method to both halves, and lets the models predict, decide and judge.

    Args:
        comparison: What all splits have in common.
        task: The number of the split, and the rows of its two halves.
    """
    repeat, halves = task
    return _OneSplit(comparison, repeat, halves).found()


class _OneSplit:
    """The split so far."""

    def __init__(self, comparison: Comparison, repeat: int, halves: Sequence[Tensor]) -> None:
        self.table, self.task, self.places = comparison.table, comparison.task, comparison.places
        self.limits, self.seed = comparison.limits, comparison.seed
        self.repeat, self.halves = repeat, halves
        self.candidates = list(comparison.candidates)
        self.refused = dict[str, str]()
        self.seconds = {each.name: 0.0 for each in self.candidates}

    def found(self) -> Split:
        """What it found; without names if no method went through it."""
        models: dict[str, list[Surrogate]] = {}
        for each in sorted(self.candidates, key=lambda one: one.within is not None):
            if found := self._models(each, models):
                models[each.name] = found
        predicted = {name: self._both(name, found) for name, found in models.items()}
        silent = [name for name, each in predicted.items() if not bool(each.isfinite().all())]
        for name in silent:
            self.refused[name] = "it has no estimate of the probability of a desired outcome for every action"
        self.candidates = [
            each for each in self.candidates if each.name in models and each.name not in silent
        ]
        names = tuple(each.name for each in self.candidates)
        desired = self.task.region.contains(self.table.columns(self.task.outcomes)).to(torch.float64)
        constant = torch.zeros(len(self.table), dtype=torch.float64)
        for one, other in ((0, 1), (1, 0)):
            constant[self.halves[other]] = desired[self.halves[one]].mean()
        judged, baselines = [], []
        for one, other in ((0, 1), (1, 0)) if names else ():
            points, untouched = self._decide({name: models[name] for name in names}, one, other)
            judged.append(points)
            baselines.append(untouched)
        return Split(names, self.refused, predicted, constant, judged, baselines, self.seconds)

    def _both(self, name: str, models: Sequence[Surrogate]) -> Tensor:
        """The predictions and baselines of all rows, each by the model of the other half, (2, n)."""
        predicted = torch.zeros(2, len(self.table), dtype=torch.float64)
        for one, other in ((0, 1), (1, 0)):
            with self._timed(name, f"predict {self.repeat} {one}"):
                predicted[:, self.halves[other]] = self._predicted(name, models[one], self.halves[other])
        return predicted

    def _models(self, candidate: Candidate, known: Mapping[str, Sequence[Surrogate]]) -> list[Surrogate]:
        """The models of both halves; none if it cannot be fitted to one of them."""
        if candidate.within is not None and candidate.within[0] in known:
            whole, part = candidate.within
            return [each.get_submodule(part) for each in known[whole]]  # type: ignore[misc]
        try:
            with self._timed(candidate.name, "fit"):
                return [candidate.fitted(part_of(self.table, rows)) for rows in self.halves]
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
        self, models: Mapping[str, Sequence[Surrogate]], one: int, other: int
    ) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
        """The models of half `one` decide for cases of the other half, whose models judge them, and what is
        there without an action.
        """
        repeat, halves = self.repeat, self.halves
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
        return judged, baselines

    def _decisions(
        self, candidate: Candidate, model: Surrogate, cases: Sequence[RehearsalCase]
    ) -> list[Decision]:
        """The decisions of a model, as a run makes them."""
        search = candidate.search
        found: list[Decision] = []
        for batch in in_batches(cases, search.batch_size if isinstance(search, BatchSearch) else 1):
            objective = self._objective(candidate.name, model, batch)
            made = search.batch_search(objective) if isinstance(search, BatchSearch) else [search(objective)]
            found += ruled(objective, made, search.declines)
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
