"""An objective as BoTorch is given it: value, gradient, undefined points, and coordinates that are held."""

import pytest
import torch

from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.search.trials.unit_acquisition import UnitAcquisition, ascended
from rehearsal_torch.spaces.candidate_region import CandidateRegion, with_levels
from rehearsal_torch.spaces.polytope import Polytope

LOWER, UPPER = torch.tensor([0.0, -1.0], dtype=torch.float64), torch.tensor([2.0, 3.0], dtype=torch.float64)
BOX = CandidateRegion.within(LOWER, UPPER, None)


def starts(count=8, region=BOX):
    return region.spread(count, 0)


def hills(points):
    low, high = ((points[..., 0] - centre).square() for centre in (0.3, 1.7))
    return (-20 * low).exp() + 1.5 * (-20 * high).exp() - 0.1 * points[..., 1].square()


def test_botorch_is_given_the_value_and_its_gradient():
    made = UnitAcquisition(hills, BOX, UNLIMITED)
    made.begin(starts(4))
    at = starts(4).unsqueeze(1).requires_grad_(True)
    told = made(at)
    (gradient,) = torch.autograd.grad(told.sum(), at)
    plain = starts(4).requires_grad_(True)
    (wanted,) = torch.autograd.grad(hills(BOX.units(plain)).sum(), plain)
    torch.testing.assert_close(told.detach(), hills(BOX.units(starts(4))))
    torch.testing.assert_close(gradient[:, 0], wanted)
    assert made.evaluations == 4
    with torch.no_grad():
        torch.testing.assert_close(made(at.detach()), told.detach())
    assert made.evaluations == 4


def test_undefined_points_are_flat_and_lower_than_all_others():
    made = UnitAcquisition(lambda points: points[..., 0].log(), BOX, UNLIMITED)
    at = BOX.unit(torch.tensor([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]], dtype=torch.float64)).unsqueeze(1)
    made.begin(at[:, 0])
    values = made(at.requires_grad_(True))
    (gradient,) = torch.autograd.grad(values.sum(), at)
    assert made.holes
    assert values.argmin() == 0
    assert bool(gradient[0].eq(0).all())
    assert bool(gradient[1:, 0, 0].gt(0).all())


def test_a_batch_of_undefined_points_is_lower_than_the_defined_ones_before():
    made = UnitAcquisition(lambda points: points[..., 0].log() - 3, BOX, UNLIMITED)
    first, second = (
        BOX.unit(torch.tensor([[low, 0.0], [low, 1.0]], dtype=torch.float64)).unsqueeze(1)
        for low in (0.5, 0.0)
    )
    made.begin(first[:, 0])
    before = made(first.requires_grad_(True))
    assert not made.holes
    assert float(made(second.requires_grad_(True)).detach().max()) < float(before.detach().min())


@pytest.mark.parametrize("limited", [False, True])
def test_each_start_ascends_at_its_own_level(limited):
    # -(a - b)^2 - .01 b^2 at a = 0, .5, 2: b = a / 1.01; with a + b <= 2.2 at a = 2 only b = .2.
    faces = Polytope(("a", "b"), torch.ones(1, 2).double(), torch.tensor([2.2]).double()) if limited else None
    region = with_levels(CandidateRegion.within(LOWER, UPPER, faces), {0: (0.0, 0.5, 2.0)})

    def value(points):
        return -(points[..., 0] - points[..., 1]).square() - 0.01 * points[..., 1].square()

    begin = region.unit(torch.tensor([[0.0, 0.1], [0.5, 0.1], [2.0, -0.5]], dtype=torch.float64))
    points, values = ascended(UnitAcquisition(value, region, UNLIMITED), begin, 100)
    found = region.units(points)
    wanted = {0.0: 0.0, 0.5: 0.5 / 1.01, 2.0: 0.2 if limited else 2 / 1.01}
    assert sorted(found[:, 0].tolist()) == [0.0, 0.5, 2.0]
    for a, b in found.tolist():
        assert b == pytest.approx(wanted[a], abs=1e-3)
    torch.testing.assert_close(value(found), values)
    assert bool((values.diff() <= 0).all())


