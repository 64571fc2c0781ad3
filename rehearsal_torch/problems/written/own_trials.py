"""A problem file that asks for trials: the experiments so far, and which one to run next.

Source: `problems.written.trials_file` (the file); `problems.causal.own_experiments` (the problem).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
from rehearsal_torch.problems.written.trials_file import TrialsProblem, trials_problem


class OwnTrials(ExperimentTable):
    """A problem file, as a table of experiments.

    Args:
        path: The problem file, or one that was read.
        fixed: Actions that the next experiment holds at a value, in place of those that the file holds; None
            for these.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        TableError: if a column is not numeric or incomplete; all faults are listed.
        ValueError: if a fixed value may not be set, or a node is constant.
    """

    def __init__(
        self, path: str | Path | TrialsProblem | None, fixed: Mapping[str, float] | None = None
    ) -> None:
        self.problem = path if isinstance(path, TrialsProblem) else trials_problem(path)
        super().__init__(self.problem.rows, self.problem.task, self.problem.fixed if fixed is None else fixed)

    def method_named(self) -> str | None:
        """The file's ``method``."""
        return self.problem.method

    def wording(self) -> Mapping[str, Any]:
        """The units of the variables, where the file has some."""
        units = {name: about.unit for name, about in self.problem.variables.items() if about.unit}
        return {"units_of": units} if units else {}

    def notes(self) -> Sequence[str]:
        """What the reader of the table detected."""
        return self.read_notes
