"""Episodes of a known, curved truth: maps F_t(x, a) = M x + sin(N_a x) / 4 + b_a + u_t with known bounds of
all derivatives."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.func import jacrev, vmap

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.mechanisms.mechanism import Curvature, CurvedTrajectory, spectral_bound
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate


class CurvedEquationTrajectory(CurvedTrajectory):
    """Transitions given by a twice differentiable function and its constants.

    Args:
        states: The observed trajectory, (T, D).
        observed: The actions taken, (T,) long.
        actions: A, the number of actions.
        equation: F, called with states (n, D), the time t and actions (n,) long; returns (n, D), row by row.
        constants: K, M and N at each step, (T - 1, 3).

    Raises:
        ValueError: if the constants have another shape.
    """

    def __init__(
        self,
        states: Tensor,
        observed: Tensor,
        actions: int,
        equation: Callable[[Tensor, int, Tensor], Tensor],
        constants: Tensor,
    ) -> None:
        super().__init__(states, observed, actions)
        if constants.shape != (len(states) - 1, 3):
            raise ValueError(
                f"expected constants of shape ({len(states) - 1}, 3), bounds of the first three derivatives; "
                f"got {tuple(constants.shape)}"
            )
        self.equation, self.constants = equation, constants.to(torch.float64)

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        return self.equation(states, time, actions.expand(len(states)))

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        chosen = torch.arange(self.actions, device=states.device) if actions is None else actions
        rows = states.repeat_interleave(len(chosen), 0)
        return self.equation(rows, time, chosen.repeat(len(states))).unflatten(0, (len(states), len(chosen)))

    def lipschitz(self) -> Tensor:
        """K, (T - 1,)."""
        return self.constants[:, 0]

    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """(n, D), t -> (n, A, D, D)."""
        return vmap(jacrev(self._all(time)))(states)

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, D), t, (n, D), (n,) -> derivatives and their bounds on the balls."""
        values = self._all(time)
        hessian = vmap(jacrev(jacrev(lambda state, covector: values(state) @ covector)))(states, covectors)
        jacobian = self.jacobians(states, time)
        first, second, third = self.constants[time]
        shape = jacobian.shape[:2]
        jacobian_norm = (spectral_bound(jacobian) + second * radii.unsqueeze(1)).clamp_max(first)
        hessian_lipschitz = torch.linalg.vector_norm(covectors, dim=-1, keepdim=True) * third
        return Curvature(
            jacobian, hessian, jacobian_norm, second.expand(shape), hessian_lipschitz.expand(shape)
        )

    def _all(self, time: int) -> Callable[[Tensor], Tensor]:
        """x -> F_t(x, a) for all a, (D,) -> (A, D)."""
        every = torch.arange(self.actions, device=self.states.device)
        return lambda state: self.equation(state.expand(self.actions, -1), time, every)


def curved_episode(
    seed: int, horizon: int = 5, changes: int = 2, width: int = 2, actions: int = 3, bent: float = 0.25
) -> CounterfactualReturn:
    """A random episode; `bent` = 0 makes the maps affine."""
    generator = torch.Generator().manual_seed(seed)
    model = CurvedEquations(generator, width, actions, bent)
    values = torch.randn(horizon, width, generator=generator, dtype=torch.float64)
    taken = torch.randint(actions, (horizon, 1), generator=generator)
    episode = Episode(f"curved-{seed}", (*model.names, "action"), torch.cat([values, taken.to(values)], -1))
    return CounterfactualReturn(
        model, EpisodeCase(episode), LinearReward({name: -1.0 for name in model.names[:2]}), changes
    )


class CurvedEquations(EpisodeSurrogate):
    """The maps of all episodes."""

    def __init__(self, generator: torch.Generator, width: int, actions: int, bent: float) -> None:
        super().__init__()
        self.bent = bent
        self.shared = (
            0.6 * torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64)).Q
        )
        self.inner = torch.randn(actions, width, width, generator=generator, dtype=torch.float64) / width
        self.shifts = 0.3 * torch.randn(actions, width, generator=generator, dtype=torch.float64)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"x{index}" for index in range(len(self.shared)))

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        return iter(())

    def trajectory(self, episode: Episode) -> "CurvedEquationTrajectory":
        states, observed = episode.columns(self.names), episode.columns(["action"])[:, 0].long()

        def map_(states: Tensor, actions: Tensor) -> Tensor:
            inside = (self.inner[actions] @ states.unsqueeze(-1))[..., 0]
            return states @ self.shared.mT + self.bent * torch.sin(inside) + self.shifts[actions]

        noise = states[1:] - map_(states[:-1], observed[:-1])
        norm = float(torch.linalg.matrix_norm(self.inner, 2).max())
        # Along unit vectors, D^i sin(N x) is at most |N v|_inf^(i - 1) |N v| <= |N|^i.
        constants = torch.tensor(
            [0.6 + self.bent * norm, self.bent * norm**2, self.bent * norm**3], dtype=torch.float64
        )
        return CurvedEquationTrajectory(
            states,
            observed,
            len(self.inner),
            lambda x, time, actions: map_(x, actions) + noise[time],
            constants.repeat(len(noise), 1),
        )

    def units(self, states: Tensor) -> Tensor:
        return states

    def state_scale(self) -> Tensor:
        return torch.ones(len(self.shared), dtype=torch.float64)

    def doses(self, actions: Tensor) -> Tensor:
        return actions.unsqueeze(-1).to(torch.float64)
