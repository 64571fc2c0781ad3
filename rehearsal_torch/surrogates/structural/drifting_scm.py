"""Linear structural models with drifting coefficients: ensembles of online gradient descent experts.

Least squares on the initial rows, before the first alteration, gives the initial coefficients and the noise
covariance, which stays fixed. Every later row is a round; each equation is updated in the rounds in which its
members were not altered. Fitting again to a table that has grown processes the new rows only, with the same
result as fitting to all rows.

Rounds t = 1, 2, ... provide parents p and a value v = beta_t' p + noise, with drifting beta_t. For each step
size eta an expert takes a gradient step on the loss l(beta) = (v - beta' p)^2 / 2 of the last round, and the
experts are averaged with exponential weights:

    w_eta  <-  w_eta exp(-alpha l(beta_eta)) / sum            with the loss *before* the step,
    beta_eta  <-  Pi_r [beta_eta - eta (beta_eta' p - v) p],     Pi_r the projection onto |beta| <= r,

and beta_hat = sum_eta w_eta beta_eta. By default alpha is sqrt(ln H / T) for losses in units of the noise
variance, so that a typical loss is 1/2 in any unit; the theory requires losses of order one. The rounds of
many regressions are processed in one batch, as a tensor of regressions x experts x parents. Columns are
standardised by the initial rows, so that one grid of step sizes serves variables of any unit.

Source: Du et al. (2024), Alg. 1 and Thm. 3.1-3.2 (their code steps with twice the gradient, weights by losses
after the step and does not project); Zinkevich (2003).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.linear_gaussian import AffineMechanism, LinearGaussian
from rehearsal_torch.surrogates.structural.linear_scm import Equation, LinearSurrogate, rows_before_alteration
from rehearsal_torch.surrogates.surrogate import Fits, Modules

STEPS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.4)


class DriftingRegression(Solved):
    """J regressions, each with an ensemble of H experts."""

    def __init__(
        self,
        parents: Sequence[Sequence[int]],  # For each regression the columns of its parents
        child: Sequence[int],  # For each regression the column of its value
        members: Sequence[Sequence[int]],  # The columns that must not be altered in a round that counts
        altered: Sequence[Sequence[int]],  # Those that must be; empty for an ordinary equation
        steps: Sequence[float] = STEPS,  # H step sizes, in standardised units
        rate: float | None = None,  # alpha; None is sqrt(ln H / horizon) over the standardised noise variance
        horizon: int = 100,  # T, the number of rounds for which the default rate is tuned
        radius: float = 2.0,  # r, as a multiple of 1 + the norm of the initial coefficients
    ) -> None:
        super().__init__()
        if not steps or min(steps) <= 0 or horizon < 1 or radius <= 0 or (rate is not None and rate <= 0):
            expected = "expected positive step sizes, horizon, radius and rate"
            raise ValueError(f"{expected}; got {list(steps)}, {horizon}, {radius}, {rate}")
        self.parents, self.child = tuple(map(tuple, parents)), tuple(child)
        self.members, self.altered = tuple(map(tuple, members)), tuple(map(tuple, altered))
        self.rate, self.slowness = rate, math.sqrt(math.log(max(len(steps), 2)) / horizon)
        self.radius, self.max_parents = radius, max(map(len, self.parents), default=0)
        columns = torch.tensor(
            [(*indices, *([0] * (self.max_parents - len(indices)))) for indices in self.parents]
        ).reshape(len(self.child), self.max_parents)
        counts = torch.tensor([len(indices) for indices in self.parents])
        present = torch.arange(self.max_parents) < counts.unsqueeze(-1)
        self.register_buffer("place", columns, persistent=False)
        self.register_buffer("there", present, persistent=False)
        self.register_buffer("steps", torch.tensor(list(steps), dtype=torch.float64), persistent=False)
        count, experts = len(self.child), len(steps)
        self.register_fitted(
            experts=(count, experts, self.max_parents + 1), weights=(count, experts), radii=(count,),
            location=("d",), scale=("d",), rates=(count,),
            processed=(), initial_rows=(), fingerprint=(2, "d"),
        )  # fmt: skip
        self.processed: Tensor
        self.initial_rows: Tensor
        self.fingerprint: Tensor

    def solve(self, *examples: Tensor) -> None:
        """Processes rows (n, d) with the mask of altered cells (n, d), and, all equal along n, the initial
        coefficients, intercepts first, (n, J, p + 1), the noise variances (n, J), and the number of initial
        rows of their estimate (n,). Rounds of an earlier call, identified by their sums and last row, are
        skipped.
        """
        values, touched, coefficients, noise, initial_counts = examples
        initial = int(initial_counts[0])
        processed = int(self.processed) if self.processed.numel() else 0
        continued = 0 < processed <= len(values) and int(self.initial_rows) == initial
        if not continued or not torch.equal(self.fingerprint, _fingerprint(values, processed)):
            self._initialise(values[:initial].double(), coefficients[0].double(), noise[0].double())
            self.initial_rows, processed = initial_counts[0].double(), initial
        for row, altered in zip(values[processed:].double(), touched[processed:].tolist(), strict=True):
            self._process_round(row, altered)
        self.processed = self.initial_rows.new_tensor(float(len(values)))
        self.fingerprint = _fingerprint(values, len(values))

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Intercepts (J,) and coefficients (J, p) in the columns' units; zero for absent parents."""
        ensemble = (self.weights.unsqueeze(-1) * self.experts).sum(1)
        child = list(self.child)
        unit = torch.where(self.there, self.scale[self.place], 1.0)
        gains = torch.where(self.there, ensemble[:, 1:] * self.scale[child, None] / unit, 0.0)
        start = self.location[child] + self.scale[child] * ensemble[:, 0]
        return start - (gains * self.location[self.place]).sum(-1), gains

    def _initialise(self, rows: Tensor, coefficients: Tensor, noise: Tensor) -> None:
        self.location, scale = rows.mean(0), rows.std(0)
        self.scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        child = list(self.child)
        self.rates = self.slowness / (noise / self.scale[child].square()).clamp_min(1e-6)
        if self.rate is not None:
            self.rates = torch.full_like(self.rates, self.rate)
        slopes = coefficients[:, 1:]
        gains = torch.where(self.there, slopes * self.scale[self.place], 0.0) / self.scale[child, None]
        shift = torch.where(self.there, slopes * self.location[self.place], 0.0).sum(-1)
        intercepts = coefficients[:, 0] + shift
        beta = torch.cat([((intercepts - self.location[child]) / self.scale[child]).unsqueeze(-1), gains], -1)
        self.experts = beta.unsqueeze(1).repeat(1, len(self.steps), 1)
        self.weights = torch.full_like(self.experts[..., 0], 1 / len(self.steps))
        self.radii = self.radius * (1 + beta.norm(dim=-1))

    def _process_round(self, row: Tensor, altered: Sequence[bool]) -> None:
        in_round = [
            not any(altered[index] for index in members) and all(altered[index] for index in required)
            for members, required in zip(self.members, self.altered, strict=True)
        ]
        counted = torch.tensor(in_round, device=row.device).unsqueeze(-1)
        standardised = (row - self.location) / self.scale
        parents = torch.where(self.there, standardised[self.place], 0.0)
        inputs = torch.nn.functional.pad(parents, (1, 0), value=1.0)
        error = (self.experts * inputs.unsqueeze(1)).sum(-1) - standardised[list(self.child)].unsqueeze(-1)
        log_weights = self.weights.log() - 0.5 * self.rates.unsqueeze(-1) * error.square()
        self.weights = torch.where(counted, torch.softmax(log_weights, -1).clamp_min(1e-12), self.weights)
        stepped = self.experts - (self.steps * error).unsqueeze(-1) * inputs.unsqueeze(1)
        length = stepped.norm(dim=-1, keepdim=True)
        stepped = stepped * (self.radii[:, None, None] / length.clamp_min(1e-300)).clamp_max(1.0)
        self.experts = torch.where(counted.unsqueeze(-1), stepped, self.experts)


