"""Anchor sets: what is in them, and how they are drawn."""

import pytest
import torch

from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.search.sequences.astar import value_constants
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from reproduction.sepsis.facility_location import FacilityLocation, farthest_points
from tests.toys.episodes import equation_episode, transition_episode, transition_model


def made(objective, anchors):
    return anchors(CounterfactualProcess(objective, Effort()), value_constants(objective))


def test_farthest_points_by_hand() -> None:
    points = torch.tensor([[0.0], [1.0], [10.0], [4.0], [10.0]])
    assert farthest_points(points, 3).tolist() == [0, 2, 3]
    assert farthest_points(points, 9).tolist() == [0, 2, 3, 1]


def test_farthest_points_cover_within_twice_any_choice() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(200, 3, generator=generator)

    def radius(chosen: torch.Tensor) -> float:
        return float(torch.cdist(points, points[chosen]).amin(1).max())

    ours = radius(farthest_points(points, 12))
    others = [radius(torch.randperm(200, generator=generator)[:12]) for _ in range(300)]
    assert ours <= 2 * min(others)
    assert ours < sorted(others)[30]


def test_facilities_come_from_a_tensor_or_a_table() -> None:
    objective = transition_episode(0)
    episodes = [transition_episode(seed, 6).case.episode for seed in range(5)]
    table = transitions(
        [Episode(str(index), episode.names, episode.values) for index, episode in enumerate(episodes)]
    )
    pool = torch.cat([transition_model(0).trajectory(episode).states[:-1] for episode in episodes])
    by_table, by_tensor = (made(objective, FacilityLocation(source, 7))[2] for source in (table, pool))
    assert by_table.shape == (7, 2)
    torch.testing.assert_close(by_table, by_tensor, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="expected a tensor of states for a KnownTruth"):
        made(equation_episode(0), FacilityLocation(table, 7))


def test_facilities_are_the_farthest_points_from_a_first_one_by_the_seed() -> None:
    objective = transition_episode(0)
    pool = torch.randn(40, 2, generator=torch.Generator().manual_seed(1))
    firsts = set()
    for seed in range(6):
        sets = made(objective, FacilityLocation(pool, 7, seed))
        assert all(states is sets[0] for states in sets)
        assert sets[0].dtype == torch.float64
        first = int((pool == sets[0][0]).all(-1).nonzero())
        firsts.add(first)
        assert torch.equal(sets[0], pool[farthest_points(pool.double(), 7, first)].double())
        assert torch.equal(sets[0], made(objective, FacilityLocation(pool, 7, seed))[0])
    assert len(firsts) > 3


def test_a_table_is_scaled_anew_for_another_model() -> None:
    drawn = [transition_episode(seed, 6) for seed in (0, 1)]
    table = transitions([drawn[0].case.episode])
    anchors = FacilityLocation(table, 9)
    for objective in (*drawn, drawn[0]):
        scaled = objective.surrogate.trajectory(drawn[0].case.episode).states[:-1]
        found = made(objective, anchors)[1]
        assert found.shape == (5, 2)
        assert torch.cdist(found, scaled).amin(1).max() < 1e-6


@pytest.mark.parametrize(("states", "size"), [(0, 3), (4, 0)])
def test_no_states_and_no_size_are_refused(states, size):
    with pytest.raises(ValueError, match="expected a size"):
        FacilityLocation(torch.ones(states, 2), size)


def test_one_state_is_enough():
    objective = transition_episode(1, 4, 2)
    assert [len(states) for states in made(objective, FacilityLocation(torch.ones(3, 2), 1))] == [1] * 4
