"""The tree by itself: its bounds against enumeration, and what ends it."""

import math
from dataclasses import replace
from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.search import UNLIMITED, Budget
from rehearsal_torch.search.sequences import branch_tree
from rehearsal_torch.search.sequences.branch_tree import EventTree, Limits, SetModel
from rehearsal_torch.search.sequences.decision_process import Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.sequences.gain_bound import GainBound, change_events
from tests.toys.curved_episodes import curved_episode
from tests.toys.episodes import transition_episode

PATIENT = Limits(leaves=20_000, pool=100_000, looseness=float("inf"), budget=UNLIMITED, nodes=None)


def wide_episode(seed):
    """An episode whose tree branches more than once where few leaves are allowed."""
    return transition_episode(seed, 6, 3, 3, 3, hidden=8, spread=10.0)


def tree_of(objective, **limits):
    return EventTree(objective, Effort(), replace(PATIENT, **limits))


def gain_of(objective):
    return Exhaustive()(objective).value - objective.outcome()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    horizon=st.integers(2, 6),
    changes=st.integers(0, 3),
    actions=st.integers(1, 3),
    leaves=st.sampled_from([1, 20_000]),
)
def test_a_finished_tree_holds_the_best_sequence_and_bounds_it(seed, horizon, changes, actions, leaves):
    objective = curved_episode(seed, horizon, changes, 2, actions)
    tree = tree_of(objective, leaves=leaves)
    assert tree.run() == ""
    assert tree.loose == ""
    assert tree.best == pytest.approx(gain_of(objective), abs=1e-8)
    assert float(objective(tree.sequence)) - objective.outcome() == pytest.approx(tree.best, abs=1e-9)
    assert tree.bound >= tree.best - 1e-12
    assert tree.gap() == 0.0
    assert tree.effort.generated >= tree.rolled_out
    if tree.modelled:
        assert tree.root >= gain_of(objective) - 1e-8


def test_ended_and_resumed_the_gap_is_always_valid_and_never_grows():
    objective = wide_episode(0)
    truth, tree = gain_of(objective), tree_of(objective, leaves=1)
    assert tree.gap() == torch.inf, "before the root nothing is known"
    assert tree.bound == torch.inf
    gaps, nodes = [tree.gap()], 0
    while tree.gap() > 0:
        nodes += 1
        tree.limits = replace(tree.limits, nodes=nodes)
        said = tree.run()
        assert said == (f"stopped after node_limit={nodes} expanded nodes" if tree.gap() else "")
        gaps.append(tree.gap())
        assert tree.best - 1e-9 <= truth <= tree.best + tree.gap() + 1e-8
    assert gaps == sorted(gaps, reverse=True)
    whole = tree_of(objective, leaves=1)
    whole.run()
    assert torch.equal(tree.sequence, whole.sequence)
    assert tree.effort == whole.effort


def test_the_root_is_done_even_where_the_time_is_out():
    objective = wide_episode(3)
    tree = tree_of(objective, leaves=1, budget=Budget(1e-9))
    assert tree.run() == "stopped after budget_s=1e-09"
    assert tree.recentred == 1
    assert 0 < tree.best <= gain_of(objective) + 1e-9 <= tree.best + tree.gap() + 1e-8


def test_no_node_is_expanded_once_the_limit_is_reached():
    root = tree_of(wide_episode(0), leaves=1, nodes=1)
    root.run()
    again = tree_of(wide_episode(0), leaves=1, nodes=root.effort.expanded)
    assert again.run() == f"stopped after node_limit={root.effort.expanded} expanded nodes"
    assert (again.recentred, again.effort.expanded) == (1, root.effort.expanded)
    further = tree_of(wide_episode(0), leaves=1, nodes=root.effort.expanded + 1)
    further.run()
    assert further.recentred == 2


def test_maps_without_a_bounded_curvature_are_told_and_leave_the_best_single_change():
    objective = curved_episode(0, 6, 3, actions=3)
    objective.trajectory.constants[:, 2] = torch.inf
    tree = tree_of(objective)
    assert tree.run() == ""
    assert tree.loose == "the curvature on the ball of reachable states has no finite bound"
    assert not tree.modelled
    assert tree.bound == torch.inf
    single = curved_episode(0, 6, 1, actions=3)
    assert tree.best == pytest.approx(gain_of(single), abs=1e-9)
    assert tree.gap() == torch.inf


