import time as clock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.branch_tree import Limits
from rehearsal_torch.search.sequences.decision_process import Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.sequences.step_tree import StepTree
from tests.toys.scored_episodes import scored_curve, scored_episode, weighed_episode


def checked(objective):
    """The search's decision, after comparing it with enumeration."""
    decision, truth = BranchAndBound()(objective), Exhaustive()(objective)
    assert decision.trace["search"] == "branch_and_bound"
    assert decision.trace["fallback"] is None
    assert decision.trace["proven"]
    assert decision.trace["gap"] == 0.0
    assert decision.value == pytest.approx(truth.value, abs=1e-9)
    assert decision.trace["root_bound"] >= truth.value - 1e-9
    assert (objective.sequence(decision) != objective.observed).sum() <= objective.changes
    return decision


INSTANCES = dict(
    seed=st.integers(0, 100_000),
    horizon=st.integers(2, 6),
    changes=st.integers(0, 3),
    levels=st.integers(2, 4),
    members=st.sampled_from([1, 1, 2, 3]),
    effects=st.sampled_from(["sparse", "dense"]),
    dosed=st.booleans(),
    spread=st.sampled_from([0.3, 3.0]),
    use=st.sampled_from(["mean", "worst"]),
    fixed=st.sets(st.integers(0, 5), max_size=2).map(lambda steps: tuple(sorted(steps))),
)


@settings(max_examples=3, deadline=None, derandomize=True)
@given(**INSTANCES)
def test_the_result_is_that_of_enumeration(**drawn):
    checked(scored_episode(**drawn))


@pytest.mark.nightly
@settings(max_examples=300, deadline=None, derandomize=True)
@given(**INSTANCES)
def test_the_result_is_that_of_enumeration_on_many_instances(**drawn):
    checked(scored_episode(**drawn))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 100_000),
    horizon=st.integers(2, 6),
    changes=st.integers(1, 3),
    bent=st.sampled_from([0.0, 0.25, 1.0]),
)
def test_the_result_is_that_of_enumeration_for_any_curved_course(seed, horizon, changes, bent):
    checked(scored_curve(seed, horizon, changes, bent))


@pytest.mark.slow
def test_some_instances_need_more_than_greedy_changes_and_more_than_the_root():
    better = deeper = 0
    for seed in range(12):
        objective = scored_episode(seed, 6, 3, 4)
        decision = checked(objective)
        better += decision.value > GreedyChanges()(objective).value
        deeper += decision.trace["rolled_out"] > 0
    assert better
    assert deeper


def tree(objective, nodes=None, evaluations=None, sets=1000, pool=1000, budget_s=None):
    limits = Limits(1, pool, 1.0, Budget(budget_s), nodes)
    return StepTree(objective, Effort(), limits, sets, evaluations)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"nodes": 1}, "node_limit=1 "),
        ({"evaluations": 100}, "evaluations=100 "),
        ({"sets": 3}, "more than sets=3"),
        ({"pool": 2}, "pool=2"),
        ({"budget_s": 1e-9}, "budget_s=1e-09"),
    ],
)
def test_an_early_end_leaves_a_valid_gap(seed, setting, reason):
    objective = scored_episode(seed, 6, 3, 4, dosed=bool(seed % 2))
    truth = Exhaustive()(objective).value
    searched = tree(objective, **setting)
    stopped = searched.run()
    assert GreedyChanges()(objective).value <= searched.best <= truth + 1e-9
    assert truth <= searched.best + searched.gap() + 1e-9
    assert float(objective(searched.sequence)) == pytest.approx(searched.best)
    assert reason in stopped or not searched.gap()


def test_some_early_ends_prove_nothing():
    gaps = [BranchAndBound(sets=1)(scored_episode(seed, 6, 3, 4)) for seed in range(4)]
    unproven = [decision for decision in gaps if not decision.trace["proven"]]
    assert unproven
    for decision in unproven:
        assert "25 sets of time steps are more than sets=1" in decision.reason
        assert decision.trace["gap"] > 0


def test_no_time_still_gives_an_answer_with_a_gap():
    objective = scored_episode(3, 6, 3, 4)
    began = clock.perf_counter()
    decision = BranchAndBound(budget_s=1e-9)(objective)
    assert clock.perf_counter() - began < 5
    assert decision.trace["gap"] is not None
    assert "budget_s" in decision.trace["stopped"]


def test_the_same_question_gets_the_same_answer():
    first, second = (BranchAndBound()(scored_episode(5, 5, 2, members=2)) for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_nothing_to_change_is_nothing_recommended():
    for objective in (scored_episode(1, 5, 0), scored_episode(1, 3, 2, fixed=(0, 1, 2))):
        decision = BranchAndBound()(objective)
        assert decision.alteration is None
        assert decision.trace["proven"]


def test_limits_are_checked():
    with pytest.raises(ValueError, match="expected at least 1 evaluation"):
        BranchAndBound(evaluations=0)
    with pytest.raises(ValueError, match="sets and looseness of at least 1"):
        BranchAndBound(sets=0)


def test_paths_that_are_no_numbers_are_no_answer_and_no_obstacle():
    """An action that leads to no number loses, and does not hide the others."""
    objective = scored_episode(4, 5, 2)
    trajectory, action = objective.trajectory, int(objective.candidate_actions(1)[0])
    trajectory.shifts[1, action] = trajectory._across[1, 0].unflatten(0, (3, 3))[action] = torch.nan
    assert objective(torch.tensor([*objective.observed[:1], action, *objective.observed[2:]])).isnan()
    checked(objective)


@pytest.mark.parametrize("dosed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_return_of_the_worst_member_is_proven(seed, dosed):
    objective = scored_episode(seed, 5, 2, 3, members=3, dosed=dosed, use="worst")
    decision = checked(objective)
    assert decision.value == pytest.approx(
        float(objective.member_returns(objective.sequence(decision)).min())
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_worst_member_is_proven_for_a_linear_reward_too(seed):
    checked(weighed_episode(seed, horizon=5, changes=2))


def test_an_early_end_leaves_a_gap_that_holds_for_the_worst_member():
    objective = scored_episode(3, 6, 3, 4, members=2, use="worst")
    decision, truth = BranchAndBound(evaluations=1)(objective), Exhaustive()(objective)
    assert decision.value + decision.trace["gap"] >= truth.value - 1e-9
