"""Which share of the points at which a decision is judged lies where no row is near.

A decision is judged by the mean of success over draws of the covariates, P(a) = mean_j P(Y in S | z_j, a) at
z_j = (x, u_j, v_j). The dose a may be common, and (x, a), too, and still no row may have it together with the
covariates that decide whether it helps: where they nearly determine the action, as where experts dose by
severity, the model's answer is the continuation of its own form. So all of z counts, and of the action what
the covariates leave open. With m, C the mean and covariance of z over the n rows, the habit h(z) of the rows
(a regression of a on z), b(w) and s(w)^2 the mean and variance of its residuals a - h(z) over the 50 nearest
rows in w and those as near as they are,

    w = C^(-1/2) (z - m),    e = (a - h(z) - b(w)) / s(w),    d_5 = distance of (w, e) to the 5th nearest row,

a point is far if d_5 or |e| exceeds the 97.5th percentile of the rows' own, and S(a) is the share of the z_j
that are far with a. Of an action with levels those are the rows with the same level: a level that few rows
have is rare, and not far from them. As many rows count as nearest then as hold ten of the rarest level. Where
everything is linear and normal, (w, e) is (z, a) whitened by its covariance. The habit is what sees a ridge:
of rows with a = u^2 + .15 noise, any fixed scale calls a dose near that is four standard deviations of a
given u away; b mends it where doses jump, and s sees who is dosed with little freedom beside others who are
dosed with much. |e| (over the root of k, for k actions) counts by itself since in many dimensions the 5th
nearest row is far in any case.

Of many rows, evenly spaced ones are kept, and some of each level. Rows that repeat others count once, where
at least `DISTINCT` are left: a table that was expanded by weights says no more than before. The radius of d_5
is at least `LEAST`, so that rows of few values do not make everything between them far. Directions in which
rows do not vary at all have the `FLOOR`-th part of the largest variance: whatever leaves them is far. A drawn
covariate of few values is moved to the nearest of them, as the draws are means with residuals.

Source: Loftsgaarden and Quesenberry (1965) (nearest-neighbour densities); Mahalanobis (1936) (whitening);
Hirano and Imbens (2004) (the action's density given covariates, for doses).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.table import evenly
from rehearsal_torch.data.trainable_part import Solved

NEIGHBOURS, AROUND, SHARE = 5, 50, 0.975
FLOOR, LEAST, DISTINCT = 1e-8, 0.25, 100
# Combinations of levels that are told apart, rows of each that are kept, and that count as nearest.
LEVELS, KEPT, RAREST = 12, 100, 10
# Columns of at most so many values are moved to them.
FEW_VALUES = 20
# Rounding of squared distances, by which equal rows may differ.
ROUNDING = 1e-9
# Numbers of a block of distances, 32 MB.
CHUNK = 4_000_000


@dataclass(frozen=True)
class Surroundings:
    """Points (m, p) among the rows: whitened, with b and s of each."""

    white: Tensor  # w, (m, p)
    centre: Tensor  # The mean of the rows' a - h(z), plus b, (m, k)
    scale: Tensor  # s, (m, k)


class NearRows(Solved):
    """At most so many rows of one candidate set, and how near they are; `drawn` are the covariates in z, and
    `levels` the places of the actions that have levels.
    """

    def __init__(self, drawn: Sequence[int], most: int = 2000, levels: Sequence[int] = ()) -> None:
        super().__init__()
        self.drawn, self.most, self.levels = tuple(drawn), most, tuple(levels)
        # a - h(z) and e of k actions; the radii of d_5 and of |e| with each combination of levels.
        self.register_fitted(rows=("n", "p"), open=("n", "k"), freedom=("n", "k"), radii=("l", 2))
        self.register_fitted(combinations=("l", "j"), nearest=(1,))

    def faults(self) -> list[str]:
        """Sizes, and radii that are none."""
        faults = super().faults()
        if faults or not bool(self.radii.isnan().any()):
            return faults
        return [f"radii: expected distances; got {self.radii.tolist()}"]

    def solve(self, *examples: Tensor) -> None:
        """Fits to z (n, p), a - h(z) (n, k) and a (n, k), standardised; of many rows, to some."""
        whole = [example.detach().to(torch.float64) for example in examples]
        levels = whole[2][:, list(self.levels)]
        combinations = levels.unique(dim=0) if self.levels else levels[:1]
        if len(combinations) > LEVELS:
            combinations, levels = levels[:1, :0], levels[:, :0]
        self.combinations = combinations
        kept, groups = evenly(len(levels), self.most, levels.device), self._group(levels)
        if len(levels) > self.most:
            some = [(groups == group).nonzero()[:, 0] for group in range(len(combinations))]
            some = [each[evenly(len(each), KEPT, each.device)] for each in some]
            kept = torch.cat((kept, *some)).unique() if len(combinations) > 1 else kept
        rows, left, levels = whole[0][kept], whole[1][kept], levels[kept]
        distinct = torch.cat((rows, left, levels), -1).unique(dim=0)
        if DISTINCT <= len(distinct) < len(rows):
            rows, left, levels = distinct.split((rows.shape[1], left.shape[1], levels.shape[1]), -1)
        self.rows, self.open, groups = rows, left, self._group(levels)
        counts = torch.bincount(groups, minlength=len(combinations))
        if int(counts.max()) <= NEIGHBOURS:
            # No level has rows of its own to compare with.
            self.combinations = combinations = combinations[:1, :0]
            groups, counts = torch.zeros_like(groups), counts.sum(0, keepdim=True)
        self.radii, self.freedom = rows.new_full((len(combinations), 2), LEAST), torch.zeros_like(left)
        self.nearest = rows.new_tensor([float(AROUND)])
        if not self.known:
            return
        if len(combinations) > 1:
            share = len(rows) / int(counts[counts > NEIGHBOURS].min())
            self.nearest = self.nearest.maximum(rows.new_tensor(RAREST * share).ceil())
        self.freedom = self._freedom(self.around(rows, own=True), left)
        both = torch.cat((self._white(rows), self.freedom), -1)
        size = max(1, CHUNK // len(both))
        fifth = [
            torch.cdist(part, both).topk(NEIGHBOURS + 1, largest=False).values[:, -1]
            for part in both.split(size)
        ]
        own = torch.stack((torch.cat(fifth), self.freedom.square().mean(-1).sqrt()), -1)
        self.radii = torch.stack(
            [
                torch.quantile(own[groups == group], SHARE, dim=0).clamp_min(LEAST)
                if count > NEIGHBOURS
                else -torch.ones_like(own[0])
                for group, count in enumerate(counts.tolist())
            ]
        )

    @property
    def known(self) -> bool:
        """Whether there are enough rows for distances."""
        return len(self.rows) > NEIGHBOURS

    def around(self, points: Tensor, own: bool = False) -> Surroundings:
        """Where z (m, p), standardised, lies among the rows; with `own` those are the rows, each beside the
        others.
        """
        white, rows = self._white(points), self._white(self.rows)
        count = min(int(self.nearest), max(AROUND, len(rows) // 2), len(rows) - own)
        centre, moments = self.open.mean(0), []
        sums = torch.cat((self.open - centre, (self.open - centre).square()), -1)
        for places in torch.arange(len(white), device=rows.device).split(max(1, CHUNK // len(rows))):
            squares = _squares(white[places], rows)
            if own:
                squares[torch.arange(len(places), device=rows.device), places] = torch.inf
            last = squares.topk(count, dim=-1, largest=False).values[:, -1:]
            nearest = (squares <= last + ROUNDING).to(rows)
            moments.append(nearest @ sums / nearest.sum(-1, keepdim=True))
        mean, square = torch.cat(moments).chunk(2, -1)
        least = FLOOR * float(sums.abs().max().clamp_min(1e-300))
        return Surroundings(
            white, centre + mean, (square - mean.square()).clamp_min(0).sqrt().clamp_min(least)
        )

    def far(self, around: Surroundings, left: Tensor, actions: Tensor) -> Tensor:
        """Whether no row is near the points with a - h(z) and a, (..., m, k) each -> (..., m) bool."""
        count = self.combinations.shape[1]
        group = self._group(actions[..., list(self.levels)[:count]].to(self.open)).flatten()
        # What no row has is far.
        radii = torch.cat((self.radii * (1 + 1e-9), -self.radii.new_ones(1, 2)))[group]
        reach, span = radii.unbind(-1)
        freedom = self._freedom(around, left.to(self.open)).reshape(-1, left.shape[-1])
        is_far = freedom.square().mean(-1).sqrt() > span
        # Only what the rows may have done at all is compared with the rows.
        open_points = (~is_far).nonzero().squeeze(-1)
        both = torch.cat((self._white(self.rows), self.freedom), -1)
        for block in open_points.split(max(1, CHUNK // len(both))):
            part = torch.cat((around.white[block % len(around.white)], freedom[block]), -1)
            near = _squares(part, both).le_(reach[block].square().unsqueeze(-1))
            is_far[block] = near.sum(-1) < NEIGHBOURS
        return is_far.reshape(left.shape[:-1])

    def observed(self, points: Tensor) -> Tensor:
        """Points (..., p) with drawn covariates of few values at the nearest of them."""
        moved = points.to(self.rows).clone()
        for column in self.drawn:
            values = self.rows[:, column].unique()
            if len(values) <= FEW_VALUES:
                between = (values[1:] + values[:-1]) / 2
                moved[..., column] = values[torch.bucketize(moved[..., column].contiguous(), between)]
        return moved

    def _group(self, levels: Tensor) -> Tensor:
        """The number of the combination of levels, (..., j) -> (...) long; one more where it is none."""
        same = ((levels.unsqueeze(-2) - self.combinations).abs() <= ROUNDING).all(-1)
        return torch.where(same.any(-1), same.long().argmax(-1), len(self.combinations))

    def _freedom(self, around: Surroundings, left: Tensor) -> Tensor:
        """e of points with a - h(z), (..., m, k)."""
        return (left - around.centre) / around.scale

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
