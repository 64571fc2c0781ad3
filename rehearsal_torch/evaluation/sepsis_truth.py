"""The true counterfactuals of simulated patients, and where their gains come from.

The simulator's own mechanism, with the patient's level and the noise that each step really had, determines
what the patient would have gone through under other doses. Its state is latent, followed by the number of the
step; its reward is minus the SOFA score, which depends on the action as well: the score of a step counts the
vasopressor given in that step. A changed action gives the dose that its level stands for, an unchanged one
the dose that was really given, jitter included, so that a sequence without changes reproduces the observed
trajectory.

A true gain has two parts. With the states x, x' and the vasopressor doses v, v' of the observed and of the
changed trajectory, the summed score S falls by

    S(x, v) - S(x', v') = [S(x, v) - S(x', v)] + [S(x', v) - S(x', v')]
                             through states          through scoring

The first part is the effect on the patient; the second is what the score no longer counts because a drug was
withheld, or counts because it was given. The reverse order, scoring first, gives another decomposition where
the two interact.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 6 (with the true noise instead of an abducted one);
Komorowski et al. (2018) for the score of a step; the decomposition of the gain is ours.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.part import Solved, Trained
from rehearsal_torch.data.table import Table, positions
from rehearsal_torch.mechanisms.trajectory import EquationTrajectory, Trajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import Doses, Reward
from rehearsal_torch.problems.episodes.cohort import (
    Cohort,
    SepsisSimulated,
    dose_options,
    emit,
    move,
    sofa,
    true_trajectory,
)
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate


@dataclass(frozen=True)
class GainParts:
    """A true gain in summed SOFA points, positive if better: through the states, scored with the observed
    doses, and through the doses that the score counts, at the changed states.
    """

    states: float
    scoring: float

    @property
    def total(self) -> float:
        """The total gain."""
        return self.states + self.scoring


def gain_parts(problem: SepsisSimulated, episode: Episode, decision: Decision) -> GainParts:
    """Decomposes the true gain of a decision for an episode of the simulated cohort."""
    given, changed = problem.trajectories_of_doses(episode, decision)
    observed, altered = emit(
        true_trajectory(problem.cohort, int(episode.identity), torch.stack((given, changed)))
    )
    before, moved, both = (
        float(sofa(states, doses[:, 0])[problem.action_lag :].sum())
        for states, doses in ((observed, given), (altered, given), (altered, changed))
    )
    return GainParts(before - moved, moved - both)


LATENT = (*(f"latent_{index}" for index in range(8)), "step")


class SepsisTruth(EpisodeSurrogate):
    """The simulator as a surrogate without parameters to fit, so that any search can find the true optimum.

    Args:
        cohort: The simulated patients; an episode's identity is its patient's number.
        levels: The dose levels that actions stand for.
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
        given = self.given(episode)
        vent, noise, level = (
            self.cohort.ventilated[patient],
            self.cohort.noise[patient],
            self.cohort.level[patient],
        )

        def equation(states: Tensor, time: int, actions: Tensor) -> Tensor:
            moved = move(states[:, :8], level, given[time][actions], vent[time], noise[time])
            return torch.nn.functional.pad(moved, (0, 1), value=float(time + 1))

        observed = self.levels.digitise(episode.columns(self.levels.names))
        numbered = torch.cat([self.cohort.latent[patient, :horizon], torch.arange(horizon).unsqueeze(-1)], -1)
        return EquationTrajectory(numbered, observed, self.levels.actions, equation)

    def given(self, episode: Episode) -> Tensor:
        """The doses of each action at each step, (T, A, 2): the observed dose for the observed action, the
        medians of their levels for the others.
        """
        return dose_options(episode, self.levels)

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
    """Minus the SOFA score of latent states under each action; a step function, so no Lipschitz constant.

    Args:
        vasopressor: The dose of each action at each step, (T, A), in mcg/kg/min.
    """

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
    """The true return of changing at most k of the first T - 1 actions of a simulated patient.

    The last action affects no state and is kept, as in the learnt problem.

    Args:
        organs: Whether to leave out the points that a vasopressor scores because it is given.
    """
    truth = SepsisTruth(cohort, levels)
    fixed = torch.zeros(episode.horizon, dtype=torch.bool)
    fixed[-1] = True
    vasopressor = truth.given(episode)[..., 0]
    score = TrueScore(torch.zeros_like(vasopressor) if organs else vasopressor)
    return CounterfactualReturn(truth, EpisodeCase(episode, fixed), score, changes)
