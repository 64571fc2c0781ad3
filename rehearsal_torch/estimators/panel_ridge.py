"""Ridge regression on panel data with random intercepts: rows of units, each with a level of its own.

Rows t = 1 ... T_i of unit i have features x_it and values y_it,

    y_it = x_it W + b_i + e_it,      var b_i / var e_it = kappa.

A level that is left out is mistaken for persistence of the state: the constant part of a state predicts the
next state, and the effects of all that it is mixed with are attributed to it. The covariance of a unit's rows
is proportional to I + kappa 1 1', whose inverse root subtracts from each row the share 1 - (1 + kappa
T_i)^(-1/2) of the unit's mean (`Panel.levelled`): ordinary ridge regression on such rows is generalised least
squares. kappa maximises the profile likelihood on a grid, for each value by itself.

*Refits.* Units are drawn with replacement, and a unit counts as often as it was drawn. Each refit shrinks
towards a draw of the prior that corresponds to the penalty, N(0, sigma^2 / lambda), in place of zero, so that
the spread of the refits is that of the posterior where rows are uninformative, and else the error of sampling
of units.

*Penalty.* lambda is small and fixed. A penalty chosen by prediction shrinks what varies most, the state, and
the actions, which depend on the state, then act as its proxies. Used by `mechanisms.bent_transition`.

Source: Laird and Ware (1982) (random effects); Cameron, Gelbach and Miller (2008) (resampled clusters);
Newton, Polson and Xu (2021) (refits with random priors); Liang and Zeger (1986) (covariance by units).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from rehearsal_torch.data.non_finite import alike

KAPPAS = (0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# The penalty of the constant: enough for the factorisation of features that repeat it.
FREE = 1e-6


@dataclass(frozen=True)
class Panel:
    """Rows of units, those of a unit one after the other.

    Attributes:
        features: (n, p) float64, the first of which is the constant 1.
        values: (n, D) float64, NaN where missing (not for `moved`): each is fitted to the rows that have it.
        lengths: Rows of each unit, (U,) long, which sum to n.
    """

    features: Tensor
    values: Tensor
    lengths: Tensor

    @property
    def unit(self) -> Tensor:
        """The unit of each row, (n,) long."""
        return torch.arange(len(self.lengths), device=self.lengths.device).repeat_interleave(self.lengths)

    def alike(self) -> "list[tuple[Tensor, Panel]]":
        """Groups of values with the same observed rows: their indices, and the panel of these rows."""
        observed, groups = ~self.values.isnan(), list[tuple[Tensor, Panel]]()
        if bool(observed.all()):
            return [(torch.arange(observed.shape[1], device=observed.device), self)]
        for indices, rows in alike(observed):
            lengths = torch.bincount(self.unit[rows], minlength=len(self.lengths))
            groups.append((indices, Panel(self.features[rows], self.values[rows][:, indices], lengths)))
        return groups

    def levelled(self, kappa: float) -> "Panel":
        """The rows whose covariance is that of e alone."""
        if not kappa:
            return self
        rows = torch.cat([self.features, self.values], 1)
        lengths = self.lengths.to(rows)
        shares = (1 - (1 + kappa * lengths).rsqrt()) / lengths
        sums = rows.new_zeros(len(shares), rows.shape[1]).index_add_(0, self.unit, rows)
        rows = rows - (shares.unsqueeze(1) * sums)[self.unit]
        features, values = rows.split([self.features.shape[1], self.values.shape[1]], 1)
        return Panel(features, values, self.lengths)


def penalties(count: int, penalty: float) -> Tensor:
    """The penalties of features of which the first is the constant, (p,)."""
    weights = torch.full((count,), penalty, dtype=torch.float64)
    weights[0] = FREE
    return weights


def ridge(features: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    """W of rows (n, p) and (n, D), with a penalty of each feature, (p,) -> (p, D)."""
    factor = torch.linalg.cholesky(features.mT @ features + torch.diag(weights))
    return torch.cholesky_solve(features.mT @ values, factor)


def levels(panel: Panel, penalty: float) -> Tensor:
    """kappa of each value, (D,)."""
    weights = penalties(panel.features.shape[1], penalty).to(panel.features)
    grid, kappas = panel.features.new_tensor(KAPPAS), panel.values.new_zeros(panel.values.shape[1])
    for indices, part in panel.alike():
        scores = []
        for kappa in KAPPAS:
            rows = part.levelled(kappa)
            error = rows.values - rows.features @ ridge(rows.features, rows.values, weights)
            variances = error.square().sum(0).clamp_min(torch.finfo(error.dtype).tiny)
            scores.append(-len(error) * variances.log() - torch.log1p(kappa * part.lengths.to(error)).sum())
        kappas[indices] = grid[torch.stack(scores).argmax(0)]
    return kappas


def fit_panel(
    panel: Panel, kappa: Tensor, used: Tensor, penalty: float, draws: torch.Generator | None = None
) -> Tensor:
    """W, (p, D), by the kappa, (D,), and the features, (p, D) bool, of each value; with `draws` a refit."""
    coefficients = torch.zeros_like(used, dtype=panel.values.dtype)
    root, prior = panel.values.new_ones(len(panel.lengths)), torch.zeros_like(coefficients)
    if draws is not None:
        units = len(panel.lengths)
        counts = torch.bincount(torch.randint(units, (units,), generator=draws), minlength=units)
        root = counts.to(root).sqrt()
        prior = torch.randn(coefficients.shape, generator=draws, dtype=torch.float64).to(coefficients)
    groups = [(*group, level) for group in panel.alike() for level in kappa[group[0]].unique().tolist()]
    for indices, rows, level in groups:
        columns = (kappa[indices] == level).nonzero()[:, 0]
        levelled, weight = rows.levelled(level), root[rows.unit].unsqueeze(1)
        features, values = levelled.features * weight, levelled.values[:, columns] * weight
        gram, cross, squares = features.mT @ features, features.mT @ values, values.square().mean(0)
        for position, column in enumerate(indices[columns].tolist()):
            kept = used[:, column].nonzero()[:, 0]
            weights, side = penalties(len(kept), penalty).to(gram), cross[kept, position]
            factor = torch.linalg.cholesky(gram[kept][:, kept] + torch.diag(weights))
            fitted = torch.cholesky_solve(side.unsqueeze(1), factor)
            if draws is not None:
                sigma = (squares[position] - side @ fitted[:, 0] / len(values)).clamp_min(0).sqrt()
                pull = weights.sqrt() * sigma * prior[kept, column]
                fitted = fitted + torch.cholesky_solve(pull.unsqueeze(1), factor)
            coefficients[kept, column] = fitted[:, 0]
    return coefficients


def moved(panel: Panel, columns: int, penalty: float) -> Tensor:
    """p-values, (D,), of the hypotheses that the last `columns` features do not predict a value: a Wald test
    with a covariance by units, each with a level of its own, whose scores are those of fits without the unit
    (Bell and McCaffrey, 2002), since features may differ between few units alone; 1 if there are no such
    features, or no more units than features.
    """
    from scipy.stats import f

    units, p_values = len(panel.lengths), []
    if not 0 < columns < units:
        return torch.ones(panel.values.shape[1], dtype=torch.float64)
    weights = penalties(panel.features.shape[1] - columns, penalty).to(panel.features)
    for value, level in enumerate(levels(panel, penalty).tolist()):
        part = panel.levelled(level)
        basis, partial = part.features[:, :-columns], torch.cat([part.features, part.values[:, [value]]], 1)
        partial = partial[:, basis.shape[1] :]
        partial = partial - basis @ ridge(basis, partial, weights)
        tested, outcome = partial[:, :-1], partial[:, -1]
        inverse = torch.linalg.pinv(tested.mT @ tested, hermitian=True)
        effect = inverse @ (tested.mT @ outcome)
        scores = tested * (outcome - tested @ effect).unsqueeze(1)
        scores = scores.new_zeros(units, columns).index_add_(0, panel.unit, scores)
        scores = _left_out_scores(scores, tested, panel.unit, inverse)
        covariance = inverse @ (scores.mT @ scores) @ inverse * ((units - 1) / units)
        wald = float(effect @ torch.linalg.pinv(covariance, hermitian=True) @ effect)
        freedom = units - columns
        p_values.append(float(f.sf(wald / columns * freedom / units, columns, freedom)))
    return torch.tensor(p_values, dtype=torch.float64)


# The number of units above which one of them does not change the fit; and rows in one batch of products.
MANY, ROWS = 2_000, 4_096


def _left_out_scores(scores: Tensor, tested: Tensor, unit: Tensor, inverse: Tensor) -> Tensor:
    """The scores of units, (U, p), by fits without each of them."""
    units, width = scores.shape
    if units > MANY:
        return scores
    gram = tested.new_zeros(units, width, width)
    for rows, units_of in zip(tested.split(ROWS), unit.split(ROWS), strict=True):
        gram.index_add_(0, units_of, rows.unsqueeze(2) * rows.unsqueeze(1))
    # The score of a unit that alone has a level is 0.
    shrinkage = torch.eye(width).to(tested) - (1 - FREE) * gram @ inverse
    return torch.linalg.solve(shrinkage, scores.unsqueeze(2))[..., 0]


# The most values whose orders are all compared; and the most causes of one value within a step.
MOST, CAUSES = 8, 3


def within_step(
    panel: Panel, kappa: Tensor, late: Tensor, fixed: Tensor, penalty: float, told: Sequence[int] = ()
) -> tuple[Tensor, Tensor]:
    """The instantaneous causal effects between values within a step, and their causal order.

    The acyclic graph with the highest BIC, log likelihood minus log(n) / 2 per feature, is found by dynamic
    programming over sets of values (Silander and Myllymaki, 2006). Linear parts alone do not tell cause from
    effect (Shimizu et al., 2006), bends do (Hoyer et al., 2009); and if a linear part is reversed, total
    effects of the actions remain the same, since direct and indirect ones add up.

    Args:
        late: Features of the values themselves, (n, D, B), whose first is the value.
        fixed: The mask of values that nothing moves, which come first, (D,) bool.
        told: Values whose order is known.

    Returns:
        Cause by effect, (D, D) bool, and the D values in their order, (D,) long; no effects if more than
        `MOST` are not fixed.
    """
    width = late.shape[1]
    first, free = (mask.nonzero()[:, 0].tolist() for mask in (fixed, ~fixed))
    effects = torch.zeros(width, width, dtype=torch.bool, device=late.device)
    if len(free) > MOST:
        return effects, torch.tensor([*first, *free], device=late.device)
    scores = {value: _bic_scores(panel, kappa, late, value, penalty) for value in free}

    def best(value: int, before: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        available = {*first, *before}
        return max((score, causes) for causes, score in scores[value].items() if available.issuperset(causes))

    orders: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {(): (0.0, ())}
    for size in range(1, len(free) + 1):
        for subset in combinations(free, size):
            options = []
            for value in subset:
                if value in told and not {*told[: told.index(value)]} & {*free} <= {*subset}:
                    continue
                others = tuple(member for member in subset if member != value)
                if others not in orders:
                    continue
                total, order = orders[others]
                options.append((total + best(value, order)[0], (*order, value)))
            if options:
                orders[subset] = max(options)
    order = orders[tuple(free)][1]
    for position, value in enumerate(order):
        effects[list(best(value, order[:position])[1]), value] = True
    return effects, torch.tensor([*first, *order], device=late.device)


def _bic_scores(
    panel: Panel, kappa: Tensor, late: Tensor, value: int, penalty: float
) -> dict[tuple[int, ...], float]:
    """The BIC of a value given each set of causes."""
    _, width, block = late.shape
    design = torch.cat([panel.features, late.flatten(1)], 1)
    ((_, part),) = Panel(design, panel.values[:, [value]], panel.lengths).alike()
    rows, part = len(part.values), part.levelled(float(kappa[value]))
    basis, partial = part.features.split([panel.features.shape[1], width * block], 1)
    partial = torch.cat([partial, part.values], 1)
    partial = partial - basis @ ridge(basis, partial, penalties(basis.shape[1], penalty).to(basis))
    gram, candidates = partial.mT @ partial, [cause for cause in range(width) if cause != value]
    scores: dict[tuple[int, ...], float] = {}
    for size in range(min(CAUSES, len(candidates)) + 1):
        sets = list(combinations(candidates, size))
        index = torch.tensor(sets, dtype=torch.long).reshape(len(sets), size, 1) * block + torch.arange(block)
        index = index.flatten(1).to(gram.device)
        system = gram[index.unsqueeze(2), index.unsqueeze(1)] + penalty * torch.eye(index.shape[1]).to(gram)
        cross = gram[index, -1]
        residual = gram[-1, -1] - (cross * torch.linalg.solve(system, cross)).sum(-1)
        score = (
            -rows / 2 * residual.clamp_min(torch.finfo(residual.dtype).tiny).log()
            - math.log(rows) / 2 * size * block
        )
        scores |= dict(zip(sets, score.tolist(), strict=True))
    return scores
