"""The expected distance of outcomes to the centre of the desired region.

With fixed noise u_1, ..., u_n and outcomes Y_i(z) pushed forward through the altered graph, the loss of an
alteration is

    1/n sum_i distance(Y_i(z), o, r),       o, r: centre and radius of the largest ball in the region,

in standardised outcomes, where distance is, with a = |y - o|,

    mae          |y - o|_1                            mse    a^2
    insensitive  max(0, a - r)                        huber  a^2 inside the ball, r (2 a - r) outside.

It is differentiable in z where the indicator of the region is not. It is not a probability, and what makes it
small need not make P(Y in S) large; therefore the share of draws in the region is computed beside it.
Separate draws compare candidate sets, and further ones give the reported probability.

Its interval is Wilson's for a share p of n_e draws, with

    1 / n_e = 1 / m + h(x, z),        h(x, z) = (1 + v' R^-1 v) / n.

m is the number of draws; h is the leverage of the decision among the n rows, v being context and action in
standard deviations and R their correlations over the rows: the error that a linear regression of success on
context and action would have there. The networks are more flexible than that, and are taken as fitted: what
else is unknown of them is not in the interval (with claims=cross_fitted, models of other rows judge it).

The Chebyshev centre o of S = {y : M y <= d} is the centre of the largest ball inside,

    max r   subject to   m_k' o + r |m_k| <= d_k,

a linear program. Two cases need more care. An open region ({y1 < 5.7, y2 < 100}) contains balls of any
radius: on each side on which an outcome is unbounded in S, S is cut at a range of the observations (the outer
deciles, since the extremes grow with the sample size), widened until the interior is not empty. A region that
is longer than wide contains many largest balls: among them the one is taken that keeps farthest from the
other faces, and so on until it is unique. Faces that are tight for all largest balls are those with a
positive multiplier.

Source: Qin et al. (2025), Eq. 6-9 (losses, largest ball) and Sec. 4.2 (bounded regions); Du et al. (2026),
App. C (where the centre misleads); Wilson (1927); the cut, the choice among balls and the effective number
n_e are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

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
    the outcomes, `lowest` to `highest`, (|Y|,) each, in its units.

    Raises:
        ValueError: if the region lies farther than a million ranges away from everything observed.
    """
    normals, offsets = region.normals.numpy(), region.offsets.numpy()
    width = normals.shape[1]
    open_sides = [
        sign * np.eye(width)[place]
        for place in range(width)
        for sign in (1.0, -1.0)
        if _largest(sign * np.eye(width)[place], normals, offsets) is None
    ]
    low, high = lowest.detach().cpu().numpy(), highest.detach().cpu().numpy()
    for wider in WIDER if open_sides else (0.0,):
        reach = np.array(
            [
                side @ (high if side.sum() > 0 else low) + wider * np.abs(side) @ (high - low)
                for side in open_sides
            ]
        )
        rows = np.vstack([normals, *(side[None] for side in open_sides)])
        bounds = np.concatenate([offsets, reach])
        centre, radius = _inmost(rows, bounds)
        if radius > 1e-9:
            return torch.from_numpy(centre).to(lowest), radius
    raise ValueError(
        f"the region of {list(region.names)} has an empty interior or lies far from all observations ({low} "
        f"to {high}): check its units and bounds"
    )


