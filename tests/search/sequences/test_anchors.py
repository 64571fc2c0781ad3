"""Anchor sets: what is in them, and how they are drawn."""

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.lipschitz_bound import (
    FacilityLocation,
    MonteCarlo,
    farthest_points,
    value_constants,
)
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode, transition_model


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


def test_one_sequence_one_state_and_the_documented_defaults_are_taken() -> None:
    plain = MonteCarlo()
    assert (plain.samples, plain.size, plain.weights, plain.seed) == (100, None, "lipschitz", 0)
    facilities = FacilityLocation(torch.ones(1, 2))
    assert (facilities.size, facilities.seed) == (500, 0)
    objective = transition_episode(1, 4, 2)
    assert [len(states) for states in made(objective, FacilityLocation(torch.ones(3, 2), 1))] == [1] * 4
    assert [len(states) for states in made(objective, MonteCarlo(None, 1))] == [1] * 4
    assert sum(len(states) for states in made(objective, MonteCarlo(1))) <= 2 * 4


def test_each_sequence_is_replayed_once() -> None:
    objective, effort = transition_episode(1, 6, 2), Effort()
    MonteCarlo(5)(CounterfactualProcess(objective, effort), value_constants(objective))
    # The observed sequence and five drawn ones move on five times.
    assert effort.network_evaluations == 6 * 5


def test_no_sequence_more_than_needed_is_taken() -> None:
    objective = transition_episode(2, 6, 3, levels=5)
    totals = [sum(map(len, made(objective, MonteCarlo(None, size)))) for size in range(1, 30)]
    assert totals[0] == 6
    for size, total in enumerate(totals, 1):
        assert total == min(each for each in totals if each >= size)


ACTIONS = 50_000


def told_episode(changes: int, fixed: tuple[int, ...] = ()) -> CounterfactualReturn:
    """Many actions, of which 0 was taken throughout; a state tells the four actions before it."""
    model = KnownTruth(4, ACTIONS, lambda x, a: torch.cat([x[:, 1:], a.unsqueeze(-1).to(x)], -1), 1.0)
    episode = model.episode("told", torch.zeros(5, 4, dtype=torch.float64), torch.zeros(5).long())
    mask = torch.zeros(5, dtype=torch.bool)
    mask[list(fixed)] = True
    return CounterfactualReturn(model, EpisodeCase(episode, mask), LinearReward({"x0": 1.0}), changes)


def drawn_sequences(
    objective: CounterfactualReturn, anchors: MonteCarlo, lipschitz: torch.Tensor
) -> torch.Tensor:
    """The drawn sequences but for the observed one: hardly any is drawn twice."""
    return anchors(CounterfactualProcess(objective, Effort()), lipschitz)[-1][1:]


@pytest.mark.parametrize(("changes", "fixed", "most"), [(1, (), 1), (3, (), 3), (3, (1, 2), 2), (9, (), 4)])
def test_up_to_k_open_steps_change_to_any_action(changes: int, fixed: tuple[int, ...], most: int) -> None:
    uniform = MonteCarlo(1500, weights="uniform")
    drawn = drawn_sequences(told_episode(changes, fixed), uniform, torch.ones(5))
    moved = drawn != 0
    numbers = moved.sum(-1).bincount(minlength=5)
    assert int(numbers[most + 1 :].sum()) == 0
    # Each number of changes is as likely: 1500 / most are expected, and five standard deviations allowed.
    assert (numbers[1 : most + 1] - 1500 / most).abs().max() < 100
    assert not moved[:, list(fixed)].any()
    chosen = drawn[moved]
    assert (chosen.min(), chosen.max()) == (pytest.approx(1, abs=500), pytest.approx(ACTIONS, abs=500))
    assert float(chosen.mean()) == pytest.approx(ACTIONS / 2, rel=0.06)
    shares = moved.sum(0)[[step for step in range(4) if step not in fixed]] / moved.sum()
    assert shares.tolist() == pytest.approx([1 / len(shares)] * len(shares), abs=0.06)


def test_steps_change_in_proportion_to_their_constants() -> None:
    lipschitz = torch.tensor([8.0, 4.0, 2.0, 2.0, 7.0], dtype=torch.float64)
    for weights, shares in (("lipschitz", [0.5, 0.25, 0.125, 0.125]), ("uniform", [0.25] * 4)):
        drawn = drawn_sequences(told_episode(1), MonteCarlo(1500, weights=weights), lipschitz)
        assert (drawn != 0).double().mean(0).tolist() == pytest.approx(shares, abs=0.06)


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