def test_limits_on_coordinates_with_levels_alone_are_left_to_the_starts():
    faces = Polytope(("a", "b"), torch.tensor([[1.0, 0.0]]).double(), torch.tensor([0.5]).double())
    region = with_levels(CandidateRegion.within(LOWER, UPPER, faces), {0: (0.0, 0.5, 2.0)})
    begin = region.spread(6, 0)
    points, _ = ascended(UnitAcquisition(hills, region, UNLIMITED), begin, 100)
    assert set(region.units(points)[:, 0].tolist()) == {0.0, 0.5}
    assert region.units(points)[:, 1].tolist() == pytest.approx([0.0] * 6, abs=1e-3)


def test_a_limit_on_a_coordinate_without_levels_alone_is_kept() -> None:
    # b <= 1, of a bowl with its top at b = 2.
    faces = Polytope(("a", "b"), torch.tensor([[0.0, 2.0]]).double(), torch.tensor([2.0]).double())
    region = with_levels(CandidateRegion.within(LOWER, UPPER, faces), {0: (0.0, 0.5, 2.0)})
    made = UnitAcquisition(lambda points: -(points[..., 1] - 2).square(), region, UNLIMITED)
    points, _ = ascended(made, region.spread(4, 0), 100)
    assert region.units(points)[:, 1].tolist() == pytest.approx([1.0] * 4, abs=1e-6)


def test_where_nothing_is_defined_all_is_flat_at_zero() -> None:
    made = UnitAcquisition(lambda points: torch.nan * points.sum(-1), BOX, UNLIMITED)
    assert made(starts(3).unsqueeze(1)).tolist() == [0.0, 0.0, 0.0]
    assert made.holes
    # What is undefined later is below what was defined before, of either sign.
    for value in (5.0, -5.0):
        holed = UnitAcquisition(lambda points, value=value: points.log().sum(-1) * 0 + value, BOX, UNLIMITED)
        at = BOX.unit(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)).unsqueeze(1)
        assert float(holed(at[:1])) == value
        assert not holed.holes
        assert float(holed(at[1:])) < value


def test_batches_of_batches_keep_their_shape() -> None:
    made = UnitAcquisition(hills, BOX, UNLIMITED)
    points = starts(6)
    at = points.reshape(2, 3, 1, 2)
    torch.testing.assert_close(made(at), hills(BOX.units(points)).reshape(2, 3))
    made.begin(points)
    told = made(at.clone().requires_grad_(True))
    torch.testing.assert_close(told.detach(), hills(BOX.units(points)).reshape(2, 3))
    assert made.evaluations == 6


class Ended(Budget):
    """A budget that is spent after so many questions."""

    def __init__(self, questions):
        super().__init__(limit_s=1e9)
        self.questions = questions

    def out(self):
        self.questions -= 1
        return self.questions < 0


@pytest.mark.parametrize("questions", [0, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_a_spent_budget_leaves_the_best_points_as_many_as_there_were_starts(count, questions) -> None:
    seen = []

    def noted(points):
        seen.append(points.detach().clone())
        return hills(points)

    function = UnitAcquisition(noted, BOX, Ended(questions))
    points, values = ascended(function, starts(count), 100)
    every = torch.cat(seen)
    assert len(every) == count * (questions + 1) == function.evaluations
    torch.testing.assert_close(values, hills(every).topk(count).values)
    torch.testing.assert_close(hills(BOX.units(points)), values)
    # The next ascent with this function forgets them.
    _, again = ascended(function, starts(count), 100)
    torch.testing.assert_close(again, hills(BOX.units(starts(count))).sort(descending=True).values)


def test_under_limits_the_starts_ascend_one_by_one_and_otherwise_together() -> None:
    faces = Polytope(("a", "b"), torch.ones(1, 2).double(), torch.tensor([2.2]).double())
    for limits, count in ((faces, 1), (None, 4)):
        region, sizes = CandidateRegion.within(LOWER, UPPER, limits), []

        def noted(points, sizes=sizes):
            if points.requires_grad:
                sizes.append(len(points))
            return hills(points)

        points, values = ascended(UnitAcquisition(noted, region, UNLIMITED), region.spread(4, 0), 100)
        assert sizes[0] == max(sizes) == count
        assert points.shape == (4, 2)
        assert bool((values.diff() <= 0).all())
