"""Linear structural models: least squares for every clique of a rehearsal graph.

Each equation is fitted by itself on the rows in which its members were untouched; the whole law, under any alteration,
follows in closed form (see `linear_law`).

Source: Qin et al. (2025b), Sec. 4.2; Qin et al. (2023), Sec. 4.1.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from rehearsal_torch.data.fitted import Solved, Trained
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.surrogates.linear_surrogate import Equation, LinearSurrogate

MOST_DRAWS = 100_000


class LinearStructural(LinearSurrogate):
    """A linear Gaussian mechanism for every equation.

    Args:
        task: Who plays which part; plain data or a RehearsalTask.
        draws: How many sets of parameters stand for what the rows leave open; 0 for none.
        seed: Decides them.

    Raises:
        ValueError: if the number of draws is negative.
    """

    def __init__(self, task: RehearsalTask, draws: int = 48, seed: int = 0) -> None:
        super().__init__(task)
        if draws < 0:
            raise ValueError(f"expected draws >= 0; got {draws}")
        bounded("draws", draws, MOST_DRAWS, 0)
        self.draws, self.seed = draws, seed
        self.mechanisms = nn.ModuleList(LinearGaussian(len(each.parents), len(each.members)) for each in self.equations)

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """Where the rows lie; every equation with its rows; then the contexts that were seen.

        Raises:
            ValueError: if nothing can be learnt from the table.
        """
        self.task.check(table)
        yield self.overlap, self.overlap.examples(table)
        for equation in self.equations:
            rows = equation.rows(table)
            yield self.mechanism(equation), (rows.columns(equation.parents), rows.columns(equation.members))
        yield self.contexts, (table.columns(self.task.context),)

    def mechanism(self, equation: Equation) -> LinearGaussian:
        """The mechanism of an equation."""
        found = self.mechanisms[self.equations.index(equation)]
        if not isinstance(found, LinearGaussian):
            raise TypeError(f"expected a LinearGaussian; got {type(found).__name__}")
        return found

    def parameters_of(self, equation: Equation) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (p, c), intercept (c,) and covariance (c, c)."""
        mechanism = self.mechanism(equation)
        return mechanism.weights, mechanism.intercept, mechanism.covariance

    def drawn(self, equation: Equation) -> tuple[Tensor, Tensor, Tensor] | None:
        """Draws of them, (draws, ...); an equation's draws depend on the seed and its place alone."""
        if not self.draws:
            return None
        stream = torch.Generator().manual_seed(1_000_003 * self.seed + self.equations.index(equation))
        return self.mechanism(equation).posterior(self.draws, stream)
