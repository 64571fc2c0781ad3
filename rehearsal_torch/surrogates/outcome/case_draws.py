"""What shared draws say of actions, and of no action, in some cases (`shared_draws`)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from rehearsal_torch.surrogates.outcome.near_rows import Surroundings
from rehearsal_torch.surrogates.outcome.shared_draws import CHUNK, SharedDraws

# Steps between quantiles: of first actions, of later ones, and between blocks.
FIRST, LATER, BLOCKS = 0.6180339887, 0.4142135624, 0.7548776662


@dataclass(frozen=True)
class Values:
    """What draws say of actions, (..., B, D) each, and S, (..., B)."""

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
        self.around = draws.around(self.known) if many and self.models.between is None else None

    @cached_property
    def usual(self) -> tuple[Tensor, Tensor, Tensor]:
        """(x, u, v) of the points, (B, N, m, p), usual actions (B, N, m, l, k) and their weights (B, N, m,
        l).
        """
        draws, models, known = self.draws, self.models, self.known
        if len(models.usual) == 1:
            actions, weights = models.usual[0].usual(draws.usual[0], known)
            if models.between is not None:
                actions, weights = _one_of(actions, weights).unsqueeze(-2), weights[..., :1] * 0 + 1
                known = draws.with_between(known, actions[..., 0, :])
            return known, actions, weights
        # One of the first actions at each point, then v, then the others.
        width = sum(part.count for part in models.usual)
        order = [*models.first, *[place for place in range(width) if place not in models.first]]
        first = _one_of(*models.usual[0].usual(draws.usual[0], known))
        early = known.new_zeros(*first.shape[:-1], width)
        early[..., list(models.first)] = first
        whole = draws.with_between(known, early)
        given = torch.cat((known, first, whole[..., known.shape[-1] :]), -1)
        later, weights = models.usual[1].usual(draws.usual[1], given)
        both = torch.cat((first.unsqueeze(-2).expand(*later.shape[:-1], -1), later), -1)
        actions = torch.empty_like(both)
        actions[..., order] = both
        return whole, actions, weights

    @cached_property
    def none(self) -> Tensor:
        """p_kj of no action, (B, N, m, G)."""
        known, actions, weights = self.usual
        # The alternatives as points beside each other.
        inputs = torch.cat((known.unsqueeze(-2).expand(*actions.shape[:-1], -1), actions), -1)
        success = self.draws.success(inputs.flatten(-3, -2)).unflatten(-2, actions.shape[-3:-1])
        return (success * weights.unsqueeze(-1)).sum(-2)

    def values(self, actions: Tensor) -> Values:
        """At standardised actions, (c, B, k)."""
        parts = [self._values(part) for part in actions.split(max(1, CHUNK // self._cells()))]
        return Values(
            *(torch.cat(each) for each in zip(*[vars(part).values() for part in parts], strict=True))
        )

    def outcomes(self, actions: Tensor | None, stream: torch.Generator) -> Tensor:
        """Draws of t in the first case at standardised actions (B, k), or at the usual ones, (n, q)."""
        known, usual, weights = self.usual
        seen = _one_of(usual, weights, LATER)
        if actions is not None:
            known, seen = self._inputs(actions.unsqueeze(0))
            known, seen = known.expand(*seen.shape[:-1], -1)[0], seen[0]
        inputs = torch.cat((known, seen), -1)[0]
        values = self.draws.outcomes(inputs, stream)
        return values.reshape(-1, values.shape[-1])

    def _inputs(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """(x, u, v) of the points, and the actions that the outcome sees, (c, B, N, m, .)."""
        draws = self.draws
        wide = actions[:, :, None, None].expand(-1, -1, draws.blocks, draws.points, -1)
        known = draws.with_between(self.known, wide)
        if self.models.front_door:
            wide = self.usual[1][..., 0, :].expand_as(wide)
        return known, wide

    def _cells(self) -> int:
        """Numbers of the largest tensor for each action."""
        draws = self.draws
        features = 0 if self.around is not None else draws.models.outcomes[0].coefficients.shape[1]
        counted = draws.each * (draws.counted[0].shape[-2] if draws.counted else 1)
        return max(1, len(self.known) * draws.blocks * draws.points * max(features, counted))

    def _values(self, actions: Tensor) -> Values:
        draws, none = self.draws, self.none
        if self.around is not None:
            success = draws.success_around(self.around, self.known, actions)
        else:
            known, seen = self._inputs(actions)
            success = draws.success(torch.cat((known.expand(*seen.shape[:-1], -1), seen), -1))
        far = self._far(actions)
        near = far.shape[-1]

        def beyond(numbers: Tensor) -> Tensor:
            """What of their mean over all points lies where no row is near, by the share of it at some."""
            some = numbers[..., :near, :]
            share = draws.mean(some * far.unsqueeze(-1)) / draws.mean(some).clamp_min(1e-12)
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
        """Some points among the rows, and what is usual there, (B N m', k); without v between actions."""
        return self._placed(self.known[..., : self.draws.near, :])

    def _placed(self, points: Tensor) -> tuple[Surroundings, Tensor]:
        observed = self.models.near.observed(points).flatten(0, -2)
        return self.models.near.around(observed), self.models.habit(observed)

    def _far(self, actions: Tensor) -> Tensor:
        """Whether no row is near some of the points, (c, B, N, m'), as numbers."""
        draws, near = self.draws, self.models.near
        wide = actions[:, :, None, None].expand(-1, -1, draws.blocks, draws.near, -1)
        if not near.known:
            return wide.new_ones(wide.shape[:-1])
        if self.models.between is None or self.models.front_door:
            surroundings, usual = self._surroundings
            flat = wide.flatten(1, -2)
            far = near.far(surroundings, flat - usual, flat).reshape(wide.shape[:-1])
            return (far | self._far_beside(actions) if self.models.beside else far).to(wide)
        points = self._inputs(actions)[0][..., : draws.near, :]
        surroundings, usual = self._placed(points)
        flat = wide.flatten(0, -2)
        return near.far(surroundings, flat - usual, flat).reshape(wide.shape[:-1]).to(wide)

    def _far_beside(self, actions: Tensor) -> Tensor:
        """Whether no row is near what the outcome sees by the front door, (c, B, N, m') bool."""
        assert self.models.beside is not None
        near, habit = self.models.beside
        points, seen = (part[..., : self.draws.near, :] for part in self._inputs(actions))
        observed = near.observed(points).flatten(0, -2)
        flat = seen.flatten(0, -2)
        return near.far(near.around(observed), flat - habit(observed), flat).reshape(seen.shape[:-1])


def _one_of(actions: Tensor, weights: Tensor, step: float = FIRST) -> Tensor:
    """One of the alternatives (..., N, m, l, k) at each point, by quantiles of the weights irrational
    steps apart from point to point, and from block to block: (..., N, m, k).
    """
    block, point = (
        torch.arange(count, dtype=weights.dtype, device=weights.device) for count in weights.shape[-3:-1]
    )
    level = (block.unsqueeze(-1) * BLOCKS + point * step + 0.5) % 1
    places = (weights.cumsum(-1) < level.unsqueeze(-1)).sum(-1).clamp_max(weights.shape[-1] - 1)
    index = places[..., None, None].expand(*places.shape, 1, actions.shape[-1])
    return actions.gather(-2, index).squeeze(-2)
