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

Alterations of the same variables are compared by one fit (`AlterationObjective.contrast`), those of two sets
by `between_sets`:

joint draws     where both responses follow from draws of the same equations (`GaussianSuccess` under a linear
                model): the draws of the difference d_s = P_s(first) - P_s(second) are draws of its posterior,
                and the interval is their mean +- z std, as within one set;

no joint draws  where each set has a regression of its own (`kernel_value`, `outcome`), and the dependence of
                the two errors is unknown. If P(first) lies in [l, u] and P(second) in [m, v], each with
                probability (1 + c) / 2, then by Bonferroni's inequality both do with probability c at least,
                and the difference then lies in [l - v, u - m], whatever their dependence.

Their coverage is measured by benchmarks/set_differences.py (docs/notebook.md has the figures).

Source: Qin et al. (2025b), Eq. 8 and Thm. 3.2; Prekopa (1971) for general convex regions.
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
        scale = covariance_root(likely.covariance)[:, 0]
        context, action = ((w.squeeze(1) / scale).mT.contiguous() for w in (likely.context, likely.action))
        sign = region.normals.to(scale)[:, 0]
        ends = region.offsets.to(scale) / region.normals.to(scale)[:, 0]
        upper = torch.where(sign > 0, ends, torch.inf).amin()
        lower = torch.where(sign < 0, ends, -torch.inf).amax()
        bounds = [((end - origin) / scale[:, 0]).clamp(-OPEN, OPEN) for end in (lower, upper)]
        return cls(context, action, ((likely.constant - origin) / scale)[:, 0], *bounds)

    def __call__(self, contexts: Tensor, actions: Tensor) -> Tensor:
        """Contexts (B, |X|) and actions (..., B, k) -> (..., B, R)."""
        means = torch.addmm(self.constant, contexts, self.by_context) + actions @ self.by_action
        return interval(self.lower - means, self.upper - means)


@dataclass(frozen=True, eq=False)
class SuccessModel:
    """The part of the probability of success that all cases share, for one set of altered variables."""

    region: Polytope  # S
    origin: Tensor  # A point of S, (|Y|,)
    response: AffineResponse  # Of the outcomes to contexts and actions
    likely: AffineResponse | None  # The same under draws of the parameters, in a leading dimension, if any

    @cached_property
    def root(self) -> Tensor:
        """L, (|Y|, |Y|)."""
        return covariance_root(self.response.covariance)

    @cached_property
    def effect(self) -> Tensor:
        """L^-1 B, (|Y|, k)."""
        return torch.linalg.solve_triangular(self.root, self.response.action, upper=False)

    @cached_property
    def _whitened(self) -> tuple[Tensor, Tensor]:
        """L^-1 A transposed, (|X|, |Y|), and L^-1 (c0 - o), (|Y|,)."""
        offset = (self.response.constant - self.origin).unsqueeze(-1)
        columns = torch.cat([self.response.context, offset], -1)
        whitened = torch.linalg.solve_triangular(self.root, columns, upper=False)
        return whitened[:, :-1].mT.contiguous(), whitened[:, -1]

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
        """P under each draw, contexts (B, |X|), actions (..., B, k) -> (..., B, R); None without draws."""
        if self.likely is None:
            return None
        if len(self.region.names) == 1:
            return self._drawn(contexts, actions)
        shape, width = actions.shape[:-1], actions.shape[-1]
        contexts = contexts.expand(*shape, -1).reshape(math.prod(shape), contexts.shape[-1])
        flat = actions.reshape(len(contexts), width).to(contexts)
        probabilities = chances(self.likely, self.region, self.origin, self.root, contexts, flat)
        return probabilities.mT.reshape(*shape, -1)


