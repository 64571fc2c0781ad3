"""The probability of success under a linear Gaussian model.

Given Y = A x + B z + c0 + C eps, the value of an alteration z of one candidate set is

    log P(Y in S | x, z) = log P(w in Q),   w ~ N(L^-1 (A x + c0 + B z - o), I),   L L' = C Sigma C',

with Q the region S around a point o, whitened. It is concave in z for every convex S and any correlation of
the noise: an interval or a canonical rectangle has a closed form, a polygon a sum over its edges, other
polytopes use quasi-Monte Carlo.

The probability reported for the chosen action is the *predictive* one, the mean over the posterior of the
parameters, with an interval from the same draws (normal on the logistic scale): the plug-in value that was
maximised is too optimistic, the more so the fewer the observations. Candidate sets are compared by it too,
unless the search is set otherwise.

Source: Qin et al. (2025b), Eq. 8 and Thm. 3.2; Prekopa (1971) for general convex regions; the predictive
probability is ours.

Alterations of the same variables are judged by one fit (`AlterationObjective.contrast`). Two sets of
variables have

joint draws     where both responses follow from draws of the same equations (`GaussianSuccess` under a linear
                model): an equation that both use has the same draws in both, so that the draws of the
                difference d_s = P_s(first) - P_s(second) are draws of its posterior, and the interval is
                their mean +- z std, as within one set;

no joint draws  where each set has a regression of its own (`kernel_value`, `outcome`): what is known of the
                dependence of the two errors is nothing. If P(first) lies in [l, u] and P(second) in [m, v],
                each with probability (1 + c) / 2, then by Bonferroni's inequality both do with probability c
                at least, and the difference then lies in [l - v, u - m]. This holds whatever their
                dependence, and is wider than an interval that knew it.

How often they hold the truth is measured by benchmarks/set_differences.py (docs/notebook.md has the figures).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Appraisal,
    Each,
    appraised,
    difference,
    normal_quantile,
)
from rehearsal_torch.objectives.region_probability import (
    OPEN,
    Expansion,
    PolygonProbability,
    PolytopeProbability,
    RegionProbability,
    interval,
    probability,
    rectangle_of,
    vertices_of,
)
from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.linear_scm import LinearSurrogate


@dataclass(frozen=True, eq=False)
class DrawnInterval:
    """P(l <= y <= u | x, z) of one outcome under R sets of parameters, in units of its noise."""

    by_context: Tensor  # (|X|, R)
    by_action: Tensor  # (k, R)
    constant: Tensor  # (R,), from the origin
    lower: Tensor  # (R,), far away where the side is open
    upper: Tensor  # (R,)

    @classmethod
    def of(cls, likely: AffineResponse, region: Polytope, origin: Tensor) -> Self:
        """By the responses under the sets of parameters."""
        scale = _root(likely.covariance)[:, 0]
        context, action = (
            (each.squeeze(1) / scale).mT.contiguous() for each in (likely.context, likely.action)
        )
        side, ends = region.normals.to(scale)[:, 0], region.offsets.to(scale) / region.normals.to(scale)[:, 0]
        upper = torch.where(side > 0, ends, torch.inf).amin()
        lower = torch.where(side < 0, ends, -torch.inf).amax()
        at = [((end - origin) / scale[:, 0]).clamp(-OPEN, OPEN) for end in (lower, upper)]
        return cls(context, action, ((likely.constant - origin) / scale)[:, 0], *at)

    def __call__(self, contexts: Tensor, actions: Tensor) -> Tensor:
        """Contexts (B, |X|) and actions (..., B, k) -> (..., B, R)."""
        means = torch.addmm(self.constant, contexts, self.by_context) + actions @ self.by_action
        return interval(self.lower - means, self.upper - means)


@dataclass(frozen=True, eq=False)
class SuccessModel:
    """What of the probability of success is the same in all cases, for one set of altered variables.

    Attributes:
        region: S, which holds `origin`, (|Y|,).
        response: The affine response of the outcomes to contexts and actions.
        likely: The same under draws of the parameters, in a leading dimension; None if there are no draws.
    """

    region: Polytope
    origin: Tensor
    response: AffineResponse
    likely: AffineResponse | None

    @cached_property
    def root(self) -> Tensor:
        """L, (|Y|, |Y|)."""
        return _root(self.response.covariance)

    @cached_property
    def effect(self) -> Tensor:
        """L^-1 B, (|Y|, k)."""
        return torch.linalg.solve_triangular(self.root, self.response.action, upper=False)

    @cached_property
    def _whitened(self) -> tuple[Tensor, Tensor]:
        """L^-1 A transposed, (|X|, |Y|), and L^-1 (c0 - o), (|Y|,)."""
        away = (self.response.constant - self.origin).unsqueeze(-1)
        whole = torch.linalg.solve_triangular(
            self.root, torch.cat([self.response.context, away], -1), upper=False
        )
        return whole[:, :-1].mT.contiguous(), whole[:, -1]

    @cached_property
    def faces(self) -> tuple[Tensor, Tensor]:
        """Normals (l, |Y|) and offsets (l,) of the whitened region."""
        normals = self.region.normals.to(self.root)
        return normals @ self.root, self.region.offsets.to(self.root) - normals @ self.origin

    @cached_property
    def _form(self) -> RegionProbability | None:
        """The probability of the region; None for a polygon, whose corners depend on the cases."""
        return (rectangle_of if len(self.region.names) == 2 else region_probability_of)(*self.faces)

    def region_probability(self, reach: Callable[[], float]) -> RegionProbability:
        """See `region_probability_of`."""
        return self._form or region_probability_of(*self.faces, reach())

    def farthest(self, contexts: Tensor, lower: Tensor, upper: Tensor) -> float:
        """How far from zero a coordinate of a centre may lie, for contexts (B, |X|) and actions in a box."""
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        return _reach((self.base(contexts) + middle @ self.effect.mT).abs() + half @ self.effect.abs().mT)

    def base(self, contexts: Tensor) -> Tensor:
        """The whitened means without the effect of an action, (B, |X|) -> (B, |Y|)."""
        by_context, constant = self._whitened
        return torch.addmm(constant, contexts, by_context)

    @cached_property
    def _drawn(self) -> "DrawnInterval":
        assert self.likely is not None
        return DrawnInterval.of(self.likely, self.region, self.origin)

    def chances(self, contexts: Tensor, actions: Tensor) -> Tensor | None:
        """P under each draw of the parameters, contexts (B, |X|) and actions (..., B, k) -> (..., B, R); None
        if there are no draws.
        """
        if self.likely is None:
            return None
        if len(self.region.names) == 1:
            return self._drawn(contexts, actions)
        shape, width = actions.shape[:-1], actions.shape[-1]
        contexts = contexts.expand(*shape, -1).reshape(math.prod(shape), contexts.shape[-1])
        flat = actions.reshape(len(contexts), width).to(contexts)
        drawn = chances(self.likely, self.region, self.origin, self.root, contexts, flat)
        return drawn.mT.reshape(*shape, -1)


class GaussianSuccess(AlterationObjective):
    """log P(Y in S | x, z) for one set of altered variables in B cases.

    Args:
        model: What is the same in all cases.
        nothing: The predictive probability without an alteration, (B,); None if it is not known.
        level: Coverage probability of the interval.

    Raises:
        ValueError: if the level is not in (0, 1).
    """

    takes = (LinearSurrogate,)
    of_success = True
    pools = True
    level: float

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        contexts: Tensor,
        model: SuccessModel,
        nothing: Tensor | None,
        level: float = 0.95,
    ) -> None:
        super().__init__(cases, names, contexts.device)
        normal_quantile(level)  # refuses what is none
        self.level, self.model, self.nothing, self.contexts = level, model, nothing, contexts
        self.region, self.effect = model.region, model.effect
        self.base = model.base(contexts)
        self._asked: tuple[Tensor, Tensor] | None = None
        self.region_probability = model.region_probability(
            partial(model.farthest, contexts, self.lower, self.upper)
        )

    @classmethod
    @torch.no_grad()
    def for_sets(
        cls, surrogate: LinearSurrogate, cases: Sequence[RehearsalCase], level: float = 0.95
    ) -> list[Self]:
        """log P(Y in S | x, z) for each candidate set under a fitted linear surrogate."""
        contexts = surrogate.task.given(cases).to(surrogate.contexts.values.device)
        nothing, *models = success_models(surrogate)
        base, drawn = nothing.base(contexts), nothing.chances(contexts, contexts.new_zeros(len(contexts), 0))
        if drawn is None:
            plain = nothing.region_probability(partial(_reach, base))
        before = plain.log_probability(base).exp() if drawn is None else drawn.mean(-1)
        pairs = zip(surrogate.task.candidates, models, strict=True)
        return [cls(cases, names, contexts, model, before, level) for names, model in pairs]

    def centres(self, actions: Tensor, which: Tensor | None = None) -> Tensor:
        """The whitened means, (..., B, k) -> (..., B, |Y|); with `which`, those of the given cases only."""
        return (self.base if which is None else self.base[which]) + actions @ self.effect.mT

    def __call__(self, actions: Tensor) -> Tensor:
        """log P, (..., B, k) -> (..., B)."""
        return self.region_probability.log_probability(self.centres(actions))

    def values(self, actions: Tensor, which: Tensor) -> Tensor:
        """log P in some of the cases, (n, k) -> (n,)."""
        return self.region_probability.log_probability(self.centres(actions, which))

    def expansion(self, actions: Tensor, which: Tensor) -> Expansion:
        """log P to second order in z in some of the cases, (n, k)."""
        found = self.region_probability.expansion(self.centres(actions, which))
        return Expansion(
            found.value, found.gradient @ self.effect, self.effect.mT @ found.curvature @ self.effect
        )

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Values (..., B) and gradients (..., B, k)."""
        found = self.region_probability.expansion(self.centres(actions))
        return found.value, found.gradient @ self.effect

    def starts(self, count: int) -> Tensor:
        """The action whose mean is nearest to the region's centre, the box's centre, then Sobol points."""
        middle, width = (self.lower + self.upper) / 2, self.upper - self.lower
        aim = -self.centres(middle) @ torch.linalg.pinv(self.effect).mT
        several = [self.project(middle + aim), middle]
        if count > 2 and len(self.names):
            unit = sobol(len(self.names)).draw(count - 2, dtype=torch.float64).to(middle)
            several += list(self.lower + unit.unsqueeze(1) * width)
        return torch.stack(several[:count])

    def chances(self, actions: Tensor) -> Tensor | None:
        """P under each draw of the parameters, (B, k) -> (draws, B); None if there are no draws."""
        # A search evaluates the actions that it found twice: to compare sets, and to appraise them.
        if self._asked is None or self._asked[0] is not actions:
            drawn = self.model.chances(self.contexts, actions)
            if drawn is None:
                return None
            self._asked = (actions, drawn.mT)
        return self._asked[1]

    def compared_value(self, actions: Tensor) -> Tensor:
        """The logarithm of the predictive probability, (B, k) -> (B,); log P if there are no draws: the
        plug-in optimum is the more exaggerated the less precisely the effect of a set is estimated.
        """
        drawn = self.chances(actions)
        return self(actions) if drawn is None else drawn.mean(0).clamp_min(1e-300).log()

    def probability(self, actions: Tensor) -> Tensor:
        """The predictive probability, (..., B, k) -> (..., B); the plug-in one if there are no draws, or more
        than two outcomes, for which that of many actions takes long.
        """
        drawn = None if len(self.region.names) > 2 else self.model.chances(self.contexts, actions)
        return self(actions).exp() if drawn is None else drawn.mean(-1)

    def compared_probability(self, actions: Tensor) -> Tensor:
        """The predictive probability, (B, k) -> (B,)."""
        return self.compared_value(actions).exp()

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: normal, by the same draws of the parameters for both."""
        drawn = self.chances(first)
        beside = self.chances(second)
        if drawn is None or beside is None:
            return None
        apart = drawn - beside
        half = normal_quantile(self.level) * apart.std(0)
        rows = zip(apart.mean(0).tolist(), half.tolist(), strict=True)
        return [difference(point, point - width, point + width, self.level) for point, width in rows]

    def appraise(self, actions: Tensor) -> Sequence[Appraisal]:
        """The predictive probability with its interval, and that without acting. Trace: ``plug_in``."""
        plug_in = self(actions).exp()
        drawn = self.chances(actions)
        expected = plug_in if drawn is None else drawn.mean(0)
        before = torch.full_like(plug_in, math.nan) if self.nothing is None else self.nothing
        low, high = [None] * len(expected), [None] * len(expected)
        if drawn is not None:
            logit = torch.logit(drawn.clamp(1e-9, 1 - 1e-9))
            middle, half = logit.mean(0), normal_quantile(self.level) * logit.std(0)
            low, high = (torch.sigmoid(middle + sign * half).tolist() for sign in (-1, 1))
        points, usual, plain = expected.tolist(), before.tolist(), plug_in.tolist()

        def one(place: int) -> Appraisal:
            ends, trace = (low[place], high[place]), {"plug_in": plain[place]}
            return appraised(self.level, points[place], usual[place], *ends, trace=trace)

        return Each(len(expected), one)


def region_probability_of(normals: Tensor, offsets: Tensor, reach: float = 0.0) -> RegionProbability:
    """The fastest exact form of P(N w <= s), w ~ N(nu, I), with each |nu_i| <= `reach`: (l, m), (l,)."""
    rectangle = rectangle_of(normals, offsets)
    if rectangle is not None:
        return rectangle
    if normals.shape[-1] == 2:
        return PolygonProbability(vertices_of(normals, offsets, reach))
    return PolytopeProbability(normals, offsets)


def success_models(surrogate: LinearSurrogate) -> list[SuccessModel]:
    """Those without an alteration and of each candidate set, kept until surrogate or task change."""
    task = surrogate.task
    sets = ((), *task.candidates)

    def made() -> list[SuccessModel]:
        responses = surrogate.responses_of(sets)
        origin = inside(task.region, responses[0][0].covariance).to(responses[0][0].constant)
        return [SuccessModel(task.region, origin, *pair) for pair in responses]

    # Each model keeps the region, so that no other one has its identity.
    return surrogate.kept(("success", sets, task.context, id(task.region)), made)


def chances(
    likely: AffineResponse, region: Polytope, origin: Tensor, root: Tensor, contexts: Tensor, actions: Tensor
) -> Tensor:
    """P(Y in S | x, z) under every set of parameters, (R, B): contexts (B, |X|), actions (B, k), `root`
    (|Y|, |Y|) the Cholesky factor of the plug-in covariance.
    """
    if len(region.names) == 1:
        return DrawnInterval.of(likely, region, origin)(contexts, actions).mT
    roots = _root(likely.covariance)
    away = likely.base(contexts) + actions @ likely.action.mT - origin
    centres = _whitened(roots, away)
    normals, offsets = region.normals.to(roots), region.offsets.to(roots) - region.normals.to(roots) @ origin
    if len(region.names) == 2:
        vertices = vertices_of(normals @ root, offsets, _reach(_whitened(root, away)))
        corners = torch.linalg.solve_triangular(
            roots, (vertices @ root.mT).mT.expand(len(roots), -1, -1), upper=False
        ).mT
        return probability(corners.unsqueeze(1), centres, nodes=6)
    return torch.stack(
        [
            PolytopeProbability(normals @ each, offsets, points=128).log_probability(at).exp()
            for each, at in zip(roots, centres, strict=True)
        ]
    )


def inside(region: Polytope, covariance: Tensor) -> Tensor:
    """A point of a region, (|Y|,), one deviation of the outcomes from its faces where it goes on forever, in
    any units; zero if it is empty.
    """
    spread = covariance.diagonal().clamp_min(1e-300).sqrt().to(region.offsets)
    centre, _ = region.standardised(torch.zeros_like(spread), spread).chebyshev()
    return torch.zeros_like(spread) if centre is None else centre * spread


def _root(covariance: Tensor) -> Tensor:
    """The Cholesky factor of nearly the covariance: outcomes may be functions of each other."""
    return torch.linalg.cholesky(covariance + 1e-9 * torch.diag_embed(covariance.diagonal(dim1=-2, dim2=-1)))


def _whitened(root: Tensor, points: Tensor) -> Tensor:
    """L^-1 y for points (..., B, |Y|)."""
    return torch.linalg.solve_triangular(root, points.mT, upper=False).mT


def _reach(centres: Tensor) -> float:
    """The largest distance from zero of a finite coordinate of the centres."""
    return float(centres.nan_to_num(0.0, 0.0, 0.0).abs().amax()) if centres.numel() else 0.0


JOINT = "both follow from the same draws of the equations"
CONSERVATIVE = (
    "conservative: each set of variables has a regression of its own, so that the interval allows for any "
    "dependence of the two errors"
)


def between_sets(
    first: AlterationObjective, one: Tensor, second: AlterationObjective, other: Tensor
) -> tuple[Estimate, str] | None:
    """By how much the first alteration of the only case, (1, k), exceeds the second, (1, m), each with the
    objective of its variables, and whether `JOINT` or `CONSERVATIVE`; None without intervals or a finite
    estimate.
    """
    known, how = _jointly(first, one, second, other), JOINT
    if known is None:
        known, how = _apart(first, one, second, other), CONSERVATIVE
    return None if known is None else (known, how)


def _jointly(
    first: AlterationObjective, one: Tensor, second: AlterationObjective, other: Tensor
) -> Estimate | None:
    """The difference by joint draws; None if there are none."""
    if not isinstance(first, GaussianSuccess) or not isinstance(second, GaussianSuccess):
        return None
    drawn, beside = first.chances(one), second.chances(other)
    if drawn is None or beside is None or drawn.shape != beside.shape:
        return None
    apart = (drawn - beside)[:, 0]
    point, half = float(apart.mean()), normal_quantile(first.level) * float(apart.std())
    return difference(point, point - half, point + half, first.level)


def _apart(
    first: AlterationObjective, one: Tensor, second: AlterationObjective, other: Tensor
) -> Estimate | None:
    """The difference within Bonferroni's bound; None if one of the claims has no interval."""
    claim = first.appraise(one)[0].estimate
    if claim is None or claim.level is None:
        return None
    wide, beside = (each.at_level((1 + claim.level) / 2) for each in (first, second))
    if wide is None or beside is None:
        return None
    found, against = wide.appraise(one)[0].estimate, beside.appraise(other)[0].estimate
    if found is None or found.lower is None or found.upper is None:
        return None
    if against is None or against.lower is None or against.upper is None:
        return None
    ends = found.lower - against.upper, found.upper - against.lower
    return difference(found.point - against.point, *ends, claim.level)
