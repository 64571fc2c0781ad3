"""Exhaustive search against a product over all sequences."""

from itertools import product

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.sequences.exhaustive import Exhaustive, tree_size
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode
from tests.toys.scored_episodes import scored_episode


def every_sequence(objective: CounterfactualReturn) -> torch.Tensor:
    sequences = torch.tensor(list(product(range(objective.actions), repeat=len(objective.observed))))
    differs = sequences != objective.observed
    shut = torch.ones(len(objective.observed), dtype=torch.bool)
    shut[objective.open] = False
    return sequences[(differs.sum(-1) <= objective.changes) & ~differs[:, shut].any(-1)]


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_all_sequences(seed: int) -> None:
    fixed = (1,) if seed % 3 == 0 else ()
    for objective in (
        transition_episode(seed, 5, seed % 4, levels=2 + seed % 3, fixed=fixed),
        equation_episode(seed, 4, seed % 4, actions=1 + seed % 4, fixed=fixed, acts=seed % 2 == 0),
    ):
        values = objective(every_sequence(objective))
        decision = Exhaustive(chunk=1 + seed)(objective)
        assert decision.value == pytest.approx(float(values.max()), abs=1e-9)
        assert decision.trace["proven"]


def test_every_node_is_evaluated_once() -> None:
    objective = transition_episode(0, 6, 3, levels=4)
    evidence = Exhaustive(chunk=7)(objective).trace
    # Nodes at time t that made l changes: choose the l steps, then one of 3 other actions at each.
    layers = [
        1,
        1 + 3,
        1 + 2 * 3 + 9,
        1 + 3 * 3 + 3 * 9 + 27,
        1 + 4 * 3 + 6 * 9 + 4 * 27,
        1 + 5 * 3 + 10 * 9 + 10 * 27,
    ]
    assert tree_size(objective) == layers
    assert evidence["nodes"] == evidence["generated"] == sum(layers)
    assert evidence["network_evaluations"] == sum(layers) - 1
    assert evidence["expanded"] == sum(layers[:-1])


def test_the_benchmark_tree_has_the_documented_size() -> None:
    assert sum(tree_size(transition_episode(0, 12, 3, levels=5, drugs=2))) == 6_971_196


@pytest.mark.parametrize("chunk", [1, 3, 50, 10_000])
def test_blocks_do_not_change_the_answer(chunk: int) -> None:
    objective = transition_episode(2, 6, 3, levels=3)
    decision, reference = Exhaustive(chunk=chunk)(objective), Exhaustive()(objective)
    assert decision.actions() == reference.actions()
    assert decision.trace["network_evaluations"] == reference.trace["network_evaluations"]


@pytest.mark.parametrize("dosed", [False, True])
def test_the_best_of_all_sequences_for_the_worst_of_some_members(dosed: bool) -> None:
    for seed, chunk in ((1, 2), (2, 100)):
        objective = scored_episode(seed, 4, 2, 3, members=2, dosed=dosed, use="worst", fixed=(1,))
        decision = Exhaustive(chunk=chunk)(objective)
        assert decision.value == pytest.approx(float(objective(every_sequence(objective)).max()), abs=1e-9)
        assert decision.trace["proven"]


def test_scores_that_jump_are_proven() -> None:
    found = Exhaustive()(scored_episode(1, 4, 2)).trace
    assert (found["gap"], found["proven"]) == (0.0, True)


def test_a_tree_as_large_as_the_limit_is_searched() -> None:
    objective = transition_episode(0, 6, 2, levels=2)
    assert Exhaustive(node_limit=41)(objective).trace["nodes"] == 41
    with pytest.raises(ValueError, match=r"node_limit=40 nodes; got 41 .*raise node_limit"):
        Exhaustive(node_limit=40)(objective)


def test_no_time_expands_nothing_and_says_so() -> None:
    objective = transition_episode(2, 7, 3, levels=4)
    decision = Exhaustive(budget_s=1e-9)(objective)
    assert (decision.alteration, decision.value) == (None, objective.outcome())
    assert (decision.trace["expanded"], decision.trace["generated"]) == (0, 1)
    assert (decision.trace["gap"], decision.trace["proven"]) == (None, False)
    assert decision.reason.text == "stopped after budget_s=1e-09; the sequences not evaluated may be better"
    assert decision.trace["nodes"] == sum(tree_size(objective))


def test_undefined_sequences_lose() -> None:
    def lost(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.where((a == 2).unsqueeze(-1), torch.nan, x + a.unsqueeze(-1))

    model = KnownTruth(1, 3, lost, 1.0)
    episode = model.episode("lost", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 2)
    decision = Exhaustive()(objective)
    assert (decision.value, decision.actions()) == (5.0, {0: 1, 1: 1})