class GaussianSuccess(AlterationObjective):
    """log P(Y in S | x, z) for one set of altered variables in B cases.

    Args:
        nothing: The predictive probability without an alteration, (B,); None if it is not known.
        level: Coverage probability of the interval, in (0, 1), else a ValueError.
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
        normal_quantile(level)  # validates the level
        self.level, self.model, self.nothing, self.contexts = level, model, nothing, contexts
        self.region, self.effect = model.region, model.effect
        self.base = model.base(contexts)
        self._asked: tuple[Tensor, Tensor] | None = None
        farthest = partial(model.farthest, contexts, self.lower, self.upper)
        self.region_probability = model.region_probability(farthest)

    @classmethod
    @torch.no_grad()
    def for_sets(
        cls, surrogate: LinearSurrogate, cases: Sequence[RehearsalCase], level: float = 0.95
    ) -> list[Self]:
        """log P(Y in S | x, z) for each candidate set under a fitted linear surrogate."""
        contexts = surrogate.task.given(cases).to(surrogate.contexts.values.device)
        nothing, *models = success_models(surrogate)
        base = nothing.base(contexts)
        draws = nothing.chances(contexts, contexts.new_zeros(len(contexts), 0))
        if draws is None:
            region = nothing.region_probability(partial(_reach, base))
        before = region.log_probability(base).exp() if draws is None else draws.mean(-1)
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
        whitened = self.region_probability.expansion(self.centres(actions, which))
        curvature = self.effect.mT @ whitened.curvature @ self.effect
        return Expansion(whitened.value, whitened.gradient @ self.effect, curvature)

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Values (..., B) and gradients (..., B, k)."""
        whitened = self.region_probability.expansion(self.centres(actions))
        return whitened.value, whitened.gradient @ self.effect

    def starts(self, count: int) -> Tensor:
        """The action whose mean is nearest to the region's centre, the box's centre, then Sobol points."""
        middle, width = (self.lower + self.upper) / 2, self.upper - self.lower
        step = -self.centres(middle) @ torch.linalg.pinv(self.effect).mT
        points = [self.project(middle + step), middle]
        if count > 2 and len(self.names):
            unit = sobol(len(self.names)).draw(count - 2, dtype=torch.float64).to(middle)
            points += list(self.lower + unit.unsqueeze(1) * width)
        return torch.stack(points[:count])

    def chances(self, actions: Tensor) -> Tensor | None:
        """P under each draw of the parameters, (B, k) -> (draws, B); None if there are no draws."""
        # A search evaluates its best actions twice: to compare sets, and to appraise them.
        if self._asked is None or self._asked[0] is not actions:
            by_draw = self.model.chances(self.contexts, actions)
            if by_draw is None:
                return None
            self._asked = (actions, by_draw.mT)
        return self._asked[1]

    def compared_value(self, actions: Tensor) -> Tensor:
        """The log predictive probability, (B, k) -> (B,); log P, too optimistic, without draws."""
        by_draw = self.chances(actions)
        return self(actions) if by_draw is None else by_draw.mean(0).clamp_min(1e-300).log()

    def probability(self, actions: Tensor) -> Tensor:
        """The predictive probability, (..., B, k) -> (..., B); the plug-in one where that takes long."""
        by_draw = None if len(self.region.names) > 2 else self.model.chances(self.contexts, actions)
        return self(actions).exp() if by_draw is None else by_draw.mean(-1)

    def compared_probability(self, actions: Tensor) -> Tensor:
        """The predictive probability, (B, k) -> (B,)."""
        return self.compared_value(actions).exp()

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: normal, by the same draws of the parameters for both."""
        first_draws = self.chances(first)
        second_draws = self.chances(second)
        if first_draws is None or second_draws is None:
            return None
        difference_draws = first_draws - second_draws
        half = normal_quantile(self.level) * difference_draws.std(0)
        rows = zip(difference_draws.mean(0).tolist(), half.tolist(), strict=True)
        return [difference(point, point - width, point + width, self.level) for point, width in rows]

    def appraise(self, actions: Tensor) -> Sequence[Appraisal]:
        """The predictive probability with its interval, and that without acting. Trace: ``plug_in``."""
        plug_in = self(actions).exp()
        by_draw = self.chances(actions)
        expected = plug_in if by_draw is None else by_draw.mean(0)
        before = torch.full_like(plug_in, math.nan) if self.nothing is None else self.nothing
        low, high = [None] * len(expected), [None] * len(expected)
        if by_draw is not None:
            logit = torch.logit(by_draw.clamp(1e-9, 1 - 1e-9))
            middle, half = logit.mean(0), normal_quantile(self.level) * logit.std(0)
            low, high = (torch.sigmoid(middle + sign * half).tolist() for sign in (-1, 1))
        points, baselines, plug_ins = expected.tolist(), before.tolist(), plug_in.tolist()

        def appraisal(index: int) -> Appraisal:
            ends, trace = (low[index], high[index]), {"plug_in": plug_ins[index]}
            return appraised(self.level, points[index], baselines[index], *ends, trace=trace)

        return Each(len(expected), appraisal)


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

    def build() -> list[SuccessModel]:
        responses = surrogate.responses_of(sets)
        origin = inside(task.region, responses[0][0].covariance).to(responses[0][0].constant)
        return [SuccessModel(task.region, origin, *pair) for pair in responses]

    # Each model keeps the region, so that no other one has its identity.
    return surrogate.kept(("success", sets, task.context, id(task.region)), build)


def chances(
    likely: AffineResponse, region: Polytope, origin: Tensor, root: Tensor, contexts: Tensor, actions: Tensor
) -> Tensor:
    """P(Y in S | x, z) by set of parameters, (R, B): (B, |X|), (B, k); `root` of the plug-in covariance."""
    if len(region.names) == 1:
        return DrawnInterval.of(likely, region, origin)(contexts, actions).mT
    roots = covariance_root(likely.covariance)
    means = likely.base(contexts) + actions @ likely.action.mT - origin
    centres = _whitened(roots, means)
    normals, offsets = region.normals.to(roots), region.offsets.to(roots) - region.normals.to(roots) @ origin
    if len(region.names) == 2:
        vertices = vertices_of(normals @ root, offsets, _reach(_whitened(root, means)))
        corners = (vertices @ root.mT).mT.expand(len(roots), -1, -1)
        corners = torch.linalg.solve_triangular(roots, corners, upper=False).mT
        return probability(corners.unsqueeze(1), centres, nodes=6)
    polytopes = [PolytopeProbability(normals @ factor, offsets, points=128) for factor in roots]
    pairs = zip(polytopes, centres, strict=True)
    return torch.stack([polytope.log_probability(means).exp() for polytope, means in pairs])


def inside(region: Polytope, covariance: Tensor) -> Tensor:
    """A point of a region, (|Y|,), one standard deviation inside an unbounded one."""
    spread = covariance.diagonal().clamp_min(1e-300).sqrt().to(region.offsets)
    centre, _ = region.standardised(torch.zeros_like(spread), spread).chebyshev()
    return centre * spread


def covariance_root(covariance: Tensor) -> Tensor:
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
    """The difference of two alterations of the only case, (1, k) and (1, m), each with the objective of its
    variables, and whether `JOINT` or `CONSERVATIVE`; None without intervals or a finite estimate.
    """
    estimate, method = _joint_difference(first, one, second, other), JOINT
    if estimate is None:
        estimate, method = _bonferroni_difference(first, one, second, other), CONSERVATIVE
    return None if estimate is None else (estimate, method)


def _joint_difference(
    first: AlterationObjective, action: Tensor, second: AlterationObjective, rival_action: Tensor
) -> Estimate | None:
    """The difference by joint draws; None if there are none."""
    if not isinstance(first, GaussianSuccess) or not isinstance(second, GaussianSuccess):
        return None
    first_draws, second_draws = first.chances(action), second.chances(rival_action)
    if first_draws is None or second_draws is None or first_draws.shape != second_draws.shape:
        return None
    differences = (first_draws - second_draws)[:, 0]
    point, half = float(differences.mean()), normal_quantile(first.level) * float(differences.std())
    return difference(point, point - half, point + half, first.level)


def _bonferroni_difference(
    first: AlterationObjective, action: Tensor, second: AlterationObjective, rival_action: Tensor
) -> Estimate | None:
    """The difference within Bonferroni's bound; None if one of the claims has no interval."""
    claim = first.appraise(action)[0].estimate
    if claim is None or claim.level is None:
        return None
    wide, rival = (objective.at_level((1 + claim.level) / 2) for objective in (first, second))
    if wide is None or rival is None:
        return None
    estimate = wide.appraise(action)[0].estimate
    reference = rival.appraise(rival_action)[0].estimate
    if estimate is None or estimate.lower is None or estimate.upper is None:
        return None
    if reference is None or reference.lower is None or reference.upper is None:
        return None
    ends = estimate.lower - reference.upper, estimate.upper - reference.lower
    return difference(estimate.point - reference.point, *ends, claim.level)
