"""Positivity (overlap) of a decision: the share of its evaluation points without a near row.

P(a) = mean_j P(Y in S | z_j, a) is a mean over draws of the covariates, z_j = (x, u_j, v_j). Even if the dose
a, or (x, a), is common, no row may have it together with the covariates that decide whether it helps: if they
nearly determine the action, as where experts dose by severity, the model extrapolates. So all of z counts,
and of the action its part that the covariates leave open. With m, C the mean and covariance of z over the n
rows, the habit h(z) of the rows (a regression of a on z), b(w) and s(w)^2 the mean and variance of its
residuals a - h(z) over the 50 nearest rows in w (with ties),

    w = C^(-1/2) (z - m),    e = (a - h(z) - b(w)) / s(w),    d_5 = distance of (w, e) to the 5th nearest row,

a point is far if d_5 or |e| exceeds the 97.5th percentile of the rows' own, and S(a) is the share of the z_j
that are far with a. For an action with levels these are the rows with the same level, so that a rare level is
not far from its few rows; the number of nearest rows is then that which holds ten of the rarest level. The
scattered rows of a level that hardly any has are near everything by that measure, so that a level of fewer
rows than `data.positivity.least_rows` is far everywhere. If everything is linear and normal, (w, e) is (z, a)
whitened by its covariance. The habit detects a ridge: of rows with a = u^2 + .15 noise, any fixed scale calls
a dose near that is four standard deviations of a given u away; b corrects it where doses jump, and s adapts
to locally little or much freedom. |e| (over the root of k, for k actions) counts by itself since in many
dimensions the 5th nearest row is always far.

Of many rows, evenly spaced ones are stored, and some of each level. Repeated rows count once, if at least
`DISTINCT` are left: a table that was expanded by weights has no more information. The radius of d_5 is at
least `LEAST`, so that rows of few values do not make everything between them far. Directions without variance
get the `FLOOR`-th part of the largest: any deviation is far. A drawn covariate of few values is moved to the
nearest of them, as the draws are means with residuals.

Source: Loftsgaarden and Quesenberry (1965) (nearest-neighbour densities); Mahalanobis (1936) (whitening);
Hirano and Imbens (2004) (the action's density given covariates, for doses).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.positivity import least_rows
from rehearsal_torch.data.table import evenly
from rehearsal_torch.data.trainable_part import Solved

NEIGHBOURS, AROUND, SHARE = 5, 50, 0.975
FLOOR, LEAST, DISTINCT = 1e-8, 0.25, 100
# The most combinations of levels; rows of each that are stored, and of the rarest that count as nearest.
LEVELS, KEPT, RAREST = 12, 100, 10
FEW_VALUES = 20  # columns of at most so many values are moved to them
ROUNDING = 1e-9  # rounding of squared distances, by which equal rows may differ
CHUNK = 4_000_000  # numbers of a block of distances, 32 MB


@dataclass(frozen=True)
class Surroundings:
    """Whitened points (m, p) among the rows, with b and s of each."""

    white: Tensor  # w, (m, p)
    centre: Tensor  # The mean of the rows' a - h(z), plus b, (m, k)
    scale: Tensor  # s, (m, k)


class NearRows(Solved):
    """At most `most` rows of a candidate set; `drawn` covariates of z and `levels` of actions by index."""

    def __init__(self, drawn: Sequence[int], most: int = 2000, levels: Sequence[int] = ()) -> None:
        super().__init__()
        self.drawn, self.most, self.levels = tuple(drawn), most, tuple(levels)
        # a - h(z) and e of k actions; the radii of d_5 and of |e| with each combination of levels.
        self.register_fitted(rows=("n", "p"), open=("n", "k"), freedom=("n", "k"), radii=("l", 2))
        self.register_fitted(combinations=("l", "j"), nearest=(1,))

    def faults(self) -> list[str]:
        """Faults of sizes, and radii that are NaN."""
        faults = super().faults()
        if faults or not bool(self.radii.isnan().any()):
            return faults
        return [f"radii: expected distances; got {self.radii.tolist()}"]

    def solve(self, *examples: Tensor) -> None:
        """Fits to (a subset of) z (n, p), a - h(z) (n, k) and a (n, k), standardised."""
        arrays = [example.detach().to(torch.float64) for example in examples]
        levels = arrays[2][:, list(self.levels)]
        combinations = levels.unique(dim=0) if self.levels else levels[:1]
        if len(combinations) > LEVELS:
            combinations, levels = levels[:1, :0], levels[:, :0]
        self.combinations = combinations
        stored, groups = evenly(len(levels), self.most, levels.device), self._group(levels)
        if len(levels) > self.most:
            by_group = [(groups == group).nonzero()[:, 0] for group in range(len(combinations))]
            by_group = [members[evenly(len(members), KEPT, members.device)] for members in by_group]
            stored = torch.cat((stored, *by_group)).unique() if len(combinations) > 1 else stored
        rows, residual, levels, count = arrays[0][stored], arrays[1][stored], levels[stored], len(levels)
        distinct = torch.cat((rows, residual, levels), -1).unique(dim=0)
        if DISTINCT <= len(distinct) < len(rows):
            rows, residual, levels = distinct.split((rows.shape[1], residual.shape[1], levels.shape[1]), -1)
            count = len(rows)
        self.rows, self.open, groups = rows, residual, self._group(levels)
        counts = torch.bincount(groups, minlength=len(combinations))
        fewest = least_rows(count) if len(combinations) > 1 else NEIGHBOURS + 1
        if int(counts.max()) < fewest:
            # No level has enough rows to compare with.
            self.combinations = combinations = combinations[:1, :0]
            groups, counts = torch.zeros_like(groups), counts.sum(0, keepdim=True)
            fewest = NEIGHBOURS + 1
        self.radii, self.freedom = rows.new_full((len(combinations), 2), LEAST), torch.zeros_like(residual)
        self.nearest = rows.new_tensor([float(AROUND)])
        if not self.known:
            return
        if len(combinations) > 1:
            share = len(rows) / int(counts[counts >= fewest].min())
            self.nearest = self.nearest.maximum(rows.new_tensor(RAREST * share).ceil())
        self.freedom = self._freedom(self.around(rows, own=True), residual)
        coordinates = torch.cat((self._white(rows), self.freedom), -1)
        blocks = coordinates.split(max(1, CHUNK // len(coordinates)))
        nearest = [torch.cdist(block, coordinates).topk(NEIGHBOURS + 1, largest=False) for block in blocks]
        distances = torch.cat([values[:, -1] for values, _ in nearest])
        statistics = torch.stack((distances, self.freedom.square().mean(-1).sqrt()), -1)
        self.radii = torch.full_like(self.radii, -1.0)
        for group in (counts >= fewest).nonzero()[:, 0].tolist():
            radii = torch.quantile(statistics[groups == group], SHARE, dim=0)
            self.radii[group] = radii.clamp_min(LEAST)

    @property
    def known(self) -> bool:
        """Whether there are enough rows for distances."""
        return len(self.rows) > NEIGHBOURS

    def around(self, points: Tensor, own: bool = False) -> Surroundings:
        """Standardised points z (m, p) among the rows; with `own`, each row among the others."""
        white, rows = self._white(points), self._white(self.rows)
        count = min(int(self.nearest), max(AROUND, len(rows) // 2), len(rows) - own)
        centre, moments = self.open.mean(0), []
        sums = torch.cat((self.open - centre, (self.open - centre).square()), -1)
        for indices in torch.arange(len(white), device=rows.device).split(max(1, CHUNK // len(rows))):
            squares = _squares(white[indices], rows)
            if own:
                squares[torch.arange(len(indices), device=rows.device), indices] = torch.inf
            furthest = squares.topk(count, dim=-1, largest=False).values[:, -1:]
            nearest = (squares <= furthest + ROUNDING).to(rows)
            moments.append(nearest @ sums / nearest.sum(-1, keepdim=True))
        mean, square = torch.cat(moments).chunk(2, -1)
        least = FLOOR * float(sums.abs().max().clamp_min(1e-300))
        scale = (square - mean.square()).clamp_min(0).sqrt().clamp_min(least)
        return Surroundings(white, centre + mean, scale)

    def far(self, around: Surroundings, left: Tensor, actions: Tensor) -> Tensor:
        """Whether no row is near the points with a - h(z) and a, (..., m, k) each -> (..., m) bool."""
        count = self.combinations.shape[1]
        group = self._group(actions[..., list(self.levels)[:count]].to(self.open)).flatten()
        # A combination that no row has is far.
        radii = torch.cat((self.radii * (1 + 1e-9), -self.radii.new_ones(1, 2)))[group]
        reach, freedom_radius = radii.unbind(-1)
        freedom = self._freedom(around, left.to(self.open)).reshape(-1, left.shape[-1])
        is_far = freedom.square().mean(-1).sqrt() > freedom_radius
        # Only points with |e| in range are compared with the rows.
        open_points = (~is_far).nonzero().squeeze(-1)
        coordinates = torch.cat((self._white(self.rows), self.freedom), -1)
        for block in open_points.split(max(1, CHUNK // len(coordinates))):
            points = torch.cat((around.white[block % len(around.white)], freedom[block]), -1)
            near = _squares(points, coordinates).le_(reach[block].square().unsqueeze(-1))
            is_far[block] = near.sum(-1) < NEIGHBOURS
        return is_far.reshape(left.shape[:-1])

    def observed(self, points: Tensor) -> Tensor:
        """Points (..., p) with drawn covariates of few values moved to the nearest of these."""
        snapped = points.to(self.rows).clone()
        for column in self.drawn:
            values = self.rows[:, column].unique()
            if len(values) <= FEW_VALUES:
                midpoints = (values[1:] + values[:-1]) / 2
                snapped[..., column] = values[torch.bucketize(snapped[..., column].contiguous(), midpoints)]
        return snapped

    def _group(self, levels: Tensor) -> Tensor:
        """The index of the combination of levels, (..., j) -> (...) long; their number if there is none."""
        equal = ((levels.unsqueeze(-2) - self.combinations).abs() <= ROUNDING).all(-1)
        return torch.where(equal.any(-1), equal.long().argmax(-1), len(self.combinations))

    def _freedom(self, around: Surroundings, residual: Tensor) -> Tensor:
        """e of points with a - h(z), (..., m, k)."""
        return (residual - around.centre) / around.scale

    def _white(self, points: Tensor) -> Tensor:
        """Whitened by the mean and covariance of the rows, (m, p) -> (m, p)."""
        mean = self.rows.mean(0)
        centred = self.rows - mean
        variances, directions = torch.linalg.eigh(centred.mT @ centred / len(centred))
        largest = variances.max() if variances.numel() else variances.new_ones(())
        floor = (FLOOR * largest).clamp_min(torch.finfo(torch.float64).tiny)
        return (points.to(mean) - mean) @ (directions / variances.clamp_min(floor).sqrt())


def _squares(points: Tensor, rows: Tensor) -> Tensor:
    """Squared distances, (m, p), (n, p) -> (m, n), four times as fast as `torch.cdist`."""
    squares = torch.addmm(rows.square().sum(-1), points, rows.mT, alpha=-2)
    return squares.add_(points.square().sum(-1, keepdim=True))
