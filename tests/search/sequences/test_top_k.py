"""Top k: the best single changes, each at a step of its own."""

import pytest
import torch

from rehearsal_torch.search.sequences.baselines import GreedyChanges, TopK
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import transition_episode


@pytest.mark.parametrize("seed", range(10))
def test_the_k_best_steps_change_to_their_best_actions(seed: int) -> None:
    objective = transition_episode(seed, 6, 3, levels=4)
    gains = []
    for time in range(5):
        sequences = objective.observed.repeat(4, 1)
        sequences[:, time] = torch.arange(4)
        best = objective(sequences).max(0)
        gains.append((float(best.values) - objective.outcome(), time, int(best.indices)))
    joined = objective.observed.clone()
    for gain, time, action in sorted(gains, reverse=True)[:3]:
        if gain > 0:
            joined[time] = action
    expected = joined if float(objective(joined)) > objective.outcome() else objective.observed
    assert objective.sequence(TopK()(objective)).tolist() == expected.tolist()


def test_one_change_is_the_optimum() -> None:
    for seed in range(10):
        objective = transition_episode(seed, 6, 1, levels=4)
        assert TopK()(objective).value == pytest.approx(Exhaustive()(objective).value, abs=1e-9)


def test_greedy_is_better_on_average() -> None:
    objectives = [transition_episode(seed, 6, 3, levels=4) for seed in range(20)]
    greedy, top = (
        sum(search(objective).value for objective in objectives) for search in (GreedyChanges(), TopK())
    )
    assert greedy > top
