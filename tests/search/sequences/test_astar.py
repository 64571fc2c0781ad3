"""A*: its modes, its limits, and what it says of them. Optimality stands in tests/papers."""

import re

import pytest
import torch

from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.sequences.lipschitz_bound import (
    NO_SUM,
    MonteCarlo,
    UnboundedError,
    value_constants,
)
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode
from tests.toys.published_astar import published


def test_the_gap_shrinks_with_the_nodes() -> None:
    objective = transition_episode(1, 7, 3, 3, 4)
    gaps = [
        AStar(MonteCarlo(20), batch=1, node_limit=limit)(objective).trace["gap"]
        for limit in (1, 10, 50, 1000)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > gaps[2]


def test_the_published_order_expands_what_the_theory_asks_for() -> None:
    """Best first expands every node above the optimum and, ties aside, no other; pruning and batches change
    neither."""
    for seed in range(4):
        objective = transition_episode(seed, 6, 2, 2, 4)
        slow = published(MonteCarlo(20))(objective)
        batched = AStar(MonteCarlo(20), pooled=True, exact=False, lookahead=True, batch=64, incumbent=True)(
            objective
        )
        assert slow.actions() == batched.actions()
        assert slow.trace["expanded"] >= batched.trace["expanded"] >= 0.5 * slow.trace["expanded"]


def test_the_shortcuts_expand_fewer_nodes() -> None:
    objective = transition_episode(2, 8, 3, 3, 5)
    fast, slow = AStar(MonteCarlo(50))(objective), published(MonteCarlo(50))(objective)
    assert fast.actions() == slow.actions()
    assert fast.trace["distances"] < slow.trace["distances"] / 5
    assert (
        slow.trace["effective_branching_factor"] < Exhaustive()(objective).trace["effective_branching_factor"]
    )


def test_more_anchors_expand_no_more_nodes() -> None:
    few, many = (
        sum(
            AStar(MonteCarlo(samples))(transition_episode(seed, 7, 3, 3, 4)).trace["expanded"]
            for seed in range(4)
        )
        for samples in (5, 200)
    )
    assert many < few


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 node"):
        AStar(batch=0)


def test_a_known_sequence_is_improved_and_never_lost():
    for seed in range(4):
        objective = transition_episode(seed, horizon=5, changes=2)
        best = AStar()(objective)
        known = objective.sequence(best)
        stopped = AStar(node_limit=0).improve(objective, known)
        assert stopped.value == pytest.approx(best.value)
        assert AStar(incumbent=False).improve(objective, known).value == pytest.approx(best.value)
        with pytest.raises(ValueError, match="at most 2 changes; got changes=4"):
            AStar().improve(objective, (objective.observed + 1) % objective.actions)


MODES = {
    "default": AStar(MonteCarlo(20)),
    "one by one, from what was observed": AStar(MonteCarlo(20), batch=1, incumbent=False),
    "bounds of leaves": AStar(MonteCarlo(20), exact=False),
    "pooled": AStar(MonteCarlo(20), pooled=True, lookahead=True, batch=8),
    "published": published(MonteCarlo(10)),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_optimum_and_proves_it(mode: str) -> None:
    episodes = [
        equation_episode(0, 5, 2, acts=True),
        equation_episode(1, 5, 2, acts=False, fixed=(1,)),
        equation_episode(2, 4, 1, acts=True),
        transition_episode(3, 5, 2),
        transition_episode(4, 4, 4),
    ]
    for objective in episodes:
        best, decision = Exhaustive()(objective), MODES[mode](objective)
        assert decision.value == pytest.approx(best.value, abs=1e-8)
        assert float(objective(objective.sequence(decision))) == pytest.approx(decision.value, abs=1e-9)
        assert (decision.trace["gap"], decision.trace["proven"], decision.reason) == (0.0, True, best.reason)
        assert decision.trace["root_bound"] >= best.value - 1e-9
        assert decision.trace["expanded"] <= decision.trace["generated"] + 1


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_no_more_nodes_are_expanded_than_the_limit(limit: int) -> None:
    objective = transition_episode(1, 7, 3, 3, 4)
    best = Exhaustive()(objective).value
    for search in (
        AStar(MonteCarlo(20), batch=5, node_limit=limit, incumbent=False),
        published(MonteCarlo(20), node_limit=limit),
    ):
        decision = search(objective)
        assert decision.trace["expanded"] == limit
        assert decision.reason.text == f"stopped after node_limit={limit} expanded nodes"
        assert decision.trace["gap"] > 0
        assert decision.value <= best + 1e-9 <= decision.value + decision.trace["gap"] + 2e-9
        assert decision.trace["root_bound"] >= decision.value + decision.trace["gap"] - 1e-9


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    objective = transition_episode(3, 5, 2)
    free = AStar(MonteCarlo(20), incumbent=False)(objective)
    needed = free.trace["expanded"]
    assert needed > 1
    enough = AStar(MonteCarlo(20), incumbent=False, node_limit=needed)(objective)
    assert (enough.actions(), enough.trace["gap"], enough.reason) == (free.actions(), 0.0, free.reason)


def test_anchors_are_counted_as_they_are_used() -> None:
    objective = transition_episode(1, 6, 2)
    alone, pooled = (AStar(MonteCarlo(20), pooled=each)(objective).trace["anchors"] for each in (False, True))
    # Each of the six steps has the observed state as well.
    drawn = AStar(MonteCarlo(20)).anchors(
        CounterfactualProcess(objective, Effort()), value_constants(objective)
    )
    assert alone == sum(len(states) for states in drawn) + 6
    assert pooled == len(torch.unique(torch.cat(drawn), dim=0))


def test_changes_without_effect_are_not_made() -> None:
    for objective in (
        transition_episode(0, 5, 2, spread=0.0),
        equation_episode(0, 4, 0),
        transition_episode(0, 3, 2, fixed=(0, 1, 2)),
    ):
        decision = AStar(incumbent=False)(objective)
        assert decision.alteration is None
        assert (decision.value, decision.trace["gap"]) == (objective.outcome(), 0.0)
    assert (decision.trace["anchors"], decision.trace["distances"], decision.trace["expanded"]) == (0, 0, 0)


def test_what_has_no_lipschitz_constant_is_refused_before_anything_is_fitted() -> None:
    class Jumps(LinearReward):
        def lipschitz(self, *_: object) -> float:
            return torch.inf

    class Two(KnownTruth):
        members = 2

    model, ensemble = transition_episode(0).surrogate, Two(1, 2, lambda x, a: x, 1.0)
    search = AStar()
    with pytest.raises(UnboundedError, match="use branch_and_bound or greedy_changes"):
        search.check(model, reward=Jumps({"x0": 1.0}))
    with pytest.raises(UnboundedError, match=re.escape(NO_SUM)):
        search.check(ensemble, members="worst")
    for surrogate, settings in (
        (model, {"reward": LinearReward({"x0": 1.0}), "members": "worst"}),
        (model, {}),
        (ensemble, {"members": "mean"}),
        (torch.nn.Linear(1, 1), {"reward": Jumps({"x0": 1.0})}),
    ):
        assert search.check(surrogate, **settings) is None


def test_as_many_changes_as_are_allowed_may_be_known() -> None:
    objective = transition_episode(2, 5, 2)
    known = objective.observed.clone()
    known[:2] = (known[:2] + 1) % objective.actions
    decision = AStar(node_limit=0, incumbent=False).improve(objective, known)
    assert decision.value == pytest.approx(max(float(objective(known)), objective.outcome()))
