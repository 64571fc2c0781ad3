"""Anchor sets: what is in them, and how they are drawn."""

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.lipschitz_bound import (
    MonteCarlo,
    value_constants,
)
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode


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


@pytest.mark.parametrize(
    "build",
    [
        lambda: MonteCarlo(None, None),
        lambda: MonteCarlo(5, 5),
        lambda: MonteCarlo(0),
        lambda: MonteCarlo(None, 0),
        lambda: MonteCarlo(5, weights="linear"),
    ],
)
def test_senseless_arguments_are_refused(build) -> None:
    with pytest.raises(ValueError, match="expected"):
        build()


def test_one_sequence_one_state_and_the_documented_defaults_are_taken() -> None:
    plain = MonteCarlo()
    assert (plain.samples, plain.size, plain.weights, plain.seed) == (100, None, "lipschitz", 0)
    objective = transition_episode(1, 4, 2)
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