def _inmost(rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """The centre of the largest ball that keeps farthest from the other faces, and its radius, else -inf."""
    length, width = np.linalg.norm(rows, axis=1), rows.shape[1]
    free, kept, radius, centre = np.ones(len(rows), dtype=bool), np.zeros(len(rows)), -np.inf, np.zeros(width)
    while free.any():
        # Free faces keep the largest common distance, the others the distance at which they became tight.
        faces, slack = (
            np.hstack([rows, np.where(free, length, 0.0)[:, None]]),
            bounds - np.where(free, 0.0, length * kept),
        )
        found = linprog(
            np.append(np.zeros(width), -1.0),
            A_ub=faces,
            b_ub=slack,
            bounds=[(None, None)] * (width + 1),
            method="highs",
        )
        if not found.success:
            break
        centre, radius = found.x[:-1], found.x[-1] if radius == -np.inf else radius
        tight = free & (found.ineqlin.marginals < -1e-9)
        if not tight.any():
            break
        # Slightly less, so that rounding does not make the next program infeasible.
        kept, free = np.where(tight, found.x[-1] - 1e-9 * (1 + abs(found.x[-1])), kept), free & ~tight
    return centre, float(radius)


def _largest(direction: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> np.ndarray | None:
    """The point of {v : rows v <= bounds} farthest in a direction; None if there is none."""
    found = linprog(-direction, A_ub=rows, b_ub=bounds, bounds=[(None, None)] * rows.shape[1], method="highs")
    return found.x if found.success else None


Loss = Literal["mae", "mse", "huber", "insensitive"]
TRAINING, VALIDATION, TEST = 0, 1, 2


@dataclass(frozen=True)
class Aim:
    """The target from which distances are measured, in standardised outcomes."""

    region: Polytope  # The desired region
    centre: Tensor  # o, (|Y|,)
    radius: float  # r
    loss: Loss  # The distance

    def distance(self, outcomes: Tensor) -> Tensor:
        """The distance of outcomes, (..., |Y|) -> (...)."""
        away = outcomes - self.centre.to(outcomes)
        if self.loss == "mae":
            return away.abs().sum(-1)
        square = away.square().sum(-1)
        if self.loss == "mse":
            return square
        # The floor keeps the gradient of the root finite at the centre itself.
        far = square.clamp_min(1e-12).sqrt()
        if self.loss == "insensitive":
            return (far - self.radius).clamp_min(0)
        return torch.where(far <= self.radius, square, self.radius * (2 * far - self.radius))


class CentreDistance(AlterationObjective):
    """Minus the expected distance to the centre, for one set of altered variables in B cases, by
    push-forwards of the draws for training, validation and test; `before` is the share of desired test draws
    without an alteration.
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
        normal_quantile(level)  # refuses what is none
        self.level = level

    @classmethod
    def for_sets(
        cls,
        surrogate: FlowStructural,
        cases: Sequence[RehearsalCase],
        loss: Loss = "mae",
        draws: int = 1000,
        evaluation_draws: int = 4000,
        precision: int = 32,
        level: float = 0.95,
    ) -> list[Self]:
        """Minus the expected distance to the centre for each candidate set.

        Args:
            loss: mae, mse, huber or insensitive.
            draws: n, number of noise draws for the search.
            evaluation_draws: Number of draws in each of the samples for validation and test.
            precision: 32 or 64 bits for the push-forward.
            level: Coverage probability of the interval.
        """
        sizes = {"draws": draws, "evaluation_draws": evaluation_draws, "precision": precision}
        fits = loss in get_args(Loss) and min(draws, evaluation_draws) >= 1 and precision in (32, 64)
        wanted = f"a loss among {get_args(Loss)}, draws and evaluation_draws >= 1, precision 32 or 64"
        require(fits, wanted, loss=loss, **sizes)
        surrogate.require_fitted()
        task, scaler = surrogate.task, surrogate.scaler
        region = task.region.standardised(*(each.cpu() for each in scaler.moments(task.outcomes)))
        centre, radius = centre_and_radius(
            region, *(scaler.standardised(task.outcomes, end).cpu() for end in scaler.deciles(task.outcomes))
        )
        aim, given = (Aim(region, centre, radius, loss), task.given(cases).to(scaler.scale))
        kind = torch.float32 if precision == 32 else torch.float64
        noise = [
            surrogate.noise(count, purpose).to(kind)
            for purpose, count in (
                (TRAINING, draws),
                (VALIDATION, evaluation_draws),
                (TEST, evaluation_draws),
            )
        ]
        baseline_outcomes = surrogate.pushforward(noise[TEST], (), given, task.outcomes)
        with torch.no_grad():
            before = (
                region.contains(baseline_outcomes(noise[TEST].new_empty(len(given), 0))).double().mean(-1)
            )
        pushforward = {
            names: [surrogate.pushforward(each, names, given, task.outcomes) for each in noise]
            for names in task.candidates
        }
        return [
            cls(surrogate, cases, names, aim, pushforward[names], before, level) for names in task.candidates
        ]

    def __call__(self, actions: Tensor) -> Tensor:
        """Minus the expected distance, (..., B, k) -> (..., B)."""
        return self.values_and_shares(actions)[0]

    def values_and_shares(
        self, actions: Tensor, draws: int | None = None, which: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Minus the expected distance, and the share of draws in the region, (..., B, k) -> (..., B) each; of
        the first `draws` or the cases `which` only, where these are given.
        """
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
        shares, draws = self.share(actions, TEST), self._draws()
        ends = self._ends(shares.to(torch.float64).cpu(), actions, draws)
        rows = zip(shares.tolist(), self.before.tolist(), ends, strict=True)
        known = draws or None
        return [appraised(self.level, share, none, *pair, draws=known) for share, none, pair in rows]

    def _draws(self) -> int:
        """The number of test draws."""
        return len(next(iter(self.pushforward[TEST].noise.values()), ()))

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
