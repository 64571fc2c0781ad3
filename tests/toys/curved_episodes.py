"""Episodes of a known, curved truth: maps F_t(x, a) = M x + sin(N_a x) / 4 + b_a + u_t with known bounds of
all derivatives."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.part import Solved, Trained
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.trajectory import CurvedEquationTrajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate


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

    def trajectory(self, episode: Episode) -> CurvedEquationTrajectory:
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
