"""Greedy changes: a local optimum, and what it cannot see."""

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.baselines import (
    GreedyChanges,
    RandomChanges,
    TopK,
    greedy_sequence,
    nothing_open,
    single_changes,
)
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode


@pytest.mark.parametrize("seed", range(10))
def test_no_single_change_improves_the_answer(seed: int) -> None:
    objective = transition_episode(seed, 6, 2, levels=4)
    decision = GreedyChanges()(objective)
    sequence = objective.sequence(decision)
    for time in range(len(sequence)):
        for action in range(objective.actions):
            other = sequence.clone()
            other[time] = action
            if int((other != objective.observed).sum()) <= objective.changes:
                assert float(objective(other)) <= decision.value + 1e-9
    assert decision.value <= Exhaustive()(objective).value + 1e-9


def test_one_change_is_the_optimum() -> None:
    for seed in range(10):
        objective = transition_episode(seed, 6, 1, levels=4)
        assert GreedyChanges()(objective).value == pytest.approx(Exhaustive()(objective).value, abs=1e-9)


def test_two_changes_that_only_help_together_are_missed() -> None:
    """x_2 = a_0 a_1 - 0.1 (a_0 + a_1) with a_0 = a_1 = 0 observed: each change alone costs, both together
    pay."""
    model = KnownTruth(2, 2, lambda x, a: torch.stack([x[:, 1] * a - 0.1 * a + x[:, 0], a.to(x)], -1), None)
    episode = model.episode(
        "together", torch.zeros(3, 2, dtype=torch.float64), torch.zeros(3, dtype=torch.long)
    )
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 2)
    assert GreedyChanges()(objective).alteration is None
    assert Exhaustive()(objective).value == pytest.approx(0.7)


def test_a_changed_step_may_change_again() -> None:
    """Alone, action 1 at step 0 is best; after the change at step 1, action 2 is better there."""

    def law(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        first = torch.where(a == 1, 1.0, torch.where(a == 2, 0.9, 0.0)).to(x)
        opened = x[:, 1] * 0 + (a == 2).to(x)
        late = torch.where(a == 1, 0.2 + 0.5 * x[:, 1], 0.0)
        step = x[:, 2]
        return torch.stack(
            [
                torch.where(step == 0, first, x[:, 0] + late),
                torch.where(step == 0, opened, x[:, 1]),
                step + 1,
            ],
            -1,
        )

    model = KnownTruth(3, 3, law, None)
    states = torch.tensor([[0.0, 0, 0], [0.0, 0, 1], [0.0, 0, 2]], dtype=torch.float64)
    objective = CounterfactualReturn(
        model,
        EpisodeCase(model.episode("again", states, torch.zeros(3, dtype=torch.long))),
        LinearReward({"x0": 1.0}),
        2,
    )
    decision = GreedyChanges()(objective)
    assert decision.actions() == {0: 2, 1: 1}
    assert decision.value == pytest.approx(Exhaustive()(objective).value)


SEARCHES = [GreedyChanges, TopK, RandomChanges]


@pytest.mark.parametrize("search", SEARCHES)
def test_where_nothing_is_open_what_was_done_is_proven(search) -> None:
    for objective in (
        transition_episode(0, 5, 0),
        transition_episode(0, 3, 2, fixed=(0, 1, 2)),
        equation_episode(0, actions=1),
    ):
        assert nothing_open(objective)
        decision = search()(objective)
        assert (decision.alteration, decision.value) == (None, objective.outcome())
        assert (decision.trace["gap"], decision.trace["proven"]) == (0.0, True)
        assert (decision.trace["expanded"], decision.trace["generated"]) == (0, 0)
    objective = transition_episode(0, 5, 1, fixed=(0, 1, 2))
    assert not nothing_open(objective)
    assert search()(objective).trace["gap"] is None


@pytest.mark.parametrize("search", SEARCHES)
def test_a_change_without_effect_is_none(search) -> None:
    decision = search()(transition_episode(0, 5, 2, spread=0.0))
    if search is not RandomChanges:
        assert decision.alteration is None
    assert decision.value == pytest.approx(transition_episode(0, 5, 2, spread=0.0).outcome(), abs=1e-12)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_budget_that_is_no_time_is_refused(search) -> None:
    with pytest.raises(ValueError, match="expected a budget_s above 0"):
        search(budget_s=0.0)
    assert search().budget_s is None


def test_each_round_expands_one_sequence_and_generates_its_neighbours() -> None:
    objective = transition_episode(2, 6, 3, levels=4, fixed=(1,))
    effort, process = Effort(), CounterfactualProcess(objective, Effort())
    sequence = greedy_sequence(CounterfactualProcess(objective, effort))
    rounds = effort.expanded
    # No step is changed twice here: each change is a round, and a last one finds none.
    assert rounds == int((sequence != objective.observed).sum()) + 1
    assert rounds > 1
    # At each of the four steps that may change, the three others and what was done.
    assert effort.generated == rounds * 4 * 4
    assert int(torch.isfinite(single_changes(process, objective.observed)).sum()) == 4 * 4
    top = TopK()(objective).trace
    assert (top["expanded"], top["generated"]) == (1, 16)


def test_a_budget_ends_the_search_after_a_round() -> None:
    objective = transition_episode(2, 6, 3, levels=4)
    decision = GreedyChanges(budget_s=1e-9)(objective)
    assert len(decision.actions()) == 1
    assert decision.reason == decision.trace["stopped"].partition(";")[0] == "stopped after budget_s=1e-09"
    one = transition_episode(2, 6, 1, levels=4)
    assert decision.value == pytest.approx(GreedyChanges()(one).value)
    made = greedy_sequence(CounterfactualProcess(objective, Effort()), Budget(1e-9))
    assert torch.equal(made, objective.sequence(decision))
    assert len(GreedyChanges()(objective).actions()) > 1
    assert GreedyChanges()(objective).reason == ""
