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
            member.actions != members[0].actions or not torch.equal(member.observed, members[0].observed)
            for member in members
        ):
            raise ValueError("expected at least one trajectory, all with the same observed actions")
        first = members[0]
        super().__init__(torch.cat([member.states for member in members], -1), first.observed, first.actions)
        self.members = tuple(members)
        self.width = first.states.shape[-1]

    def to(self, dtype: torch.dtype) -> "Trajectory":
        """The members in another precision."""
        return stacked([member.to(dtype) for member in self.members])

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, M D), t, (n,) or () long -> (n, M D)."""
        return torch.cat([member.step(part, time, actions) for member, part in self._each(states)], -1)

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, M D), t, (A',) long -> (n, A', M D)."""
        return torch.cat([member.branch(part, time, actions) for member, part in self._each(states)], -1)

    def lipschitz(self) -> Tensor | None:
        """The largest constant of the members, (T - 1,) float64; None if one of them is unknown."""
        constants = [constant.lipschitz() for constant in self.members]
        known = [constant for constant in constants if constant is not None]
        return torch.stack(known).amax(0) if len(known) == len(constants) else None

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
        return _diagonal(
            [member.jacobians(part, time) for member, part in zip(self.curved, blocks, strict=True)]
        )

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, M D), t, (n, M D), (n,) -> derivatives and their bounds on the balls."""
        curvatures = [
            member.curvature(part, time, covector, radii)
            for member, part, covector in zip(
                self.curved, states.split(self.width, -1), covectors.split(self.width, -1), strict=True
            )
        ]
        return Curvature(
            _diagonal([member.jacobian for member in curvatures]),
            _diagonal([member.hessian for member in curvatures]),
            torch.stack([member.jacobian_norm for member in curvatures]).amax(0),
            torch.stack([member.second_derivative_norm for member in curvatures]).amax(0),
            torch.stack([member.hessian_lipschitz for member in curvatures]).amax(0),
        )


def stacked(members: Sequence[Trajectory]) -> StackedTrajectory:
    """The members as one trajectory, with curvature bounds if all of them have these."""
    curved = [member for member in members if isinstance(member, CurvedTrajectory)]
    return StackedCurvedTrajectory(curved) if len(curved) == len(members) else StackedTrajectory(members)


def _diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """Block-diagonal matrices, M times (..., D, D) -> (..., M D, M D)."""
    width, count = blocks[0].shape[-1], len(blocks)
    matrices = blocks[0].new_zeros(*blocks[0].shape[:-2], count * width, count * width)
    for index, block in enumerate(blocks):
        span = slice(index * width, (index + 1) * width)
        matrices[..., span, span] = block
    return matrices
