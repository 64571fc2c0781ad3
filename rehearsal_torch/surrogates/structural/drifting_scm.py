"""Linear structural models with drifting coefficients.

The initial rows, before the first alteration, are fitted by least squares: this gives the initial
coefficients and the noise covariance, which stays fixed. Every row from the first altered one on is a round,
in order; each equation is updated in the rounds in which its members were not altered (see
`drifting_regression`).

Fitting again to a table that has grown processes the new rows only, with the same result as fitting to all
rows: an online loop may add rows and refit at the cost of one round.

Source: Du et al. (2024), Alg. 1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table, positions
from rehearsal_torch.estimators.drifting_regression import STEPS, DriftingRegression
from rehearsal_torch.mechanisms.linear_gaussian import AffineMechanism, LinearGaussian
from rehearsal_torch.surrogates.structural.linear_scm import Equation, LinearSurrogate, rows_before_alteration
from rehearsal_torch.surrogates.surrogate import Fits, Modules


class DriftingLinear(LinearSurrogate):
    """An ensemble of experts for every equation. ValueError if a number is out of range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        initial: Number of initial rows; None for all before the first altered one.
        steps: Step sizes, in standardised units.
        rate: Learning rate of the expert weights; None sets it by the noise (see `drifting_regression`).
        horizon: Number of rounds for which the default rate is tuned.
    """

    def __init__(
        self,
        task: RehearsalTask,
        initial: int | None = None,
        steps: Sequence[float] = STEPS,
        rate: float | None = None,
        horizon: int = 100,
    ) -> None:
        super().__init__(task)
        if initial is not None and initial < 3:
            raise ValueError(f"expected at least 3 rows to begin with; got {initial}")
        self.initial = initial
        self.starts = Modules[LinearGaussian](
            LinearGaussian(len(each.parents), len(each.members)) for each in self.equations
        )
        names = self.task.graph.names
        members = [(equation, member) for equation in self.equations for member in equation.members]
        self.regressions = DriftingRegression(
            [positions(names, equation.parents) for equation, _ in members],
            [names.index(member) for _, member in members],
            [positions(names, equation.members) for equation, _ in members],
            [positions(names, equation.altered) for equation, _ in members],
            steps,
            rate,
            horizon,
        )

    def parts(self, table: Table) -> Fits:
        """The overlap diagnostics, the initial least squares, the observed contexts, then the rounds;
        ValueError if the table begins with an altered row.
        """
        self.task.check(table)
        names = self.task.graph.names
        values = table.columns(names)
        touched = Table(table.names, table.altered.double(), table.altered).columns(names) > 0
        first = rows_before_alteration(touched, self.initial)
        yield self.overlap, self.overlap.examples(table)
        head = Table(names, values[:first], touched[:first])
        for equation, start in zip(self.equations, self.starts, strict=True):
            yield start, (head.columns(equation.parents), head.columns(equation.members))
        yield self.contexts, (table.columns(self.task.context),)
        initial = [each.expand(len(values), *each.shape) for each in self._first()]
        yield self.regressions, (values, touched, *initial, torch.full((len(values),), first))

    def estimate(self, equation: Equation) -> AffineMechanism:
        """The ensemble's weights (p, c) and intercept (c,), and the initial rows' noise (c, c)."""
        which = self.equations.index(equation)
        begin = sum(len(earlier.members) for earlier in self.equations[:which])
        end = begin + len(equation.members)
        intercepts, gains = self.regressions.coefficients()
        weights, covariance = (
            gains[begin:end, : len(equation.parents)].mT,
            self.starts[which].covariance,
        )
        return AffineMechanism(weights, intercepts[begin:end], covariance)

    def drawn(self, equation: Equation) -> AffineMechanism | None:  # noqa: ARG002
        """None: an ensemble of experts has no posterior."""
        return None

    def _first(self) -> tuple[Tensor, Tensor]:
        """Initial coefficients (J, p + 1), intercepts first, padded with zeros, and noise variances (J,)."""
        rows = []
        for start in self.starts:
            block = torch.cat([start.intercept.unsqueeze(-1), start.weights.mT], -1)
            rows.append(
                torch.nn.functional.pad(block, (0, self.regressions.max_parents + 1 - block.shape[1]))
            )
        return torch.cat(rows), torch.cat([start.covariance.diagonal() for start in self.starts])
