"""The true returns of a simulated patient, as an objective that every search of sequences takes."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.records import positions
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.mechanisms.mechanism import EquationTrajectory, Trajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import Doses, Reward
from rehearsal_torch.problems.sequences.sepsis_cohort import Cohort, dose_options, emit, move, sofa
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

LATENT = (*(f"latent_{index}" for index in range(8)), "step")


class SepsisTruth(EpisodeSurrogate):
    """The simulator as a surrogate without parameters, so that any search can find the true optimum: its
    states are latent, then the number of the step; episodes are identified by patients.
    """

    def __init__(self, cohort: Cohort, levels: DoseLevels) -> None:
        super().__init__()
        self.cohort, self.levels = cohort, levels

    @property
    def names(self) -> tuple[str, ...]:
        """The latent coordinates."""
        return LATENT

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:  # noqa: ARG002
        """No parts: the mechanism is known."""
        return iter(())

    def trajectory(self, episode: Episode) -> Trajectory:
        """The patient's true trajectory, in latent coordinates; without a Lipschitz constant."""
        patient, horizon = int(episode.identity), episode.horizon
        options = dose_options(episode, self.levels)
        cohort = self.cohort
        vent, noise, level = cohort.ventilated[patient], cohort.noise[patient], cohort.level[patient]

        def equation(states: Tensor, time: int, actions: Tensor) -> Tensor:
            moved = move(states[:, :8], level, options[time][actions], vent[time], noise[time])
            return torch.nn.functional.pad(moved, (0, 1), value=float(time + 1))

        observed = self.levels.digitise(episode.columns(self.levels.names))
        numbered = torch.cat([cohort.latent[patient, :horizon], torch.arange(horizon).unsqueeze(-1)], -1)
        return EquationTrajectory(numbered, observed, self.levels.actions, equation)

    def units(self, states: Tensor) -> Tensor:
        """The coordinates themselves."""
        return states

    def state_scale(self) -> Tensor:
        """Ones."""
        return torch.ones(len(LATENT), dtype=torch.float64)

    def doses(self, actions: Tensor) -> Tensor:
        """Actions (...) to doses (..., 2), the medians of their levels."""
        return self.levels.doses(actions)

    @property
    def selectable(self) -> Tensor:
        """The actions whose levels all occur in the data, (A,) bool."""
        return self.levels.selectable


class TrueScore(Reward):
    """Minus the SOFA score of latent states under actions with doses `vasopressor`, (T, A), in mcg/kg/min."""

    def __init__(self, vasopressor: Tensor) -> None:
        self.vasopressor = vasopressor

    @property
    def acts(self) -> bool:
        """True: the score counts the vasopressor of its own step."""
        return True

    def __call__(
        self,
        states: Tensor,
        names: Sequence[str],
        doses: Doses | None = None,  # noqa: ARG002
    ) -> Tensor:
        """States (..., 9) to rewards (..., A)."""
        ordered = states[..., positions(names, LATENT)]
        return -sofa(emit(ordered[..., :8]).unsqueeze(-2), self.vasopressor[ordered[..., 8].long()])

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:  # noqa: ARG002
        """Infinite."""
        return math.inf


def true_return(
    cohort: Cohort, levels: DoseLevels, episode: Episode, changes: int, organs: bool = False
) -> CounterfactualReturn:
    """The true return of changing at most k of the first T - 1 actions of a simulated patient; the last one
    affects no state and is kept. With `organs`, points scored because a vasopressor is given are left out.
    """
    truth = SepsisTruth(cohort, levels)
    fixed = torch.zeros(episode.horizon, dtype=torch.bool)
    fixed[-1] = True
    vasopressor = dose_options(episode, levels)[..., 0]
    score = TrueScore(torch.zeros_like(vasopressor) if organs else vasopressor)
    return CounterfactualReturn(truth, EpisodeCase(episode, fixed), score, changes)