def _fingerprint(values: Tensor, count: int) -> Tensor:
    """Sums and last of the first `count` rows, (2, d)."""
    rows = values[:count].detach().to(torch.float64).contiguous()
    return torch.stack([rows.sum(0), rows[-1]])


class DriftingLinear(LinearSurrogate):
    """An ensemble of experts for every equation. ValueError if a number is out of range.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        initial: Number of initial rows; None for all before the first altered one.
        steps: Step sizes, in standardised units.
        rate: Learning rate of the expert weights; None sets it by the noise (see above).
        horizon: Number of rounds for which the default rate is tuned.
    """

    tracks = True

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
        self.starts = Modules[LinearGaussian](LinearGaussian(*eq.widths) for eq in self.equations)
        names = self.task.graph.names
        members = [(equation, member) for equation in self.equations for member in equation.members]
        parents, own_members, altered = (
            [positions(names, variables) for variables in sets]
            for sets in zip(*((eq.parents, eq.members, eq.altered) for eq, _ in members), strict=True)
        )
        children = [names.index(member) for _, member in members]
        self.regressions = DriftingRegression(parents, children, own_members, altered, steps, rate, horizon)

    def parts(self, table: Table) -> Fits:
        """The overlap, least squares, lack of fit, contexts, rounds; ValueError for too few initial rows."""
        self.task.check(table)
        names = self.task.graph.names
        values = table.columns(names)
        touched = Table(table.names, table.altered.double(), table.altered).columns(names) > 0
        first = rows_before_alteration(touched, self.initial)
        yield self.overlap, self.overlap.examples(table)
        first_rows = Table(names, values[:first], touched[:first])
        for equation, start in zip(self.equations, self.starts, strict=True):
            yield start, (first_rows.columns(equation.parents), first_rows.columns(equation.members))
        yield self.lack_of_fit, self.lack_of_fit.examples(table, first)
        yield self.contexts, (table.columns(self.task.context),)
        initial = [statistic.expand(len(values), *statistic.shape) for statistic in self._initial_values()]
        yield self.regressions, (values, touched, *initial, torch.full((len(values),), first))

    def estimate(self, equation: Equation) -> AffineMechanism:
        """The ensemble's weights (p, c) and intercept (c,), and the initial rows' noise (c, c)."""
        index = self.equations.index(equation)
        begin = sum(len(earlier.members) for earlier in self.equations[:index])
        end = begin + len(equation.members)
        intercepts, gains = self.regressions.coefficients()
        weights = gains[begin:end, : len(equation.parents)].mT
        return AffineMechanism(weights, intercepts[begin:end], self.starts[index].covariance)

    def drawn(self, equation: Equation) -> AffineMechanism | None:  # noqa: ARG002
        """None: an ensemble of experts has no posterior."""
        return None

    def _initial_values(self) -> tuple[Tensor, Tensor]:
        """Initial coefficients (J, p + 1), intercepts first, padded with zeros, and noise variances (J,)."""
        blocks = [torch.cat([start.intercept[:, None], start.weights.mT], -1) for start in self.starts]
        width = self.regressions.max_parents + 1
        padded = [torch.nn.functional.pad(block, (0, width - block.shape[1])) for block in blocks]
        return torch.cat(padded), torch.cat([start.covariance.diagonal() for start in self.starts])
