"""Structural mechanisms (values from parents and exogenous noise, and back), and trajectories of episodes.

All structural models of this package are built on one pair of maps,

    v = forward(parents, noise),        noise = abduct(parents, v),

with all randomness in `noise`. Sampling is `forward` on fresh noise; a counterfactual is `forward` on
abducted noise with other parents. Where the function itself is uncertain, because it was learnt from finitely
many observations, `belief` returns its posterior mean and standard deviation at the same arguments.

Shapes are (..., p) of p parents, and (..., d) of d noises and d values, also if d = 1; leading dimensions
broadcast. A mechanism is either a module with parameters or a frozen record of an estimator's result.

**Trajectories** are the counterfactual transitions of one observed episode. With the noise u_t of each step
abducted, a transition is a deterministic map

    x_{t+1} = F_t(x_t, a) = g(x_t, a, u_t),      F_t(s_t, a_t) = s_{t+1},

which searches evaluate at many states and actions in one batch. A `Trajectory` may provide Lipschitz
constants of its maps; a `CurvedTrajectory` has Jacobians and bounds derivatives on a ball. Given a state x, a
radius r and a covector p, sharp searches need, for each map F(., a) of a time step, on the ball
B = {y : |y - x| <= r} of the Euclidean norm,

    its derivatives at the centre  DF_a(x),  H_a(x) = D^2 (p . F_a)(x),
    jacobian_norm          >= sup_B |DF_a(y)|,    the growth rate of a displacement,
    second_derivative_norm >= sup_B |D^2 F_a(y)|, the norm of the bilinear map D^2 F_a(y)[v, w],
    hessian_lipschitz      >= |H_a(y) - H_a(x)| / |y - x|   for all y in B,

with Euclidean and spectral norms throughout.

The trajectories of M models of one episode are stacked to one, each moved by its own map under the same
action,

    x = (x^1, ..., x^M),      F_t(x, a) = (F^1_t(x^1, a), ..., F^M_t(x^M, a)).

All Jacobians and Hessians are block-diagonal, and the spectral norm of a block-diagonal map is the largest of
its blocks: |DF| = max_m |DF^m|. For the second derivative,

    |D^2F[v, w]|^2 = sum_m |D^2F^m[v^m, w^m]|^2 <= max_m |D^2F^m|^2 sum_m |v^m|^2 |w^m|^2,

which is at most (max_m |D^2F^m| |v| |w|)^2; the ball of radius r around x lies in the product of the members'
balls, so that their bounds hold on it.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 1-2 and Eq. 6-7; Qin et al. (2023), Sec. 2. The curvature
bounds are used by `search.sequences.gain_bound`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor


class Trajectory(ABC):
    """The maps F_0 ... F_{T-2} of one episode, with the observed states (T, D), in their coordinates, and the
    actions taken, (T,) long, each of 0 ... A - 1; the last affects no state.
    """

    def __init__(self, states: Tensor, observed: Tensor, actions: int) -> None:
        self.states, self.observed, self.actions = states, observed, actions

    @property
    def horizon(self) -> int:
        """T, the number of states."""
        return len(self.states)

    @abstractmethod
    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """F_t row by row, (n, D), t, (n,) or () long -> (n, D)."""

    @abstractmethod
    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """F_t under all actions, or under the given ones, (n, D), t, (A',) long -> (n, A', D)."""

    def lipschitz(self) -> Tensor | None:  # noqa: B027  unknown by default
        """K_t with |F_t(x, a) - F_t(y, a)| <= K_t |x - y| everywhere, (T - 1,) float64; None if unknown."""


def replay(trajectory: Trajectory, actions: Tensor, *fits: int) -> Tensor:
    """The states under action sequences, (n, T or T - 1) long -> (*fits, n, T, D), of a trajectory with
    leading dimensions `fits`: those observed up to the first changed action, without rounding.
    """
    states = [trajectory.states[:1].expand(*fits, len(actions), -1)]
    same = actions.eq(trajectory.observed[: actions.shape[1]]).cumprod(1).bool()
    for time in range(trajectory.horizon - 1):
        stepped = trajectory.step(states[-1], time, actions[:, time])
        states.append(torch.where(same[:, time, None], trajectory.states[time + 1], stepped))
    return torch.stack(states, -2)


class EquationTrajectory(Trajectory):
    """Transitions by a function F of states (n, D), t and actions (n,), perhaps with constants (T - 1,)."""

    def __init__(
        self,
        states: Tensor,
        observed: Tensor,
        actions: int,
        equation: Callable[[Tensor, int, Tensor], Tensor],
        constants: Tensor | None = None,
    ) -> None:
        super().__init__(states, observed, actions)
        self.equation, self.constants = equation, constants

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        return self.equation(states, time, actions.expand(len(states)))

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        chosen = torch.arange(self.actions, device=states.device) if actions is None else actions
        rows = states.repeat_interleave(len(chosen), 0)
        return self.equation(rows, time, chosen.repeat(len(states))).unflatten(0, (len(states), len(chosen)))

    def lipschitz(self) -> Tensor | None:
        """(T - 1,) float64, or None."""
        return self.constants


@dataclass(frozen=True)
class Curvature:
    """Derivatives of F(., a) at centres, and their bounds on balls around them; float64."""

    jacobian: Tensor  # DF_a(x), (n, A, D, D)
    hessian: Tensor  # D^2 (p . F_a)(x), (n, A, D, D)
    jacobian_norm: Tensor  # Bound on |DF_a|, (n, A)
    second_derivative_norm: Tensor  # Bound on |D^2 F_a|, (n, A)
    hessian_lipschitz: Tensor  # Bound on the Lipschitz constant of the Hessian, from the centre, (n, A)


class CurvedTrajectory(Trajectory, ABC):
    """A trajectory whose maps have bounded second derivatives, with certified curvature bounds."""

    @abstractmethod
    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """Jacobians of F_t in the state under each action, (n, D) -> (n, A, D, D), float64."""

    @abstractmethod
    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """Derivatives of F_t at centres x (n, D), along covectors p (n, D), and their bounds on balls of
        radii r (n,). They hold in exact arithmetic; callers add a margin for rounding.
        """


def spectral_bound(matrices: Tensor) -> Tensor:
    """An upper bound on the largest singular value s, (..., p, q) -> (...), of at most (min(p, q))^(1/32) s.

    With G = M'M and eigenvalues l_i >= 0, the largest is at most (sum l_i^16)^(1/16) = |G^8|_F^(1/8): three
    squarings of small matrices in one batch, whereas a decomposition would process the matrices one by one.
    """
    gram = matrices.mT @ matrices if matrices.shape[-1] <= matrices.shape[-2] else matrices @ matrices.mT
    size = torch.linalg.matrix_norm(gram).clamp_min(torch.finfo(gram.dtype).tiny)
    power = gram / size[..., None, None]
    for _ in range(3):
        power = power @ power
    return (size * torch.linalg.matrix_norm(power) ** 0.125).sqrt()


class StackedTrajectory(Trajectory):
    """M trajectories of one episode as one; ValueError without any, or if steps or actions differ."""

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

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, M D), t, (n,) or () long -> (n, M D)."""
        return torch.cat([member.step(part, time, actions) for member, part in self._pairs(states)], -1)

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, M D), t, (A',) long -> (n, A', M D)."""
        return torch.cat([member.branch(part, time, actions) for member, part in self._pairs(states)], -1)

    def lipschitz(self) -> Tensor | None:
        """The largest constant of the members, (T - 1,) float64; None if one of them is unknown."""
        constants = [member.lipschitz() for member in self.members]
        bounds = [bound for bound in constants if bound is not None]
        return torch.stack(bounds).amax(0) if len(bounds) == len(constants) else None

    def _pairs(self, states: Tensor) -> list[tuple[Trajectory, Tensor]]:
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
        parts = zip(self.curved, states.split(self.width, -1), covectors.split(self.width, -1), strict=True)
        curvatures = [member.curvature(part, time, covector, radii) for member, part, covector in parts]
        jacobians, hessians, *bounds = zip(*(vars(fields).values() for fields in curvatures), strict=True)
        largest = (torch.stack(bound).amax(0) for bound in bounds)
        return Curvature(_diagonal(jacobians), _diagonal(hessians), *largest)


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


class Mechanism(ABC):
    """The mechanism of d values given p parents and d noises."""

    @abstractmethod
    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., d) -> (..., d); the posterior mean where the function is uncertain."""

    @abstractmethod
    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., d) -> (..., d): the noise for which `forward` gives `values`."""


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """N(0, I) like a tensor; drawn on the CPU, so that a seed means the same on every device."""
    return torch.randn(*shape, dtype=like.dtype).to(like.device)


class TransitionMechanism(Mechanism, ABC):
    """A mechanism of one time step, whose first d parents are the values of the previous step."""

    @abstractmethod
    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Fresh noise, (*shape, d)."""

    @abstractmethod
    def unroll(self, states: Tensor, fixed: Tensor, observed: Tensor) -> Trajectory:
        """The trajectory of an episode, with its abducted noise, from observed states (T, d), other parents
        at each step under each action (T - 1, A, p - d), and actions taken (T,) long.
        """


class NodeMechanism(Mechanism, ABC):
    """The mechanism of one variable, d = 1, whose function is uncertain; parents are scaled."""

    @property
    def device(self) -> torch.device:
        """The device of the parameters; the CPU by default."""
        return torch.device("cpu")

    @abstractmethod
    def scaled(self, inputs: Tensor) -> Tensor:
        """Parents from the variables' units to the unit cube of the observations, (..., p) -> (..., p)."""

    @abstractmethod
    def belief(self, parents: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of the function, in the variable's unit: (..., p), (..., 1)
        -> (..., 1) twice; the standard deviation is not expanded over noise on which it does not depend.
        """
