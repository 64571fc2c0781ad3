"""Lipschitz bounds: constants, refusals, and distances that are not too short."""

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.lipschitz_bound import LipschitzBound, UnboundedError, value_constants
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode, value


def test_constants_follow_the_recursion() -> None:
    objective = equation_episode(0, 4, acts=False)
    lipschitz = value_constants(objective, torch.tensor([2.0, 3.0, 5.0]))
    assert lipschitz.tolist() == [1 + 2 * (1 + 3 * (1 + 5)), 1 + 3 * (1 + 5), 1 + 5, 1]
    assert (
        value_constants(objective).tolist()
        == value_constants(objective, objective.trajectory.lipschitz()).tolist()
    )


def test_without_a_constant_there_is_no_bound() -> None:
    model = KnownTruth(1, 2, lambda x, a: x * x, None)
    episode = model.episode(
        "square", torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.long)
    )
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 1)
    with pytest.raises(UnboundedError, match=r"transition has no Lipschitz constant.*greedy_changes"):
        value_constants(objective)
    assert value_constants(objective, torch.ones(2)).tolist() == [3, 2, 1]
    objective.constant = torch.inf
    with pytest.raises(UnboundedError, match="reward has no finite"):
        value_constants(objective, torch.ones(2))
    with pytest.raises(UnboundedError):
        value_constants(equation_episode(0, 3), torch.tensor([1.0, torch.inf]))


def test_an_anchor_bounds_itself_by_its_own_value() -> None:
    """The distance of a state to itself is zero, also among more than the 25 anchors from which matrix
    products are used."""
    objective = transition_episode(0, 4, 2)
    process = CounterfactualProcess(objective, Effort())
    anchors = [
        100 + torch.randn(60, 2, generator=torch.Generator().manual_seed(time), dtype=torch.float64)
        for time in range(4)
    ]
    bound = LipschitzBound(process, anchors, value_constants(objective))
    for time in range(4):
        there = bound.interpolated(anchors[time], time, [0, 1, 2])
        assert (there <= bound.values[time] + 2 * bound.margin).all()


def test_exact_values_replace_bounds_where_the_path_is_fixed() -> None:
    objective = transition_episode(0, 5, 2, fixed=(3,))
    bound = LipschitzBound(
        CounterfactualProcess(objective, Effort()),
        list(objective.trajectory.states.unsqueeze(1)),
        value_constants(objective),
    )
    states = objective.trajectory.states + 0.3
    for time, spent in ((0, 2), (2, 2), (3, 0), (3, 1), (4, 0)):
        assert bound.fixed(time, spent)
        torch.testing.assert_close(
            bound.at(states, time, [spent])[:, 0], value(objective, states, time, spent), rtol=0, atol=1e-10
        )
    assert not bound.fixed(2, 1)


def test_bounds_hold_after_the_budget() -> None:
    objective = transition_episode(0, 4, 2)
    anchors = [
        torch.cat([state.unsqueeze(0), state + torch.ones(9, 2, dtype=torch.float64)])
        for state in objective.trajectory.states
    ]
    bound = LipschitzBound(
        CounterfactualProcess(objective, Effort()), anchors, value_constants(objective), budget=Budget(0.0)
    )
    assert [len(states) for states in bound.anchors] == [1, 1, 1, 10]
    states = objective.trajectory.states + 0.1
    for time in range(4):
        assert (bound.at(states, time, [0])[:, 0] >= value(objective, states, time, 0) - 1e-12).all()


@pytest.mark.parametrize("exact", [True, False])
def test_anchors_at_every_reachable_state_make_the_bounds_exact(exact: bool) -> None:
    """Sec. 4: with all states of the search graph as anchors, every penalty is zero."""
    for objective in (transition_episode(3, 5, 2), equation_episode(3, 4, 2, fixed=(1,))):
        trajectory, anchors = objective.trajectory, [objective.trajectory.states[:1]]
        for time in range(objective.horizon - 1):
            anchors.append(trajectory.branch(anchors[-1], time).flatten(0, 1))
        bound = LipschitzBound(
            CounterfactualProcess(objective, Effort()), anchors, value_constants(objective), exact
        )
        for time, states in enumerate(anchors):
            for spent in range(3):
                torch.testing.assert_close(
                    bound.values[time][:, spent], value(objective, states, time, spent), rtol=0, atol=1e-8
                )
