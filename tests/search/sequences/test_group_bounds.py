from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.group_bounds import GroupBounds
from tests.toys.scored_episodes import scored_curve, scored_episode


def best_of(objective: CounterfactualReturn, times: tuple[int, ...]) -> float:
    """The largest return of all sequences that change exactly the given steps, one by one."""
    others = [objective.candidate_actions(time).tolist() for time in times]
    sequences = objective.observed.repeat(len(list(product(*others))), 1)
    sequences[:, list(times)] = torch.tensor(list(product(*others)))
    return float(objective(sequences).max())


def compare(objective: CounterfactualReturn) -> list[tuple[float, float]]:
    """Bound and truth of every set of time steps, and of any changes."""
    process = CounterfactualProcess(objective, Effort())
    bounds = GroupBounds(objective, objective.trajectory, process, objective.changes)
    open_, found = objective.open.tolist(), []
    for size in range(1, min(objective.changes, len(open_)) + 1):
        times = list(combinations(open_, size))
        rows = torch.zeros(len(times), dtype=torch.long)
        made = objective.joined(bounds.of(bounds.observed, rows, torch.tensor(times))).tolist()
        found += list(zip(made, (best_of(objective, one) for one in times), strict=True))
    most = max((truth for _, truth in found), default=objective.outcome())
    assert bounds.anywhere() >= max(most, objective.outcome())
    return found


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 100_000),
    horizon=st.integers(2, 6),
    changes=st.integers(1, 3),
    members=st.sampled_from([1, 2]),
    effects=st.sampled_from(["sparse", "dense"]),
    dosed=st.booleans(),
    use=st.sampled_from(["mean", "worst"]),
    spread=st.sampled_from([0.3, 3.0, 30.0]),
)
def test_no_sequence_of_a_group_has_a_larger_return_than_its_bound(**drawn):
    for bound, truth in compare(scored_episode(**drawn)):
        assert bound >= truth - 1e-9


@pytest.mark.parametrize("use", ["mean", "worst"])
def test_bounds_of_ensembles_hold_for_the_mean_and_for_the_worst_member(use):
    for seed in range(3):
        for bound, truth in compare(scored_episode(seed, 5, 2, 3, members=3, use=use)):
            assert bound >= truth - 1e-9


@pytest.mark.parametrize("bent", [0.0, 0.25, 1.0])
def test_the_bounds_hold_for_known_curved_equations(bent):
    for bound, truth in compare(scored_curve(1, 4, 3, bent)):
        assert bound >= truth - 1e-9


def test_most_bounds_of_nearly_linear_models_are_the_truth():
    found = [pair for seed in range(2) for pair in compare(scored_episode(seed, 5, 2, 2, spread=0.3))]
    assert sum(bound <= truth + 1e-9 for bound, truth in found) > 0.5 * len(found)


def test_groups_may_begin_on_any_path():
    """The bound of a group on a changed path holds for the sequences that contain that change."""
    objective = scored_episode(2, 6, 3, 3)
    process = CounterfactualProcess(objective, Effort())
    bounds = GroupBounds(objective, objective.trajectory, process, 3)
    start = objective.trajectory.states[:1]
    others = process.others[0]
    paths = bounds.roll(process.branch(start, 0)[0], 1)
    gathered = float(process.rewards(start, 0))
    times = list(combinations((1, 2, 3, 4), 2))
    for place, action in enumerate(others.tolist()):
        rows = torch.full((len(times),), place)
        made = bounds.of(paths, rows, torch.tensor(times)) + gathered
        for bound, pair in zip(made.tolist(), times, strict=True):
            chosen = [objective.candidate_actions(time).tolist() for time in pair]
            sequences = objective.observed.repeat(len(list(product(*chosen))), 1)
            sequences[:, 0], sequences[:, list(pair)] = action, torch.tensor(list(product(*chosen)))
            assert bound >= float(objective(sequences).max()) - 1e-9
