"""Anchor sets: what is in them, and how they are drawn."""

import pytest
import torch

from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.lipschitz_bound import (
    FacilityLocation,
    MonteCarlo,
    farthest_points,
    value_constants,
)
from tests.toys.episodes import equation_episode, transition_episode, transition_model


def made(objective, anchors):
    return anchors(CounterfactualProcess(objective, Effort()), value_constants(objective))


@pytest.mark.parametrize("weights", ["lipschitz", "uniform"])
def test_sampled_anchors_are_reachable_and_start_with_the_observed_state(weights: str) -> None:
    objective = transition_episode(1, 5, 2, levels=3)
    sets = made(objective, MonteCarlo(400, weights=weights))
    start, layer = objective.trajectory.states[:1], {0: objective.trajectory.states[:1]}
    for time, states in enumerate(sets):
        assert torch.equal(states[0], objective.trajectory.states[time])
        assert len(torch.unique(states, dim=0)) == len(states)
        reachable = torch.cat(list(layer.values()))
        assert torch.cdist(states, reachable).amin(1).max() < 1e-7
        if time < 3:
            # 400 draws of at most two changes leave no reachable state out at the first steps.
            assert len(states) == len(reachable)
        if time == 4:
            break
        ahead: dict[int, torch.Tensor] = {}
        for spent, here in layer.items():
            ahead[spent] = torch.cat(
                [ahead.get(spent, start[:0]), objective.trajectory.step(here, time, objective.observed[time])]
            )
            if spent < 2:
                ahead[spent + 1] = torch.cat(
                    [
                        ahead.get(spent + 1, start[:0]),
                        objective.trajectory.branch(here, time, objective.candidate_actions(time)).flatten(
                            0, 1
                        ),
                    ]
                )
        layer = ahead


def test_the_size_is_met_and_not_passed_by_more_than_one_sequence() -> None:
    objective = transition_episode(1, 8, 3, levels=5)
    for size in (1, 8, 60, 500):
        sets = made(objective, MonteCarlo(None, size))
        assert size <= sum(map(len, sets)) < size + 8 or size < 8


def test_an_impossible_size_ends() -> None:
    sets = made(transition_episode(1, 3, 1, levels=2), MonteCarlo(None, 10_000))
    assert [len(states) for states in sets] == [1, 2, 3]


def test_lipschitz_weights_prefer_early_steps() -> None:
    objective = equation_episode(3, 8, 1, width=3)
    assert float(value_constants(objective)[0]) > 3 * float(value_constants(objective)[6])
    drawn = {}
    for weights in ("lipschitz", "uniform"):
        sets = made(objective, MonteCarlo(6, weights=weights))
        drawn[weights] = sum(len(states) for states in sets)
    # An early change makes a new state at every later step, so that early changes make more anchors.
    assert drawn["lipschitz"] > drawn["uniform"]


def test_draws_belong_to_the_episode_and_the_seed() -> None:
    def sizes(identity: int, seed: int) -> list[list[float]]:
        return [
            states.tolist()
            for states in made(transition_episode(identity, 6, 3, levels=5), MonteCarlo(5, seed=seed))
        ]

    assert sizes(0, 0) == sizes(0, 0)
    assert sizes(0, 0) != sizes(0, 1)


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


@pytest.mark.parametrize(
    "build",
    [
        lambda: MonteCarlo(None, None),
        lambda: MonteCarlo(5, 5),
        lambda: MonteCarlo(0),
        lambda: MonteCarlo(None, 0),
        lambda: MonteCarlo(5, weights="linear"),
        lambda: FacilityLocation(torch.empty(0, 2), 3),
        lambda: FacilityLocation(torch.ones(4, 2), 0),
    ],
)
def test_senseless_arguments_are_refused(build) -> None:
    with pytest.raises(ValueError, match="expected"):
        build()
