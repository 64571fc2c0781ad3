import numpy as np
import pytest
import torch

from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.interval_sweep import spread, swept
from rehearsal_torch.search.alterations.joint_candidates import AlterationBudget, joint_candidates
from rehearsal_torch.search.alterations.qualifying import Programs, Qualifying, apart
from tests.toys.counted import bands, cases
from tests.toys.toy_posteriors import Toy, toy_cases

TOY = Toy((1.0,), (1.0,), (0.2,), 0.5, (0.5, 2.5))
PROGRAMS = Programs(1, 20, 20)


@pytest.fixture(scope="module")
def one():
    return SuccessProbability.for_cases(
        TOY,
        toy_cases(2),
        search_scenarios=6000,
        validation_scenarios=6000,
        test_scenarios=10,
        information_models=5,
        entropy="sampled",
    ).sets[0]


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
def test_the_interval_is_that_of_the_closed_form_and_every_point_qualifies_by_both_samples(one, tau):
    found = Qualifying(tau, 20, None, PROGRAMS)
    pieces = found.pieces(one, 1)
    true = [z for z in np.linspace(-3, 3, 6001) if TOY.success(z) >= tau]
    assert float(pieces[0, 0]) == pytest.approx(true[0], abs=0.06)
    assert float(pieces[-1, 1]) == pytest.approx(true[-1], abs=0.08)
    points = found.points(one, 1).points
    assert points.shape == (20, 1)
    for validating in (True, False):
        assert (one.share_of(1, points, validating=validating) >= tau).all()
    # The most probable stands first, the ends of the interval next.
    assert float(points[0]) == pytest.approx(1.5, abs=0.3)
    assert set(points[1:3, 0].tolist()) == {float(pieces[0, 0]), float(pieces[0, 1])} or len(pieces) > 1


def test_how_far_a_set_stays_from_tau_is_told(one):
    found = Qualifying(0.999, 20, None, PROGRAMS).points(one, 0)
    assert found.points.shape == (0, 1)
    assert found.share == pytest.approx(max(TOY.success(z) for z in np.linspace(-3, 3, 301)), abs=0.02)
    assert Qualifying(0.5, 20, AlterationBudget(0.0, {}, {"a": 50.0}), PROGRAMS).points(one, 0).share == -1


def test_points_are_taken_furthest_first():
    points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [0.0, 50.0]], dtype=torch.float64)
    begin, width = (
        torch.tensor([[0.0, 0.0]], dtype=torch.float64),
        torch.tensor([1.0, 100.0], dtype=torch.float64),
    )
    assert apart(points, begin, 2, width).tolist() == [[1.0, 0.0], [0.0, 50.0]]
    assert sorted(apart(points, begin, 9, width).tolist()) == sorted(points.tolist())
    assert apart(points[:0], begin, 3, width).shape == (0, 2)
    # Distances from those that are selected are in units of the box as well: the last is close to the first.
    line = torch.tensor([[0.0, 100.0], [0.48, 0.0], [1.0, 0.0], [0.0, 55.0]], dtype=torch.float64)
    assert apart(line, begin, 3, width).tolist() == [[0.0, 100.0], [1.0, 0.0], [0.48, 0.0]]


FAR = 1e5
SEARCH = [(0, 4), (1, 5), (2, 6), (3, 7)]
VALIDATION = [(-5, 3)] * 3 + [(4, 8)] * 3


def counted(search, validation, names=("a",), box=(-10.0, 10.0), shifts=(0.0, FAR), direction=(1.0,)):
    """The same scenarios in boxes at zero and far from it."""
    boxes = [box if isinstance(box, dict) else (box[0] + shift, box[1] + shift) for shift in shifts]
    parts = [bands(each, *shifts, direction=direction) for each in (search, validation, validation)]
    return SuccessProbability(cases(names, *boxes), names, *parts, torch.zeros(len(boxes)), None)


def listed(points):
    return points.flatten().tolist()


@pytest.mark.parametrize(("index", "shift"), [(0, 0.0), (1, FAR)])
def test_intervals_are_those_that_hold_often_enough_in_both_samples(index, shift):
    one, found = counted(SEARCH, VALIDATION), Qualifying(0.5, 9, None, PROGRAMS)
    # Two of four hold in [1, 6], three of six in [-5, 3] and in [4, 8].
    pieces = torch.tensor([[1.0, 3.0], [4.0, 6.0]], dtype=torch.float64)
    assert (found.pieces(one, index) - shift).tolist() == pieces.tolist()
    points = found.points(one, index)
    # All four hold in the middle of [3, 4], where nothing of the validation does.
    assert points.share == 0.0
    assert listed(points.points - shift) == pytest.approx(spread(pieces, 9).tolist(), abs=1e-9)
    best = found.best(one, index)
    assert (listed(best.points - shift), best.share) == ([3.5], 0.0)


