"""Rows: optimal action sequences, beside the published A*.

The model is the published one of the sepsis cohort (`tests/fixtures/sepsis_published`); the questions are
those of three held-out patients, with |A| = 25 actions a step and at most k changes in T steps. The
reference is A* as printed (Algorithm 2; pooled anchors, Eq. 11 for each child, one node at a time), in this
package's own implementation, since the authors' program is not on a package index. All prove their answers
optimal.

Enumeration would visit some (T |A|)^k / k! sequences: the exponent in T is k for it. In k growth is
exponential: the factor by which one more change multiplies the time is given in place of an exponent. For
longer T, where A* as published takes minutes, the reference is this package's own A*; beyond 20 steps
patients are simulated for longer.

Source: Tsirtsis and Gomez-Rodriguez (2023), Algorithm 2.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.search import loaded, questions
from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound

MODEL = Path(__file__).parents[2] / "tests" / "fixtures" / "sepsis_published"
HORIZONS, LONGER, CHANGES, EPISODES = (6, 8, 12), (12, 20, 30, 40), (1, 2, 3), 3
PEER, OWN = "A* as published (own implementation)", "A* of this package"


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    horizons, changes, episodes = ((5,), (1,), 1) if small else (HORIZONS, CHANGES, EPISODES)
    for steps in (6,) if small else LONGER:
        make = partial(against, steps, 2, episodes, "branch_and_bound", AStar)
        yield Job("branch and bound, k = 2, longer", OWN, "T", steps, make, "", 2)
    for steps in horizons:
        make = partial(against, steps, 2, episodes)
        yield Job("branch and bound, k = 2", PEER, "T", steps, partial(make, "branch_and_bound"), "", 2)
        yield Job("A*, k = 2", PEER, "T", steps, partial(make, "astar"), "", 2)
    for count in changes:
        make = partial(against, 8 if not small else 5, count, episodes, "branch_and_bound")
        yield Job("branch and bound, T = 8", PEER, "k", count, make, exponential=True)


def against(
    horizon: int, changes: int, episodes: int, search: str, other: Callable[[], AStar] = AStar.published
) -> Contest:
    """A search of the package on the questions of some patients, beside another one."""
    asked = questions(loaded(str(MODEL)), horizon, changes, episodes)
    ours = BranchAndBound() if search == "branch_and_bound" else AStar()
    theirs = other()

    def quality(one: Sequence[Decision], other: Sequence[Decision]) -> Quality:
        values = [float(np.mean([each.value for each in found])) for found in (one, other)]
        return Quality("mean return (proven optimal)", *values, 1e-6)

    return Contest(
        lambda: [ours(each) for each in asked],
        lambda: [theirs(each) for each in asked],
        quality,
        repeat=3,
        facts=lambda one, other: {"ours_expanded": expanded(one), "theirs_expanded": expanded(other)},
    )


def expanded(decisions: Sequence[Decision]) -> float:
    """The mean number of expanded nodes; all answers have to be proven.

    Raises:
        RuntimeError: if one is not.
    """
    if not all(each.trace["proven"] for each in decisions):
        raise RuntimeError("a search ended without a proof: its time is no time of an answer")
    return float(np.mean([each.trace["expanded"] for each in decisions]))
