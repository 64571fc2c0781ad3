"""Parts of a true gain: they sum to it, and each is nothing where it must be."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.evaluation.sepsis_truth import gain_parts
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.spaces.box import Alteration

PROBLEM = SepsisSimulated(patients=100, seed=0, horizon=10)


def doing(changed: dict[int, int]) -> Decision:
    names = tuple(action_name(step) for step in changed)
    alteration = Alteration(names, torch.tensor(list(changed.values()))) if changed else None
    return Decision(alteration, 0.0)


@pytest.mark.slow
@given(
    st.integers(0, PROBLEM.count() - 1), st.dictionaries(st.integers(0, 8), st.integers(0, 24), max_size=3)
)
def test_parts_sum_to_the_gain(index: int, changed: dict[int, int]) -> None:
    one_case, decision = PROBLEM.case(index), doing(changed)
    parts, score = gain_parts(PROBLEM, one_case.episode, decision), PROBLEM.score(one_case, decision)
    assert parts.total == pytest.approx(score["true_value"] - score["true_observed"])


def test_fluids_alone_are_not_scored() -> None:
    for index in range(PROBLEM.count()):
        observed = PROBLEM.levels.digitise(PROBLEM.case(index).episode.columns(PROBLEM.levels.names)).tolist()
        same_vasopressor = {2: observed[2] // 5 * 5 + (observed[2] + 1) % 5}
        doses = PROBLEM.trajectories_of_doses(PROBLEM.case(index).episode, doing(same_vasopressor))
        if torch.equal(doses[0][:, 0], doses[1][:, 0]):
            parts = gain_parts(PROBLEM, PROBLEM.case(index).episode, doing(same_vasopressor))
            assert parts.scoring == 0
            break
    else:
        pytest.fail("expected a patient whose third step has no vasopressor")


def test_a_vasopressor_given_to_the_untreated_costs_points_by_scoring() -> None:
    counted = 0
    for index in range(PROBLEM.count()):
        episode = PROBLEM.case(index).episode
        if (
            float(episode.columns(["max_dose_vaso"])[3, 0]) == 0
            and float(episode.columns(["MeanBP"])[3, 0]) >= 70
        ):
            assert gain_parts(PROBLEM, episode, doing({3: 20})).scoring == -4
            counted += 1
    assert counted > 3