@pytest.mark.parametrize("seed", range(3))
def test_gone_on_with_in_spite_of_that_all_sets_are_tried_once(seed):
    objective = curved_episode(seed, 5, 3, 2, 3)
    objective.trajectory.constants[:, 2] = torch.inf
    tree = tree_of(objective)
    while tree.gap():
        tree.run()
        assert float(objective(tree.sequence)) - objective.outcome() == pytest.approx(tree.best, abs=1e-9)
    assert tree.best == pytest.approx(gain_of(objective), abs=1e-8)
    # Any one or two changes are made by a node, and the last one is tried by the node before it.
    steps, actions = 4, 2
    assert tree.recentred <= 1 + steps * actions + math.comb(steps, 2) * actions**2


def test_one_change_needs_no_model():
    objective = curved_episode(0, 6, 1, actions=3)
    objective.trajectory.constants[:] = torch.inf
    tree = tree_of(objective)
    assert tree.run() == ""
    assert tree.loose == ""
    assert tree.best == tree.root == pytest.approx(gain_of(objective), abs=1e-9)
    assert tree.gap() == 0.0
    assert tree.rolled_out == 0


def test_nothing_open_leaves_what_was_done():
    for objective in (curved_episode(0, 5, 0), transition_episode(0, 3, 2, fixed=(0, 1, 2))):
        tree = tree_of(objective)
        assert tree.gap() == 0.0
        assert tree.run() == ""
        assert tree.best == 0.0
        assert torch.equal(tree.sequence, objective.observed)
        assert tree.effort == Effort()


# In the last three, the optimum has all changes and no node finds it with fewer of its own.
@pytest.mark.parametrize(
    ("size", "seed"),
    [
        *product([(6, 3, 3, 3), (6, 3, 2, 3), (7, 4, 2, 2)], range(1)),
        *product([(6, 3, 3, 3)], [5, 11]),
        ((6, 3, 2, 3), 24),
    ],
)
def test_where_little_is_enumerated_the_optimum_is_found_by_branching(monkeypatch, seed, size):
    monkeypatch.setattr(branch_tree, "BEAM", 1)
    horizon, changes, width, actions = size
    objective = transition_episode(seed, horizon, changes, width, actions, hidden=8, spread=10.0)
    tree = tree_of(objective, leaves=1)
    assert tree.run() == ""
    assert tree.recentred > 5
    assert tree.best == pytest.approx(gain_of(objective), abs=1e-9)
    assert 0 < int((tree.sequence != objective.observed).sum()) <= changes
    assert float(objective(tree.sequence)) - objective.outcome() == pytest.approx(tree.best, abs=1e-9)
    assert tree.gap() == 0.0


def test_a_pool_that_is_just_large_enough_gives_nothing_up():
    objective = transition_episode(1, 5, 3, 2, 3, hidden=8, spread=10.0)
    whole = tree_of(objective, leaves=1)
    whole.run()
    for pool in range(1, 200):
        tree = tree_of(objective, leaves=1, pool=pool)
        said = tree.run()
        if not said:
            break
        assert said == f"gave up nodes beyond pool={pool}"
        assert tree.gap() > 0
    assert 1 < pool < 199
    assert (tree.best, tree.effort) == (whole.best, whole.effort)


def test_a_bound_is_loose_above_its_multiple_of_the_largest_gain_or_loss():
    objective = wide_episode(3)
    said = tree_of(objective, looseness=1.0)
    said.run()
    assert f"its bound on the gain, {said.root:.6g}, is more than looseness=1 times" in said.loose
    size = float(said.loose.split()[-1])
    ratio = said.root / size
    for factor, loose in ((0.99, True), (1.01, False)):
        tree = tree_of(objective, looseness=factor * ratio)
        tree.run()
        assert bool(tree.loose) == loose
    events = change_events(
        objective.trajectory,
        objective.gradient(),
        objective.trajectory.states,
        objective.observed,
        objective.open.tolist(),
        Effort(),
    )
    assert size == pytest.approx(max(float(events.gains.abs().max()), said.best), rel=1e-5)


def test_actions_without_effect_are_not_taken():
    objective = transition_episode(0, 5, 2, spread=0.0)
    tree = tree_of(objective)
    assert tree.run() == ""
    assert torch.equal(tree.sequence, objective.observed)
    assert (tree.best, tree.gap()) == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_where_gains_add_up_only_promising_sets_are_rolled_out(seed):
    objective = curved_episode(seed, 6, 3, 2, 3, bent=0.0)
    tree = tree_of(objective)
    assert tree.run() == ""
    assert tree.best == pytest.approx(gain_of(objective), abs=1e-9)
    assert tree.root == pytest.approx(tree.best, abs=1e-9)
    # Of the promising sets, all as large as is allowed, and of the optimum, which may be smaller.
    assert tree.rolled_out <= branch_tree.BEAM + 1
    assert (tree.recentred, tree.gap()) == (1, 0.0)


