"""Ridge regression on panels: rows of units, each with a level of its own.

Rows t = 1 ... T_i of unit i have features x_it and values y_it,

    y_it = x_it W + b_i + e_it,      var b_i / var e_it = kappa.

A level that is left out is taken for persistence of the state: what of a state never changes predicts the
next state, and so seems to do all that it is mixed with. The covariance of a unit's rows is proportional to
I + kappa 1 1', whose inverse root subtracts from each row the share 1 - (1 + kappa T_i)^(-1/2) of the unit's
mean (`Panel.levelled`): ordinary ridge regression on such rows is generalised least squares. kappa maximises
the profile likelihood on a grid, for each value by itself.

*Refits.* Units are drawn with replacement, and a unit counts as often as it was drawn. Each refit shrinks
towards a draw of the prior that the penalty stands for, N(0, sigma^2 / lambda), in place of zero, so that the
spread of the refits is that of the posterior where rows say nothing, and the error of sampling of units where
they say much.

*Penalty.* lambda is small and fixed. A penalty chosen by prediction shrinks what varies most, the state, and
the actions, which depend on the state, then speak for it.

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
        values: (n, D) float64, NaN where unknown (not for `moved`): each is fitted to the rows that know it.
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
        """Values that are known in the same rows, their places and these rows; units may be left without."""
        known, found = ~self.values.isnan(), list[tuple[Tensor, Panel]]()
        if bool(known.all()):
            return [(torch.arange(known.shape[1], device=known.device), self)]
        for places, rows in alike(known):
            lengths = torch.bincount(self.unit[rows], minlength=len(self.lengths))
            found.append((places, Panel(self.features[rows], self.values[rows][:, places], lengths)))
        return found

    def levelled(self, kappa: float) -> "Panel":
        """The rows whose covariance is that of e alone."""
        if not kappa:
            return self
        rows = torch.cat([self.features, self.values], 1)
        lengths = self.lengths.to(rows)
        share = (1 - (1 + kappa * lengths).rsqrt()) / lengths
        total = rows.new_zeros(len(share), rows.shape[1]).index_add_(0, self.unit, rows)
        rows = rows - (share.unsqueeze(1) * total)[self.unit]
        features, values = rows.split([self.features.shape[1], self.values.shape[1]], 1)
        return Panel(features, values, self.lengths)


def penalties(count: int, penalty: float) -> Tensor:
    """Those of features of which the first is the constant, (p,)."""
    found = torch.full((count,), penalty, dtype=torch.float64)
    found[0] = FREE
    return found


def ridge(features: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    """W of rows (n, p) and (n, D), with a penalty of each feature, (p,) -> (p, D)."""
    factor = torch.linalg.cholesky(features.mT @ features + torch.diag(weights))
    return torch.cholesky_solve(features.mT @ values, factor)


def levels(panel: Panel, penalty: float) -> Tensor:
    """kappa of each value, (D,)."""
    weights = penalties(panel.features.shape[1], penalty).to(panel.features)
    grid, found = panel.features.new_tensor(KAPPAS), panel.values.new_zeros(panel.values.shape[1])
    for places, part in panel.alike():
        scores = []
        for kappa in KAPPAS:
            own = part.levelled(kappa)
            left = own.values - own.features @ ridge(own.features, own.values, weights)
            square = left.square().sum(0).clamp_min(torch.finfo(left.dtype).tiny)
            scores.append(-len(left) * square.log() - torch.log1p(kappa * part.lengths.to(left)).sum())
        found[places] = grid[torch.stack(scores).argmax(0)]
    return found


def fit_panel(
    panel: Panel, kappa: Tensor, used: Tensor, penalty: float, draws: torch.Generator | None = None
) -> Tensor:
    """W, (p, D), with the kappa of each value, (D,), and the features that it uses, (p, D) bool; that of a
    refit if there is a generator.
    """
    found = torch.zeros_like(used, dtype=panel.values.dtype)
    root, prior = panel.values.new_ones(len(panel.lengths)), torch.zeros_like(found)
    if draws is not None:
        units = len(panel.lengths)
        counts = torch.bincount(torch.randint(units, (units,), generator=draws), minlength=units)
        root = counts.to(root).sqrt()
        prior = torch.randn(found.shape, generator=draws, dtype=torch.float64).to(found)
    groups = [(*group, own) for group in panel.alike() for own in kappa[group[0]].unique().tolist()]
    for places, rows, own in groups:
        group = (kappa[places] == own).nonzero()[:, 0]
        part, weight = rows.levelled(own), root[rows.unit].unsqueeze(1)
        features, values = part.features * weight, part.values[:, group] * weight
        gram, cross, squares = features.mT @ features, features.mT @ values, values.square().mean(0)
        for place, value in enumerate(places[group].tolist()):
            kept = used[:, value].nonzero()[:, 0]
            weights, side = penalties(len(kept), penalty).to(gram), cross[kept, place]
            factor = torch.linalg.cholesky(gram[kept][:, kept] + torch.diag(weights))
            fitted = torch.cholesky_solve(side.unsqueeze(1), factor)
            if draws is not None:
                sigma = (squares[place] - side @ fitted[:, 0] / len(values)).clamp_min(0).sqrt()
                pull = weights.sqrt() * sigma * prior[kept, value]
                fitted = fitted + torch.cholesky_solve(pull.unsqueeze(1), factor)
            found[kept, value] = fitted[:, 0]
    return found


def moved(panel: Panel, columns: int, penalty: float) -> Tensor:
    """p-values, (D,), of the hypotheses that the last features, of which there are `columns`, say nothing of
    a value: a Wald test with a covariance by units, each with a level of its own, whose scores are those of
    fits without the unit (Bell and McCaffrey, 2002), as features that differ between few units alone need it;
    1 if there are no such features, or no more units than these.
    """
    from scipy.stats import f

    units, found = len(panel.lengths), []
    if not 0 < columns < units:
        return torch.ones(panel.values.shape[1], dtype=torch.float64)
    weights = penalties(panel.features.shape[1] - columns, penalty).to(panel.features)
    for value, own in enumerate(levels(panel, penalty).tolist()):
        part = panel.levelled(own)
        basis, shown = part.features[:, :-columns], torch.cat([part.features, part.values[:, [value]]], 1)
        shown = shown[:, basis.shape[1] :]
        shown = shown - basis @ ridge(basis, shown, weights)
        tested, outcome = shown[:, :-1], shown[:, -1]
        inverse = torch.linalg.pinv(tested.mT @ tested, hermitian=True)
        effect = inverse @ (tested.mT @ outcome)
        scores = tested * (outcome - tested @ effect).unsqueeze(1)
        scores = scores.new_zeros(units, columns).index_add_(0, panel.unit, scores)
        scores = _without(scores, tested, panel.unit, inverse)
        covariance = inverse @ (scores.mT @ scores) @ inverse * ((units - 1) / units)
        wald = float(effect @ torch.linalg.pinv(covariance, hermitian=True) @ effect)
        freedom = units - columns
        found.append(float(f.sf(wald / columns * freedom / units, columns, freedom)))
    return torch.tensor(found, dtype=torch.float64)


# Units beyond which the fit without one of them is that with it; and rows whose products are taken at a time.
MANY, ROWS = 2_000, 4_096


def _without(scores: Tensor, tested: Tensor, unit: Tensor, inverse: Tensor) -> Tensor:
    """The scores of units, (U, p), by fits without each of them."""
    units, width = scores.shape
    if units > MANY:
        return scores
    gram = tested.new_zeros(units, width, width)
    for rows, own in zip(tested.split(ROWS), unit.split(ROWS), strict=True):
        gram.index_add_(0, own, rows.unsqueeze(2) * rows.unsqueeze(1))
    # A unit that alone has a level says nothing of it: its own score is 0.
    left = torch.eye(width).to(tested) - (1 - FREE) * gram @ inverse
    return torch.linalg.solve(left, scores.unsqueeze(2))[..., 0]


# The most values of which every order is compared; and the most causes of one within a step.
MOST, CAUSES = 8, 3


def within_step(
    panel: Panel, kappa: Tensor, late: Tensor, fixed: Tensor, penalty: float, told: Sequence[int] = ()
) -> tuple[Tensor, Tensor]:
    """Which values act on which within a step, and the order in which they come about.

    Of values with noise of their own, one may be a function of another one of the same step. The graph
    without circles is found whose likelihood is largest, with the price log(n) / 2 for each feature, by
    dynamic programming over sets of values (Silander and Myllymaki, 2006). Linear parts alone do not tell
    cause from effect (Shimizu et al., 2006), bends do (Hoyer et al., 2009); and if a linear part is taken the
    wrong way round, effects of the actions remain the same, as those by the way of another value and all
    others add up.

    Args:
        late: Features of the values themselves, (n, D, B), whose first is the value.
        fixed: Which values nothing moves, so that they come first, (D,) bool.
        told: Values of which it is known in which order they come about.

    Returns:
        Cause by effect, (D, D) bool, and the D values in their order, (D,) long; no effects if more than
        `MOST` are not fixed.
    """
    width = late.shape[1]
    first, free = (which.nonzero()[:, 0].tolist() for which in (fixed, ~fixed))
    acts = torch.zeros(width, width, dtype=torch.bool, device=late.device)
    if len(free) > MOST:
        return acts, torch.tensor([*first, *free], device=late.device)
    scores = {value: _scores(panel, kappa, late, value, penalty) for value in free}

    def best(value: int, before: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        known = {*first, *before}
        return max((score, causes) for causes, score in scores[value].items() if known.issuperset(causes))

    orders: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {(): (0.0, ())}
    for size in range(1, len(free) + 1):
        for some in combinations(free, size):
            options = []
            for value in some:
                if value in told and not {*told[: told.index(value)]} & {*free} <= {*some}:
                    continue
                rest = tuple(each for each in some if each != value)
                if rest not in orders:
                    continue
                total, order = orders[rest]
                options.append((total + best(value, order)[0], (*order, value)))
            if options:
                orders[some] = max(options)
    order = orders[tuple(free)][1]
    for place, value in enumerate(order):
        acts[list(best(value, order[:place])[1]), value] = True
    return acts, torch.tensor([*first, *order], device=late.device)


def _scores(
    panel: Panel, kappa: Tensor, late: Tensor, value: int, penalty: float
) -> dict[tuple[int, ...], float]:
    """The likelihood of a value given each set of causes, less the price of their features."""
    _, width, block = late.shape
    whole = torch.cat([panel.features, late.flatten(1)], 1)
    ((_, part),) = Panel(whole, panel.values[:, [value]], panel.lengths).alike()
    rows, part = len(part.values), part.levelled(float(kappa[value]))
    basis, shown = part.features.split([panel.features.shape[1], width * block], 1)
    shown = torch.cat([shown, part.values], 1)
    shown = shown - basis @ ridge(basis, shown, penalties(basis.shape[1], penalty).to(basis))
    gram, others = shown.mT @ shown, [each for each in range(width) if each != value]
    found: dict[tuple[int, ...], float] = {}
    for size in range(min(CAUSES, len(others)) + 1):
        sets = list(combinations(others, size))
        at = torch.tensor(sets, dtype=torch.long).reshape(len(sets), size, 1) * block + torch.arange(block)
        at = at.flatten(1).to(gram.device)
        inner = gram[at.unsqueeze(2), at.unsqueeze(1)] + penalty * torch.eye(at.shape[1]).to(gram)
        side = gram[at, -1]
        left = gram[-1, -1] - (side * torch.linalg.solve(inner, side)).sum(-1)
        score = (
            -rows / 2 * left.clamp_min(torch.finfo(left.dtype).tiny).log() - math.log(rows) / 2 * size * block
        )
        found |= dict(zip(sets, score.tolist(), strict=True))
    return found
