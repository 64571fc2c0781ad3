"""The share of desired outcomes under functions drawn from a posterior and resampled residuals.

For a set of altered variables, the coordinates t of the outcomes (`outcome_draws`), the covariates u
before and v between the alterations are regressed on what precedes them,

    u = g(x) + e,    v = h(x, u, a_first) + e',    t = f(x, u, v, a) + e'',

which is the sequential adjustment formula E_{u | x} E_{v | x, u, a_first} P(Y in S | x, u, v, a) with
models of the three distributions. By the front door, all of a precedes v, and t = f(x, u, v, a') with the
usual action a' | x, u, of a regression with residuals of its own. Draw d of the posterior is a triple (g_d,
h_d, f_d) with residuals e, e', e'' of its own, P of them; the residuals of one row stay together. Its
probability of success is the share of desired points,

    p_d(a; x) = (1/P) #{i : t_di(a; x) in S},

and p_d over d = 1..D is a sample of the posterior of P(Y in S | x, a). Its mean is the objective: it
counts both the noise and what is unknown of the functions, which costs actions far from the observations some
of their value, but not always enough (`near_rows`). The same functions and residuals serve all actions.

The draws of f come in equal numbers from E fits, with kernels fitted to different rows. The residuals are
drawn without replacement and spread evenly over the first coordinate of the rows (stratified), which
reduces the counting error.

Residuals enter additively. Without v, all points of a draw lie around (x, g_d(x), a), and f is linear in
features of the residuals of u (`feature_regression`), which serve all cases (`PosteriorSuccess.values`). With
v, f is linear for each point in features of what moves with the action, (h_d(x, u, a_first), a), around what
does not, (x, u, e'): with coefficients that are computed once per case, many actions cost one matrix product
(`SuccessInContexts`). Where the outcomes have no slack, t is a latent sum with known noise (`outcome_kind`),
and everything above stays the same.

For a context and one action a in an interval, without v, the outcome t_di(a) is a sum of waves in a and of a
polynomial of degree two, known to rounding from its values at a few dozen nodes (`surrogates.chebyshev`), and
every further action costs a product a point (`TabulatedSuccess`). The widest interval of a batch decides on
their number, so that the last bits of a share depend on the batch.

Source: Robins (1986) (the sequential formula); Efron (1979) (resampled residuals); McKay, Beckman and Conover
(1979) (stratified samples).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.surrogates.chebyshev import ChebyshevNodes, nodes_for
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates

CHUNK = 6_000_000
# Points by which the share without rows is told, at least: its standard error is .035 at a share of .2.
SCATTERED = 128


@dataclass(frozen=True)
class ConditionalModels:
    """The fitted regressions for one set of k altered variables, all in standardised variables."""

    faces: FaceCoordinates  # The coordinates t and the region in them
    outcomes: Sequence[FeatureRegression]  # E regressions of t on (x, u, v, a)
    before: FeatureRegression | None  # The regression of u, and perhaps more, on x; None without u
    columns: Sequence[int]  # The places of u among its outputs
    between: FeatureRegression | None  # The regression of v on (x, u, a_first); None without v
    first: Sequence[int]  # The places of a_first among the actions
    usual: FeatureRegression | None = None  # The regression of a' on (x, u), by the front door


class PosteriorSuccess:
    """D functions (rounded up to a multiple of the number of fits) and P residuals of each, drawn from the
    posterior by a generator on the CPU; they serve all cases and actions.
    """

    def __init__(self, models: ConditionalModels, draws: int, points: int, stream: torch.Generator) -> None:
        self.models, self.members, self.points = models, len(models.outcomes), points
        self.each = -(-draws // self.members)
        self.draws = self.each * self.members
        self.functions = [member.draws(self.each, stream) for member in models.outcomes]
        self.noise = torch.cat(
            [resampled(member.residuals, self.each, points, stream) for member in models.outcomes]
        )

        def sampled(model: FeatureRegression | None) -> tuple[Tensor, Tensor] | None:
            """Functions and residuals of covariates."""
            if model is None:
                return None
            noise = resampled(model.residuals, self.draws, points, stream)
            return model.draws(self.draws, stream), noise

        self.before = sampled(models.before if len(models.columns) else None)
        self.between, self.usual = sampled(models.between), sampled(models.usual)

    def known(self, contexts: Tensor) -> Tensor:
        """(x, u) of the points, (B, |X|) -> (B, D, P or 1, |X| + |U|)."""
        means = self.known_means(contexts)
        if self.before is None:
            return means
        noise = self.before[1][..., list(self.models.columns)]
        return means + torch.nn.functional.pad(noise, (contexts.shape[-1], 0))

    def known_means(self, contexts: Tensor) -> Tensor:
        """(x, g_d(x)), u without its noise, (B, |X|) -> (B, D, 1, |X| + |U|)."""
        known = contexts[:, None, None].expand(-1, self.draws, 1, -1)
        if self.before is None or self.models.before is None:
            return known
        means = self.models.before.drawn(self.before[0], known)[..., list(self.models.columns)]
        return torch.cat((known, means), -1)

    def between_means(self, known: Tensor, actions: Tensor) -> Tensor:
        """v without its noise for points (..., D, m, |X| + |U|) under actions (..., k), (..., D, m, |V|)."""
        assert self.models.between is not None
        assert self.between is not None
        first = actions[..., list(self.models.first)]
        return self.models.between.drawn(self.between[0], with_actions(known, first))

    def usual_actions(self, known: Tensor, count: int | None = None) -> Tensor | None:
        """a' at (x, u) of the first `count` points, (..., D, m or 1, |X| + |U|) -> (..., D, m, k); None where
        the outcome sees the actions that are set.
        """
        if self.usual is None or self.models.usual is None:
            return None
        return self.models.usual.drawn(self.usual[0], known) + self.usual[1][:, :count]

    def scattered(self, contexts: Tensor, actions: Tensor) -> Tensor:
        """Some of the points z = (x, u, v) at which the outcomes are evaluated, as many for each draw,
        standardised: (B, |X|), (..., B, k) -> (B, D or 1, m, p), (..., B, D, m, p) where there is v.
        """
        known = self.scattered_known(contexts)
        if self.between is None:
            return known if self.before is not None else known[:, :1]
        between = self.between_means(known, actions) + self.between[1][:, : self.scatter]
        return torch.cat((known.expand(*between.shape[:-1], -1), between), -1)

    @property
    def scatter(self) -> int:
        """The number of points of each draw in `scattered`."""
        return -(-SCATTERED // self.draws)

    def scattered_known(self, contexts: Tensor) -> Tensor:
        """(x, u) of these points, (B, |X|) -> (B, D, m or 1, |X| + |U|)."""
        known = self.known_means(contexts)
        if self.before is None:
            return known
        noise = self.before[1][:, : self.scatter, list(self.models.columns)]
        return known + torch.nn.functional.pad(noise, (contexts.shape[-1], 0))

    def once(self, contexts: Tensor, actions: Tensor) -> Tensor:
        """p_d at one action in each case, (B, |X|), (B, k) -> (B, D)."""
        points = self.points if self.between is not None else 1
        size = max(1, CHUNK // (self.draws * points * self.width))
        parts = zip(contexts.split(size), actions.split(size), strict=True)
        return torch.cat([self.share(self.values(*part)) for part in parts])

    def desired_once(self, contexts: Tensor, actions: Tensor) -> Tensor:
        """Which points are desired at one action in each case, (B, |X|), (B, k) -> (B, D, P), bool."""
        return self.models.faces.desired(self.values(contexts, actions) + self.noise)

    @property
    def width(self) -> int:
        """The largest number of features of a fit."""
        return max(member.coefficients.shape[1] for member in self.models.outcomes)

    def values(self, contexts: Tensor, actions: Tensor) -> Tensor:
        """t without its noise, (B, |X|), (..., B, k) -> (..., B, D, P or 1, q)."""
        if self.between is None:
            means = self.known_means(contexts)
            return torch.cat([self.values_of(fit, means, actions) for fit in range(self.members)], -3)
        whole = self.known(contexts)
        between = self.between_means(whole, actions) + self.between[1]
        usual = self.usual_actions(whole)
        whole = torch.cat((whole.expand(*between.shape[:-1], -1), between), -1)
        if usual is None:
            whole = with_actions(whole, actions)
        else:
            whole = torch.cat((whole, usual.expand(*between.shape[:-1], -1)), -1)
        parts = whole.split(self.each, -3)
        members = zip(self.models.outcomes, self.functions, parts, strict=True)
        return torch.cat([member.drawn(*part) for member, *part in members], -3)

    def values_of(self, fit: int, means: Tensor, actions: Tensor) -> Tensor:
        """`values` by one of the fits, given `known_means`, where there is no v: (..., B, D/E, P or 1, q)."""
        member, functions = self.models.outcomes[fit], self.functions[fit]
        base = with_actions(means[:, fit * self.each : (fit + 1) * self.each], actions)
        if self.before is None:
            return member.drawn(functions, base)
        # (..., B, q, d, 1, C) -> (q, d, ... B, C), for a product of matrices for each draw.
        around = member.along(functions, base, self._moving).squeeze(-2)
        last = around.movedim((-3, -2), (0, 1)).flatten(2, -2)
        values = (last @ self.moved[fit]).unflatten(2, base.shape[:-3])
        return member.in_units(values.movedim((0, 1), (-1, -3)))

    @cached_property
    def moved(self) -> list[Tensor]:
        """The features of the residuals of u for each fit, (q, D/E, C, P) each."""
        assert self.before is not None
        parts = self.before[1][..., list(self.models.columns)].split(self.each)
        return [
            member.moved_features(part, self._moving).permute(2, 0, 3, 1)
            for member, part in zip(self.models.outcomes, parts, strict=True)
        ]

    @property
    def _moving(self) -> range:
        """The places of u among the inputs of f."""
        known = 0 if self.models.before is None else self.models.before.inputs
        return range(known, known + len(self.models.columns))

    def moved_inputs(self, known: int) -> range:
        """The places of what an action moves among the inputs of f, behind those of (x, u)."""
        usual = 0 if self.models.usual is None else self.models.usual.outputs
        return range(known, self.models.outcomes[0].inputs - usual)

    def share(self, values: Tensor) -> Tensor:
        """The share of desired points of t without its noise, (..., D, P or 1, q) -> (..., D)."""
        inside = self.models.faces.desired(values + self.noise)
        # Counts of at most P are exact in single precision.
        return inside.to(torch.float32).sum(-1).to(torch.float64) / self.points


class SuccessOfMany(ABC):
    """p_d(a; x) for many actions in the same B contexts."""

    def __init__(self, success: PosteriorSuccess) -> None:
        self.success = success

    def mean(self, actions: Tensor) -> Tensor:
        """The posterior mean of P(Y in S | x, a) at standardised actions, (..., B, k) -> (..., B)."""
        flat = actions.reshape(-1, *actions.shape[-2:])
        return self.shares(flat).mean(-1).reshape(actions.shape[:-1])

    def shares(self, actions: Tensor) -> Tensor:
        """p_d at standardised actions, (n, B, k) -> (n, B, D); draws of the same fit are neighbours."""
        success = self.success
        cells = actions.shape[1] * success.draws * success.points * success.models.faces.count
        parts = actions.split(max(1, CHUNK // cells))
        return torch.cat([success.share(self._values(part)) for part in parts])

    @abstractmethod
    def _values(self, actions: Tensor) -> Tensor:
        """t without its noise, (n, B, D, P or 1, q)."""


class SuccessInContexts(SuccessOfMany):
    """By coefficients for every point, in standardised contexts (B, |X|)."""

    def __init__(self, success: PosteriorSuccess, contexts: Tensor) -> None:
        super().__init__(success)
        self.known = success.known(contexts)
        base = self.known
        if success.between is not None:
            noise = success.between[1].expand(len(base), -1, -1, -1)
            base = torch.cat((base.expand(*noise.shape[:-1], -1), noise), -1)
            if (usual := success.usual_actions(self.known)) is not None:
                base = torch.cat((base, usual), -1)
        moved = success.moved_inputs(self.known.shape[-1])
        members = zip(success.models.outcomes, success.functions, base.split(success.each, 1), strict=True)
        # What moves besides the action is the mean of v; its noise is part of the base.
        self.coefficients = [
            member.along(moving, torch.nn.functional.pad(part, (0, member.inputs - part.shape[-1])),
                         moved)
            for member, moving, part in members
        ]  # fmt: skip

    def _values(self, actions: Tensor) -> Tensor:
        success, moving = self.success, actions[:, :, None, None]
        if success.between is not None:
            means = success.between_means(self.known, actions)
            seen = moving[..., : 0 if success.usual is not None else None]
            moving = torch.cat((means, seen.expand(*means.shape[:-1], -1)), -1)
        values_of_fits = []
        for fit, (member, own) in enumerate(zip(success.models.outcomes, self.coefficients, strict=True)):
            part = moving
            if moving.shape[2] > 1:
                part = moving[:, :, fit * success.each : (fit + 1) * success.each]
            # (n, B, D or 1, P or 1, q, C) -> (B, q, D or 1, P or 1, n, C)
            places = success.moved_inputs(self.known.shape[-1])
            features = member.moved_features(part, places).permute(1, 4, 2, 3, 0, 5)
            if features.shape[3] == 1:
                values = features.squeeze(3) @ own.mT
            else:
                values = (features @ own.unsqueeze(-1)).squeeze(-1).transpose(-2, -1)
            values_of_fits.append(member.in_units(values.permute(3, 0, 2, 4, 1)))
        return torch.cat(values_of_fits, 2)


def with_actions(inputs: Tensor, actions: Tensor) -> Tensor:
    """Inputs of points ([...,] B, D, m, p) beside actions (..., B, k), (..., B, D, m, p + k)."""
    shape = (*actions.shape[:-1], *inputs.shape[-3:-1])
    return torch.cat((inputs.expand(*shape, -1), actions[..., None, None, :].expand(*shape, -1)), -1)


def resampled(residuals: Tensor, draws: int, points: int, stream: torch.Generator) -> Tensor:
    """Whole residuals (n, q) -> (D, P, q): one row from each of P strata of the sorted first column."""
    order = residuals[:, 0].argsort(stable=True)
    within = torch.rand(draws, points, dtype=torch.float64, generator=stream)
    strata = torch.rand(draws, points, generator=stream).argsort(-1)
    rows = ((strata + within) * (len(residuals) / points)).long().clamp_max(len(residuals) - 1)
    return residuals[order[rows.to(residuals.device)]]


def held_out(
    members: Sequence[FeatureRegression],
    faces: FaceCoordinates,
    inputs: Tensor,
    targets: Tensor,
    folds: Tensor,
    draws: int,
    points: int,
    stream: torch.Generator,
) -> Tensor:
    """The probability of success at rows (n, p), standardised, (n,): each fold (n,) is predicted from
    functions and residuals of the others, fitted to targets (n, q) with the kernels of all rows.
    """
    probabilities, count = inputs.new_zeros(len(inputs)), -(-draws // len(members))
    for fold in folds.unique().tolist():
        held = folds == fold
        for member in members:
            refitted = deepcopy(member)
            refitted.condition(inputs[~held], targets[~held])
            functions = refitted.draws(count, stream)
            noise = resampled(refitted.residuals, count, points, stream)
            values = refitted.drawn(functions, inputs[held].unsqueeze(0).expand(count, -1, -1))
            inside = faces.desired(values.unsqueeze(-2) + noise.unsqueeze(1))
            probabilities[held] += inside.to(torch.float64).mean((0, -1)) / len(members)
    return probabilities


MOST_NODES = 96


class TabulatedSuccess(SuccessOfMany):
    """p_d(a; x) for many values of one action in B contexts, by nodes as each of the E fits needs."""

    def __init__(self, success: PosteriorSuccess, contexts: Tensor, nodes: Sequence[ChebyshevNodes]) -> None:
        super().__init__(success)
        self.nodes = max(nodes, key=lambda each: each.count)
        size = max(1, CHUNK // (self.nodes.count * success.draws * max(success.points, success.width)))
        values = []
        for rows in torch.arange(len(contexts)).split(size):
            means = success.known_means(contexts[rows])
            parts = [
                (self.nodes.lift(each), success.values_of(fit, means, each.places[:, rows].unsqueeze(-1)))
                for fit, each in enumerate(nodes)
            ]
            self._shape = (success.draws, *parts[0][1].shape[-2:])
            lifted = [lift @ part.flatten(2).transpose(0, 1) for lift, part in parts]
            values.append(torch.cat(lifted, -1))
        self.values = torch.cat(values)

    @classmethod
    def over(cls, success: PosteriorSuccess, contexts: Tensor, lower: Tensor, upper: Tensor) -> Self | None:
        """For actions between bounds (B, k); None if several, with v, or in need of too many nodes."""
        if lower.shape[-1] != 1 or success.between is not None:
            return None
        members, half = success.models.outcomes, float((upper - lower).max()) / 2
        fastest = [float(member.frequencies_of([member.inputs - 1]).abs().max()) for member in members]
        counts = [nodes_for(frequency * half, MOST_NODES) for frequency in fastest]
        ends = lower.squeeze(-1), upper.squeeze(-1)
        nodes = [ChebyshevNodes(*ends, count) for count in counts if count is not None]
        return cls(success, contexts, nodes) if len(nodes) == len(counts) else None

    def _values(self, actions: Tensor) -> Tensor:
        weights = self.nodes.weights(actions.squeeze(-1)).transpose(0, 1)
        values: Tensor = (weights @ self.values).transpose(0, 1).unflatten(-1, self._shape)
        return values
