"""Where a true gain comes from: later states, or the scoring of the dose itself.

SOFA counts the vasopressor of its own step. With the states x, x' and the vasopressor doses v, v' of the observed and of
the changed course, the summed score S falls by

    S(x, v) - S(x', v') = [S(x, v) - S(x', v)] + [S(x', v) - S(x', v')]
                             through states          through scoring

The first part is what became of the patient, the second what the score no longer counts because a drug was withheld, or
counts because it was given. The reverse order, scoring first, gives another split where the two interact.

Source: Komorowski et al. (2018) for the score of a step; the split is ours.
"""

from dataclasses import dataclass

import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.datasets.sepsis_simulated import SepsisSimulated
from rehearsal_torch.datasets.sepsis_simulator import emit, true_course
from rehearsal_torch.datasets.sofa import sofa


@dataclass(frozen=True)
class GainParts:
    """A true gain in summed SOFA points; positive is better.

    Attributes:
        states: Through the states, scored with the doses that were given.
        scoring: Through the doses that the score counts, at the changed states.
        states_last: Through the states, scored with the changed doses.
        scoring_first: Through the doses that the score counts, at the observed states.
    """

    states: float
    scoring: float
    states_last: float
    scoring_first: float

    @property
    def total(self) -> float:
        """The whole gain."""
        return self.states + self.scoring


def gain_parts(problem: SepsisSimulated, episode: Episode, decision: Decision) -> GainParts:
    """Splits what a decision would truly have gained.

    Args:
        problem: Who knows the truth.
        episode: Of the problem.
        decision: Which actions to change.
    """
    given, changed = problem.courses_of_doses(episode, decision)
    observed, altered = emit(true_course(problem.cohort, int(episode.identity), torch.stack((given, changed))))
    scored = [float(sofa(states, doses[:, 0])[problem.action_lag :].sum()) for states in (observed, altered) for doses in (given, changed)]
    before, rescored, moved, both = scored
    return GainParts(before - moved, moved - both, rescored - both, before - rescored)
