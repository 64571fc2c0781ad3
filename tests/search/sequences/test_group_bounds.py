from itertools import combinations, product

import pytest
import torch

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences import group_bounds
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.group_bounds import GroupBounds
from tests.toys.curved_boxes import Equations
from tests.toys.curved_episodes import curved_episode
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


def bounds_of(objective: CounterfactualReturn) -> GroupBounds:
    process = CounterfactualProcess(objective, Effort())
    return GroupBounds(objective, objective.trajectory, process, objective.changes)


def bound_by_equations(
    objective: CounterfactualReturn, path: torch.Tensor, start: int, times: tuple
) -> float:
    """The bound of one group, step by step: rewards fall with each variable, and so are largest at the lower
    ends; `path` has the states from `start` on."""
    equations, states = Equations(objective, objective.choices), objective.trajectory.states
    total, lower = 0.0, torch.zeros_like(states[0])
    upper = lower
    for time in range(start, objective.horizon):
        here = path[time - start]
        total += float(objective.rewards((here + lower).unsqueeze(0)))
        if time == objective.horizon - 1:
            break
        far = float((here - states[time]).norm())
        if time in times:
            lower, upper = equations.next(
                time, lower, upper, far, equations.effects(time, here).aminmax(dim=0)
            )
        elif time > times[0]:
            lower, upper = equations.next(time, lower, upper, far)
    return total


@pytest.mark.parametrize(("seed", "bent"), [(1, 0.3), (2, 0.0)])
def test_a_bound_is_the_sum_of_the_best_rewards_in_the_boxes_of_its_path(seed, bent, monkeypatch):
    objective = curved_episode(seed, 5, 2, 2, 3, bent)
    choices = objective.choices.clone()
    choices[2, int(choices[2].nonzero()[0])] = choices[0, int(choices[0].nonzero()[0])] = False
    objective.__dict__["choices"] = choices
    bounds, made = bounds_of(objective), objective.trajectory
    first = made.branch(made.states[:1], 0)[0]
    for start, states in ((0, made.states[:1]), (1, first)):
        paths = bounds.roll(states, start)
        groups = [
            (row, times)
            for times in [*combinations(range(start, 4), 2), (3, 3), (start, start)]
            for row in range(len(states))
        ]
        rows, times = torch.tensor([row for row, _ in groups]), torch.tensor([each for _, each in groups])
        found = bounds.of(paths, rows, times)
        wanted = [bound_by_equations(objective, paths.states[row], start, each) for row, each in groups]
        assert found.tolist() == pytest.approx(wanted, abs=1e-8)
        alone = [float(bounds.of(paths, rows[[place]], times[[place]])) for place in range(len(groups))]
        assert alone == pytest.approx(wanted, abs=1e-8)
        monkeypatch.setattr(group_bounds, "BOXES", 3)
        assert bounds.of(paths, rows, times).tolist() == pytest.approx(wanted, abs=1e-8)
        monkeypatch.undo()
    boxes = zip(Equations(objective, choices).boxes(2), made.states, strict=True)
    best = sum(float(objective.rewards((state + lower).unsqueeze(0))) for (lower, _), state in boxes)
    assert bounds.anywhere() == pytest.approx(best, abs=1e-8)


def test_paths_are_rolled_out_as_observed_and_every_step_is_counted(monkeypatch):
    objective = scored_episode(2, 5, 2, 3, fixed=(2,))
    bounds, effort = bounds_of(objective), Effort()
    bounds.process.effort = effort
    made = objective.trajectory
    start = made.branch(made.states[:1], 0)[0]
    paths = bounds.roll(start, 1)
    # One action is kept and two others are tried at steps 1 and 3; step 2 may not change.
    assert effort.network_evaluations == 3 * (3 + 1 + 3)
    actions = objective.observed.repeat(3, 1)
    actions[:, 0] = torch.arange(3)
    torch.testing.assert_close(paths.states, objective.replay(actions)[:, 1:])
    torch.testing.assert_close(
        paths.before[:, -1], objective(actions) - objective.rewards(made.states[:1])[0, 0]
    )
    assert paths.before.shape == (3, 5)
    assert float(paths.before[:, 0].abs().max()) == 0
    torch.testing.assert_close(paths.away[0], (paths.states - made.states[1:]).norm(dim=-1))
    assert [hull is None for hull in paths.hulls] == [False, True, False, True]
    monkeypatch.setattr(group_bounds, "PATHS", 2)
    again = bounds.roll(start, 1)
    torch.testing.assert_close(again.states, paths.states)
    for one, other in zip(paths.hulls, again.hulls, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("members", [1, 2])
def test_doses_without_effect_on_states_are_bounded_by_the_truth(members):
    """Each step is then by itself: the best of the allowed doses where the group changes."""
    for seed in range(2):
        objective = scored_episode(seed, 4, 2, 4, members, dosed=True, spread=0.0, fixed=(1,))
        for bound, truth in compare(objective):
            assert bound == pytest.approx(truth, abs=1e-9)


def test_the_bound_of_the_mean_is_the_mean_of_the_members_bounds():
    mean, worst = (scored_episode(4, 5, 2, 3, members=3, dosed=True, use=use) for use in ("mean", "worst"))
    times = torch.tensor([(3, 4), (0, 1), (0, 3), (1, 2)])
    found = []
    for objective in (mean, worst):
        bounds = bounds_of(objective)
        found.append(bounds.of(bounds.observed, torch.zeros(4, dtype=torch.long), times))
    assert found[1].shape == (4, 3)
    torch.testing.assert_close(found[1].mean(-1), found[0])
    assert bounds_of(worst).anywhere() <= bounds_of(mean).anywhere() + 1e-9
