import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.group_bounds import GroupBounds
from rehearsal_torch.search.sequences.reachable_boxes import enclosed, nowhere
from tests.toys.scored_episodes import scored_curve, scored_episode


def boxed(objective):
    process = CounterfactualProcess(objective, Effort())
    return GroupBounds(objective, objective.trajectory, process, objective.changes)


def changed(objective, count, generator):
    """Random sequences with at most k changes, (count, H)."""
    sequences = objective.observed.repeat(count, 1)
    for row in sequences:
        times = objective.open[torch.randperm(len(objective.open), generator=generator)]
        for time in times[: objective.changes].tolist():
            others = objective.candidate_actions(time)
            row[time] = others[int(torch.randint(len(others), (1,), generator=generator))]
    return sequences


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 100_000),
    changes=st.integers(0, 4),
    members=st.sampled_from([1, 2]),
    effects=st.sampled_from(["sparse", "dense"]),
    spread=st.sampled_from([0.3, 3.0, 30.0]),
)
def test_no_changes_leave_the_boxes(seed, changes, members, effects, spread):
    objective = scored_episode(seed, 6, changes, 3, members, effects, spread=spread)
    found = boxed(objective)
    states = objective.replay(changed(objective, 60, torch.Generator().manual_seed(seed)))
    for time, box in enumerate(found.boxes):
        lower, upper = box.ends(objective.trajectory.states[time : time + 1])
        assert not ((states[:, time] < lower - 1e-12) | (states[:, time] > upper + 1e-12)).any()


@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 100_000), bent=st.sampled_from([0.0, 0.25, 1.0]), size=st.floats(0.01, 1.0))
def test_a_step_encloses_the_images_of_random_points(seed, bent, size):
    """Around paths off the observed one, for points that some k changes reach: within the ball."""
    objective = scored_curve(seed, 4, 3, bent)
    found, trajectory = boxed(objective), objective.trajectory
    generator = torch.Generator().manual_seed(seed)
    reach, time = found.boxes[2], 2
    inside = (2 * torch.rand(50, 3, generator=generator, dtype=torch.float64) - 1) * reach.radius[0, 0]
    centre = trajectory.states[time] + reach.centre[0, 0]
    path = centre + inside[:1]
    moved = path + size * (centre + inside - path)
    ends = (moved - path).aminmax(dim=0)
    before = enclosed(ends.min[None], ends.max[None], 1)
    away = torch.linalg.vector_norm(path - trajectory.states[time], dim=-1)[None, :, None]
    kept, others = trajectory.observed[time], objective.candidate_actions(time)
    after = trajectory.step(path, time, kept)
    lower, upper = found.steps[time].kept(before, away).ends(after)
    images = trajectory.step(moved, time, kept)
    assert bool(((lower <= images) & (images <= upper)).all())
    effects = trajectory.branch(path, time, others)[0] - after
    hull = enclosed(effects.amin(0, keepdim=True), effects.amax(0, keepdim=True), 1)
    lower, upper = found.steps[time].changed(before, away, hull).ends(after)
    images = trajectory.branch(moved, time, others)
    assert bool(((lower[:, None] <= images) & (images <= upper[:, None])).all())


def test_nothing_moves_without_a_change():
    objective = scored_episode(1, 5, 2)
    step = boxed(objective).steps[1]
    still = nowhere(1, 4, 3, objective.trajectory.states)
    after = step.kept(still, torch.zeros(1, 4, 1, dtype=torch.float64))
    assert float(after.centre.abs().max()) == 0
    assert float(after.radius.max()) <= 1e-10
