"""Whether linear equations with jointly normal noise fit the rows.

The chances of linear methods rest on three claims about each variable that leads to an outcome, given its
parents, and on a fourth about all of them. Each has a test, exact or nearly so where the claim holds, and a
size, in what it does to a chance:

    form      the mean is linear: F test of squares, bends and products of the parents beside the parents
              themselves. Size: the standard deviation of what they explain, in standard deviations of the
              noise.
    spread    the noise has one standard deviation: F test of |residual|^(2/3), which is nearly normal, on
              parents, their squares and bends.
              Size: the relative standard deviation of the noise's standard deviation.
    shape     the noise is normal: Lilliefors' test. Size: the largest distance of the two distribution
              functions, which is the largest error that the shape makes in a chance.
    share     without an action, the share of desired rows is what the equations claim for the same contexts:
              binomial test. Size: the difference.

A claim is refuted where its test rejects at 1 % after Holm's correction and its size is at least `LEAST`, so
that no number of rows makes a small error a large one. Distances from straight lines of a tenth of the noise
change a chance by at most .04.

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
# The smallest sizes that count: of form, spread, shape and share.
LEAST = (0.1, 0.1, 0.03, 0.01)
MOST_ROWS, MOST_COLUMNS, FEWEST = 2000, 40, 30
NOISES = 32
# Of |s u|^(2/3) with normal u, the variance by s relative to that by u, where s has the relative variance 1.
OF_SPREAD = 1.53
# Refuted claims that are told, those of the largest sizes.
TOLD = 3


class LackOfFit(Solved):
    """p-values and sizes of form, spread and shape of each variable that leads to an outcome, (m, 3) each,
    with contexts and outcomes of some unaltered rows, from which the share is taken when a region is known.
    """

    # A model with user-supplied parameters has no rows to be compared with.
    needed = False

    def __init__(
        self, task: RehearsalTask, equations: Sequence["Equation"], graphs: Sequence[RehearsalGraph]
    ) -> None:
        super().__init__()
        self.task = task
        self._kept: KeptDraws[Finding | None] = KeptDraws(8)
        free = (*task.context, *task.box.names)
        leading = set(task.outcomes).union(*(graph.ancestors(task.outcomes) for graph in graphs))
        # Of a clique, each member given the parents of all.
        self.equations = tuple(
            dict.fromkeys(
                (member, equation.parents)
                for equation in equations
                for member in equation.members
                if not equation.altered and member not in free and member in leading
            )
        )
        count = len(self.equations)
        self.register_fitted(p_values=(count, 3), sizes_of=(count, 3), source=True)
        self.register_fitted(seen=("n", len(task.context) + len(task.outcomes)), source=True)

    def examples(self, table: Table, first: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """All variables in the graph's order, and which cells were altered, (n, d) each, of the first rows or
        of all; and whether the share of desired rows counts, (n,): not where actions were set.
        """
        names, passive = self.task.graph.names, not bool(table.altered.any())
        values, touched = table.columns(names)[:first], table.altered[:first, positions(table.names, names)]
        return values, touched, torch.full_like(touched[:, 0], passive)

    def solve(self, *examples: Tensor) -> None:
        """Tests every equation on the rows in which its variable was not altered."""
        values, touched, counted = (each.detach() for each in examples)
        values, names = values.to(torch.float64), self.task.graph.names
        results = []
        for member, parents in self.equations:
            own = names.index(member)
            rows = values[~touched[:, own]]
            rows = rows[evenly(len(rows), MOST_ROWS, rows.device)]
            results.append(tests(rows[:, positions(names, parents)], rows[:, own]))
        whole = values.new_tensor(results).reshape(len(self.equations), 2, 3)
        self.p_values, self.sizes_of = whole[:, 0], whole[:, 1]
        free = values[counted][:, positions(names, (*self.task.context, *self.task.outcomes))]
        self.seen = free[evenly(len(free), MOST_ROWS, free.device)]

    def finding(self, region: Polytope, response: Callable[[], AffineResponse]) -> Finding | None:
        """What is refuted, for a region and the response of the outcomes without an action, one model or
        several in a leading dimension; None where nothing is. Kept until the fit changes.
        """
        if self.p_values.ndim < 2:
            return None
        key = (region.names, *region.normals.flatten().tolist(), *region.offsets.tolist())
        return self._kept.get(key, [self.p_values, self.seen], 1, lambda: self._refuted(region, response))

    def _refuted(self, region: Polytope, response: Callable[[], AffineResponse]) -> Finding | None:
        entries = [
            (p, size, least, self._words(which, kind, size))
            for which, row in enumerate(zip(self.p_values.tolist(), self.sizes_of.tolist(), strict=True))
            for kind, (p, size, least) in enumerate(zip(*row, LEAST[:3], strict=True))
        ]
        if len(self.seen) >= FEWEST:
            entries.append(self._share(region, response()))
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

    def _words(self, which: int, kind: int, size: float) -> str:
        name = self.equations[which][0]
        if kind == 0:
            return f"{name} does not follow its causes in a straight line, by {size:.2g} of its noise"
        if kind == 1:
            return f"the noise of {name} is not the same everywhere, by {size:.0%}"
        return f"the noise of {name} is not normal, which moves a chance by up to {100 * size:.0f} points"

    def _share(self, region: Polytope, response: AffineResponse) -> tuple[float, float, float, str]:
        """The test of the share of desired rows."""
        width = len(self.task.context)
        contexts, outcomes = self.seen[:, :width], self.seen[:, width:]
        count, desired = len(contexts), float(region.contains(outcomes).double().mean())
        covariance = response.covariance.reshape(-1, *response.covariance.shape[-2:])
        scale = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        correlation = covariance / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
        root = scale.unsqueeze(-1) * torch.linalg.cholesky(
            correlation + 1e-9 * torch.eye(scale.shape[-1]).to(scale)
        )
        base = response.base(contexts).reshape(-1, count, scale.shape[-1])
        models = max(len(base), NOISES)
        stream = generator(0)
        noise = torch.randn(models, count, scale.shape[-1], dtype=torch.float64, generator=stream).to(base)
        if len(base) == 1:
            base, root = base.expand(models, -1, -1), root.expand(models, -1, -1)
        claimed = float(region.contains(base + noise @ root.mT).double().mean())
        error = math.sqrt(max(claimed * (1 - claimed), 1 / count) / count)
        p = math.erfc(abs(claimed - desired) / error / math.sqrt(2))
        words = f"without an action they claim {claimed:.1%} where {desired:.1%} of the rows are desired"
        return p, abs(claimed - desired), LEAST[3], words


def tests(parents: Tensor, values: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """p-values and sizes of form, spread and shape for a variable (n,) given its parents (n, p): p-values of
    1 where there are too few rows, or nothing that varies.
    """
    count = len(values)
    centred = parents - parents.mean(0)
    spread = centred.square().mean(0).sqrt()
    shown = centred / torch.where(spread > 0, spread, torch.ones_like(spread))
    base = _orthogonal(torch.cat([torch.ones_like(values)[:, None], shown], -1))
    rest = values - values.mean()
    residual = rest - base @ (base.mT @ rest)
    freedom = count - base.shape[1]
    noise = float(residual.square().sum() / max(freedom, 1)) ** 0.5
    if freedom < FEWEST or noise <= 1e-9 * float(values.square().mean()) ** 0.5:
        return (1.0,) * 3, (0.0,) * 3
    bends = _bends(shown)
    room = min(MOST_COLUMNS, freedom // 5)
    form, explained = _f_test(base, torch.cat([bends, _products(shown)], -1)[:, :room], residual)
    # A residual is the smaller, the more its row weighs in the fit.
    even = residual / (1 - base.square().sum(-1)).clamp_min(0.05).sqrt()
    constant = base.new_full((count, 1), count**-0.5)
    power = even.abs() ** (2 / 3)
    beside = torch.cat([shown, bends], -1)[:, :room]
    varying, share = _f_test(constant, beside, power - power.mean())
    distance = _distance(even / noise)
    sizes = (
        math.sqrt(explained / max(1 - explained, 1e-9)),
        math.sqrt(share / max(1 - share, 1e-9) / OF_SPREAD),
        distance,
    )
    return (form, varying, _lilliefors(distance, count)), sizes


def _bends(shown: Tensor) -> Tensor:
    """Squares, absolute values and signed squares of standardised columns, first all squares."""
    near = shown.clamp(-3, 3)
    return torch.cat([near.square(), near.abs(), near * near.abs()], -1)


def _products(shown: Tensor) -> Tensor:
    """Products of two columns."""
    first, second = torch.triu_indices(shown.shape[1], shown.shape[1], 1)
    return shown[:, first] * shown[:, second]


def _orthogonal(columns: Tensor) -> Tensor:
    """An orthonormal basis of columns (n, k) of about the same length, without directions that only rounding
    tells apart.
    """
    sizes, axes = torch.linalg.eigh(columns.mT @ columns)
    kept = sizes > 1e-9 * sizes.amax()
    return columns @ (axes[:, kept] / sizes[kept].sqrt())


def _f_test(base: Tensor, further: Tensor, residual: Tensor) -> tuple[float, float]:
    """The p-value of further columns beside an orthonormal base, and the share of the residual that they
    explain, less what chance explains; 1 and 0 without any.
    """
    further = further - base @ (base.mT @ further)
    length = further.norm(dim=0)
    further = further[:, length > 1e-6 * len(residual) ** 0.5]
    if not further.shape[1]:
        return 1.0, 0.0
    basis = _orthogonal(further / further.norm(dim=0))
    total, found = float(residual.square().sum()), float((basis.mT @ residual).square().sum())
    added, left = basis.shape[1], len(residual) - base.shape[1] - basis.shape[1]
    if left < 1 or total <= 0:
        return 1.0, 0.0
    ratio = (found / added) / max((total - found) / left, 1e-300)
    share = 1 - (total - found) / left / (total / (left + added))
    return float(fdtrc(added, left, ratio)), max(share, 0.0)


def _distance(standardised: Tensor) -> float:
    """The largest distance of the distribution function of residuals from the normal one."""
    chance, count = torch.special.ndtr(standardised.sort().values), len(standardised)
    steps = torch.arange(1, count + 1, dtype=chance.dtype, device=chance.device) / count
    return float(torch.maximum(steps - chance, chance - steps + 1 / count).amax())


def _lilliefors(distance: float, count: int) -> float:
    """The p-value of such a distance where mean and variance are estimated."""
    if count > 100:
        distance, count = distance * (count / 100) ** 0.49, 100
    shifted = count + 2.78019
    exponent = -7.01256 * distance**2 * shifted + 2.99587 * distance * math.sqrt(shifted)
    return min(1.0, math.exp(exponent - 0.122119 + 0.974598 / math.sqrt(count) + 1.67997 / count))
