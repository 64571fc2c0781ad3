"""Lack-of-fit tests (misspecification) of linear equations with jointly normal noise.

The probabilities of linear methods rest on three claims about each ancestor of an outcome given its parents,
and on a fourth about all of them. Each has a test, exact or nearly so under the claim, and an effect size in
terms of probabilities:

    form      the mean is linear: F test of squares, bends and products of the parents beside the parents.
              Size: the standard deviation that these explain, in standard deviations of the noise.
    spread    the noise has one standard deviation: F test of |residual|^(2/3), which is nearly normal, on
              parents, their squares and bends. Size: the relative standard deviation of the noise's
              standard deviation.
    shape     the noise is normal: Lilliefors' test. Size: the largest distance of the two distribution
              functions, and so the largest error of a probability.
    share     without an action, the share of desired rows is as predicted for the same contexts: binomial
              test. Size: the difference.

A claim is refuted if its test rejects at 1 % after Holm's correction and its size is at least `LEAST`, so
that many rows do not make a small error matter. Deviations from a line by a tenth of the noise change a
probability by at most .04.

Source: Glejser (1969) (absolute residuals); Wilson and Hilferty (1931) (their power); Lilliefors
(1967), with the p-value of Dallal and Wilkinson (1986); Holm (1979).
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from scipy.special import fdtrc
from torch import Tensor

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table, evenly
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.seeding import generator
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome_draws import KeptDraws
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse

if TYPE_CHECKING:
    from rehearsal_torch.surrogates.structural.linear_scm import Equation

RISK = 0.01
LEAST = (0.1, 0.1, 0.03, 0.01)  # the smallest sizes that count: of form, spread, shape and share
MOST_ROWS, MOST_COLUMNS, FEWEST = 2000, 40, 30
NOISES = 32
# Of |s u|^(2/3) with normal u, the variance due to s, of relative variance 1, over that due to u.
OF_SPREAD = 1.53
TOLD = 3  # refuted claims in a warning, those of the largest sizes


class LackOfFit(Solved):
    """p-values and sizes (m, 3) of form, spread, shape of each outcome's ancestors; rows for the share."""

    needed = False  # a model with user-supplied parameters has no rows to compare

    def __init__(
        self, task: RehearsalTask, equations: Sequence["Equation"], graphs: Sequence[RehearsalGraph]
    ) -> None:
        super().__init__()
        self.task = task
        self._kept: KeptDraws[Finding | None] = KeptDraws(8)
        exogenous = (*task.context, *task.box.names)
        leading = set(task.outcomes).union(*(graph.ancestors(task.outcomes) for graph in graphs))
        # Of a clique, each member given the parents of all.
        self.equations = tuple(
            dict.fromkeys(
                (member, equation.parents)
                for equation in equations
                for member in equation.members
                if not equation.altered and member not in exogenous and member in leading
            )
        )
        count = len(self.equations)
        self.register_fitted(p_values=(count, 3), sizes_of=(count, 3), source=True)
        self.register_fitted(seen=("n", len(task.context) + len(task.outcomes)), source=True)

    def examples(self, table: Table, first: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Variables and altered cells (n, d), in the graph's order, and whether the share counts (n,)."""
        names, passive = self.task.graph.names, not bool(table.altered.any())
        values, touched = table.columns(names)[:first], table.altered[:first, positions(table.names, names)]
        return values, touched, torch.full_like(touched[:, 0], passive)

    def solve(self, *examples: Tensor) -> None:
        """Tests every equation on the rows in which its variable was not altered."""
        values, touched, passive = (example.detach() for example in examples)
        values, names = values.to(torch.float64), self.task.graph.names
        results = []
        for member, parents in self.equations:
            column = names.index(member)
            rows = values[~touched[:, column]]
            rows = rows[evenly(len(rows), MOST_ROWS, rows.device)]
            results.append(tests(rows[:, positions(names, parents)], rows[:, column]))
        statistics = values.new_tensor(results).reshape(len(self.equations), 2, 3)
        self.p_values, self.sizes_of = statistics[:, 0], statistics[:, 1]
        unaltered = values[passive][:, positions(names, (*self.task.context, *self.task.outcomes))]
        self.seen = unaltered[evenly(len(unaltered), MOST_ROWS, unaltered.device)]

    def finding(self, region: Polytope, response: Callable[[], AffineResponse]) -> Finding | None:
        """The refuted claims for a region, given the outcomes' response without an action; or None."""
        if self.p_values.ndim < 2:
            return None
        key = (region.names, *region.normals.flatten().tolist(), *region.offsets.tolist())
        return self._kept.get(key, [self.p_values, self.seen], 1, lambda: self._refutation(region, response))

    def _refutation(self, region: Polytope, response: Callable[[], AffineResponse]) -> Finding | None:
        entries = [
            (p, size, least, self._claim_text(index, kind, size))
            for index, row in enumerate(zip(self.p_values.tolist(), self.sizes_of.tolist(), strict=True))
            for kind, (p, size, least) in enumerate(zip(*row, LEAST[:3], strict=True))
        ]
        if len(self.seen) >= FEWEST:
            entries.append(self._share_test(region, response()))
        entries.sort(key=lambda entry: entry[0])
        refuted = list[tuple[float, str]]()
        for rank, (p, size, least, words) in enumerate(entries):
            if p > RISK / (len(entries) - rank):
                break
            if size >= least:
                refuted.append((size / least, words))
        if not refuted:
            return None
        refuted.sort(reverse=True)
        text = "; ".join(words for _, words in refuted[:TOLD])
        more = f"; and {len(refuted) - TOLD} more" if len(refuted) > TOLD else ""
        numbers = {"p_value": entries[0][0], "refuted": float(len(refuted))}
        return Finding("bad_fit", f"linear equations do not fit the rows: {text}{more}", numbers)

    def _claim_text(self, index: int, kind: int, size: float) -> str:
        name = self.equations[index][0]
        if kind == 0:
            return f"{name} does not follow its causes in a straight line, by {size:.2g} of its noise"
        if kind == 1:
            return f"the noise of {name} is not the same everywhere, by {size:.0%}"
        return f"the noise of {name} is not normal, which moves a chance by up to {100 * size:.0f} points"

    def _share_test(self, region: Polytope, response: AffineResponse) -> tuple[float, float, float, str]:
        width = len(self.task.context)
        contexts, outcomes = self.seen[:, :width], self.seen[:, width:]
        count, desired = len(contexts), float(region.contains(outcomes).double().mean())
        covariance = response.covariance.reshape(-1, *response.covariance.shape[-2:])
        scale = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        correlation = covariance / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
        jitter = 1e-9 * torch.eye(scale.shape[-1]).to(scale)
        root = scale.unsqueeze(-1) * torch.linalg.cholesky(correlation + jitter)
        base = response.base(contexts).reshape(-1, count, scale.shape[-1])
        models = max(len(base), NOISES)
        shape = (models, count, scale.shape[-1])
        noise = torch.randn(shape, dtype=torch.float64, generator=generator(0)).to(base)
        if len(base) == 1:
            base, root = base.expand(models, -1, -1), root.expand(models, -1, -1)
        predicted = float(region.contains(base + noise @ root.mT).double().mean())
        error = math.sqrt(max(predicted * (1 - predicted), 1 / count) / count)
        p = math.erfc(abs(predicted - desired) / error / math.sqrt(2))
        words = f"without an action they claim {predicted:.1%} where {desired:.1%} of the rows are desired"
        return p, abs(predicted - desired), LEAST[3], words


def tests(parents: Tensor, values: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """p-values and sizes of form, spread and shape of a variable (n,) given parents (n, p)."""
    count = len(values)
    centred = parents - parents.mean(0)
    spread = centred.square().mean(0).sqrt()
    x = centred / torch.where(spread > 0, spread, torch.ones_like(spread))
    base = _orthogonal(torch.cat([torch.ones_like(values)[:, None], x], -1))
    centred_values = values - values.mean()
    residual = centred_values - base @ (base.mT @ centred_values)
    freedom = count - base.shape[1]
    noise = float(residual.square().sum() / max(freedom, 1)) ** 0.5
    if freedom < FEWEST or noise <= 1e-9 * float(values.square().mean()) ** 0.5:
        return (1.0,) * 3, (0.0,) * 3
    bends = _bends(x)
    width = min(MOST_COLUMNS, freedom // 5)
    form_p, explained = _f_test(base, torch.cat([bends, _products(x)], -1)[:, :width], residual)
    # A residual is the smaller, the more its row weighs in the fit.
    scaled_residual = residual / (1 - base.square().sum(-1)).clamp_min(0.05).sqrt()
    constant = base.new_full((count, 1), count**-0.5)
    powers = scaled_residual.abs() ** (2 / 3)
    regressors = torch.cat([x, bends], -1)[:, :width]
    spread_p, explained_spread = _f_test(constant, regressors, powers - powers.mean())
    distance = _normal_distance(scaled_residual / noise)
    form = math.sqrt(explained / max(1 - explained, 1e-9))
    heteroskedasticity = math.sqrt(explained_spread / max(1 - explained_spread, 1e-9) / OF_SPREAD)
    return (form_p, spread_p, _lilliefors(distance, count)), (form, heteroskedasticity, distance)


def _bends(x: Tensor) -> Tensor:
    """Squares, absolute values and signed squares of standardised columns, first all squares."""
    clipped = x.clamp(-3, 3)
    return torch.cat([clipped.square(), clipped.abs(), clipped * clipped.abs()], -1)


def _products(x: Tensor) -> Tensor:
    first, second = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return x[:, first] * x[:, second]


def _orthogonal(columns: Tensor) -> Tensor:
    """An orthonormal basis of columns (n, k) of similar length, up to their numerical rank."""
    sizes, axes = torch.linalg.eigh(columns.mT @ columns)
    retained = sizes > 1e-9 * sizes.amax()
    return columns @ (axes[:, retained] / sizes[retained].sqrt())


def _f_test(base: Tensor, further: Tensor, residual: Tensor) -> tuple[float, float]:
    """The p-value of further columns beside an orthonormal base, and adjusted R2 (1 and 0 without any)."""
    further = further - base @ (base.mT @ further)
    length = further.norm(dim=0)
    further = further[:, length > 1e-6 * len(residual) ** 0.5]
    if not further.shape[1]:
        return 1.0, 0.0
    basis = _orthogonal(further / further.norm(dim=0))
    total, explained = float(residual.square().sum()), float((basis.mT @ residual).square().sum())
    k, freedom = basis.shape[1], len(residual) - base.shape[1] - basis.shape[1]
    if freedom < 1 or total <= 0:
        return 1.0, 0.0
    ratio = (explained / k) / max((total - explained) / freedom, 1e-300)
    share = 1 - (total - explained) / freedom / (total / (freedom + k))
    return float(fdtrc(k, freedom, ratio)), max(share, 0.0)


def _normal_distance(standardised: Tensor) -> float:
    """The Kolmogorov-Smirnov distance of standardised residuals from the normal distribution."""
    chance, count = torch.special.ndtr(standardised.sort().values), len(standardised)
    steps = torch.arange(1, count + 1, dtype=chance.dtype, device=chance.device) / count
    return float(torch.maximum(steps - chance, chance - steps + 1 / count).amax())


def _lilliefors(distance: float, count: int) -> float:
    """The p-value of such a distance with estimated mean and variance."""
    if count > 100:
        distance, count = distance * (count / 100) ** 0.49, 100
    shifted = count + 2.78019
    exponent = -7.01256 * distance**2 * shifted + 2.99587 * distance * math.sqrt(shifted)
    return min(1.0, math.exp(exponent - 0.122119 + 0.974598 / math.sqrt(count) + 1.67997 / count))
