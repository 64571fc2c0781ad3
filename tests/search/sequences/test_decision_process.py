"""The process: rewards folded into one product, exact rewards to go, counted evaluations."""

import pytest
import torch

from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.decision_process import (
    NONE_FOUND,
    PROVEN_BEST,
    CounterfactualProcess,
    Effort,
    branching_factor,
    sequence_decision,
)
from tests.toys.episodes import equation_episode, transition_episode


@pytest.mark.parametrize("seed", range(3))
def test_rewards_are_the_objectives(seed: int) -> None:
    for objective in (transition_episode(seed), equation_episode(seed), equation_episode(seed, acts=False)):
        states = torch.randn(9, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        torch.testing.assert_close(
            CounterfactualProcess(objective, Effort()).rewards(states, 0),
            objective.rewards(states, 0),
            rtol=0,
            atol=1e-12,
        )


def test_a_logarithm_is_not_folded() -> None:
    objective = transition_episode(0)
    objective.surrogate.rescale.logged[0] = True
    objective = type(objective)(objective.surrogate, objective.case, LinearReward({"x0": -1.0}), 2)
    states = torch.rand(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(
        CounterfactualProcess(objective, Effort()).rewards(states, 0),
        objective.rewards(states, 0),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("make", [transition_episode, equation_episode])
def test_the_observed_path_is_worth_the_outcome(make) -> None:
    objective, effort = make(0), Effort()
    process = CounterfactualProcess(objective, effort)
    for time in range(5):
        ahead = objective.rewards(objective.trajectory.states[time:])
        expected = ahead.gather(-1, objective.observed[time:, None]).sum() if process.acts else ahead.sum()
        assert float(process.to_go(objective.trajectory.states[time : time + 1], time)) == pytest.approx(
            float(expected), abs=1e-10
        )
    assert effort.network_evaluations == 4 + 3 + 2 + 1


def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = transition_episode(0, levels=4)
    states = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = CounterfactualProcess(objective, Effort())
    expected = whole.keep(states, 1), whole.branch(states, 1), whole.to_go(states, 1)
    monkeypatch.setattr("rehearsal_torch.search.sequences.decision_process.ROWS", 7)
    effort = Effort()
    process = CounterfactualProcess(objective, effort)
    for one, other in zip(
        (process.keep(states, 1), process.branch(states, 1), process.to_go(states, 1)), expected, strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert effort.network_evaluations == 50 + 150 + 150


@pytest.mark.parametrize(
    ("gap", "by_hand", "reason"),
    [(0.0, False, PROVEN_BEST), (None, False, NONE_FOUND), (1.0, False, NONE_FOUND), (None, True, "")],
)
def test_what_is_said_of_better_sequences_is_what_is_known(gap, by_hand: bool, reason: str) -> None:
    objective = equation_episode(0)
    made = sequence_decision(
        objective, objective.observed, Effort(), Budget(), search="own", gap=gap, by_hand=by_hand
    )
    assert (made.status, made.reason) == ("no_action", reason)


@pytest.mark.parametrize("factor", [1.0, 2.0, 3.5, 900.0])
@pytest.mark.parametrize("horizon", [1, 3, 8])
def test_the_branching_factor_is_that_of_a_full_tree(factor, horizon):
    nodes = sum(factor**power for power in range(horizon + 1))
    assert branching_factor(nodes, horizon) == pytest.approx(factor, rel=1e-9)