@pytest.mark.parametrize(
    ("search", "validation", "leads"),
    [
        ([(0, 4), (2, 6), (8, 9), (8.5, 9)], [(2.5, 9), (9.5, 9.9)], True),
        ([(0, 4), (2, 6), (8, 9), (9.5, 9.9)], [(0, 3.5), (9.5, 9.9), (9.7, 9.9)], False),
        ([(0, 4), (5, 6), (8, 9), (9.5, 9.9)], [(0, 9)], False),
    ],
    ids=["exactly tau in both", "less in the validation", "less in the search"],
)
def test_the_most_probable_point_leads_if_it_reaches_tau_in_both_samples(search, validation, leads):
    one, found = counted(search, validation), Qualifying(0.5, 4, None, PROGRAMS)
    points, pieces = found.points(one, 0), found.pieces(one, 0)
    expected = spread(pieces, 4)
    assert listed(points.points) == ([3.0, *expected[:3].tolist()] if leads else expected.tolist())
    best = found.best(one, 0)
    assert points.share == best.share == float(one.share_of(0, best.points))


def test_a_limit_on_costs_narrows_the_box():
    one = counted([(-5, 5)] * 2, [(-5, 5)] * 2)
    limited = Qualifying(0.5, 4, AlterationBudget(4.0, {"a": 2.0}, {"a": FAR + 1.0}), PROGRAMS)
    assert (limited.pieces(one, 1) - FAR).tolist() == [[-1.0, 3.0]]
    assert (limited.anywhere(one, 1) - FAR).flatten().tolist() == [-1.0, 3.0, 1.0, 2.0]
    # Near zero nothing is affordable.
    for nothing in (limited.anywhere(one, 0), limited.best(one, 0).points, limited.points(one, 0).points):
        assert nothing.shape == (0, 1)
    assert limited.best(one, 0).share == -1.0
    exact = Qualifying(0.5, 4, AlterationBudget(0.0, {}, {"a": 2.0}), PROGRAMS)
    assert exact.anywhere(one, 0).flatten().tolist() == [2.0] * 4, "one affordable value"


def test_where_nothing_is_desired_any_affordable_point_is_the_best():
    one = counted([(20, 30)], [(-10, -9)])
    found = Qualifying(0.5, 4, None, PROGRAMS)
    best, points = found.best(one, 1), found.points(one, 1)
    assert (listed(best.points - FAR), best.share) == ([-10.0], 1.0)
    # No point qualifies, and yet some are affordable.
    assert (points.points.shape, points.share) == ((0, 1), 1.0)


PAIR = {"names": ("a", "b"), "box": {"a": (0.0, 1.0), "b": (0.5, 1.5)}, "direction": (1.0, 1.0)}


def test_several_variables_have_the_most_probable_point_and_others_far_from_it():
    one = counted(
        [(1, 1.7), (1, 1.5), (1.4, 2), (0.5, 0.7)],
        [(0.7, 1.5), (1.1, 1.7), (0.5, 1.3)],
        **PAIR,
        shifts=(0, 0),
    )
    found = Qualifying(0.5, 7, AlterationBudget(1.21, {}, {"b": 0.5}), PROGRAMS)
    points, best = found.points(one, 1), found.best(one, 1)
    starts = one.starts(7)[:, 1]
    assert torch.equal(found.anywhere(one, 1), starts[starts.sum(-1) <= 1.71])
    tried = torch.cat([found.anywhere(one, 1), swept(one, 4, 5, 500)[[1]]])
    shares = one.share_of(1, tried, validating=False)
    assert torch.equal(best.points[0], tried[shares.argmax()])
    assert shares.max() == 0.75
    assert one.share_of(1, tried).argmax() != shares.argmax()
    assert points.share == best.share == float(one.share_of(1, best.points))
    candidates = joint_candidates(one, 1, 0.5, 1, 20, 20)
    expected = apart(candidates[candidates.sum(-1) <= 1.71], best.points, 6, torch.ones(2).double())
    assert torch.equal(points.points, torch.cat([best.points, expected]))


def test_without_an_affordable_best_point_those_that_qualify_tell_the_share():
    one = counted([(-9, 9)] * 2, [(-9, 9), (0.9, 1.1)], **PAIR, shifts=(0,))
    # The line through the middle ends here; nothing else is affordable.
    found = Qualifying(0.5, 7, AlterationBudget(1e-6, {}, {"b": 1.0}), PROGRAMS)
    assert len(found.best(one, 0).points) == 0
    points = found.points(one, 0)
    assert points.points.tolist() == [[0.0, 1.0]] * len(points.points)
    assert points.share == 1.0
    nowhere = Qualifying(0.5, 7, AlterationBudget(1e-6, {}, {"b": 7.0}), PROGRAMS).points(one, 0)
    assert (nowhere.points.shape, nowhere.share) == ((0, 2), -1.0)


def test_a_variable_that_is_held_and_several_points_to_begin_from_are_no_trouble():
    points = torch.tensor([[0.0, 7.0, -1.0], [0.4, 7.0, -0.9], [1.0, 7.0, -1.0]], dtype=torch.float64)
    width = torch.tensor([1.0, 0.0, 0.1], dtype=torch.float64)
    assert apart(points, points[[0, 2]], 1, width).tolist() == [[0.4, 7.0, -0.9]]
    assert apart(points, points[:1], 2, width).tolist() == [[0.4, 7.0, -0.9], [1.0, 7.0, -1.0]]
