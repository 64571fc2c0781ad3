"""Arguments of rehearsals, validated before a fit: rows, task and cases in any of their forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import torch
from narwhals.typing import IntoDataFrame
from omegaconf import DictConfig
from torch import Tensor

from rehearsal_torch.api.fit_and_decide import configuration, refuse_arguments
from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.problem_file.cases_builder import WrittenProblem, written_problem
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.size_limits import check_seed
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import frame_of_rows, row_count
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import LARGEST
from rehearsal_torch.methods.method_choice import NOTHING, Choice, choose, with_method
from rehearsal_torch.methods.presets import AUTO, CHOOSE, check_method
from rehearsal_torch.methods.run_parts import Method, Run, build, method_of
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.problems.drafts.draft_yaml import YAML
from rehearsal_torch.problems.problem import RehearsalProblem
from rehearsal_torch.user_error import RequestError

# The configuration groups in which settings are allowed.
METHOD = "outcome_regression"
GROUPS = ("surrogate", "objective", "search", "trainer", "dataset")
TAKEN = {"dataset.path": "table", "dataset.task": "task", "dataset.contexts": "cases", "dataset.seed": "seed"}


@dataclass(frozen=True)
class Request:
    """A checked request; `written` is the problem file of rows and task, None if they were given."""

    rows: IntoDataFrame | Table | ReadTable | str | Path
    task: Mapping[str, Any] | str | Path | RehearsalTask
    method: str
    seed: int
    settings: Mapping[str, object]
    written: WrittenProblem | None = None

    @classmethod
    def of(
        cls, table: Any, task: Any, method: str | None, seed: int, settings: Mapping[str, object]
    ) -> "Request":
        """A request whose arguments, those of `rehearse`, are of the right types."""
        seed = check_request_seed(seed)
        refuse_arguments(settings, TAKEN)
        if task is None:
            file = written_problem(problem_file(table, "rehearse"))
            return cls(file.rows, file.task, method or file.form.method or METHOD, seed, settings, file)
        rows = rows_of(table, "table")
        if not isinstance(task, Mapping | RehearsalTask):
            _check_file(task, "task", "a dictionary, a YAML file or a RehearsalTask")
        return cls(rows, task, method or METHOD, seed, settings)

    def configured(self) -> tuple[DictConfig, Method | None]:
        """The method's configuration, and the method; None for "auto", which has yet to take one."""
        check_method(self.method, "rehearse")
        groups = (CHOOSE, "dataset") if self.method == AUTO else GROUPS
        config = configuration(self.method, self.settings, groups, self.seed, "own_table")
        return config, None if self.method == AUTO else method_of(config)

    def run(
        self, config: DictConfig, method: Method | None, problem: RehearsalTable, workers: int = 1
    ) -> "tuple[Request, Run, Choice | None]":
        """The request with a method, its run, and the choice of "auto" (None for a named method)."""
        if method is not None:
            return self, build(config, problem, method), None
        choice = choose(config, problem, workers=workers)
        settings = {key: value for key, value in self.settings.items() if not key.startswith(f"{CHOOSE}.")}
        request = replace(self, method=choice.chosen, settings=settings)
        config, method = request.configured()
        if choice.chosen == NOTHING:
            config = with_method(config, NOTHING, choice.model)
            method = method_of(config)
        return request, build(config, problem, method), choice

    def problem(self, config: DictConfig, cases: Any = None) -> RehearsalTable:
        """The rows with task and cases; by default all rows, or those that the problem file decides for."""
        data = config.dataset
        if self.written is not None:
            later = None if cases is None else rows_of(cases, "cases")
            return OwnProblem(self.written, data.validation, data.kept, self.seed, later, data.identity)
        contexts = self.rows if cases is None else rows_of(cases, "cases")
        return RehearsalTable(
            self.rows,
            self.task,
            contexts,
            data.identity,
            data.validation,
            data.kept,
            self.seed,
            # Rows of the past as cases: what was done in them is no present value.
            present=cases is not None,
        )


def check_request_seed(seed: object) -> int:
    """The seed, as a whole number of Python."""
    try:
        return check_seed(seed)
    except ValueError as error:
        raise RequestError(str(error)) from None


def problem_file(table: Any, verb: str) -> str | Path:
    """The path of a problem file that stands in for a table and a task."""
    if not isinstance(table, str | Path) or Path(table).suffix.lower() not in YAML:
        raise RequestError(
            f"task: missing; expected rt.{verb}(table, task), or a problem file alone, "
            f'rt.{verb}("problem.yaml")'
        )
    return _check_file(table, "table", "a problem file")