def random_model(
    seed: int, slots: int, actions: int, changes: int, size: float
) -> tuple[SetModel, dict[tuple[int, ...], float]]:
    """A random model, and the bounds of all sets of two or more events at different times, found one by
    one."""
    generator = torch.Generator().manual_seed(seed)
    count = slots * actions
    kept = torch.rand(count, generator=generator) < 0.8
    times = torch.arange(slots).repeat_interleave(actions)[kept]
    gains = torch.randn(len(times), generator=generator, dtype=torch.float64)
    pairs = torch.triu(
        size * torch.randn(len(times), len(times), generator=generator, dtype=torch.float64), 1
    )
    rest = torch.triu(torch.rand(len(times), len(times), generator=generator, dtype=torch.float64), 1) * 1e-3
    symmetric = (pairs + pairs.mT).masked_fill(times.unsqueeze(0) == times.unsqueeze(1), -torch.inf)
    model = SetModel(GainBound(gains, symmetric, rest, changes), times)
    sets = {}
    for number in range(2, changes + 1):
        for chosen in combinations(range(len(times)), number):
            if len({int(times[event]) for event in chosen}) == number:
                places = list(chosen)
                sets[chosen] = float(gains[places].sum() + torch.triu(pairs[places][:, places], 1).sum())
    return model, sets


models = given(
    seed=st.integers(0, 10_000),
    slots=st.integers(1, 5),
    actions=st.integers(1, 4),
    changes=st.integers(2, 4),
    size=st.sampled_from([0.0, 0.1, 1.0]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@models
def test_finds_exactly_the_sets_above_a_threshold(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    threshold = 1.0
    found = model.search(threshold, 1_000_000)
    assert found.complete
    got = {
        tuple(event for event in row if event >= 0): bound
        for row, bound in zip(found.sets.tolist(), found.bounds.tolist(), strict=True)
    }
    wanted = {chosen: bound for chosen, bound in sets.items() if bound > threshold + 1e-9}
    assert wanted.keys() <= got.keys()
    for chosen, bound in got.items():
        assert abs(bound - sets[chosen]) < 1e-9
        assert bound > threshold


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@models
def test_the_sieve_drops_nothing_that_is_needed(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    kept, bounds = model.sieve(1.0)
    for chosen, bound in sets.items():
        assert all(bound <= float(bounds[event]) + 1e-9 for event in chosen)
        if bound > 1.0 + 1e-9:
            assert set(chosen) <= set(kept.tolist())
    assert all(float(bounds[event]) >= float(model.gains[event]) - 1e-12 for event in range(len(model.gains)))


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@models
def test_first_events_are_bounded_where_sets_are_too_many(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    threshold = -1.0
    for max_sets in (1, 5, 20):
        found = model.search(threshold, max_sets)
        for chosen, bound in sets.items():
            if bound > threshold + 1e-9:
                assert bound <= float(found.firsts[chosen[0]]) + 1e-9


@settings(max_examples=25, deadline=None, derandomize=True)
@models
def test_the_followers_of_an_event_are_all_that_a_better_set_needs(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    for threshold in (-1.0, 1.0):
        for chosen, bound in sets.items():
            if bound > threshold + 1e-9:
                assert set(chosen[1:]) <= set(model.followers(chosen[0], threshold).tolist())


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@models
def test_promising_sets_are_sets(seed, slots, actions, changes, size):
    model, _ = random_model(seed, slots, actions, changes, size)
    if not len(model.gains):
        return
    sets = model.promising(5)
    assert 1 <= len(sets) <= 5
    for row in sets.tolist():
        events = [event for event in row if event >= 0]
        times = model.times[events].tolist()
        assert row == events + [-1] * (changes - len(events))
        assert times == sorted(set(times))


def test_a_beam_finds_the_best_of_an_additive_model():
    model, sets = random_model(3, 5, 4, 3, 0.0)
    best = max((chosen for chosen in sets if len(chosen) == 3), key=lambda chosen: sets[chosen])
    assert list(best) in model.promising(10).tolist()


def test_without_events_there_is_no_set() -> None:
    nothing = torch.zeros(0, dtype=torch.float64)
    for changes in (1, 3):
        model = SetModel(
            GainBound(nothing, nothing.view(0, 0), nothing.view(0, 0), changes), torch.zeros(0).long()
        )
        kept, bounds = model.sieve(-1.0)
        assert (len(kept), len(bounds)) == (0, 0)
        found = model.search(-1.0, 10)
        assert (found.sets.shape, len(found.firsts), found.complete, found.grown) == (
            (0, changes),
            0,
            True,
            1,
        )
