"""The expected distance of outcomes to the centre of the desired region.

With fixed noise u_1, ..., u_n and outcomes Y_i(z) pushed forward through the altered graph, the loss of an
alteration is

    1/n sum_i |Y_i(z) - o|_1,       o: the centre of the largest ball in the region,

in standardised outcomes. It is differentiable in z, unlike the indicator of the region. It is not a
probability, and an alteration that makes it small need not make P(Y in S) large; therefore the share of draws
in the region is computed, too. Separate draws compare candidate sets, and further ones give the reported
probability.

Its interval is Wilson's for a share p of n_e draws, with

    1 / n_e = 1 / m + h(x, z),        h(x, z) = (1 + v' R^-1 v) / n.

m is the number of draws; h is the leverage of the decision among the n rows, v being context and action in
standard deviations and R their correlations over the rows: the error that a linear regression of success on
context and action would have there. The networks are more flexible than that; their further uncertainty is
not in the interval (with claims=cross_fitted, models fitted to other rows validate it).

The Chebyshev centre o of S = {y : M y <= d} is the centre of the largest ball inside,

    max r   subject to   m_k' o + r |m_k| <= d_k,

a linear program. An open region ({y1 < 5.7, y2 < 100}) is cut on each side on which an outcome is unbounded
at a range of the observations (the outer deciles, since the extremes grow with the sample size), widened
until the interior is not empty. Of the many largest balls of a region that is longer than wide, the one is
taken that keeps farthest from the other faces, and so on until it is unique. Faces that are tight for all
largest balls are those with a positive multiplier.

Source: Qin et al. (2025), Eq. 6-9 (losses, largest ball) and Sec. 4.2 (bounded regions); Du et al. (2026),
App. C (where the centre misleads); Wilson (1927).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, appraised, normal_quantile
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural, Pushforward

WIDER = (0.0, 0.5, 1.0, 3.0, 10.0, 100.0, 1e4, 1e6)


def centre_and_radius(region: Polytope, lowest: Tensor, highest: Tensor) -> tuple[Tensor, float]:
    """The centre of the largest ball in a region, (|Y|,), and its radius; an open region is cut at a range of
    the outcomes, `lowest` to `highest`, (|Y|,) each, in its units. A ValueError if the region lies farther
    than a million ranges away from all observations.
    """
    normals, offsets = region.normals.numpy(), region.offsets.numpy()
    sides = [sign * axis for axis in np.eye(normals.shape[1]) for sign in (1.0, -1.0)]
    open_sides = [side for side in sides if _farthest_point(side, normals, offsets) is None]
    low, high = lowest.detach().cpu().numpy(), highest.detach().cpu().numpy()
    for widening in WIDER if open_sides else (0.0,):
        reach = [
            side @ (high if side.sum() > 0 else low) + widening * np.abs(side) @ (high - low)
            for side in open_sides
        ]
        rows = np.vstack([normals, *(side[None] for side in open_sides)])
        centre, radius = _inmost_ball(rows, np.concatenate([offsets, reach]))
        if radius > 1e-9:
            return torch.from_numpy(centre).to(lowest), radius
    raise ValueError(
        f"the region of {list(region.names)} has an empty interior or lies far from all observations ({low} "
        f"to {high}): check its units and bounds"
    )


def _inmost_ball(rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """The centre of the largest ball that is farthest from the other faces, and its radius or -inf."""
    length, width = np.linalg.norm(rows, axis=1), rows.shape[1]
    loose = np.ones(len(rows), dtype=bool)
    depth = np.zeros(len(rows))
    radius = -np.inf
    centre = np.zeros(width)
    while loose.any():
        # Loose faces keep the largest common distance, the others the distance at which they became tight.
        faces = np.hstack([rows, np.where(loose, length, 0.0)[:, None]])
        slack = bounds - np.where(loose, 0.0, length * depth)
        cost = np.append(np.zeros(width), -1.0)
        solution = linprog(cost, A_ub=faces, b_ub=slack, bounds=(None, None), method="highs")
        if not solution.success:
            break
        centre, radius = solution.x[:-1], solution.x[-1] if radius == -np.inf else radius
        tight = loose & (solution.ineqlin.marginals < -1e-9)
        if not tight.any():
            break
        # Slightly less, so that rounding does not make the next program infeasible.
        depth = np.where(tight, solution.x[-1] - 1e-9 * (1 + abs(solution.x[-1])), depth)
        loose = loose & ~tight
    return centre, float(radius)


def _farthest_point(direction: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> np.ndarray | None:
    """The point of {v : rows v <= bounds} farthest in a direction; None if there is none."""
    lp = linprog(-direction, A_ub=rows, b_ub=bounds, bounds=(None, None), method="highs")
    return lp.x if lp.success else None


TRAINING, VALIDATION, TEST = 0, 1, 2


@dataclass(frozen=True)
class Aim:
    """The target from which distances are measured, in standardised outcomes."""

    region: Polytope  # The desired region
    centre: Tensor  # o, (|Y|,)

    def distance(self, outcomes: Tensor) -> Tensor:
        """The distance of outcomes, (..., |Y|) -> (...)."""
        return (outcomes - self.centre.to(outcomes)).abs().sum(-1)


class CentreDistance(AlterationObjective):
    """Minus the expected distance to the centre, for one set of altered variables in B cases, from draws for
    training, validation and test; `before` is the share of desired test draws without an alteration.
    """

    takes = (FlowStructural,)
    level: float

    def __init__(
        self,
        surrogate: FlowStructural,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        aim: Aim,
        pushforward: Sequence[Pushforward],
        before: Tensor,
        level: float = 0.95,
    ) -> None:
        super().__init__(cases, names, before.device)
        self.surrogate, self.aim, self.pushforward, self.before = surrogate, aim, tuple(pushforward), before
        normal_quantile(level)  # validates the level
        self.level = level

    @classmethod
    def for_sets(
        cls,
        surrogate: FlowStructural,
        cases: Sequence[RehearsalCase],
        draws: int = 1000,
        evaluation_draws: int = 4000,
        precision: int = 32,
        level: float = 0.95,
    ) -> list[Self]:
        """Minus the expected distance to the centre for each candidate set.

        Args:
            draws: n, number of noise draws for the search.
            evaluation_draws: Number of draws in each of the samples for validation and test.
            precision: 32 or 64 bits for the push-forward.
            level: Coverage probability of the interval.
        """
        sizes = {"draws": draws, "evaluation_draws": evaluation_draws, "precision": precision}
        valid = min(draws, evaluation_draws) >= 1 and precision in (32, 64)
        require(valid, "draws and evaluation_draws >= 1, precision 32 or 64", **sizes)
        surrogate.require_fitted()
        task, scaler = surrogate.task, surrogate.scaler
        region = task.region.standardised(*(moment.cpu() for moment in scaler.moments(task.outcomes)))
        ends = scaler.deciles(task.outcomes)
        deciles = (scaler.standardised(task.outcomes, end).cpu() for end in ends)
        centre, _ = centre_and_radius(region, *deciles)
        aim, contexts = Aim(region, centre), task.given(cases).to(scaler.scale)
        dtype = torch.float32 if precision == 32 else torch.float64
        counts = ((TRAINING, draws), (VALIDATION, evaluation_draws), (TEST, evaluation_draws))
        noise = [surrogate.noise(count, purpose).to(dtype) for purpose, count in counts]
        baseline_outcomes = surrogate.pushforward(noise[TEST], (), contexts, task.outcomes)
        with torch.no_grad():
            outcomes = baseline_outcomes(noise[TEST].new_empty(len(contexts), 0))
            before = region.contains(outcomes).double().mean(-1)
        pushed = {
            names: [surrogate.pushforward(sample, names, contexts, task.outcomes) for sample in noise]
            for names in task.candidates
        }
        return [cls(surrogate, cases, names, aim, pushed[names], before, level) for names in task.candidates]

    def __call__(self, actions: Tensor) -> Tensor:
        """Minus the expected distance, (..., B, k) -> (..., B)."""
        return self.values_and_shares(actions)[0]

    def values_and_shares(
        self, actions: Tensor, draws: int | None = None, which: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Minus expected distances, and desired shares, of the first `draws` or cases `which`, (..., B)."""
        pushforward = self.pushforward[TRAINING] if draws is None else self.pushforward[TRAINING].first(draws)
        outcomes = self._outcomes(pushforward if which is None else pushforward.of(which), actions)
        share = self.aim.region.contains(outcomes.detach()).to(actions).mean(-1)
        return -self.aim.distance(outcomes).mean(-1).to(actions), share

    @torch.no_grad()
    def share(self, actions: Tensor, purpose: int) -> Tensor:
        """Share of the draws of a `purpose` in the region, (..., B, k) -> (..., B); NaN if none is finite."""
        outcomes = self._outcomes(self.pushforward[purpose], actions)
        share = self.aim.region.contains(outcomes).to(actions).mean(-1)
        # All draws can be undefined only where none is desired.
        return share.where((share > 0) | outcomes.isfinite().all(-1).any(-1), torch.nan)

    def level_value(self, actions: Tensor) -> Tensor:
        """The share of desired validation draws, by which the search compares sets."""
        return self.share(actions, VALIDATION)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The share of desired test draws with its interval, and that without an alteration."""
        shares = self.share(actions, TEST)
        draws = len(next(iter(self.pushforward[TEST].noise.values()), ()))
        ends = self._ends(shares.to(torch.float64).cpu(), actions, draws)
        rows = zip(shares.tolist(), self.before.tolist(), ends, strict=True)
        number = draws or None
        return [appraised(self.level, share, base, *interval, draws=number) for share, base, interval in rows]

    def _ends(self, shares: Tensor, actions: Tensor, draws: int) -> list[tuple[float | None, float | None]]:
        """The ends of each interval, for shares (B,), actions (B, k); None if the model knows no rows."""
        overlap = self.surrogate.overlap
        if not overlap.known or not draws:
            return [(None, None)] * len(shares)
        leverage = overlap.leverage(self.names, self.surrogate.task.given(self.cases), actions)
        square = normal_quantile(self.level) ** 2 * (leverage.cpu() + 1 / draws)
        centre, half = shares + square / 2, (square * (shares * (1 - shares) + square / 4)).sqrt()
        lower, upper = ((centre + sign * half) / (1 + square) for sign in (-1, 1))
        return list(zip(lower.clamp(0, 1).tolist(), upper.clamp(0, 1).tolist(), strict=True))

    def _outcomes(self, pushforward: Pushforward, actions: Tensor) -> Tensor:
        """Standardised outcomes, (..., B, n, |Y|)."""
        like = next(iter(pushforward.noise.values()))
        return pushforward(self.surrogate.scaler.standardised(self.names, actions).to(like))