def check_workers(workers: object) -> None:
    """Refuses anything but a positive number of processes."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise RequestError(f"workers: expected a whole number of at least 1; got {workers!r}")


def labels_of(given: object) -> pd.Index | None:
    """The index of a data frame of pandas; None for anything else."""
    return given.index if isinstance(given, pd.DataFrame) else None


def names_of(given: object, count: int) -> list[str] | None:
    """The names of cases in memory, by a pandas index or from 1 on; None for a file, which names its own."""
    if given is None or isinstance(given, str | Path):
        return None
    labels = labels_of(given)
    if labels is not None and labels.is_unique and not labels.equals(pd.RangeIndex(count)):
        return [
            ", ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in labels.tolist()
        ]
    return [str(number) for number in range(1, count + 1)]


def plain_contexts(given: Any, task: RehearsalTask) -> Tensor | None:
    """The contexts (B, |X|) of dictionaries of numbers, read 30 times as fast as tables; else None."""
    rows, names = [given] if isinstance(given, Mapping) else given, set(task.context)
    if not isinstance(rows, list) or not rows or task.codings or task.costs:
        return None
    if not all(isinstance(row, Mapping) and row.keys() == names for row in rows):
        return None
    values = [row[name] for row in rows for name in task.context]
    if not all(type(value) in (int, float) and abs(value) <= LARGEST for value in values):
        return None
    return torch.tensor(values, dtype=torch.float64).reshape(len(rows), len(names))


def rows_of(given: Any, role: str) -> IntoDataFrame | Table | str | Path:
    """A data frame, a file or a table; a dictionary, or a list of these, becomes a data frame."""
    if isinstance(given, Mapping):
        given = [given]
    if isinstance(given, list | tuple):
        if wrong_kinds := [type(row).__name__ for row in given if not isinstance(row, Mapping)]:
            raise RequestError(f"{role}: expected a dictionary for each row; got a {wrong_kinds[0]}")
        given = frame_of_rows(given)
    rows = len(given) if isinstance(given, Table) else row_count(given)
    if rows == 0:
        raise RequestError(f"{role}: expected at least one row; got none")
    if rows is not None:
        return given
    return _check_file(given, role, "a data frame, a .csv file, a Table or a list of dictionaries")


def _check_file(file: Any, role: str, expected: str) -> str | Path:
    if not isinstance(file, str | Path):
        raise RequestError(f"{role}: expected {expected}; got a {type(file).__name__}")
    try:
        exists = Path(file).is_file()
    except OSError as error:
        fault = f"{beginning(str(file), 60)}... cannot be a file ({error.strerror})"
        raise RequestError(f"{role}: {fault}") from None
    if not exists:
        raise RequestError(f"{role}: there is no file {file}: relative paths start from {Path.cwd()}")
    return file


class NewCases(RehearsalProblem):
    """Cases that come after the fit, without its rows: contexts `given` (B, |X|), in the task's order, the
    present values of actions, bounds in place of the task's, and the costs per unit that each case states
    (`data.tables.decision_cases`); the last three may be empty.
    """

    def __init__(
        self,
        task: RehearsalTask,
        given: Tensor,
        identities: Sequence[str],
        present: Sequence[Mapping[str, float]] = (),
        bounds: Mapping[str, tuple[float, float]] = MappingProxyType({}),
        unit_costs: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.task, self.given, self.identities, self.bounds = task, given, tuple(identities), bounds
        self.present = tuple(present) or ({},) * len(given)
        self.unit_costs = tuple(unit_costs) or ({},) * len(given)

    def observations(self) -> Table:
        """A table with the task's variables and no rows: the cases say nothing of outcomes."""
        names = self.task.graph.names
        return Table.observed(names, self.given.new_zeros(0, len(names)))

    def held_out(self) -> Table:
        """The same."""
        return self.observations()

    def count(self) -> int:
        """The number of cases."""
        return len(self.given)

    def case(self, index: int) -> RehearsalCase:
        """Case number `index`."""
        return self.cases([index])[0]

    def cases(self, indices: Sequence[int]) -> list[RehearsalCase]:
        """Some of the cases."""
        if unknown := [index for index in indices if not 0 <= index < self.count()]:
            raise IndexError(f"expected a case in 0 ... {self.count() - 1}; got {unknown[0]}")
        task, present, prices = self.task, self.present, self.unit_costs
        own_fields: list[dict[str, Any]] = [
            {"identity": self.identities[index], "present": present[index]} for index in indices
        ]
        if task.costs:
            for fields, index in zip(own_fields, indices, strict=True):
                fields["costs"] = CaseCosts.of(task.costs, task.worth, present[index], prices[index])
        bounds = {**task.box.bounds(), **self.bounds}
        return RehearsalCase.several(
            task.context,
            self.given[list(indices)],
            own_fields,
            feasible=bounds,
            levels=task.box.levels,
            codings=task.codings,
        )

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: what follows is not known yet."""
        return {}

    def card(self) -> Mapping[str, Any]:
        """The number of cases."""
        return {"cases": self.count()}
