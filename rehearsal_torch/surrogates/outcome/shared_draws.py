"""Draws of functions that every number of a table's decisions comes from.

A draw k holds functions f_k of the outcomes, their scale, and a distribution F_k of their standardised
residuals; draws are grouped in N blocks, and a block b holds what draws share: a function of the covariates,
g_b, and of the usual actions, h_b, with resampled residuals of m points each, which have weights (means over
them, mean_j, are weighted). In a context x,

    u_bj = g_b(x) + residual,        v_bj = that of (x, u_bj, a_first),        o_bj ~ P(a | x, u_bj),

and with the region {lower <= t <= upper} of a coordinate t of the outcomes

    p_kj(a) = F_k((upper - f_k(x, u_bj, v_bj, a)) / s) - F_k((lower - f_k(...)) / s),
    P_k(a)  = mean_j p_kj(a),        P_k(none) = mean_j p_kj(o_bj),        gain_k(a) = P_k(a) - P_k(none).

A covariate of two values (a sex, a smoker) has a chance p(x) of the higher one, its regression, and a
residual e a rank r in (0, 1): below the chance that its own row had if it has the higher value, above it
else; in binomial scales that chance is 1 / (1 + e^2), or 1 less that. So

    u = the higher value where r < p(x),

and what is drawn together stays together; an outcome is not asked for between the values.

So an action, no action, the present values, and all differences and means over cases are sums over the same
draws: what they have in common cancels, and at every u the value without an action is the mixture over the
actions that are usual there. F_k is a Bayesian bootstrap, tabulated and interpolated; where the outcomes have
several coordinates, its residuals are resampled and counted; where success itself is modelled it is Phi.

far_bj(a) says that no row is near (x, u_bj, v_bj, a) (`near_rows`); by the front door, that none is near (x,
u_bj, a) or (x, u_bj, v_bj, o_bj), since v follows the action that is set, and y the usual one. With S(a) its
mean over some of the points,

    low_k(a)    = P_k(a) - mean_j p_kj(a) far_bj(a)                  nothing succeeds where no row is near
    credit_k(a) = gain_k(a) - mean_j max(g_kj(a), 0) far_bj(a)       no benefit counts there,

g_kj the paired difference at u_bj. If success there may be anything, P(a) is between low_k and low_k + S.

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

# Numbers of a block of the largest tensor, 32 MB.
CHUNK = 4_000_000
# Nodes of a tabulated distribution function, and residuals that are counted for several coordinates.
NODES, COUNTED = 1024, 32


@dataclass(frozen=True)
class ResponseModels:
    """The fitted regressions for one set of k altered variables, all in standardised variables."""

    faces: FaceCoordinates
    latent: bool  # Whether success itself is modelled
    outcomes: Sequence[FeatureRegression]  # E regressions of t on (x, u, v, a)
    before: ResponseRegression | None  # The regression of u, and perhaps more, on x; None without u
    columns: Sequence[int]  # The places of u among its outputs
    between: ResponseRegression | None  # The regression of v on (x, u, a_first); None without v
    first: Sequence[int]  # The places of a_first among the actions
    # Of a_first, or all actions, on (x, u); then of the rest on (x, u, v, a_first).
    usual: Sequence[UsualAction]
    near: NearRows
    habit: FeatureRegression  # The regression of a on (x, u, v), from which `near` measures
    front_door: bool = False  # Whether the outcome sees usual actions, and v alone the altered ones
    # By the front door, the same of usual actions beside (x, u, v).
    beside: tuple[NearRows, FeatureRegression] | None = None


@dataclass(frozen=True)
class Functions:
    """N blocks of G functions each, drawn once for a fit."""

    outcomes: Sequence[Responses]  # Of each member, for its N / E blocks times G
    before: Responses | None
    between: Responses | None
    blocks: int
    each: int

    @classmethod
    def drawn(cls, models: ResponseModels, blocks: int, each: int, stream: torch.Generator) -> "Functions":
        """Draws of all functions; the number of blocks is a multiple of that of members."""
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
    """Draws at m points of each block, of which the first `near` are compared with the rows, by the first
    `each` functions of each block.
    """

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
        share, whole = self.blocks // self.members, functions.each
        # (q, N / E, G, F) and (N / E, G, n) of each member.
        self.coefficients = [
            part.functions.unflatten(1, (share, whole))[:, :, :each].contiguous()
            for part in functions.outcomes
        ]
        self.weights = [
            part.weights.unflatten(0, (share, whole))[:, :each] if len(part.weights) else part.weights
            for part in functions.outcomes
        ]

        # (q, N / E, G, s) of each member.
        self.scales = [
            part.scales.unflatten(1, (share, whole))[:, :, :each] if len(part.scales) else part.scales
            for part in functions.outcomes
        ]

        def residuals(model: ResponseRegression | None, drawn: Responses | None) -> Tensor | None:
            if model is None or drawn is None:
                return None
            return sampled_rows(model.residuals, drawn.weights, points, stream)

        self.before, self.shares = None, torch.full((self.blocks, points), 1 / points, dtype=torch.float64)
        if models.before is not None and functions.before is not None:
            self.before, self.shares = sampled_cells(
                models.before.residuals, functions.before.weights, points, stream
            )
        self.between = residuals(models.between, functions.between)
        # The two values of covariates that have no more, by their places in z; ranks of the residuals.
        rows = (models.near if models.beside is None else models.beside[0]).rows
        values = {place: column.unique() for place, column in enumerate(rows.mT)}
        self.two = {place: (each[0], each[1]) for place, each in values.items() if len(each) == 2}
        self.usual = [part.draws(self.blocks, points, stream) for part in models.usual]
        self.counted = (
            []
            if models.latent or models.faces.count == 1
            else [
                sampled_rows(member.residuals, own.flatten(0, 1), COUNTED, stream).unflatten(0, own.shape[:2])
                for member, own in zip(models.outcomes, self.weights, strict=True)
            ]
        )
        self.ranks = {
            name: _ranks(drawn, stream) for name, drawn in (("u", self.before), ("v", self.between))
        }

    def mean(self, numbers: Tensor) -> Tensor:
        """The mean over the first points of each block, (..., N, m', G) -> (..., N, G)."""
        shares = self.shares[:, : numbers.shape[-2]].to(numbers)
        return torch.einsum("...nmg,nm->...ng", numbers, shares / shares.sum(-1, keepdim=True))

    @cached_property
    def tables(self) -> list["_Distributions"]:
        """The distribution functions of each member's draws."""
        return [
            _Distributions(member.residuals[:, 0], own)
            for member, own in zip(self.models.outcomes, self.weights, strict=True)
        ]

    def known(self, contexts: Tensor) -> Tensor:
        """(x, u) of the points, (B, |X|) -> (B, N, m, |X| + |U|)."""
        given = contexts[:, None, None].expand(-1, self.blocks, self.points, -1)
        before = self.models.before
        if before is None or self.before is None or self.functions.before is None:
            return given
        once = contexts[:, None, None].expand(-1, self.blocks, 1, -1)
        means = before.drawn(self.functions.before.functions, once)
        moved = self._valued(
            means + before.scales(once) * self.before, means, "u", self.models.columns, given
        )
        return torch.cat((given, moved[..., list(self.models.columns)]), -1)

    def _valued(
        self, moved: Tensor, means: Tensor, of: Literal["u", "v"], columns: Sequence[int], beside: Tensor
    ) -> Tensor:
        """Draws (..., q) that stand in the given columns beside others in z, those of two values at one of
        them.
        """
        for place, column in enumerate(columns, beside.shape[-1]):
            if place in self.two:
                low, high = self.two[place]
                chance = (means[..., column] - low) / (high - low)
                moved[..., column] = torch.where(self.ranks[of][..., column] < chance, high, low)
        return moved

    def with_between(self, known: Tensor, actions: Tensor) -> Tensor:
        """(x, u, v) of points under actions (..., N, m, k); the points themselves without v."""
        between = self.models.between
        if between is None or self.between is None or self.functions.between is None:
            return known
        shape = actions.shape[:-1]
        inputs = torch.cat((known.expand(*shape, -1), actions[..., list(self.models.first)]), -1)
        means = between.drawn(self.functions.between.functions, inputs)
        moved = means + between.scales(inputs) * self.between
        moved = self._valued(moved, means, "v", range(moved.shape[-1]), known)
        return torch.cat((known.expand(*shape, -1), moved), -1)

    def success(self, inputs: Tensor) -> Tensor:
        """p_kj at (x, u, v, a), (..., N, m, p) -> (..., N, m, G)."""
        parts = inputs.chunk(self.members, -3)
        return torch.cat([self._member_success(index, part) for index, part in enumerate(parts)], -3)

    def _member_success(self, index: int, inputs: Tensor) -> Tensor:
        member, own = self.models.outcomes[index], self.coefficients[index]
        values = member.common(own, inputs)
        return self.inside(index, values, self._scales(index, inputs))

    def outcomes(self, inputs: Tensor, stream: torch.Generator) -> Tensor:
        """Draws of t with noise at (x, u, v, a), (N, m, p) -> (N, m, G, q), points by their weights; not
        where success is modelled.
        """
        edges = self.shares.to(inputs).cumsum(-1).contiguous()
        level = (
            torch.rand(edges.shape, dtype=torch.float64, generator=stream).to(edges)
            + torch.arange(self.points).to(edges)
        ) / self.points
        places = torch.searchsorted(edges, level).clamp_max(self.points - 1)
        inputs = inputs.gather(-2, places.unsqueeze(-1).expand(-1, -1, inputs.shape[-1]))
        found = []
        for index, part in enumerate(inputs.chunk(self.members, -3)):
            member, weights = self.models.outcomes[index], self.weights[index]
            assert isinstance(member, ResponseRegression)
            noise = sampled_rows(member.residuals, weights.flatten(0, 1), self.points, stream)
            noise = noise.unflatten(0, weights.shape[:2]).transpose(1, 2)
            found.append(
                member.common(self.coefficients[index], part)
                + member.drawn_scales(self.scales[index], part) * noise
            )
        return torch.cat(found)

    def _scales(self, index: int, inputs: Tensor) -> Tensor | None:
        """s at inputs (..., N / E, m, p), (..., N / E, m, G, q); one number where it does not vary."""
        member = self.models.outcomes[index]
        if not isinstance(member, ResponseRegression):
            return None
        if not member.varying:
            return member.scales(inputs[..., :1, :1, :]).unsqueeze(-2)
        return member.drawn_scales(self.scales[index], inputs)

    def around(self, known: Tensor) -> list[Tensor]:
        """What `success_around` needs of points (B, N, m, p) without their actions, from each member."""
        parts = known.chunk(self.members, -3)
        return [
            member.along(
                own.flatten(1, 2),
                torch.nn.functional.pad(part, (0, member.inputs - part.shape[-1])).repeat_interleave(
                    self.each, -3
                ),
                range(part.shape[-1], member.inputs),
            )
            for member, own, part in zip(self.models.outcomes, self.coefficients, parts, strict=True)
        ]

    def success_around(self, around: Sequence[Tensor], known: Tensor, actions: Tensor) -> Tensor:
        """`success` at points (B, N, m, p) under actions (c, B, k) that are the same at all points of a case:
        (c, B, N, m, G). For many actions, by one product of matrices in place of their waves.
        """
        parts, found = known.chunk(self.members, -3), []
        for index, (member, own, part) in enumerate(zip(self.models.outcomes, around, parts, strict=True)):
            moved = member.moved_features(actions, range(part.shape[-1], member.inputs))
            # (B, q, D, m, C) and (c, B, q, C) -> (c, B, q, D, m)
            flat = own.flatten(2, 3) @ moved.permute(1, 2, 3, 0)
            values = member.in_units(flat.permute(3, 0, 2, 1)).unflatten(2, own.shape[2:4])
            values = values.unflatten(2, (-1, self.each)).transpose(3, 4)
            scales = None
            if not self.models.latent:
                wide = actions[:, :, None, None].expand(*actions.shape[:2], *part.shape[1:3], -1)
                inputs = torch.cat((part.expand(*wide.shape[:-1], -1), wide), -1)
                scales = self._scales(index, inputs)
            found.append(self.inside(index, values, scales))
        return torch.cat(found, -3)

    def inside(self, index: int, values: Tensor, scales: Tensor | None) -> Tensor:
        """The chance that t with its noise lies in the region, values and scales (..., N / E, m, G, q) ->
        (..., N / E, m, G), by one of the members.
        """
        if scales is None:
            return torch.special.ndtr(values[..., 0])
        if self.models.faces.count == 1:
            low, high = _bounds(self.models.faces)
            values, scales = values[..., 0], scales[..., 0]
            table = self.tables[index]
            above = table((high - values) / scales) if high < torch.inf else torch.ones_like(values)
            return above - table((low - values) / scales) if low > -torch.inf else above
        residuals = self.counted[index].unsqueeze(1)
        whole = values.unsqueeze(-2) + scales.unsqueeze(-2) * residuals
        return self.models.faces.desired(whole).to(values.dtype).mean(-1)


def _ranks(residuals: Tensor | None, stream: torch.Generator) -> Tensor:
    """r of residuals e (N, m, q), as of outputs of two values; see above."""
    if residuals is None:
        return torch.empty(0)
    chance = 1 / (1 + residuals.square())
    chance = torch.where(residuals > 0, chance, 1 - chance)
    within = torch.rand(residuals.shape, dtype=torch.float64, generator=stream).to(residuals)
    return torch.where(residuals > 0, within * chance, chance + within * (1 - chance))


@torch.no_grad()
def mean_success(model: FeatureRegression, faces: FaceCoordinates, inputs: Tensor) -> Tensor:
    """P(Y in S | h) by the mean function of a regression, or of a classification of success, and the pool of
    its residuals, (n, p) -> (n,).
    """
    values = model(inputs)
    if not isinstance(model, ResponseRegression):
        return torch.special.ndtr(values[:, 0])
    scales = model.scales(inputs)
    if faces.count == 1:
        pool = model.residuals[:, 0]
        table = _Distributions(pool, torch.full_like(pool, 1 / len(pool)).expand(1, 1, -1))
        low, high = ((end - values[:, 0]) / scales[:, 0] for end in _bounds(faces))
        return (table(high[None, :, None]) - table(low[None, :, None])).flatten()
    noise = model.residuals[:: max(1, len(model.residuals) // COUNTED)]
    return faces.desired(values.unsqueeze(1) + scales.unsqueeze(1) * noise).to(values).mean(-1)


def _bounds(faces: FaceCoordinates) -> tuple[float, float]:
    """The region of a single coordinate."""
    low, high = -torch.inf, torch.inf
    for (normal,), offset in zip(faces.normals.tolist(), faces.offsets.tolist(), strict=True):
        if normal > 0:
            high = min(high, offset / normal)
        elif normal < 0:
            low = max(low, offset / normal)
    return low, high


class _Distributions:
    """F_k: weighted distribution functions of a pool (n,), weights (N, G, n), interpolated at even nodes."""

    def __init__(self, pool: Tensor, weights: Tensor) -> None:
        values, order = pool.sort()
        ordered = weights[..., order]
        middle = ordered.cumsum(-1) - ordered / 2
        spread = max(float(values[-1] - values[0]), 1e-9)
        self.start, self.step = float(values[0]) - 0.02 * spread, 1.04 * spread / (NODES - 1)
        nodes = self.start + self.step * torch.arange(NODES, dtype=values.dtype, device=values.device)
        after = torch.searchsorted(values, nodes).clamp(1, len(values) - 1)
        gap = values[after] - values[after - 1]
        part = ((nodes - values[after - 1]) / torch.where(gap > 0, gap, torch.ones_like(gap))).clamp(0, 1)
        table = middle[..., after - 1] + part * (middle[..., after] - middle[..., after - 1])
        table = torch.where(nodes < values[0], 0.0, torch.where(nodes > values[-1], 1.0, table))
        self.table = table.flatten()
        self.first = (torch.arange(weights[..., 0].numel(), device=values.device) * NODES).reshape(
            weights.shape[0], 1, weights.shape[1]
        )

    def __call__(self, points: Tensor) -> Tensor:
        """F_k at points (..., N, m, G)."""
        places = ((points - self.start) / self.step).clamp_(0, NODES - 1 - 1e-6)
        whole = places.floor()
        left = whole.long().add_(self.first)
        below = self.table[left]
        return torch.lerp(below, self.table[left + 1], places.sub_(whole))
