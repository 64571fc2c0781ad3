"""Shared posterior draws (Bayesian g-computation) for all success probabilities, gains and means of a table.

A draw k holds functions f_k of the outcomes, their scale, and a distribution F_k of their standardised
residuals. Draws are grouped in N blocks; those of a block b share functions g_b of the covariates and h_b of
the usual actions, with resampled residuals at m weighted points (mean_j is the weighted mean). In a context
x,

    u_bj = g_b(x) + residual,        v_bj = that of (x, u_bj, a_first),        o_bj ~ P(a | x, u_bj),

and with the region {lower <= t <= upper} of a coordinate t of the outcomes

    p_kj(a) = F_k((upper - f_k(x, u_bj, v_bj, a)) / s) - F_k((lower - f_k(...)) / s),
    P_k(a)  = mean_j p_kj(a),        P_k(none) = mean_j p_kj(o_bj),        gain_k(a) = P_k(a) - P_k(none).

A binary covariate has a regression p(x), the probability of the higher value, and a residual e has a rank r
in (0, 1): below its row's probability if that row has the higher value, above it otherwise; in binomial
scales that probability is 1 / (1 + e^2), or 1 minus it. So

    u = the higher value where r < p(x),

which preserves joint draws and never evaluates an outcome between the values.

Values of an action, of no action, of the present values, and all differences and means over cases, are sums
over the same draws, so that common errors cancel; at every u the value without an action is the mixture over
the usual actions. F_k is a Bayesian bootstrap, tabulated and interpolated; for outcomes with several
coordinates its residuals are resampled and counted; if success itself is modelled it is Phi.

far_bj(a) indicates that no row is near (x, u_bj, v_bj, a) (`near_rows`); by the front door, that none is near
(x, u_bj, a) or (x, u_bj, v_bj, o_bj), since v follows the altered action, and y the usual one. With S(a) its
mean over some of the points,

    low_k(a)    = P_k(a) - mean_j p_kj(a) far_bj(a)                  no success where no row is near,
    credit_k(a) = gain_k(a) - mean_j max(g_kj(a), 0) far_bj(a)       no benefit there,

g_kj the paired difference at u_bj. With any success there, P(a) lies between low_k and low_k + S.

Source: Robins (1986) (the g-formula, the natural course); Rubin (1981) (the Bayesian bootstrap); Manski
(1990) (bounds where nothing is observed).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.estimators.response_regression import (
    ResponseRegression,
    Responses,
    sampled_cells,
    sampled_rows,
)
from rehearsal_torch.surrogates.outcome.behaviour_policy import UsualAction
from rehearsal_torch.surrogates.outcome.near_rows import NearRows
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates

CHUNK = 4_000_000  # numbers of a block of the largest tensor, 32 MB
NODES, COUNTED = 1024, 32  # nodes of a distribution table; residuals counted for several coordinates


@dataclass(frozen=True)
class ResponseModels:
    """The fitted regressions for one set of k altered variables, all in standardised variables."""

    faces: FaceCoordinates
    latent: bool  # Whether success itself is modelled
    outcomes: Sequence[FeatureRegression]  # E regressions of t on (x, u, v, a)
    before: ResponseRegression | None  # The regression of u, and perhaps more, on x; None without u
    columns: Sequence[int]  # Indices of u among its outputs
    between: ResponseRegression | None  # The regression of v on (x, u, a_first); None without v
    first: Sequence[int]  # Indices of a_first among the actions
    usual: Sequence[UsualAction]  # a_first, or all actions, given (x, u); the rest given (x, u, v, a_first)
    near: NearRows
    habit: FeatureRegression  # The regression of a on (x, u, v), whose residuals `near` compares
    front_door: bool = False  # Whether the outcome depends on usual actions, and v alone on altered ones
    beside: tuple[NearRows, FeatureRegression] | None = None  # Both for usual actions, by the front door


@dataclass(frozen=True)
class Functions:
    """N blocks of G functions each, drawn once for a fit."""

    outcomes: Sequence[Responses]  # Of each member, N / E blocks times G
    before: Responses | None
    between: Responses | None
    blocks: int
    each: int

    @classmethod
    def drawn(cls, models: ResponseModels, blocks: int, each: int, stream: torch.Generator) -> "Functions":
        """Draws all functions; `blocks` is a multiple of the number of members."""
        share = blocks // len(models.outcomes) * each
        outcomes = [
            member.responses(share, stream)
            if isinstance(member, ResponseRegression)
            else Responses(member.draws(share, stream), torch.empty(0), torch.empty(0))
            for member in models.outcomes
        ]
        before = None if models.before is None else models.before.responses(blocks, stream)
        between = None if models.between is None else models.between.responses(blocks, stream)
        return cls(outcomes, before, between, blocks, each)


class SharedDraws:
    """Draws by `each` functions per block at m `points`, of which `near` are compared with the rows."""

    def __init__(
        self,
        models: ResponseModels,
        functions: Functions,
        each: int,
        points: int,
        near: int,
        stream: torch.Generator,
    ) -> None:
        self.models, self.functions = models, functions
        self.blocks, self.each, self.points, self.near = functions.blocks, each, points, min(near, points)
        self.members = len(models.outcomes)
        share, per_block = self.blocks // self.members, functions.each

        def first_functions(draws: Tensor, dim: int) -> Tensor:
            if not len(draws):
                return draws
            return draws.unflatten(dim, (share, per_block)).narrow(dim + 1, 0, min(each, per_block))

        # For each member coefficients (q, N / E, G, F), weights (N / E, G, n) and scales (q, N / E, G, s).
        self.coefficients = [
            first_functions(responses.functions, 1).contiguous() for responses in functions.outcomes
        ]
        self.weights = [first_functions(responses.weights, 0) for responses in functions.outcomes]
        self.scales = [first_functions(responses.scales, 1) for responses in functions.outcomes]
        self.before, self.shares = None, torch.full((self.blocks, points), 1 / points, dtype=torch.float64)
        if models.before is not None and functions.before is not None:
            self.before, self.shares = sampled_cells(
                models.before.residuals, functions.before.weights, points, stream
            )
        self.between = None
        if models.between is not None and functions.between is not None:
            self.between = sampled_rows(models.between.residuals, functions.between.weights, points, stream)
        # The values of binary covariates by their indices in z, and ranks of the residuals.
        rows = (models.near if models.beside is None else models.beside[0]).rows
        distinct = {index: column.unique() for index, column in enumerate(rows.mT)}
        self.two = {index: (values[0], values[1]) for index, values in distinct.items() if len(values) == 2}
        self.usual = [part.draws(self.blocks, points, stream) for part in models.usual]
        several = not models.latent and models.faces.count != 1
        self.counted = [
            sampled_rows(member.residuals, w.flatten(0, 1), COUNTED, stream).unflatten(0, w.shape[:2])
            for member, w in zip(models.outcomes, self.weights, strict=True)
            if several
        ]
        self.ranks = {"u": _ranks(self.before, stream), "v": _ranks(self.between, stream)}

    def mean(self, numbers: Tensor) -> Tensor:
        """The mean over the first points of each block, (..., N, m', G) -> (..., N, G)."""
        shares = self.shares[:, : numbers.shape[-2]].to(numbers)
        return torch.einsum("...nmg,nm->...ng", numbers, shares / shares.sum(-1, keepdim=True))

    @cached_property
    def tables(self) -> list["_Tables"]:
        """The distribution functions of each member's draws."""
        return [
            _Tables(member.residuals[:, 0], weights)
            for member, weights in zip(self.models.outcomes, self.weights, strict=True)
        ]

    def known(self, contexts: Tensor) -> Tensor:
        """(x, u) of the points, (B, |X|) -> (B, N, m, |X| + |U|); a single point of each block, m = 1, where
        all points are alike, without u and v.
        """
        single, before = contexts[:, None, None].expand(-1, self.blocks, 1, -1), self.models.before
        expanded = single.expand(-1, -1, self.points, -1)
        if before is None or self.before is None or self.functions.before is None:
            return single if self.models.between is None else expanded
        means = before.drawn(self.functions.before.functions, single)
        draws = self._discretise(
            means + before.scales(single) * self.before, means, "u", self.models.columns, expanded
        )
        return torch.cat((expanded, draws[..., list(self.models.columns)]), -1)

    def _discretise(
        self, draws: Tensor, means: Tensor, key: Literal["u", "v"], columns: Sequence[int], z: Tensor
    ) -> Tensor:
        """Draws (..., q), appended to z in the given columns, with binary ones at one of their values."""
        for index, column in enumerate(columns, z.shape[-1]):
            if index in self.two:
                low, high = self.two[index]
                probability = (means[..., column] - low) / (high - low)
                draws[..., column] = torch.where(self.ranks[key][..., column] < probability, high, low)
        return draws

    def with_between(self, known: Tensor, actions: Tensor) -> Tensor:
        """(x, u, v) of points under actions (..., N, m, k); unchanged points without v."""
        between = self.models.between
        if between is None or self.between is None or self.functions.between is None:
            return known
        shape = actions.shape[:-1]
        inputs = torch.cat((known.expand(*shape, -1), actions[..., list(self.models.first)]), -1)
        means = between.drawn(self.functions.between.functions, inputs)
        draws = means + between.scales(inputs) * self.between
        draws = self._discretise(draws, means, "v", range(draws.shape[-1]), known)
        return torch.cat((known.expand(*shape, -1), draws), -1)

    def success(self, inputs: Tensor) -> Tensor:
        """p_kj at (x, u, v, a), (..., N, m, p) -> (..., N, m, G)."""
        success = []
        for index, block in enumerate(inputs.chunk(self.members, -3)):
            values = self.models.outcomes[index].common(self.coefficients[index], block)
            success.append(self.inside(index, values, self._scales(index, block)))
        return torch.cat(success, -3)

    def outcomes(self, inputs: Tensor, stream: torch.Generator) -> Tensor:
        """Draws of t with noise at (x, u, v, a), (N, m, p) -> (N, m, G, q), points resampled by weight."""
        cumulative = self.shares.to(inputs).cumsum(-1).contiguous()
        level = (
            torch.rand(cumulative.shape, dtype=torch.float64, generator=stream).to(cumulative)
            + torch.arange(self.points).to(cumulative)
        ) / self.points
        indices = torch.searchsorted(cumulative, level).clamp_max(self.points - 1)
        inputs = inputs.gather(-2, indices.unsqueeze(-1).expand(-1, -1, inputs.shape[-1]))
        draws = []
        for index, block in enumerate(inputs.chunk(self.members, -3)):
            member, weights = self.models.outcomes[index], self.weights[index]
            assert isinstance(member, ResponseRegression)
            noise = sampled_rows(member.residuals, weights.flatten(0, 1), self.points, stream)
            noise = noise.unflatten(0, weights.shape[:2]).transpose(1, 2)
            draws.append(
                member.common(self.coefficients[index], block)
                + member.drawn_scales(self.scales[index], block) * noise
            )
        return torch.cat(draws)

    def _scales(self, index: int, inputs: Tensor) -> Tensor | None:
        """s at inputs (..., N / E, m, p), (..., N / E, m, G, q); one number if constant; or None."""
        member = self.models.outcomes[index]
        if not isinstance(member, ResponseRegression):
            return None
        if not member.varying:
            return member.scales(inputs[..., :1, :1, :]).unsqueeze(-2)
        return member.drawn_scales(self.scales[index], inputs)

    def around(self, known: Tensor) -> list[Tensor]:
        """Each member's features for `success_around`, of points (B, N, m, p) without actions."""
        blocks = known.chunk(self.members, -3)
        return [
            member.along(
                beta.flatten(1, 2),
                torch.nn.functional.pad(block, (0, member.inputs - block.shape[-1])).repeat_interleave(
                    self.each, -3
                ),
                range(block.shape[-1], member.inputs),
            )
            for member, beta, block in zip(self.models.outcomes, self.coefficients, blocks, strict=True)
        ]

    def success_around(self, around: Sequence[Tensor], known: Tensor, actions: Tensor) -> Tensor:
        """`success` of many actions (c, B, k) at points (B, N, m, p), by one product, (c, B, N, m, G)."""
        blocks, probabilities = known.chunk(self.members, -3), []
        for i, (member, features, block) in enumerate(zip(self.models.outcomes, around, blocks, strict=True)):
            action_features = member.moved_features(actions, range(block.shape[-1], member.inputs))
            # (B, q, D, m, C) and (c, B, q, C) -> (c, B, q, D, m)
            sums = features.flatten(2, 3) @ action_features.permute(1, 2, 3, 0)
            values = member.in_units(sums.permute(3, 0, 2, 1)).unflatten(2, features.shape[2:4])
            values = values.unflatten(2, (-1, self.each)).transpose(3, 4)
            scales = None
            if not self.models.latent:
                at_points = actions[:, :, None, None].expand(*actions.shape[:2], *block.shape[1:3], -1)
                inputs = torch.cat((block.expand(*at_points.shape[:-1], -1), at_points), -1)
                scales = self._scales(i, inputs)
            probabilities.append(self.inside(i, values, scales))
        return torch.cat(probabilities, -3)

    def inside(self, index: int, values: Tensor, scales: Tensor | None) -> Tensor:
        """A member's P(Y in S) of values and scales (..., N / E, m, G, q) -> (..., N / E, m, G)."""
        if scales is None:
            return torch.special.ndtr(values[..., 0])
        if self.models.faces.count == 1:
            low, high = _interval(self.models.faces)
            values, scales = values[..., 0], scales[..., 0]
            table = self.tables[index]
            above = table((high - values) / scales) if high < torch.inf else torch.ones_like(values)
            return above - table((low - values) / scales) if low > -torch.inf else above
        residuals = self.counted[index].unsqueeze(1)
        outcomes = values.unsqueeze(-2) + scales.unsqueeze(-2) * residuals
        return self.models.faces.desired(outcomes).to(values.dtype).mean(-1)


def _ranks(residuals: Tensor | None, stream: torch.Generator) -> Tensor:
    """r of residuals e (N, m, q) of binary outputs."""
    if residuals is None:
        return torch.empty(0)
    probability = 1 / (1 + residuals.square())
    probability = torch.where(residuals > 0, probability, 1 - probability)
    uniform = torch.rand(residuals.shape, dtype=torch.float64, generator=stream).to(residuals)
    return torch.where(residuals > 0, uniform * probability, probability + uniform * (1 - probability))


@torch.no_grad()
def mean_success(model: FeatureRegression, faces: FaceCoordinates, inputs: Tensor) -> Tensor:
    """P(Y in S | h), (n, p) -> (n,), by a regression's mean function and residuals, or a classification."""
    values = model(inputs)
    if not isinstance(model, ResponseRegression):
        return torch.special.ndtr(values[:, 0])
    scales = model.scales(inputs)
    if faces.count == 1:
        pool = model.residuals[:, 0]
        table = _Tables(pool, torch.full_like(pool, 1 / len(pool)).expand(1, 1, -1))
        low, high = ((end - values[:, 0]) / scales[:, 0] for end in _interval(faces))
        return (table(high[None, :, None]) - table(low[None, :, None])).flatten()
    noise = model.residuals[:: max(1, len(model.residuals) // COUNTED)]
    return faces.desired(values.unsqueeze(1) + scales.unsqueeze(1) * noise).to(values).mean(-1)


def _interval(faces: FaceCoordinates) -> tuple[float, float]:
    """The bounds of a region of a single coordinate."""
    low, high = -torch.inf, torch.inf
    for (normal,), offset in zip(faces.normals.tolist(), faces.offsets.tolist(), strict=True):
        if normal > 0:
            high = min(high, offset / normal)
        elif normal < 0:
            low = max(low, offset / normal)
    return low, high


class _Tables:
    """F_k: distribution functions of a pool (n,) with weights (N, G, n), interpolated at even nodes."""

    def __init__(self, pool: Tensor, weights: Tensor) -> None:
        values, order = pool.sort()
        ordered = weights[..., order]
        cdf = ordered.cumsum(-1) - ordered / 2
        spread = max(float(values[-1] - values[0]), 1e-9)
        self.start, self.step = float(values[0]) - 0.02 * spread, 1.04 * spread / (NODES - 1)
        nodes = self.start + self.step * torch.arange(NODES, dtype=values.dtype, device=values.device)
        upper = torch.searchsorted(values, nodes).clamp(1, len(values) - 1)
        gap = values[upper] - values[upper - 1]
        fraction = ((nodes - values[upper - 1]) / torch.where(gap > 0, gap, torch.ones_like(gap))).clamp(0, 1)
        table = cdf[..., upper - 1] + fraction * (cdf[..., upper] - cdf[..., upper - 1])
        table = torch.where(nodes < values[0], 0.0, torch.where(nodes > values[-1], 1.0, table))
        self.table = table.flatten()
        self.first = (torch.arange(weights[..., 0].numel(), device=values.device) * NODES).reshape(
            weights.shape[0], 1, weights.shape[1]
        )

    def __call__(self, points: Tensor) -> Tensor:
        """F_k at points (..., N, m, G)."""
        positions = ((points - self.start) / self.step).clamp_(0, NODES - 1 - 1e-6)
        floor = positions.floor()
        index = floor.long().add_(self.first)
        below = self.table[index]
        return torch.lerp(below, self.table[index + 1], positions.sub_(floor))
