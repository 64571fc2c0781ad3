"""Stacked trajectories: the transitions of several models of one episode, side by side.

The state is the concatenation of the M members' states, each moved by its own map under the same action,

    x = (x^1, ..., x^M),      F_t(x, a) = (F^1_t(x^1, a), ..., F^M_t(x^M, a)),

so that a search sees one trajectory. All Jacobians and Hessians are block-diagonal, and the spectral norm of
a block-diagonal map is the largest of its blocks: |DF| = max_m |DF^m|. For the second derivative,

    |D^2F[v, w]|^2 = sum_m |D^2F^m[v^m, w^m]|^2 <= max_m |D^2F^m|^2 sum_m |v^m|^2 |w^m|^2,

which is at most (max_m |D^2F^m| |v| |w|)^2; the ball of radius r around x lies in the product of the members'
balls, so that their bounds hold on it.
"""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.trajectory import Curvature, CurvedTrajectory, Trajectory


class StackedTrajectory(Trajectory):
    """M trajectories of one episode as one; ValueError if there is none, or their time steps or actions
    differ.
    """

    def __init__(self, members: Sequence[Trajectory]) -> None:
        if not members or any(
            each.actions != members[0].actions or not torch.equal(each.observed, members[0].observed)
            for each in members
        ):
            raise ValueError("expected at least one trajectory, all with the same observed actions")
        first = members[0]
        super().__init__(torch.cat([each.states for each in members], -1), first.observed, first.actions)
        self.members = tuple(members)
        self.width = first.states.shape[-1]

    def to(self, dtype: torch.dtype) -> "Trajectory":
        """The members in another precision."""
        return stacked([each.to(dtype) for each in self.members])

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, M D), t, (n,) or () long -> (n, M D)."""
        return torch.cat([each.step(own, time, actions) for each, own in self._each(states)], -1)

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, M D), t, (A',) long -> (n, A', M D)."""
        return torch.cat([each.branch(own, time, actions) for each, own in self._each(states)], -1)

    def lipschitz(self) -> Tensor | None:
        """The largest constant of the members, (T - 1,) float64; None if one of them is unknown."""
        found = [each.lipschitz() for each in self.members]
        known = [each for each in found if each is not None]
        return torch.stack(known).amax(0) if len(known) == len(found) else None

    def _each(self, states: Tensor) -> list[tuple[Trajectory, Tensor]]:
        return list(zip(self.members, states.split(self.width, -1), strict=True))


@final
class StackedCurvedTrajectory(StackedTrajectory, CurvedTrajectory):
    """M trajectories with certified curvature bounds, as one."""

    def __init__(self, members: Sequence[CurvedTrajectory]) -> None:
        super().__init__(members)
        self.curved = tuple(members)

    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """(n, M D), t -> (n, A, M D, M D)."""
        blocks = states.split(self.width, -1)
        return _diagonal([each.jacobians(own, time) for each, own in zip(self.curved, blocks, strict=True)])

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, M D), t, (n, M D), (n,) -> derivatives and their bounds on the balls."""
        found = [
            each.curvature(own, time, covector, radii)
            for each, own, covector in zip(
                self.curved, states.split(self.width, -1), covectors.split(self.width, -1), strict=True
            )
        ]
        return Curvature(
            _diagonal([each.jacobian for each in found]),
            _diagonal([each.hessian for each in found]),
            torch.stack([each.jacobian_norm for each in found]).amax(0),
            torch.stack([each.second_derivative_norm for each in found]).amax(0),
            torch.stack([each.hessian_lipschitz for each in found]).amax(0),
        )


def stacked(members: Sequence[Trajectory]) -> StackedTrajectory:
    """The members as one trajectory, with curvature bounds if all of them have these."""
    curved = [each for each in members if isinstance(each, CurvedTrajectory)]
    return StackedCurvedTrajectory(curved) if len(curved) == len(members) else StackedTrajectory(members)


def _diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """Block-diagonal matrices, M times (..., D, D) -> (..., M D, M D)."""
    width, count = blocks[0].shape[-1], len(blocks)
    found = blocks[0].new_zeros(*blocks[0].shape[:-2], count * width, count * width)
    for place, block in enumerate(blocks):
        here = slice(place * width, (place + 1) * width)
        found[..., here, here] = block
    return found
