"""Displacements by random closed forms lie in what encloses them."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.bent_enclosure import BentEnclosure, _PiecewiseLinear
from rehearsal_torch.mechanisms.displacement import Intervals, enclosed, nowhere
from tests.toys.bent_episodes import DOUBLE, bent_form

FORMS = dict(
    seed=st.integers(0, 100_000),
    width=st.integers(1, 4),
    others=st.integers(0, 2),
    drugs=st.integers(1, 2),
    levels=st.integers(2, 4),
    held=st.integers(0, 2),
    within=st.sampled_from([0.0, 1.0, 9.0]),
)


def course_of(form, seed, horizon=5, spread=1.5):
    """An episode by a form, not what it has learnt from."""
    stream, width = torch.Generator().manual_seed(seed), form.outputs
    states = spread * torch.randn(horizon, width, generator=stream, dtype=DOUBLE)
    others = torch.randn(horizon, len(form.centre) - width, generator=stream, dtype=DOUBLE)
    taken = torch.randint(form.doses.actions, (horizon,), generator=stream)
    return form.trajectory(states, others, taken), stream


def drawn(form, seed, far, **course):
    """A course, a step with some actions allowed, paths off the course, and boxes of displacements there."""
    made, stream = course_of(form, seed, **course)
    allowed = torch.rand(made.actions, generator=stream) < 0.7
    here = made.states[1] + far * torch.randn(6, form.outputs, generator=stream, dtype=DOUBLE)
    ends = far * torch.randn(2, 6, form.outputs, generator=stream, dtype=DOUBLE).sort(0).values
    ends[:, 0] = ends[:, 1] = 0.0
    ends[:, 1, 0] = 1e-9
    return made, allowed, here, ends.masked_fill(form.held, 0.0), stream


def inside(box, around, points):
    """Whether points, (N, n, D), lie in the boxes around paths, (n, D)."""
    lower, upper = box.ends(around)
    return bool(((points >= lower) & (points <= upper)).all())


def hull_of(course, here, allowed, ahead):
    effects = course.branch(here, 1, allowed.nonzero()[:, 0]) - ahead.unsqueeze(1)
    return enclosed(*effects.aminmax(dim=1), 1)


@settings(max_examples=60, deadline=None)
@given(far=st.sampled_from([0.01, 0.5, 3.0]), **FORMS)
def test_a_step_encloses_the_images_of_random_points(far, seed, width, held, **sizes):
    form = bent_form(seed, width=width, held=min(held, width), **sizes)
    course, allowed, here, ends, stream = drawn(form, seed, far)
    taken, step = course.observed[1], BentEnclosure(course, 1, allowed)
    before, ahead = enclosed(*ends, 1), course.step(here, 1, taken)
    some = torch.rand(200, *here.shape, generator=stream, dtype=DOUBLE)
    some[:100] = some[:100].round()
    points = (here + ends[0] + some * (ends[1] - ends[0])).flatten(0, 1)
    images = course.step(points, 1, taken).unflatten(0, (200, 6))
    assert inside(step.kept(before, here, ahead), ahead, images)
    if bool(allowed.any()):
        images = course.branch(points, 1, allowed.nonzero()[:, 0]).unflatten(0, (200, 6)).movedim(2, 1)
        after = step.changed(before, here, ahead, hull_of(course, here, allowed, ahead))
        assert inside(after, ahead, images.flatten(0, 1))


@settings(max_examples=60, deadline=None)
@given(size=st.sampled_from([0.3, 1.0]), **FORMS)
def test_sequences_stay_in_the_affine_forms_of_their_steps(size, seed, width, held, **sizes):
    form = bent_form(seed, width=width, held=min(held, width), size=size, **sizes)
    course, stream = course_of(form, seed, 8)
    every, changes = torch.ones(course.actions, dtype=torch.bool), (0, 2, 3)
    actions = course.observed.repeat(300, 1)
    actions[:, changes] = torch.randint(course.actions, (300, 3), generator=stream)
    states, path, box = (
        [course.states[:1].expand(300, -1)],
        course.states[:1],
        nowhere(1, 1, width, form.ends),
    )
    for time in range(7):
        states.append(course.step(states[-1], time, actions[:, time]))
        step, ahead = BentEnclosure(course, time, every), course.step(path, time, course.observed[time])
        if time in changes:
            hull = enclosed(*(course.branch(path, time) - ahead).aminmax(dim=1), 1)
            box = step.changed(box, path, ahead, hull)
        else:
            box = step.kept(box, path, ahead)
        path = ahead
        assert inside(box, path, states[-1].unsqueeze(1))
        assert not bool(box.centre[..., form.held].any() | box.radius[..., form.held].any())


@settings(max_examples=30, deadline=None)
@given(**FORMS)
def test_a_known_displacement_is_followed_exactly(seed, width, held, **sizes):
    """Bends, products, doses and causes within the step leave no box to a single point."""
    form = bent_form(seed, width=width, held=min(held, width), **sizes)
    course, allowed, here, ends, _ = drawn(form, seed, 2.0)
    ahead = course.step(here, 1, course.observed[1])
    found = BentEnclosure(course, 1, allowed).kept(enclosed(ends[0], ends[0], 1), here, ahead)
    truth = course.step(here + ends[0], 1, course.observed[1]) - ahead
    torch.testing.assert_close(found.centre[0], truth, rtol=0, atol=1e-9)
    assert float(found.radius.max()) < 1e-9


def line(seed, width=3, **filled):
    """A form without bends, products, or doses that depend on the state."""
    form = bent_form(seed, width=width, bent=0.0, **filled)
    form.ends = 1e6 * form.ends.sign()
    return form


@pytest.mark.parametrize("seed", range(5))
def test_lines_are_enclosed_without_loss_over_any_steps(seed):
    """The box of the images of all corners, and the best sum of a linear reward; interval by interval,
    both would be wider."""
    form = line(seed, within=9.0)
    course, stream = course_of(form, seed, 8)
    start = torch.randn(1, 3, generator=stream, dtype=DOUBLE)
    corners = start + torch.tensor(list(product([-1.0, 1.0], repeat=3)), dtype=DOUBLE)
    box, narrow = enclosed(start - 1, start + 1, 1), enclosed(start - 1, start + 1, 1)
    path, gradient = course.states[:1], torch.randn(3, generator=stream, dtype=DOUBLE)
    states, gains, middle, steps = path + corners, torch.zeros(8, dtype=DOUBLE), 0.0, 0.0
    for time in range(7):
        step = BentEnclosure(course, time, torch.zeros(course.actions, dtype=torch.bool), gradient)
        states, ahead = (course.step(each, time, course.observed[time]) for each in (states, path))
        box = step.kept(box, path, ahead)
        narrow = step.kept(Intervals(narrow.centre, narrow.radius), path, ahead)
        path = ahead
        gains, middle = gains + (states - path) @ gradient, middle + float(box.centre[0, 0] @ gradient)
        steps += float(box.radius[0, 0] @ gradient.abs())
        ends = torch.stack(box.ends(path))[:, 0]
        torch.testing.assert_close(ends, torch.stack(states.aminmax(dim=0)), rtol=0, atol=1e-8)
    assert bool((narrow.radius > 1.05 * box.radius).all())
    reach = float(box.gained.abs().sum())
    assert float(gains.max()) == pytest.approx(middle + reach, abs=1e-8)
    assert reach < 0.95 * steps


def test_an_unknown_dose_adds_its_hull_and_its_slopes():
    """x' = (1 - .5 + v_a) x + ..., with v of 0, .3 and -.7: of a displacement between 2 and 4, the middle
    slope of the middle, its half width, and half the range of v at the largest displacement."""
    form = line(2, width=1, others=0, levels=3)
    form.weights[1], form.weights[6:10, 0] = -0.5, torch.tensor([1.0, 0.3, 2.0, -0.7], dtype=DOUBLE)
    course, _ = course_of(form, 0)
    allowed, here = torch.tensor([True, True, True]), course.states[1:2]
    ahead = course.step(here, 1, course.observed[1])
    ends = torch.tensor([[[2.0]], [[4.0]]], dtype=DOUBLE)
    hull = hull_of(course, here, allowed, ahead)
    found = BentEnclosure(course, 1, allowed).changed(enclosed(*ends, 1), here, ahead, hull)
    assert float(found.centre - hull.centre) == pytest.approx(0.3 * 3, abs=1e-9)
    assert float(found.radius - hull.radius) == pytest.approx(0.3 * 1 + 0.5 * 4, abs=1e-9)
    effects = course.branch(here, 1)[0] - ahead
    assert float(2 * hull.radius) == pytest.approx(float(effects.max() - effects.min()))


def test_slopes_between_two_values_are_those_of_the_pieces_that_they_meet():
    knots = [torch.tensor(each, dtype=DOUBLE) for each in ([[0.0], [1.0]], [[-2.0], [2.0]])]
    bent = _PiecewiseLinear(*knots, torch.tensor([1.0, 2.0, -4.0], dtype=DOUBLE).view(1, 3, 1))
    for ends, slopes in {
        (-3, -2.5): (0, 0),
        (-1, 0.5): (1, 3),
        (0.5, 1.5): (-1, 3),
        (1.5, 5): (-1, 0),
    }.items():
        lower, upper = torch.tensor(ends, dtype=DOUBLE).view(2, 1, 1)
        assert [float(each) for each in bent.between(lower, upper)] == list(slopes)


def test_a_single_state_is_enclosed_by_its_chord():
    """Of one bent state without a product, the ends are as far off the chord as its kinks are."""
    form = bent_form(3, width=1, others=0, within=0.0)
    form.weights[5] = 0.0
    course, allowed, here, ends, _ = drawn(form, 1, 2.0)
    ahead = course.step(here, 1, course.observed[1])
    found = BentEnclosure(course, 1, allowed).kept(enclosed(*ends, 1), here, ahead)
    at = torch.linspace(0, 1, 4001, dtype=DOUBLE)[:, None, None] * (ends[1] - ends[0]) + ends[0]
    moved = course.step((here + at).flatten(0, 1), 1, course.observed[1]).unflatten(0, (4001, 6)) - ahead
    slope = (moved[-1] - moved[0]) / (ends[1] - ends[0]).clamp_min(1e-300)
    off = (moved - slope * (at - ends[0])).aminmax(dim=0)
    wide = slope.abs() * (ends[1] - ends[0]) / 2 + (off.max - off.min) / 2
    torch.testing.assert_close(found.radius[0], wide, rtol=1e-3, atol=1e-9)
