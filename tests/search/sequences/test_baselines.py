"""Greedy, random and single changes, and the k best: what each finds, and what it cannot see."""

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.non_finite import UNDEFINED
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.search import Budget
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
from rehearsal_torch.seeding import stream
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode
from tests.toys.scored_episodes import scored_episode


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
    stopped = decision.trace["stopped"].partition(";")[0]
    assert decision.reason.text == stopped == "stopped after budget_s=1e-09"
    one = transition_episode(2, 6, 1, levels=4)
    assert decision.value == pytest.approx(GreedyChanges()(one).value)
    made = greedy_sequence(CounterfactualProcess(objective, Effort()), Budget(1e-9))
    assert torch.equal(made, objective.sequence(decision))
    assert len(GreedyChanges()(objective).actions()) > 1
    assert GreedyChanges()(objective).reason is None


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


def test_greedy_is_better_on_average() -> None:
    objectives = [transition_episode(seed, 6, 3, levels=4) for seed in range(20)]
    greedy, top = (
        sum(search(objective).value for objective in objectives) for search in (GreedyChanges(), TopK())
    )
    assert greedy > top


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


def test_seed_and_identity_decide() -> None:
    def actions(identity: int, seed: int) -> dict[int, int]:
        return RandomChanges(seed=seed)(transition_episode(identity, 8, 3, levels=5)).actions()

    assert actions(1, 0) == actions(1, 0)
    assert actions(1, 0) != actions(1, 1)
    assert stream(0, "a").initial_seed() != stream(0, "b").initial_seed()
    assert stream(0, "a").initial_seed() == stream(0, "a").initial_seed()
    before = torch.get_rng_state()
    actions(2, 0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_one_draw_may_be_worse_than_what_was_done_and_many_are_better() -> None:
    objectives = [transition_episode(seed, 6, 2) for seed in range(20)]
    one = [RandomChanges()(objective) for objective in objectives]
    many = [RandomChanges(count=400)(objective) for objective in objectives]
    assert min(decision.improvement for decision in one) < 0
    assert sum(decision.value for decision in many) > sum(decision.value for decision in one)
    assert all(
        decision.value <= Exhaustive()(objective).value + 1e-9
        for decision, objective in zip(many, objectives, strict=True)
    )


def test_every_step_and_every_other_action_is_drawn() -> None:
    """Also where some of the others may not be chosen: these are never drawn."""
    for actions, shut in ((2, None), (4, None), (4, 1)):
        objective, seen = equation_episode(0, 3, 1, actions=actions), set()
        choices = objective.choices.clone()
        if shut is not None:
            choices[:, shut] = False
            objective.__dict__["choices"] = choices
        for seed in range(40 if actions > 2 else 12):
            seen |= set(RandomChanges(seed=seed)(objective).actions().items())
        assert seen == {tuple(place) for place in choices.nonzero().tolist()}


def test_one_draw_is_the_default_and_draws_are_counted() -> None:
    objective = transition_episode(1, 6, 2, levels=4)
    plain = RandomChanges()
    assert (plain.count, plain.seed) == (1, 0)
    for count in (1, 7):
        trace = RandomChanges(count)(objective).trace
        assert (trace["draws"], trace["generated"], trace["network_evaluations"]) == (count, count, count * 5)
        assert (trace["gap"], trace["proven"], trace["expanded"]) == (None, False, 0)
    assert RandomChanges(7)(transition_episode(0, 5, 0)).trace["draws"] == 7


def test_a_loss_is_the_answer_with_a_warning() -> None:
    found = [RandomChanges()(transition_episode(seed, 6, 2)) for seed in range(8)]
    losses = [decision for decision in found if decision.improvement < 0]
    assert losses
    for decision in losses:
        assert decision.alteration is not None
        assert "no better than the observed actions" in decision.warnings[-1]


def test_draws_that_are_all_undefined_leave_what_was_done() -> None:
    def lost(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.where((a > 0).unsqueeze(-1), torch.nan, x)

    model = KnownTruth(1, 2, lost, 1.0)
    episode = model.episode("lost", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 1)
    decision = RandomChanges(5)(objective)
    assert (decision.alteration, decision.value) == (None, 0.0)
    assert decision.reason.text == (
        f"{UNDEFINED}: none of 5 random sequences can be compared with the observed one"
    )
