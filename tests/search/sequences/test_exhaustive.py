"""Exhaustive search against a product over all sequences."""

from itertools import product

import pytest
import torch

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive, tree_size
from tests.toys.episodes import equation_episode, transition_episode


def every_sequence(objective: CounterfactualReturn) -> torch.Tensor:
    sequences = torch.tensor(list(product(range(objective.actions), repeat=len(objective.observed))))
    differs = sequences != objective.observed
    shut = torch.ones(len(objective.observed), dtype=torch.bool)
    shut[objective.open] = False
    return sequences[(differs.sum(-1) <= objective.changes) & ~differs[:, shut].any(-1)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_best_of_all_sequences(seed: int, precision: str) -> None:
    fixed = (1,) if seed % 3 == 0 else ()
    for objective in (
        transition_episode(seed, 5, seed % 4, levels=2 + seed % 3, fixed=fixed),
        equation_episode(seed, 4, seed % 4, actions=1 + seed % 4, fixed=fixed, acts=seed % 2 == 0),
    ):
        values = objective(every_sequence(objective))
        decision = Exhaustive(chunk=1 + seed, precision=precision)(objective)
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


def test_few_finalists_leave_a_gap_only_as_wide_as_the_rounding() -> None:
    decision = Exhaustive(precision="float32", finalists=1)(transition_episode(2, 6, 2))
    assert 0 <= decision.trace["gap"] <= 20 * decision.trace["rounding"] + 1e-6


def test_too_large_a_tree_is_refused() -> None:
    with pytest.raises(ValueError, match=r"node_limit=10 nodes; got 41 .*raise node_limit"):
        Exhaustive(node_limit=10)(transition_episode(0, 6, 2, levels=2))


def test_a_time_limit_keeps_what_was_found() -> None:
    objective = transition_episode(2, 7, 3, levels=4)
    decision = Exhaustive(budget_s=1e-9)(objective)
    assert decision.value >= objective.outcome()
    assert decision.trace["gap"] is None
    assert not decision.trace["proven"]
    assert "budget_s" in decision.reason


@pytest.mark.parametrize(
    "arguments", [{"precision": "half"}, {"chunk": 0}, {"node_limit": 0}, {"finalists": 0}]
)
def test_senseless_arguments_are_refused(arguments: dict) -> None:
    with pytest.raises(ValueError, match="expected"):
        Exhaustive(**arguments)


class Raised(LinearReward):
    """A reward with a large offset, of which single precision keeps no differences."""

    def __call__(self, states, names, doses=None):
        return super().__call__(states, names, doses) + 1e6


@pytest.mark.parametrize("seed", range(4))
def test_a_large_offset_of_the_reward_is_kept_out_of_single_precision(seed: int) -> None:
    plain = transition_episode(seed, 5, 2)
    raised = CounterfactualReturn(plain.surrogate, plain.case, Raised({"x0": -1.0}), 2)
    process = CounterfactualProcess(raised, Effort(), torch.float32)
    assert process.baseline == pytest.approx(1e6, rel=1e-3)
    states = torch.randn(9, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    told = process.rewards(states.float(), 0).double() + process.baseline
    torch.testing.assert_close(told, raised.rewards(states, 0), rtol=0, atol=1e-2)
    found = Exhaustive(precision="float32")(raised)
    best = raised(every_sequence(raised)).max()
    assert found.value == pytest.approx(float(best), abs=1e-6)
    assert found.trace["proven"]
