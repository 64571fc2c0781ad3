"""Single changes against one replay each."""

import pytest
import torch

from rehearsal_torch.search.sequences.baselines import single_changes
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from tests.toys.episodes import equation_episode, transition_episode
from tests.toys.scored_episodes import scored_episode


@pytest.mark.parametrize("seed", range(4))
def test_each_entry_is_the_return_of_its_sequence(seed: int) -> None:
    for objective in (
        transition_episode(seed, fixed=(1,)),
        equation_episode(seed, fixed=(2,)),
        equation_episode(seed, acts=False),
    ):
        sequence = (objective.observed + seed) % objective.actions
        effort = Effort()
        values = single_changes(CounterfactualProcess(objective, effort), sequence)
        assert values.shape == (len(sequence), objective.actions)
        for time in range(len(sequence)):
            for action in range(objective.actions):
                changed = sequence.clone()
                changed[time] = action
                expected = float(objective(changed)) if time in objective.open.tolist() else -torch.inf
                assert float(values[time, action]) == pytest.approx(expected, abs=1e-10)
        # A states start at each of the T - 1 steps and move on to the end.
        T, A = objective.horizon, objective.actions
        assert effort.network_evaluations == A * T * (T - 1) // 2


@pytest.mark.parametrize("dosed", [False, True])
def test_entries_of_an_ensemble_are_those_of_its_worst_member(dosed: bool) -> None:
    objective = scored_episode(1, members=3, dosed=dosed, use="worst")
    values = single_changes(CounterfactualProcess(objective, Effort()), objective.observed)
    for time in objective.open.tolist():
        for action in objective.candidate_actions(time).tolist():
            changed = objective.observed.clone()
            changed[time] = action
            worst = float(objective.member_returns(changed).min())
            assert float(values[time, action]) == pytest.approx(worst, abs=1e-10)
