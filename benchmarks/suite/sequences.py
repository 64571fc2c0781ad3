"""Rows: optimal action sequences, beside the published A*.

The model is the published one of the sepsis cohort (`tests/fixtures/sepsis_published`); the questions are
those of three held-out patients, with |A| = 25 actions a step and at most k changes in T steps. The
reference is A* as printed (Algorithm 2; pooled anchors, Eq. 11 for each child, one node at a time), in this
package's own implementation. All prove their answers optimal.

Enumeration would visit some (T |A|)^k / k! sequences: the exponent in T is k for it. In k growth is
exponential: the factor by which one more change multiplies the time is given in place of an exponent. For
longer T, where A* as published takes minutes, the reference is this package's own A*; beyond 20 steps
patients are simulated for longer.

The rows with k = 8 ask for a proof in each of twenty episodes, without a limit of nodes: the processor time
of every episode is recorded, to be held against `MINUTE`. There is no exact reference for them: beside them
stand greedy changes, which prove nothing and show what a proof costs.

Source: Tsirtsis and Gomez-Rodriguez (2023), Algorithm 2.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.search import loaded, questions
from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from tests.toys.published_astar import published

MODEL = Path(__file__).parents[2] / "tests" / "fixtures" / "sepsis_published"
HORIZONS, LONGER, CHANGES, EPISODES = (6, 8, 12), (12, 20, 30, 40), (1, 2, 3), 3
PEER, OWN = "A* as published (own implementation)", "A* of this package"
PROVEN, ASKED, MINUTE = (30, 40), 20, 60.0
# Seconds of the clock after which a search of these rows ends without a proof, however busy the machine is.
CLOCK = 600.0
GREEDY = "greedy changes, no proof"
NO_PROOF = "ours proves that no sequence is better; theirs proves nothing"


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
    for steps in (6,) if small else PROVEN:
        make = partial(proofs, steps, 3, 2) if small else partial(proofs, steps, 8, ASKED)
        yield Job(f"proofs, k = 8, {ASKED} episodes", GREEDY, "T", steps, make, NO_PROOF)


def against(
    horizon: int, changes: int, episodes: int, search: str, other: Callable[[], AStar] = published
) -> Contest:
    """A search of the package on the questions of some patients, beside another one."""
    asked = questions(loaded(str(MODEL)), horizon, changes, episodes)
    ours = BranchAndBound() if search == "branch_and_bound" else AStar()
    theirs = other()

    def quality(one: Sequence[Decision], other: Sequence[Decision]) -> Quality:
        because = "both are proven up to 1e-9 of the return"
        return Quality("mean return (proven optimal)", mean(one), mean(other), 1e-6, because)

    return Contest(
        lambda: [ours(each) for each in asked],
        lambda: [theirs(each) for each in asked],
        quality,
        repeat=3,
        facts=lambda one, other: {"ours_expanded": expanded(one), "theirs_expanded": expanded(other)},
    )


def proofs(horizon: int, changes: int, episodes: int) -> Contest:
    """Branch and bound of some patients, with the processor seconds of each, beside greedy changes."""
    asked = questions(loaded(str(MODEL)), horizon, changes, episodes)
    bounded, greedy, spent = BranchAndBound(budget_s=CLOCK), GreedyChanges(), list[list[float]]()

    def ours() -> list[Decision]:
        found, seconds = list[Decision](), list[float]()
        for each in asked:
            began = time.process_time()
            found.append(bounded(each))
            seconds.append(time.process_time() - began)
        spent.append(seconds)
        return found

    def quality(one: Sequence[Decision], other: Sequence[Decision]) -> Quality:
        because = "greedy changes may end below the optimum"
        return Quality("mean return", mean(one), mean(other), None, because)

    def facts(one: Sequence[Decision], _: Sequence[Decision]) -> dict[str, float]:
        proven = np.array([bool(each.trace["proven"]) for each in one])
        of_each, worst = np.median(spent, 0), np.max(spent, 0)
        return {
            "k": changes,
            "episodes": len(asked),
            "proven": int(proven.sum()),
            "within": int((proven & (worst <= MINUTE)).sum()),
            "median_s": float(np.median(of_each)),
            "largest_s": float(worst.max()),
        }

    return Contest(ours, lambda: [greedy(each) for each in asked], quality, repeat=2, facts=facts, units=0)


def mean(decisions: Sequence[Decision]) -> float:
    """The mean return."""
    return float(np.mean([each.value for each in decisions]))


def expanded(decisions: Sequence[Decision]) -> float:
    """The mean number of expanded nodes; all answers have to be proven.

    Raises:
        RuntimeError: if one is not.
    """
    if not all(each.trace["proven"] for each in decisions):
        raise RuntimeError("a search ended without a proof: its time is no time of an answer")
    return float(np.mean([each.trace["expanded"] for each in decisions]))
