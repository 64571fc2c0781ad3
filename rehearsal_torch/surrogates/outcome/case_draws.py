"""Success, gain and support of actions, and of no action, in single cases (by `shared_draws`)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from rehearsal_torch.surrogates.outcome.near_rows import Surroundings
from rehearsal_torch.surrogates.outcome.shared_draws import CHUNK, SharedDraws

# Irrational steps between quantiles: of first actions, of later ones, and between blocks.
FIRST, LATER, BLOCKS = 0.6180339887, 0.4142135624, 0.7548776662


@dataclass(frozen=True)
class Values:
    """P(a), P(none), low and credit of actions by D draws, (..., B, D) each, and S, (..., B)."""

    success: Tensor
    none: Tensor
    low: Tensor
    credit: Tensor
    beyond: Tensor

    @property
    def gain(self) -> Tensor:
        """P(a) - P(none)."""
        return self.success - self.none


class CaseDraws:
    """Draws at the points of B cases, standardised contexts (B, |X|); `many`: for many actions of each."""

    def __init__(self, draws: SharedDraws, contexts: Tensor, many: bool = False) -> None:
        self.draws, self.models = draws, draws.models
        self.known = draws.known(contexts)
        self.near = min(draws.near, self.known.shape[-2])
        self.around = draws.around(self.known) if many and self.models.between is None else None

    @cached_property
    def usual(self) -> tuple[Tensor, Tensor, Tensor]:
        """Points (x, u, v) (B, N, m, p), usual actions (B, N, m, l, k), and their weights (B, N, m, l)."""
        draws, models, z = self.draws, self.models, self.known
        if len(models.usual) == 1:
            if models.usual[0].regressed:
                # The residuals of actions differ between points that are alike.
                z = self._at_all_points(z)
            actions, weights = models.usual[0].usual(draws.usual[0], z)
            if models.between is not None:
                actions, weights = _pick_alternative(actions, weights).unsqueeze(-2), weights[..., :1] * 0 + 1
                z = draws.with_between(z, actions[..., 0, :])
            return z, actions, weights
        # One of the first actions at each point, then v, then the others.
        width = sum(part.count for part in models.usual)
        order = [*models.first, *[index for index in range(width) if index not in models.first]]
        first = _pick_alternative(*models.usual[0].usual(draws.usual[0], z))
        before_v = z.new_zeros(*first.shape[:-1], width)
        before_v[..., list(models.first)] = first
        points = draws.with_between(z, before_v)
        inputs = torch.cat((z, first, points[..., z.shape[-1] :]), -1)
        later, weights = models.usual[1].usual(draws.usual[1], inputs)
        in_order = torch.cat((first.unsqueeze(-2).expand(*later.shape[:-1], -1), later), -1)
        actions = torch.empty_like(in_order)
        actions[..., order] = in_order
        return points, actions, weights

    @cached_property
    def none(self) -> Tensor:
        """p_kj of no action, (B, N, m, G)."""
        z, actions, weights = self.usual
        # The alternatives as points beside each other.
        inputs = torch.cat((z.unsqueeze(-2).expand(*actions.shape[:-1], -1), actions), -1)
        success = self.draws.success(inputs.flatten(-3, -2)).unflatten(-2, actions.shape[-3:-1])
        return (success * weights.unsqueeze(-1)).sum(-2)

    def values(self, actions: Tensor) -> Values:
        """At standardised actions, (c, B, k)."""
        parts = [self._values(block) for block in actions.split(max(1, CHUNK // self._cells_per_action()))]
        return Values(
            *(torch.cat(column) for column in zip(*[vars(block).values() for block in parts], strict=True))
        )

    def outcomes(self, actions: Tensor | None, stream: torch.Generator) -> Tensor:
        """Draws of t (n, q) in the first case at standardised actions (B, k), or at the usual ones."""
        z, alternatives, weights = self.usual
        alternatives = alternatives.expand(-1, -1, self.draws.points, -1, -1)
        weights = weights.expand(-1, -1, self.draws.points, -1)
        actions_seen = _pick_alternative(alternatives, weights, LATER)
        if actions is not None:
            z, actions_seen = self._inputs(actions.unsqueeze(0))
            z, actions_seen = z.expand(*actions_seen.shape[:-1], -1)[0], actions_seen[0]
        inputs = torch.cat((self._at_all_points(z), self._at_all_points(actions_seen)), -1)[0]
        values = self.draws.outcomes(inputs, stream)
        return values.reshape(-1, values.shape[-1])

    def _inputs(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Points (x, u, v) and the actions on which the outcome depends, (c, B, N, m, .)."""
        draws = self.draws
        at_points = actions[:, :, None, None].expand(-1, -1, *self.known.shape[1:3], -1)
        z = draws.with_between(self.known, at_points)
        if self.models.front_door:
            at_points = self.usual[1][..., 0, :].expand_as(at_points)
        return z, at_points

    def _at_all_points(self, points: Tensor) -> Tensor:
        """Points that are alike, (..., N, 1, p), as all m points; others as they are."""
        return points.expand(*points.shape[:-2], self.draws.points, -1)

    def _cells_per_action(self) -> int:
        """Numbers of the largest tensor for each action."""
        draws = self.draws
        features = 0 if self.around is not None else draws.models.outcomes[0].coefficients.shape[1]
        residual_count = draws.each * (draws.counted[0].shape[-2] if draws.counted else 1)
        return max(1, self.known[..., 0].numel() * max(features, residual_count))

    def _values(self, actions: Tensor) -> Values:
        draws, none = self.draws, self.none
        if self.around is not None:
            success = draws.success_around(self.around, self.known, actions)
        else:
            z, actions_seen = self._inputs(actions)
            success = draws.success(torch.cat((z.expand(*actions_seen.shape[:-1], -1), actions_seen), -1))
        far = self._far(actions)
        near = far.shape[-1]

        def beyond(numbers: Tensor) -> Tensor:
            """The part of the mean over all points that is far from rows, by its share at the near ones."""
            near_numbers = numbers[..., :near, :]
            share = draws.mean(near_numbers * far.unsqueeze(-1)) / draws.mean(near_numbers).clamp_min(1e-12)
            return draws.mean(numbers) * share

        mean, before = draws.mean(success), draws.mean(none)
        return Values(
            mean.flatten(-2),
            before.flatten(-2).expand(*mean.shape[:-2], -1),
            (mean - beyond(success)).flatten(-2),
            (mean - before - beyond((success - none).clamp_min(0))).flatten(-2),
            draws.mean(far.unsqueeze(-1)).mean((-2, -1)),
        )

    @cached_property
    def _surroundings(self) -> tuple[Surroundings, Tensor]:
        """Some points among the rows, and their usual actions (B N m', k); without v between actions."""
        return self._surroundings_at(self.known[..., : self.near, :])

    def _surroundings_at(self, points: Tensor) -> tuple[Surroundings, Tensor]:
        observed = self.models.near.observed(points).flatten(0, -2)
        return self.models.near.around(observed), self.models.habit(observed)

    def _far(self, actions: Tensor) -> Tensor:
        """Whether no row is near some of the points, (c, B, N, m'), 0 or 1."""
        near = self.models.near
        at_points = actions[:, :, None, None].expand(-1, -1, self.draws.blocks, self.near, -1)
        if not near.known:
            return at_points.new_ones(at_points.shape[:-1])
        if self.models.between is None or self.models.front_door:
            (surroundings, usual), a = self._surroundings, at_points.flatten(1, -2)
        else:
            points = self._inputs(actions)[0][..., : self.near, :]
            (surroundings, usual), a = self._surroundings_at(points), at_points.flatten(0, -2)
        far = near.far(surroundings, a - usual, a).reshape(at_points.shape[:-1])
        return (far | self._far_beside(actions) if self.models.beside else far).to(at_points)

    def _far_beside(self, actions: Tensor) -> Tensor:
        """Whether no row is near the outcome's inputs by the front door, (c, B, N, m') bool."""
        assert self.models.beside is not None
        near, habit = self.models.beside
        points, actions_seen = (tensor[..., : self.near, :] for tensor in self._inputs(actions))
        observed = near.observed(points).flatten(0, -2)
        a = actions_seen.flatten(0, -2)
        return near.far(near.around(observed), a - habit(observed), a).reshape(actions_seen.shape[:-1])


def _pick_alternative(actions: Tensor, weights: Tensor, step: float = FIRST) -> Tensor:
    """One alternative at each point, (..., N, m, l, k) -> (..., N, m, k), by quantiles of the weights."""
    block, point = (
        torch.arange(count, dtype=weights.dtype, device=weights.device) for count in weights.shape[-3:-1]
    )
    level = (block.unsqueeze(-1) * BLOCKS + point * step + 0.5) % 1
    alternative = (weights.cumsum(-1) < level.unsqueeze(-1)).sum(-1).clamp_max(weights.shape[-1] - 1)
    index = alternative[..., None, None].expand(*alternative.shape, 1, actions.shape[-1])
    return actions.gather(-2, index).squeeze(-2)
