"""A user-supplied problem file: its rows to learn from, its cases, and the bounds of each case.

Source: `data.problem_file` (the file); `problems.rehearsal.own_table` (the problem).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.problem_file.compiled import WrittenProblem, written_problem
from rehearsal_torch.data.reading import numbers_of
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable


class OwnProblem(RehearsalTable):
    """A problem file, as a table and a task.

    Args:
        path: The problem file, or one that was read.
        validation: Share of the rows that is held out, in [0, 1); None holds out a fifth, ten rows at least,
            or none if the file has cases.
        kept: Which rows are held out: "random", or the "last" of the file.
        seed: Seed of the random choice.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        ValueError: if another argument is out of range, or there are too few rows to hold some out.
    """

    def __init__(
        self,
        path: str | Path | WrittenProblem | None,
        validation: float | None = None,
        kept: str = "random",
        seed: int = 0,
    ) -> None:
        problem = path if isinstance(path, WrittenProblem) else written_problem(path)
        self.problem = problem
        super().__init__(problem.rows, problem.task, problem.cases, problem.identity, validation, kept, seed)

    @property
    def present(self) -> dict[str, np.ndarray]:
        """Action to its present values, one per case, where the file's cases state them; NaN for a case
        without one.
        """
        if self.problem.cases is None:
            return {}
        frame = self.problem.cases.frame
        found = {name: numbers_of(frame[name]) for name in self.task.box.names if name in frame.columns}
        return {name: values for name, values in found.items() if not np.isnan(values).all()}

    def notes(self) -> Sequence[str]:
        """What the reader detected, what the desired region asks for, and what no action means."""
        return (*super().notes(), *self._meaning())

    def card(self) -> Mapping[str, Any]:
        """The card of the table, with what no action means."""
        meaning = self._meaning()
        return {**super().card(), **({"caution: no action": meaning[0]} if meaning else {})}

    def _meaning(self) -> tuple[str, ...]:
        if not self.present:
            return ()
        return (
            "no action is estimated as what usually happens to such a case; the present values of "
            f"{', '.join(self.present)} count for bounds alone. Where they are unusual for the case, compare "
            "them with the recommended values by rt.learn and compare (docs/notebook.md)",
        )

    def case(self, index: int) -> RehearsalCase:
        """Case number `index`, within its own bounds."""
        case = super().case(index)
        if not self.problem.ranges:
            return case
        place = index if self.problem.cases is not None else self._places[index]
        own = {name: ranges[place] for name, ranges in self.problem.ranges.items()}
        return replace(case, feasible={**case.feasible, **own}, own=tuple(own))
