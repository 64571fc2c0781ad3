import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.group_bounds import GroupBounds
from rehearsal_torch.search.sequences.reachable_boxes import Intervals, enclosed, expansions, nowhere
from tests.toys.curved_boxes import Equations
from tests.toys.curved_episodes import curved_episode
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


def expanded(objective, changes, choices):
    made, equations = objective.trajectory, Equations(objective, choices)
    hulls = []
    for time in range(made.horizon - 1):
        effects = equations.effects(time)
        still = nowhere(1, 1, made.states.shape[-1], made.states)
        hulls.append(enclosed(*effects.aminmax(dim=0, keepdim=True), 1) if len(effects) else still)
    return equations, *expansions(made, 1, choices, changes, hulls)


@pytest.mark.parametrize(
    ("seed", "changes", "width", "bent"), [(1, 2, 2, 0.25), (2, 1, 3, 0.5), (3, 3, 1, 0.3), (4, 0, 2, 0.2)]
)
def test_boxes_and_steps_are_those_of_the_equations(seed, changes, width, bent):
    objective = curved_episode(seed, 4, changes, width, 3, bent)
    choices = objective.choices.clone()
    choices[1, int(choices[1].nonzero()[0])] = False
    equations, steps, boxes = expanded(objective, changes, choices)
    states, stream = objective.trajectory.states, torch.Generator().manual_seed(seed)
    for time, (box, wanted) in enumerate(zip(boxes, equations.boxes(changes), strict=True)):
        found = torch.cat(box.ends(states[time : time + 1])) - states[time]
        torch.testing.assert_close(found, torch.stack(wanted), rtol=1e-6, atol=1e-10)
        # Boxes are wider than the equations ask for, by more than rounding.
        assert bool((found[0] <= wanted[0] + 1e-14).all() & (found[1] >= wanted[1] - 1e-14).all())
    for time, step in enumerate(steps):
        ends = torch.randn(2, 5, width, generator=stream, dtype=torch.float64).sort(0).values
        effects = torch.randn(2, 5, width, generator=stream, dtype=torch.float64).sort(0).values
        away = torch.rand(1, 5, 1, generator=stream, dtype=torch.float64)
        before, hull = enclosed(*ends, 1), enclosed(*effects, 1)
        kept, other = step.kept(before, away), step.changed(before, away, hull)
        for row in range(5):
            far = float(away[0, row])
            for found, hulls in ((kept, None), (other, effects[:, row])):
                wanted = equations.next(time, *ends[:, row], far, hulls)
                told = torch.cat(found.rows(torch.tensor([row])).ends(torch.zeros(1, width).double()))
                torch.testing.assert_close(told, torch.stack(wanted), rtol=1e-6, atol=1e-10)


def test_a_step_that_is_shut_moves_as_observed():
    objective = curved_episode(5, 4, 2, 2, 3, 0.25)
    choices = torch.zeros(3, 3, dtype=torch.bool)
    _, _, boxes = expanded(objective, 2, choices)
    assert max(float(box.radius.max()) for box in boxes) <= 1e-11
    assert float(boxes[0].radius.max()) == 0.0
    assert min(float(box.radius.min()) for box in boxes[1:]) >= 1e-12, "an allowance for rounding"


def test_a_curvature_without_a_bound_leaves_boxes_without_a_bound():
    for column in (1, 2):
        objective = curved_episode(5, 4, 2, 2, 3, 0.25)
        objective.trajectory.constants[1:, column] = torch.inf
        _, steps, boxes = expanded(objective, 2, objective.choices)
        assert bool(torch.isfinite(boxes[1].radius).all())
        for box in boxes[2:]:
            assert not torch.isfinite(box.radius).any()
        assert bool(steps[1].third.isinf().all())
        assert bool(steps[0].third.isfinite().all())


def test_intervals_of_members_are_side_by_side_in_the_states():
    """Two members, three paths of two variables: centre and radius are of each member by itself."""
    lower = torch.arange(12.0).view(3, 4)
    upper = lower + torch.tensor([1.0, 2.0, 3.0, 4.0])
    made = enclosed(lower, upper, 2)
    assert made.centre.shape == made.radius.shape == (2, 3, 2)
    assert made.radius[:, 1].tolist() == [[0.5, 1.0], [1.5, 2.0]]
    assert made.centre[1, 2].tolist() == [11.5, 13.0]
    ends = made.ends(torch.full((3, 4), 100.0))
    assert torch.equal(ends[0], lower + 100)
    assert torch.equal(ends[1], upper + 100)
    negative = Intervals(-made.centre, made.radius)
    assert torch.equal(negative.size, made.size)
    assert made.size[1, 2].tolist() == [13.0, 15.0]
    assert torch.equal(made.rows(torch.tensor([2, 0])).centre, made.centre[:, [2, 0]])
    still = nowhere(2, 3, 4, lower.double())
    assert still.centre.shape == (2, 3, 4)
    assert still.size.dtype == torch.float64
    assert float(still.size.max()) == 0


@pytest.mark.parametrize(("seed", "members"), [(3, 1), (4, 2), (5, 3)])
def test_some_changes_stay_in_the_boxes_of_every_member(seed, members):
    objective = scored_episode(seed, 5, 2, 3, members, spread=0.3)
    boxes, states = (
        boxed(objective).boxes,
        objective.replay(changed(objective, 40, torch.Generator().manual_seed(seed))),
    )
    for time, box in enumerate(boxes):
        assert box.centre.shape == (members, 1, 3)
        lower, upper = box.ends(objective.trajectory.states[time : time + 1])
        assert not ((states[:, time] < lower - 1e-12) | (states[:, time] > upper + 1e-12)).any()
        # Nearly linear maps leave little that no change reaches.
        reached = states[:, time].amax(0) - states[:, time].amin(0)
        assert bool((upper - lower <= 4 * reached + 1e-9).all())
