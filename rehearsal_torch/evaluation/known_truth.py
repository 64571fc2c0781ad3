"""Comparison of a run with a known ground truth: the rows of ``truth.csv``.

    optimise     accuracy of the noise recovered for a causal world, node by node (`noise_recovery`)
    look_back    decisions and learnt trajectories of the simulated cohort, compared with its true mechanism,
                 patient by patient (`truth_panel`)

Other problems know no truth beyond the score of each decision.

Source: Ren et al. (2025), Thm. 4.1; Tsirtsis and Gomez-Rodriguez (2023), Sec. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.evaluation.claimed_truth import SCORES, counterpart
from rehearsal_torch.evaluation.noise_recovery import recovery_rows
from rehearsal_torch.evaluation.truth_panel import truth_rows
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.round_line import decision_of
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble


def truth_table(
    problem: Problem, surrogate: Surrogate, lines: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Compares a run with the truth.

    Args:
        problem: The problem, which may know the truth.
        surrogate: The fitted model.
        lines: The lines of ``decisions.jsonl``.

    Returns:
        The rows; an empty list if the truth is not known.
    """
    if isinstance(problem, CausalWorld) and isinstance(surrogate, CausalModel):
        return [asdict(row) for row in recovery_rows(problem, surrogate)]
    if not isinstance(problem, SepsisSimulated) or not isinstance(
        surrogate, TransitionModel | TransitionEnsemble
    ):
        return []
    decisions, claims, changes = [], [], 0
    for line in lines:
        case = problem.case(line["index"])
        assert isinstance(case, EpisodeCase)
        decisions.append((case, decision_of(line)))
        asked = counterpart(line["trajectory"], problem.score(*decisions[-1]))
        claims.append(SCORES[asked] if asked else "reward")
        changes = max(changes, int(line["trajectory"]["changes"]))
    return [asdict(row) for row in truth_rows(surrogate, problem, decisions, changes, claims=claims)]
